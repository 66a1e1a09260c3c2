"""Unusual input: valid input is understood, invalid input is refused with a message, nothing changes silently."""

import json
import threading
import warnings
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LinearRegression, LogisticRegression
from threadpoolctl import threadpool_info, threadpool_limits
from typer.testing import CliRunner

import afape
from afape import MAR, MCAR, ImputedClassifier, Problem, Retrospective
from afape.commands.main import app
from afape.estimators.catalogue import METHODS

GROUPS = {"a": ["a"], "b": ["b"], "c": ["c"]}
COSTS = {"b": 1.0, "c": 2.0}


def records(n=600, seed=0, **columns):
    """Build a table in which b and c are recorded more often where a is large."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    y = (x.sum(axis=1) + rng.normal(size=n) > 0).astype(int)
    for j in (1, 2):
        x[rng.random(n) > 1 / (1 + np.exp(-1 - x[:, 0])), j] = np.nan
    return pd.DataFrame(x, columns=list("abc")).assign(y=y).assign(**columns)


def problem(**changed):
    return Problem(**({"groups": GROUPS, "costs": COSTS, "label": "y", "misclassification_cost": 10.0} | changed))


class Sign:
    def predict(self, values, acquired):
        return (np.nan_to_num(values).sum(axis=1) > 0).astype(int)


def cost_of(data, policy=None, estimator="ipw-semi", **options):
    policy = afape.RandomSubset(0.5) if policy is None else policy
    options = {"missingness": MAR(given=["a"]), "estimators": [estimator]} | options
    return afape.evaluate(data, policy, Sign(), **options)[estimator]["total"]


# ------------------------------------------------------------------------------------------------ could be misread


@pytest.mark.parametrize("odd", ["", "NA", "<0.1"])
def test_numbers_that_came_as_text_are_refused_with_their_texts(odd):
    table = records()
    texts = table["b"].fillna(0.0).astype(str).to_numpy(dtype=object)
    texts[:7] = odd
    with pytest.raises(
        ValueError, match=rf"'b' is text, but 593 of its 600 entries are numbers.*'{odd}' \(7\).*blank_means"
    ):
        Retrospective(table.assign(b=texts), problem())


def test_texts_that_look_like_blanks_give_a_warning_unless_declared():
    table = records().assign(b=["u", "NA", "v"] * 200)
    with pytest.warns(afape.warnings.BlankTextWarning, match="'b' has the text 'NA' in 200 rows"):
        Retrospective(table, problem())
    Retrospective(table, problem(categories={"b": ["u", "v", "NA"]}))


def test_labels_that_read_alike_or_are_blank_are_refused():
    with pytest.raises(ValueError, match=r"'y' holds '[01]' both as text and as a number"):
        Retrospective(records(y=pd.Series([0, 1, "0", "1"] * 150, dtype=object)), problem())
    with pytest.raises(ValueError, match=r"'y' holds the text '' in 200 rows.*missing_labels"):
        Retrospective(records(y=["no", "yes", ""] * 200), problem())
    assert (
        Retrospective(records(y=["no", "yes", ""] * 200), problem(classes=["", "no", "yes"])).classes.tolist()[0] == ""
    )


def test_a_labelled_cost_matrix_is_aligned_by_label():
    table = records(y=["no", "yes"] * 300)
    cost = pd.DataFrame([[0.0, 7.0], [3.0, 0.0]], index=["yes", "no"], columns=["yes", "no"])
    data = Retrospective(table, problem(misclassification_cost=cost))
    assert data.costs.tolist() == [[0.0, 3.0], [7.0, 0.0]]  # missing a "yes" costs 7
    with pytest.raises(ValueError, match=r"labelled by the classes \['no', 'yes'\], but is labelled \['yes', 'nein'\]"):
        Retrospective(
            table, problem(misclassification_cost=cost.set_axis(["yes", "nein"]).set_axis(["yes", "nein"], axis=1))
        )
    with pytest.raises(ValueError, match="same labels, in the same order"):
        problem(misclassification_cost=cost[["no", "yes"]])


def test_ordered_labels_keep_their_order():
    levels = ["mild", "bad", "awful"]
    table = records(y=pd.Categorical(levels * 200, categories=levels, ordered=True))
    assert Retrospective(table, problem()).classes.tolist() == levels


def test_long_identifiers_stay_apart():
    ids = [10**19 + k for k in range(200)] * 3
    table = records().assign(patient=pd.Series(ids, dtype=object))
    assert len(np.unique(Retrospective(table, problem(), cluster="patient").cluster)) == 200
    with pytest.raises(ValueError, match=r"'patient' holds numbers of more than 15 digits as floats.*as text"):
        Retrospective(table.assign(patient=np.array(ids, dtype=float)), problem(), cluster="patient")


def test_unsuitable_models_are_refused():
    data = Retrospective(records(), problem())
    with pytest.raises(TypeError, match="'estimator' must be a classifier, but LinearRegression is a regressor"):
        ImputedClassifier(LinearRegression()).fit(data)
    trained = ImputedClassifier(LogisticRegression()).fit(data)
    other = Retrospective(records(), Problem({"a": ["a"], "b2": ["b"], "c": ["c"]}, {"c": 1.0}, "y", 10.0))
    with pytest.raises(ValueError, match="was trained with the groups"):
        afape.evaluate(other, afape.AcquireNone(), trained, missingness=MCAR())

    class Network:
        training = True

        def eval(self):
            self.training = False

    class Judge(Sign):
        def __init__(self):
            self.network = Network()

    judge = Judge()
    with pytest.raises(ValueError, match=r"Network is in training mode.*eval\(\)"):
        afape.evaluate(data, afape.AcquireNone(), judge, missingness=MCAR())
    judge.network.eval()
    afape.evaluate(data, afape.AcquireNone(), judge, missingness=MCAR(), estimators=["blocking"])


ARGUMENTS = [
    ({"random_state": -1}, "'random_state' must be a whole number of at least 0"),
    ({"random_state": "zero"}, "'random_state' must"),
    ({"random_state": True}, "'random_state' must"),
    ({"n_jobs": 0}, "'n_jobs' must be None, a number of processes"),
    ({"n_jobs": 1.5}, "'n_jobs' must"),
    ({"n_folds": True}, "'n_folds' must be a whole number"),
    ({"confidence": True}, "'confidence' must"),
    ({"split": True}, "'split' must"),
    ({"normalize": "False"}, "'normalize' must be True or False, but is 'False'"),
    ({"bootstrap": True}, "'bootstrap' must be a number of replicates"),
    ({"bootstrap": "many"}, "'bootstrap' must be a number of replicates"),
    ({"progress": 3}, "'progress' must be a function"),
    ({"propensity": LogisticRegression}, "'propensity' must be an instance"),
]


@pytest.mark.parametrize(("spoiled", "match"), ARGUMENTS, ids=lambda v: str(v)[:40])
def test_every_argument_has_its_own_message(spoiled, match):
    data = Retrospective(records(60), problem())
    with pytest.raises((TypeError, ValueError), match=match):
        afape.evaluate(data, afape.AcquireNone(), Sign(), missingness=MCAR(), **spoiled)


def test_objects_that_cannot_be_pickled_or_fitted_are_named():
    data = Retrospective(records(), problem())

    class Locked(Sign):
        def __init__(self):
            self.lock = threading.Lock()

    with pytest.raises(TypeError, match=r"'classifier' must be picklable to run with n_jobs=2.*n_jobs=1"):
        afape.evaluate(data, afape.AcquireAll(), Locked(), missingness=MCAR(), n_jobs=2)
    with pytest.raises(ValueError, match=r"The model LogisticRegression could not be fitted on .* rows and 1 columns"):
        cost_of(data, propensity=LogisticRegression(solver="nonsense"))
    with pytest.raises(TypeError, match=r"'policies' must be a mapping .*, with texts as names, but one name is 3"):
        afape.compare(data, {3: afape.AcquireAll()}, Sign(), missingness=MCAR())


def test_the_command_line_names_a_wrong_option_without_a_traceback():
    found = CliRunner().invoke(app, ["demo", "--seed", "-1"])
    assert found.exit_code == 2
    assert "--seed" in found.output
    assert "Traceback" not in found.output


def test_orders_and_shares_are_checked():
    with pytest.raises(TypeError, match="'groups' must be a list of group names, in order"):
        afape.FixedOrder({"a", "b"})
    with pytest.raises(ValueError, match=r"'p' must lie in \[0, 1\], but is True"):
        afape.RandomSubset(True)
    with pytest.raises(TypeError, match="'b' has the set"):
        problem(groups=GROUPS | {"b": {"b"}})
    with pytest.raises(ValueError, match="'costs' must be finite and not negative, but the price of 'b' is True"):
        problem(costs={"b": True})


# ------------------------------------------------------------------------------------------------ valid


def test_prices_and_lists_of_any_kind():
    exact = problem(costs={"b": Decimal("1.5"), "c": Fraction(1, 4)})
    assert exact.prices.tolist() == [0.0, 1.5, 0.25]
    data = Retrospective(records(), problem(groups={name: (c for c in columns) for name, columns in GROUPS.items()}))
    value = cost_of(data, missingness=MAR(given=(g for g in ["a"])))
    assert value.value == cost_of(data).value
    numbered = records().set_axis([0, 1, 2, "y"], axis=1)
    found = Retrospective(numbered, problem(groups={"a": [0], "b": [1], "c": [2]}))
    assert_array_equal(found.values, data.values)


def test_a_known_propensity_of_some_sets_serves_a_policy_that_needs_no_more():
    data = Retrospective(records(), problem())
    p = 1 / (1 + np.exp(-1 - data.values[:, 0]))
    known = afape.KnownPropensity.from_arrays({"b": p})
    found = afape.evaluate(data, afape.FixedOrder(["b"]), Sign(), missingness=MAR(given=["a"]), propensity=known)
    assert "ipw-semi" in found
    assert "ipw-miss" not in set(found.table["estimator"])
    with pytest.raises(ValueError, match="'ipw-miss', but the known propensity has no array for all groups"):
        cost_of(data, afape.FixedOrder(["b"]), "ipw-miss", propensity=known)


def test_rows_that_lack_a_given_group_may_be_dropped():
    table = records()
    table.loc[:5, "a"] = np.nan
    data = Retrospective(table, problem())
    with pytest.raises(ValueError, match=r"'a' is missing in 6 of 600 rows.*drop_gaps=True"):
        cost_of(data)
    with pytest.warns(afape.warnings.DroppedRowsWarning, match="6 of 600 rows lack one of"):
        dropped = cost_of(data, missingness=MAR(given=["a"], drop_gaps=True))
    assert dropped.value == cost_of(Retrospective(table.iloc[6:], problem())).value


def test_rules_by_name_are_rules_by_number():
    data = Retrospective(records(), problem())
    by_number = afape.DecisionRule(lambda values, acquired: np.where(acquired[:, 1] | (values[:, 0] < 0), 3, 1))
    by_name = afape.agents.from_columns(lambda row: np.where((row["a"] < 0) | ~np.isnan(row["b"]), None, "b"))
    assert cost_of(data, by_name).value == cost_of(data, by_number).value
    with pytest.raises(ValueError, match=r"must return names of groups, or None to stop, but returned 'bb'"):
        cost_of(data, afape.agents.from_columns(lambda row: np.full(len(row["a"]), "bb")))


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_columns_are_merged(make):
    frame = make({"x": [1.0, None, 3.0], "z": [5.0, 6.0, None], "y": [0, 1, 0]})
    for how, expected in (("first", [1, 6, 3]), ("max", [5, 6, 3]), ("min", [1, 6, 3]), ("mean", [3, 6, 3])):
        merged = afape.merge_columns(frame, {"w": ["x", "z"]}, how)
        assert list(merged["w"]) == expected
        assert list(merged.columns) == ["y", "w"]
    assert list(frame.columns) == ["x", "z", "y"]
    with pytest.raises(ValueError, match="'q' is not a column"):
        afape.merge_columns(frame, {"w": ["q"]})


def test_decisions_by_cost_follow_the_matrix():
    train = Retrospective(records(2000, 1), problem(misclassification_cost=[[0.0, 1.0], [9.0, 0.0]]))
    test = Retrospective(records(2000, 2), train.problem)
    likely, by_cost = (ImputedClassifier(LogisticRegression(), decide=d).fit(train) for d in ("label", "cost"))
    p = by_cost.predict_proba(test.values, test.recorded)
    assert_allclose(p.sum(axis=1), 1.0)
    assert_array_equal(by_cost.predict(test.values, test.recorded), (p[:, 1] > 0.1).astype(int))  # 1 / (1 + 9)
    paid = [test.costs[test.labels, c.predict(test.values, test.recorded)].mean() for c in (likely, by_cost)]
    assert paid[1] < paid[0]


def test_comparisons_are_plain_data_and_pictures():
    pytest.importorskip("matplotlib").use("Agg")
    data = Retrospective(records(), problem())
    several = afape.compare(
        data, {"all": afape.AcquireAll(), "none": afape.AcquireNone()}, Sign(),
        missingness=MAR(given=["a"]), estimators=["ipw-semi", "drl-semi"],
    )  # fmt: skip
    plain = json.loads(json.dumps(several.to_dict()))
    assert [line["policy"] for line in plain["ranking"]] == several.ranking()["policy"].tolist()
    assert plain["differences"][0]["degrees_of_freedom"] == several.differences()["degrees_of_freedom"][0]
    assert {t.get_text() for t in several.plot().get_yticklabels()} == {"all", "none"}
    assert set(several.ranking()["verdict"]) <= {
        "cheapest", "not the cheapest", "perhaps the cheapest", "unlikely to be the cheapest",
    }  # fmt: skip


class NeverImputes(afape.ChainedImputer):
    def impute(self, data, n_imputations, random_state):
        raise AssertionError("nothing to impute")


def test_imputation_is_skipped_where_it_cannot_matter():
    data = Retrospective(records(), problem())
    both = {"none": afape.AcquireNone(), "all": afape.AcquireAll()}
    options = {"missingness": MAR(given=["a"]), "estimators": ["mi"], "n_imputations": 3}
    several = afape.compare(data, both, Sign(), **options)
    paired = several["all"]["mi"]["total"] - several["none"]["mi"]["total"]
    assert np.isfinite(paired.std_error)
    alone = afape.evaluate(data, afape.AcquireNone(), Sign(), imputer=NeverImputes(), **options)
    assert alone["mi"]["total"].value == several["none"]["mi"]["total"].value
    assert alone["mi"]["total"].std_error == several["none"]["mi"]["total"].std_error


# ------------------------------------------------------------------------------------------------ nothing changes


@pytest.mark.parametrize("estimator", ["ipw-semi", "drl-semi"])
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 1000), exponent=st.integers(-12, 160), shift=st.floats(-5, 5))
def test_units_do_not_matter(estimator, seed, exponent, shift):
    table = records(300, seed)
    plain = cost_of(Retrospective(table, problem()), estimator=estimator)
    scaled = table.assign(a=(table["a"] + shift) * 10.0**exponent)

    class Back(Sign):
        def predict(self, values, acquired):
            back = values.copy()
            back[:, 0] = back[:, 0] / 10.0**exponent - shift
            return super().predict(back, acquired)

    data = Retrospective(scaled, problem())
    options = {"missingness": MAR(given=["a"]), "estimators": [estimator]}
    other = afape.evaluate(data, afape.RandomSubset(0.5), Back(), **options)[estimator]["total"]
    assert_allclose([other.value, other.std_error], [plain.value, plain.std_error], rtol=1e-6)


@pytest.mark.parametrize("estimator", ["eff-semi", "mi"])
@pytest.mark.parametrize("exponent", [-100, -30, 140, 500])
def test_units_do_not_matter_for_completed_rows_either(estimator, exponent):
    table = records(400, 3)
    unit = 2.0**exponent  # exact, so that results are equal to the last digits

    class Back(Sign):
        def predict(self, values, acquired):
            return super().predict(values / unit, acquired)

    options = {"missingness": MAR(given=["a"]), "estimators": [estimator]}
    found = [
        afape.evaluate(Retrospective(some, problem()), afape.AcquireAll(), classifier, **options)[estimator]["total"]
        for some, classifier in ((table, Sign()), (table.assign(**{c: table[c] * unit for c in "abc"}), Back()))
    ]
    assert_allclose([found[1].value, found[1].std_error], [found[0].value, found[0].std_error], rtol=1e-9)


@pytest.mark.filterwarnings("ignore::afape.warnings.NormalizerWarning")  # some of these small tables have heavy weights
@pytest.mark.filterwarnings("ignore::afape.warnings.HeavyWeightsWarning")
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 1000), chunk=st.sampled_from([50, 700, 10**6]))
def test_other_policies_and_chunks_do_not_matter_and_input_is_not_changed(seed, chunk):
    table = records(250, seed)
    before, state = table.copy(), np.random.get_state()[1].copy()  # noqa: NPY002
    cost = np.array([[0.0, 2.0], [5.0, 0.0]])
    data = Retrospective(table, problem(misclassification_cost=cost))
    policies = {"all": afape.AcquireAll(), "random": afape.RandomSubset(0.5), "b": afape.FixedOrder(["b"])}
    options = {"missingness": MAR(given=["a"]), "estimators": ["ipw-semi", "drl-semi"]}
    together = afape.compare(data, policies, Sign(), walk=afape.WalkOptions(chunk_lines=chunk), **options)
    for name, policy in policies.items():
        alone = afape.evaluate(data, policy, Sign(), **options)
        for estimator in options["estimators"]:
            a, b = alone[estimator]["total"], together[name][estimator]["total"]
            assert_allclose([a.value, a.std_error], [b.value, b.std_error], rtol=1e-9)
    pd.testing.assert_frame_equal(table, before)
    assert cost.flags.writeable
    cost[0, 1] = 99.0
    assert data.problem.cost_matrix(2)[0, 1] == 2.0
    assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002


def test_the_form_of_a_propensity_does_not_depend_on_other_policies():
    """A chain of models serves a policy, also if another policy needs the model of all indicators."""
    rng = np.random.default_rng(0)
    names = [f"g{j}" for j in range(8)]
    x = rng.normal(size=(400, 8))
    table = pd.DataFrame(x, columns=names).assign(y=(x.sum(axis=1) > 0).astype(int))
    for j in range(1, 8):
        table.loc[rng.random(400) > 1 / (1 + np.exp(-1.5 - x[:, 0])), names[j]] = np.nan
    data = Retrospective(table, Problem({n: [n] for n in names}, dict.fromkeys(names[1:], 1.0), "y", 20.0))
    options = {"missingness": MAR(given=["g0"]), "estimators": ["ipw-semi"]}
    both = {"two": afape.FixedOrder(["g1", "g2"]), "random": afape.RandomSubset(0.5)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", afape.warnings.AfapeWarning)
        together = afape.compare(data, both, Sign(), **options)
        alone = afape.evaluate(data, both["two"], Sign(), **options)
    a, b = alone["ipw-semi"]["total"], together["two"]["ipw-semi"]["total"]
    assert (a.value, a.std_error) == (b.value, b.std_error)
    assert together["two"].answers["ipw-semi"].error_method == "stacked"


def test_estimators_run_on_one_thread_and_the_setting_is_restored(monkeypatch):
    """Products of small matrices take several times longer on many threads of a busy machine."""
    seen, weighting = [], METHODS["ipw-semi"]

    def threads():
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    def noting(evidence):
        seen.append(threads())
        return weighting.reduce(evidence)

    monkeypatch.setitem(METHODS, "noting", replace(weighting, name="noting", reduce=noting))
    with threadpool_limits(2, user_api="blas"):
        before = threads()
        cost_of(Retrospective(records(250, 0), problem()), afape.AcquireAll(), "noting")
        assert threads() == before
    assert before != {1}
    assert seen
    assert all(found == {1} for found in seen)
