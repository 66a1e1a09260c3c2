"""evaluate() and its result, as a user meets them."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.naive_bayes import GaussianNB

import afape
from afape.estimators.catalogue import METHODS
from afape.estimators.eff.components import component_steps


def run(parts, policy=None, **options):
    classifier, data, _ = parts
    options = {"missingness": afape.MAR(given=["x0"]), **options}
    return afape.evaluate(data, policy or afape.RandomSubset(0.5), classifier, **options)


def test_table_and_items_agree(parts):
    result = run(parts)
    assert result.table["estimator"].unique().tolist() == [m.name for m in METHODS.values() if m.view != "hybrid"]
    for line in result.table.itertuples():
        estimate = result[line.estimator][line.target]
        assert estimate.value == line.estimate
        assert_array_equal([estimate.std_error, *estimate.interval()], [line.std_error, line.lower, line.upper])
        assert line.estimator == "mi" or len(estimate.influence) == len(parts[1])
    assert "ipw-semi" in result
    assert "drl" not in result
    with pytest.raises(KeyError, match="No estimator 'nothing' here"):
        result["nothing"]


def test_known_beside_learned(experiment, parts):
    known = experiment.mechanism.propensity(parts[1])
    both = run(parts, propensity=[None, known])
    assert {"ipw-semi", "ipw-semi-gt", "ipw-miss-gt"} <= set(both.answers)
    assert both["ipw-semi-gt"]["total"].value == run(parts, propensity=known)["ipw-semi"]["total"].value
    assert both["ipw-semi"]["total"].value == run(parts)["ipw-semi"]["total"].value
    assert both.table.set_index("estimator").loc["ipw-semi", "error_method"].unique().tolist() == ["stacked"]


def test_same_seed_same_numbers_whatever_the_jobs(parts):
    options = {"walk": afape.WalkOptions(max_states=2, n_trajectories=16, chunk_lines=10_000)}
    a, b = run(parts, **options), run(parts, n_jobs=2, **options)
    pd.testing.assert_frame_equal(a.table, b.table)
    assert a.support.sampled > 0
    assert "rows sampled" in repr(a)
    other = run(parts, random_state=1, **options)
    assert other["ipw-semi"]["total"].value != a["ipw-semi"]["total"].value


def test_any_scikit_learn_classifier_is_a_propensity(parts):
    bayes = GaussianNB()
    result = run(parts, propensity=bayes, estimators=["ipw-semi"])
    assert result.table["error_method"].unique().tolist() == ["propensity as known"]
    plain = run(parts, estimators=["ipw-semi"])
    assert (
        abs(result["ipw-semi"]["total"].value - plain["ipw-semi"]["total"].value)
        < 3 * plain["ipw-semi"]["total"].std_error
    )


def test_paired_difference_of_policies(parts):
    a = run(parts, afape.RandomSubset(0.5))["ipw-semi"]["total"]
    b = run(parts, afape.RandomSubset(0.45))["ipw-semi"]["total"]
    difference = a - b
    assert_allclose(difference.value, a.value - b.value)
    assert difference.std_error < 0.5 * np.hypot(a.std_error, b.std_error)


@pytest.mark.filterwarnings("ignore::afape.warnings.SeenRowsWarning")
def test_clusters_reach_the_standard_error(experiment):
    complete = experiment.complete
    frame = pd.DataFrame(complete.values, columns=complete.columns).assign(Y=complete.labels)
    frame = pd.concat([frame, frame], ignore_index=True).assign(who=np.tile(np.arange(len(complete)), 2))
    once = afape.Retrospective(frame, complete.problem)
    clustered = afape.Retrospective(frame, complete.problem, cluster="who")
    policy, classifier = afape.RandomSubset(0.5), afape.ImputedClassifier().fit(experiment.complete)
    a, b = (
        afape.true_cost(d, policy, classifier)["total"].std_error for d in (once.take(np.arange(len(once))), clustered)
    )
    assert_allclose(b / a, np.sqrt(2), rtol=0.01)


def test_tables_of_any_library_give_the_same_answer(experiment, parts):
    classifier, data, _ = parts
    frame = pd.DataFrame(data.values, columns=data.columns).assign(Y=data.labels)
    clean = {c: [None if isinstance(v, float) and np.isnan(v) else v for v in frame[c]] for c in frame}
    answers = [
        afape.evaluate(
            afape.Retrospective(table, data.problem),
            afape.RandomSubset(0.5),
            classifier,
            missingness=afape.MAR(given=["x0"]),
            estimators=["ipw-semi"],
        )["ipw-semi"]["total"].value
        for table in (frame, pl.DataFrame(clean), pa.table(clean))
    ]
    assert answers[0] == answers[1] == answers[2]


def test_text_html_and_dict(parts):
    result = run(parts)
    assert repr(result).startswith("RandomSubset(0.5) with ImputedClassifier()")
    assert "ipw-semi" in result._repr_html_()
    assert "<table" in result._repr_html_()
    again = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert len(again["table"]) == 3 * len([m for m in METHODS.values() if m.view != "hybrid"])
    assert again["n_rows"] == len(parts[1])
    assert "sets wanted" in repr(result.support)


def test_support_names_what_the_policy_wants(parts):
    sets = run(parts).support.sets.set_index("set")
    assert set(sets.index) == {"(free groups)", "x1", "x2", "x1 + x2"}
    assert_allclose(sets.loc["x1", "wanted"], 0.5, atol=0.01)
    assert_allclose(sets.loc["x1 + x2", "wanted"], 0.25, atol=0.02)
    data = parts[1]
    assert sets.loc["x1 + x2", "rows_recorded"] == data.complete.sum()


@pytest.mark.filterwarnings("ignore::afape.warnings.NormalizerWarning")
@pytest.mark.filterwarnings("ignore::afape.warnings.AssumptionWarning", "ignore::afape.warnings.BalanceWarning")
def test_wanting_what_nobody_recorded_is_said_loudly(parts):
    classifier, data, _ = parts
    either = data.hide(np.column_stack([np.ones(len(data)), data.labels == 0, data.labels == 1]).astype(bool))
    with pytest.warns(
        afape.warnings.SupportWarning, match="25 % of the policy's runs want a set of groups that is not recorded"
    ):
        result = afape.evaluate(
            either, afape.RandomSubset(0.5), classifier, missingness=afape.MCAR(), estimators=["ipw-semi"]
        )
    assert_allclose(result.support.unsupported, 0.25, atol=0.03)


def test_progress_is_told(parts):
    told = []
    run(parts, progress=lambda done, todo: told.append((done, todo)))
    whole, torn = parts[1].complete.sum(), (~parts[1].complete).sum()
    components = component_steps(len(parts[1]))  # rows that eff-semi completes, at most
    assert told[-1][0] == told[-1][1] == 2 * len(parts[1]) + whole + 10 * torn + components
    assert [d for d, _ in told] == sorted(d for d, _ in told)


def test_after_and_before_weights_agree_on_average(parts):
    before, after = (run(parts, acquisition_weight=w)["ipw-semi"]["acquisition"] for w in ("before", "after"))
    assert abs(before.value - after.value) < 4 * after.std_error
    assert before.std_error < after.std_error


def test_incomplete_data_have_no_true_cost(parts):
    classifier, data, _ = parts
    with pytest.raises(ValueError, match=r"'data' must be complete, but \d+ of \d+ rows have gaps"):
        afape.true_cost(data, afape.AcquireAll(), classifier)
