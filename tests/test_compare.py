"""Several policies on the same rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.dummy import DummyRegressor
from worlds import Zero

import afape
from afape.benchmark.synthetic import synthetic_mar, synthetic_policies
from afape.estimators.differences import draws, paired_differences


@pytest.fixture(scope="module")
def comparison():
    experiment = synthetic_mar(8000)
    classifier, data, _ = experiment.prepare()
    return afape.compare(data, synthetic_policies(), classifier, missingness=experiment.missingness), (
        experiment, classifier, data,
    )  # fmt: skip


def test_each_policy_is_evaluated_as_if_alone(comparison):
    found, (experiment, classifier, data) = comparison
    for name, policy in synthetic_policies().items():
        alone = afape.evaluate(data, policy, classifier, missingness=experiment.missingness)
        for estimator in ("ipw-semi", "drl-semi", "dm-semi"):
            assert found[name][estimator]["total"].value == alone[estimator]["total"].value
    assert len(found.table) == 4 * len(found["Adaptive"].table)


def test_differences_are_paired_and_simultaneous(comparison):
    found, _ = comparison
    table = found.differences("ipw-semi")
    assert len(table) == 6
    estimates = found.estimates("ipw-semi")
    line = table[(table["policy"] == "Random 10 %") & (table["minus"] == "Random 90 %")].iloc[0]
    difference = estimates["Random 10 %"] - estimates["Random 90 %"]
    assert_allclose([line["difference"], line["std_error"]], [difference.value, difference.std_error])
    critical = (line["upper"] - line["difference"]) / line["std_error"]
    # more than one interval's 1.96, less than Bonferroni's 2.64 for six pairs
    assert 2.0 < critical < 2.64
    assert ((table["p_value"] > 0) & (table["p_value"] <= 1)).all()
    assert ((table["lower"] > 0) | (table["upper"] < 0)).equals(table["p_value"] < 0.05)


def test_ranking_has_its_uncertainty(comparison):
    found, _ = comparison
    ranking = found.ranking("drl-semi", "acquisition")
    assert ranking["policy"].tolist() == ["Random 10 %", "Adaptive", "Random 50 %", "Random 90 %"]
    assert ranking["rank_lower"].tolist() == ranking["rank_upper"].tolist() == [1, 2, 3, 4]
    total = found.ranking("drl-semi", "total")
    assert_allclose(total["best"].sum(), 1.0)
    assert (total["rank_lower"] <= total["rank_upper"]).all()
    assert "4 policies on" in repr(found)


def test_simultaneous_intervals_cover_jointly():
    """With equal truths, all differences contain 0 in about 95 % of the draws."""
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(200):
        noise = rng.normal(size=(3, 300)) + rng.normal(size=300)
        estimates = {f"p{k}": afape.Estimate(x.mean(), x - x.mean(), rows="r") for k, x in enumerate(noise)}
        table = paired_differences(estimates, 0.95)
        hits += bool(((table["lower"] <= 0) & (table["upper"] >= 0)).all())
    assert abs(hits / 200 - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 200)


def test_estimators_without_errors_ask_for_replicates(comparison):
    _, (experiment, classifier, data) = comparison
    policies = {k: v for k, v in synthetic_policies().items() if k != "Random 90 %"}
    options = {"missingness": experiment.missingness, "estimators": ["dm-semi"], "values": DummyRegressor()}
    with pytest.raises(ValueError, match="Call compare with bootstrap"):
        afape.compare(data, policies, classifier, **options).differences("dm-semi")
    more = afape.compare(data, policies, classifier, bootstrap=4, **options)
    assert more.differences("dm-semi")["std_error"].gt(0).all()


@pytest.mark.parametrize("policies", [{}, [afape.AcquireAll()], None])
def test_bad_policies_are_refused(comparison, policies):
    _, (experiment, classifier, data) = comparison
    with pytest.raises((TypeError, ValueError), match="'policies' must be a mapping"):
        afape.compare(data, policies, classifier, missingness=experiment.missingness)


def test_the_policy_to_blame_is_named(comparison):
    _, (experiment, classifier, data) = comparison
    with pytest.raises(TypeError, match=r"policies\['b'\]"):
        afape.compare(data, {"a": afape.AcquireAll(), "b": 3}, classifier, missingness=experiment.missingness)


def test_bad_target_is_refused(comparison):
    with pytest.raises(ValueError, match="'target' must be one of"):
        comparison[0].ranking(target="everything")


def test_replicates_of_compared_policies_are_paired(comparison):
    _, (experiment, classifier, data) = comparison
    same = {"a": afape.RandomSubset(0.5), "b": afape.RandomSubset(0.5)}
    found = afape.compare(
        data, same, classifier, missingness=experiment.missingness, bootstrap=5, estimators=["dm-semi"]
    )
    a, b = (found[name]["dm-semi"]["total"].replicates for name in same)
    assert (a == b).all()
    line = found.differences("dm-semi").iloc[0]
    assert line["difference"] == line["std_error"] == 0
    assert line["p_value"] == 1


def test_costs_that_are_known_exactly_do_not_widen_the_others(comparison):
    """Acquisition of AcquireNone and AcquireAll is certain: their difference has no error, and p is as small as can be."""
    _, (experiment, classifier, data) = comparison
    policies = {"none": afape.AcquireNone(), "all": afape.AcquireAll(), "half": synthetic_policies()["Adaptive"]}
    found = afape.compare(data, policies, classifier, missingness=experiment.missingness, estimators=["ipw-semi"])
    table = found.differences("ipw-semi", "acquisition").set_index(["policy", "minus"])
    certain = table.loc[("none", "all")]
    assert_allclose(certain[["difference", "lower", "upper"]].astype(float), -2.0, rtol=1e-9)
    assert certain["p_value"] < 1e-3
    other = table.loc[("none", "half")]
    critical = (other["upper"] - other["difference"]) / other["std_error"]
    assert 1.9 < critical < 2.1  # one uncertain cost in all the pairs


@pytest.mark.filterwarnings("ignore::afape.warnings.ValueFallbackWarning")
@pytest.mark.filterwarnings("ignore::afape.warnings.NormalizerWarning")
def test_policies_without_an_answer_are_left_out():
    import pandas as pd

    rng = np.random.default_rng(0)
    n = 240
    b = np.where(rng.random(n) < 0.5, 1.0, np.nan)
    c = np.where(np.isnan(b), 1.0, np.nan)  # b and c never together
    frame = pd.DataFrame({"a": rng.normal(size=n), "b": b, "c": c, "y": np.arange(n) % 2})
    problem = afape.Problem({n: [n] for n in "abc"}, {"b": 1.0, "c": 1.0}, "y", 1.0)

    policies = {"none": afape.AcquireNone(), "b": afape.FixedOrder(["b"]), "all": afape.AcquireAll()}
    with pytest.warns(afape.warnings.SupportWarning):
        found = afape.compare(
            afape.Retrospective(frame, problem),
            policies,
            Zero(),
            missingness=afape.MCAR(),
            estimators=["ipw-semi", "dm-semi"],
        )
    ranking = found.ranking("ipw-semi")
    assert ranking["policy"].tolist() == ["none", "b", "all"]  # the bounds of "all" lie above both estimates
    assert ranking["verdict"].tolist()[2] == "not the cheapest"
    assert "3 policies on 240 rows" in repr(found)


def test_a_near_duplicate_does_not_widen_the_other_differences():
    """Two policies that differ in very few rows have a difference of few degrees of freedom, but only they do."""
    classifier, data, _ = synthetic_mar(4000).prepare()
    extreme = np.sort(data.values[:, 0])[-3]

    def nearly_none(values, acquired):
        return np.where((values[:, 0] > extreme) & ~acquired[:, 1], 1, 3)

    policies = {"half": afape.RandomSubset(0.5), "none": afape.AcquireNone()}
    options = {"missingness": afape.MAR(["x0"]), "estimators": ["ipw-semi"]}
    two = afape.compare(data, policies, classifier, **options).differences().iloc[0]
    policies["nearly none"] = afape.DecisionRule(nearly_none)
    three = afape.compare(data, policies, classifier, **options)
    few = three["nearly none"]["ipw-semi"]["total"] - three["none"]["ipw-semi"]["total"]
    assert few.degrees_of_freedom < 5
    same = three.differences().iloc[0]
    assert (same["policy"], same["minus"]) == ("half", "none")
    assert (same["upper"] - same["lower"]) < 1.3 * (two["upper"] - two["lower"])


def test_variances_of_different_size_are_drawn_without_a_warning():
    covariance = np.array([[4.75821813e-03, 3.49128910e08], [3.49128910e08, 5.17843749e24]])
    drawn = draws(covariance)  # warnings are errors
    assert_allclose(drawn.std(axis=0), np.sqrt(np.diag(covariance)), rtol=0.05)
