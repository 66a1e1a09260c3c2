"""Labels with gaps. Worlds are enumerated: every row, every pattern of groups and label, weighted by its probability."""

import numpy as np
import pandas as pd
import pytest
import small_records
from label_worlds import COSTS, Law, Rooted
from numpy.testing import assert_allclose
from sklearn.tree import DecisionTreeRegressor

import afape
from afape.estimators.eff.completion import Completer
from afape.estimators.eff.mixture import Mixture


def costs_of(result, name):
    return [result[name][target].value for target in ("acquisition", "misclassification")]


EXACT = afape.LearnedValues(DecisionTreeRegressor(random_state=0))  # means of equal lines
WRONG = afape.LearnedValues(DecisionTreeRegressor(max_depth=1, random_state=0))
pytestmark = pytest.mark.filterwarnings("ignore::afape.warnings.AfapeWarning")
seeds = pytest.mark.parametrize("seed", range(4))


@seeds
@pytest.mark.parametrize("options", [{}, {"normalize": False}, {"acquisition_weight": "after"}])
def test_weighting_with_a_known_propensity(seed, options):
    law = Law(seed)
    found = law.evaluated(["ipw-semi", "ipw-miss"], propensity=afape.KnownPropensity(law.known), **options)
    for name in ("ipw-semi", "ipw-miss"):
        assert_allclose(costs_of(found, name), law.true_costs(), rtol=1e-9)


def wrong(values, required):
    return 0.9 ** required[:, 1:].sum(axis=1) - 0.3 * required[:, -1]


@seeds
@pytest.mark.parametrize("normalize", [True, False])
def test_double_robustness(seed, normalize):
    law = Law(seed)
    right = afape.KnownPropensity(law.known)
    for propensity, values in ((right, EXACT), (right, WRONG), (afape.KnownPropensity(wrong), EXACT)):
        found = law.evaluated(["drl-semi", "dm-semi"], propensity=propensity, values=values, normalize=normalize)
        assert_allclose(costs_of(found, "drl-semi"), law.true_costs(), rtol=1e-9)
        if values is EXACT:
            assert_allclose(costs_of(found, "dm-semi"), law.true_costs(), rtol=1e-9)
        else:
            assert np.abs(np.array(costs_of(found, "dm-semi")) / law.true_costs() - 1).max() > 1e-3
    both = law.evaluated(["drl-semi"], propensity=afape.KnownPropensity(wrong), values=WRONG, normalize=normalize)
    assert np.abs(np.array(costs_of(both, "drl-semi")) / law.true_costs() - 1).max() > 1e-3


@seeds
@pytest.mark.parametrize("hidden", [(0.0, 1.0, (1.0, 0.0, 0.0)), (1.0, 0.0, (0.0, 0.0, 1.0))])
def test_the_efficient_estimator_with_any_conditional_means(seed, hidden, monkeypatch):
    """Hidden groups and labels are drawn from a wrong law: always the same values."""
    b, c, label = hidden

    def completed(self, t, row, table, position):
        shown = (t | self.known.groups)[self.data.column_group]
        drawn = np.array([0.0, b, c, *label])
        return np.where(shown, np.nan_to_num(self.data.values[row]), drawn), np.full(len(row), -1)

    monkeypatch.setattr(Completer, "_completed", completed)
    shares = np.random.default_rng(seed).dirichlet(np.ones(9))
    monkeypatch.setattr(
        Mixture,
        "left_out",
        property(lambda m: np.tile(shares[: len(m.shares)] / shares[: len(m.shares)].sum(), (20, 1))),
    )
    law = Law(seed)
    found = law.evaluated(["eff-semi"], propensity=afape.KnownPropensity(law.known), values=WRONG, normalize=False)
    assert "components of up to" in found.table["note"].iloc[0]
    assert_allclose(costs_of(found, "eff-semi"), law.true_costs(), rtol=1e-9)
    cells = [e.value for e in found.parts("eff-semi").confusion.values()]
    assert_allclose(sum(cells), 1.0, rtol=1e-9)


@seeds
def test_a_learned_propensity_of_groups_and_label(seed):
    """One model per set, each with all values of what recording depends on, is the truth in an enumerated world."""
    law = Law(seed)
    found = law.evaluated(["ipw-semi", "drl-semi"])
    for name in ("ipw-semi", "drl-semi"):
        assert_allclose(costs_of(found, name), law.true_costs(), rtol=1e-6)
    estimate = found["ipw-semi"]["total"]
    assert_allclose(sum(costs_of(found, "ipw-semi")), estimate.value, rtol=1e-9)


@seeds
def test_a_graph_with_an_indicator_of_the_label(seed):
    law = Law(seed, "chain")
    graph = afape.MNAR(graph="a -> R_b; b -> R_c; b -> R_y")
    found = law.evaluated(["ipw-semi-miss", "drl-semi-miss"], graph)
    for name in ("ipw-semi-miss", "drl-semi-miss"):
        assert_allclose(costs_of(found, name), law.true_costs(), rtol=1e-6)


def test_a_graph_is_identified_on_records_with_and_without_missing_labels():
    graph = afape.MNAR(graph="a -> R_b; b -> R_c; b -> R_y")
    wanted = np.array([True, True, False])
    assert "b" in graph.identify(records_with_gaps(100), wanted).adjust  # the label needs it
    table = small_records.frame(100)
    whole = small_records.records(table, missing_labels="weigh")
    assert graph.identify(whole).identified
    with pytest.raises(ValueError, match="no indicator of the label"):
        graph.identify(small_records.records(table))


def test_a_label_that_decides_about_its_own_recording_is_refused():
    law = Law(0)
    words = (
        r"(?s)recording of 'y' depends on its own value \(self-censoring\).*can do without the label.*afape.sensitivity"
    )
    with pytest.raises(ValueError, match=words):
        law.evaluated(["ipw-semi"], afape.MNAR(graph="a -> R_b; a -> R_c; y -> R_y"))
    with pytest.raises(ValueError, match="the graph has no node R_y"):
        law.evaluated(["ipw-semi"], afape.MNAR(graph="a -> R_b; a -> R_c"))


@seeds
@pytest.mark.parametrize("values", [EXACT, WRONG])
def test_rooted_worlds(seed, values):
    law = Rooted(seed)
    names, known = ["ipw-semi", "drl-semi"], afape.KnownPropensity(law.known)
    for propensity in (known, None):
        found = law.evaluated(names, afape.MCAR(), propensity=propensity, values=values)
        for name in names:
            assert_allclose(costs_of(found, name), law.true_costs(), rtol=1e-9 if propensity else 1e-6)


@seeds
def test_bounds_where_labels_are_never_recorded(seed):
    """Where a = 1, no label is recorded: costs lie between the least and the largest over all labels."""
    law = Law(seed)
    law.y[1] = 0.0
    found = law.evaluated(["ipw-semi", "drl-semi"], propensity=afape.KnownPropensity(law.known), normalize=False)
    part = np.zeros((2, 2))
    for x, mass, label in zip(law.values, law.share, law.label, strict=True):
        paid, erred = law._cost(x, label, np.array([True, False, False]))
        ends = (COSTS.min(), COSTS.max()) if x[0] else (erred, erred)
        part += mass * np.array([[paid, paid], ends])
    for name in ("ipw-semi", "drl-semi"):
        for target, (low, high) in zip(("acquisition", "misclassification"), part, strict=True):
            bounds = found[name][target]
            assert_allclose([bounds.bound_lower, bounds.bound_upper], [low, high], rtol=1e-6)


def verified(n, seed, gaps=True):
    """A label that is verified more often where the test a was bad; b depends on a too."""
    rng = np.random.default_rng(seed)
    a, b = rng.choice([-1.0, 1.0], size=n), rng.normal(size=n)
    y = (rng.random(n) < 1 / (1 + np.exp(1 - 1.5 * b - 2 * a))).astype(float)
    has_b = rng.random(n) < 1 / (1 + np.exp(-1 - 0.5 * a))
    if gaps:
        y = np.where(rng.random(n) < np.where(a > 0, 0.9, 0.2), y, np.nan)
    return pd.DataFrame({"a": a, "b": np.where(has_b | (not gaps), b, np.nan), "y": y})


class Sum:
    def predict(self, values, acquired):
        return (np.nan_to_num(values).sum(axis=1) > 0.7).astype(int)


VERIFIED = afape.Problem({"a": ["a"], "b": ["b"]}, {"b": 0.3}, "y", [[0, 2], [9, 0]], [0, 1])
NAMES = ["mi", "ipw-miss", "ipw-semi", "dm-semi", "drl-semi", "eff-semi"]


@pytest.fixture(scope="module")
def truth():
    whole = afape.Retrospective(verified(400_000, 1000, gaps=False), VERIFIED)
    return afape.true_cost(whole, afape.AcquireAll(), Sum())["total"].value


def test_dropping_rows_is_wrong_where_weighing_labels_is_right(truth):
    table = verified(8000, 0)
    arguments = {"missingness": afape.MAR(given=["a"]), "estimators": NAMES, "n_imputations": 4}
    dropped = afape.evaluate(
        afape.Retrospective(table, VERIFIED, missing_labels="drop"), afape.AcquireAll(), Sum(), **arguments
    )
    weighed = afape.evaluate(
        afape.Retrospective(table, VERIFIED, missing_labels="weigh"), afape.AcquireAll(), Sum(), **arguments
    )
    for name in NAMES:
        estimate, biased = weighed[name]["total"], dropped[name]["total"]
        assert abs(estimate.value - truth) < 4 * estimate.std_error
        assert abs(biased.value - truth) > 4 * biased.std_error


@pytest.mark.slow
def test_intervals_cover(truth):
    names, runs = ["ipw-semi", "dm-semi", "drl-semi"], 150
    inside = dict.fromkeys(names, 0)
    for seed in range(runs):
        data = afape.Retrospective(verified(2000, seed), VERIFIED, missing_labels="weigh")
        found = afape.evaluate(data, afape.AcquireAll(), Sum(), missingness=afape.MAR(given=["a"]), estimators=names)
        for name in names:
            low, high = found[name]["total"].interval()
            inside[name] += low <= truth <= high
    for name in names:
        assert 0.90 < inside[name] / runs <= 0.985, inside


def test_with_all_labels_nothing_changes():
    table = small_records.frame(300)
    found = [
        afape.evaluate(
            small_records.records(table, missing_labels=how),
            small_records.Look(),
            small_records.Above(),
            missingness=afape.MAR(given=["a"]),
            n_imputations=2,
        ).table
        for how in ("raise", "weigh")
    ]
    pd.testing.assert_frame_equal(*found, check_exact=True)


def records_with_gaps(n=500, **options):
    table = small_records.frame(n)
    keep = np.random.default_rng(5).random(n) < 1 / (1 + np.exp(-0.5 - table["a"]))
    return small_records.records(table.assign(y=table["y"].where(keep)), missing_labels="weigh", **options)


def test_everything_that_a_result_offers(tmp_path):
    data, classifier = records_with_gaps(), afape.ImputedClassifier(random_state=0).fit(records_with_gaps(400))
    risk = {"risk": afape.score(classifier, 2), "brier": afape.brier(classifier)}
    found = afape.evaluate(
        data,
        small_records.Look(),
        classifier,
        missingness=afape.MAR(given=["a"]),
        estimators=["ipw-semi", "drl-semi"],
        outcomes=risk,
        by=np.where(data.values[:, 0] > 0, "high", "low"),
        bootstrap=3,
    )
    parts, metrics = found.parts("drl-semi"), found.metrics("ipw-semi")
    assert list(parts.rates) == ["b", "c"]
    assert_allclose(sum(e.value for e in parts.counts.values()), 1, atol=0.02)
    shares = [sum(parts.confusion[k, j].value for j in range(3)) for k in range(3)]
    whole = np.bincount(small_records.frame(500)["y"], minlength=3) / 500
    assert_allclose(shares, whole, atol=0.12)
    assert (metrics["std_error"] > 0).any()
    assert 0.5 < found.auc("risk").value < 1
    again = found.reprice(costs={"b": 3.0}, misclassification_cost=COSTS)
    wanted = sum(parts.confusion[i, j].value * COSTS[i, j] for i in range(3) for j in range(3))
    assert_allclose(again["drl-semi"]["misclassification"].value, wanted, rtol=1e-9)
    assert set(found.subgroups) == {"high", "low"}
    assert "y" in set(found.support.groups["group"])
    assert any(name.endswith("+ y") for name in found.support.sets["set"])
    assert set(found.paths.sets["set"]) == {"(free groups)", "b", "b + c"}
    assert any("have no 'y'" in note for note in found.assumption)
    assert "ImputedClassifier" in repr(found)
    assert "_" not in repr(found).split(",")[0]
    found.to_html(tmp_path / "page.html", sensitivity=False)
    assert "rows have no label" in (tmp_path / "page.html").read_text()


def test_action_values_never_use_the_label():
    data = records_with_gaps(300)
    with_label, without = (
        afape.evaluate(
            data,
            small_records.Look(),
            small_records.Above(),
            missingness=afape.MAR(given=["a"]),
            estimators=["dm-semi", "drl-semi"],
            values=afape.LearnedValues(augment_label=augment),
        ).table
        for augment in (True, False)
    )
    pd.testing.assert_frame_equal(with_label, without, check_exact=True)


def test_advice_does_not_drop_the_label():
    table = small_records.frame(2000)
    data = small_records.records(table.assign(y=table["y"].where(table["a"] > -0.3)), missing_labels="weigh")
    found = afape.check_support(data, small_records.Look(), missingness=afape.MAR(given=["a"]))
    assert found.advice[0].startswith("Collect labels: in some rows 'y' is not recorded")
    assert 0.3 < found.unsupported < 0.5


def test_sensitivity_has_a_strength_for_the_label():
    """Weights are those of set and label, so the reason may lie in the recording of the label alone."""
    data = records_with_gaps(300)
    arguments = {"missingness": afape.MAR(given=["a"]), "lambdas": (1.0, 2.0), "bootstrap": 0}
    bounds = afape.sensitivity(data, afape.AcquireNone(), small_records.Above(), **arguments).table
    estimate = afape.evaluate(
        data, afape.AcquireNone(), small_records.Above(), missingness=afape.MAR(given=["a"]), estimators=["ipw-semi"]
    )["ipw-semi"]["total"].value
    assert_allclose(bounds[["bound_lower", "bound_upper"]].iloc[0], estimate, rtol=1e-6)
    assert bounds["bound_upper"].iloc[1] - bounds["bound_lower"].iloc[1] > 0.3


def test_the_assumption_about_labels_is_tested():
    found = afape.check_missingness(records_with_gaps(), afape.MCAR())
    assert any("predicts the recording of y" in words for words in found.findings)
    fine = afape.check_missingness(records_with_gaps(), afape.MAR(given=["a"]))
    assert not any("recording of y" in words for words in fine.findings)


def test_what_needs_all_labels_says_so():
    data = records_with_gaps(100)
    missingness, classifier = afape.MAR(given=["a"]), small_records.Above()
    with pytest.raises(ValueError, match=r"blank in .* rows.*missing_labels='weigh'.*missing_labels='drop'"):
        small_records.records(small_records.frame(100).assign(y=lambda t: t["y"].where(t["a"] > 0)))
    with pytest.raises(ValueError, match="'by' must not be the label 'y'"):
        afape.evaluate(data, small_records.Look(), classifier, missingness=missingness, by="y")
    with pytest.raises(ValueError, match="'missingness' must not say label=True"):
        afape.evaluate(data, small_records.Look(), classifier, missingness=afape.MAR(given=["a"], label=True))
    with pytest.raises(ValueError, match="must have all labels"):
        afape.population_weights(data, {0: 0.5, 1: 0.2, 2: 0.3})
    with pytest.raises(ValueError, match="No row has a label"):
        small_records.records(small_records.frame(20).assign(y=np.nan), missing_labels="weigh")
    whole = afape.Retrospective(
        small_records.frame(50, gaps=False).assign(y=lambda t: t["y"].where(t["a"] > 0)),
        data.problem,
        missing_labels="weigh",
    )
    with pytest.raises(ValueError, match="'data' must have all labels"):
        afape.true_cost(whole, small_records.Look(), classifier)
    known = afape.KnownPropensity(lambda v, r, y: np.ones(len(v)), labels=True)
    with pytest.raises(ValueError, match=r"must not use the label.*last column of 'required'"):
        afape.evaluate(data, small_records.Look(), classifier, missingness=missingness, propensity=known)


def test_a_class_that_no_recorded_label_has():
    """Of three classes, the last is never seen among the recorded labels: all its rates are 0."""
    data = records_with_gaps(400)
    table = small_records.frame(400)
    table["y"] = np.where(data.labels == 1, 1.0, np.where(data.labels == 0, 0.0, np.nan))
    found = afape.evaluate(
        small_records.records(table, missing_labels="weigh"),
        small_records.Look(),
        small_records.Above(),
        missingness=afape.MAR(given=["a"]),
        n_imputations=2,
    )
    assert found.table["estimate"].notna().all()
    for name in ("mi", "ipw-semi", "eff-semi"):
        assert_allclose([e.value for (true, _), e in found.parts(name).confusion.items() if true == 2], 0, atol=1e-9)


def test_a_label_that_is_recorded_only_where_a_group_is_not():
    """No row shows the label after b, so the costs of runs that acquire b have bounds over all labels."""
    table = small_records.frame(1000)
    table["y"] = table["y"].where(table["b"].isna())
    found = afape.evaluate(
        small_records.records(table, missing_labels="weigh"),
        small_records.Look(),
        small_records.Above(),
        missingness=afape.MAR(given=["a"]),
        estimators=["ipw-semi", "drl-semi", "eff-semi"],
    )
    share = found.parts("ipw-semi").rates["b"]
    for name in ("ipw-semi", "drl-semi", "eff-semi"):
        bounds = found[name]["misclassification"]
        assert_allclose(bounds.bound_upper - bounds.bound_lower, 9.0 * share.bound_lower, rtol=0.1)


class Positive:
    def predict(self, values, acquired):
        return (np.nan_to_num(values).sum(axis=1) > 0).astype(int)


def recorded_together(by_label, n=1500):
    """b and the label are often recorded together; with ``by_label``, b is recorded more often where the label is 1."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, n))
    y = (a + b + rng.normal(size=n) > 0).astype(float)
    has_y = rng.random(n) < 0.6
    together = np.where(rng.random(n) < 0.8, has_y, rng.random(n) < 0.5)
    has_b = rng.random(n) < np.where(y > 0, 0.8, 0.5) if by_label else together
    table = pd.DataFrame({"a": a, "b": np.where(has_b, b, np.nan), "y": np.where(has_y, y, np.nan)})
    return afape.Retrospective(table, VERIFIED, missing_labels="weigh")


def test_labels_that_are_recorded_together_with_a_group_raise_no_doubt():
    """A missing label is no label of the first class."""
    found = [
        afape.compare(
            recorded_together(by_label),
            {"all": afape.AcquireAll(), "none": afape.AcquireNone()},
            Positive(),
            missingness=afape.MAR(given=["a"]),
            estimators=["drl-semi"],
        ).doubts
        for by_label in (False, True)
    ]
    assert not any(doubt.kind == "assumption" for doubt in found[0])
    assert any("y predicts the recording of b given a" in doubt.text for doubt in found[1])


@pytest.mark.filterwarnings("default::afape.warnings.AssumptionWarning")
def test_the_label_is_tested_in_rows_that_have_it():
    arguments = {"missingness": afape.MAR(given=["a"]), "estimators": ["ipw-semi"]}
    words = r"y predicts the recording of b given a.*on the label, which has gaps, which 'given' cannot hold"
    with pytest.warns(afape.warnings.AssumptionWarning, match=words):
        afape.evaluate(recorded_together(True), afape.AcquireAll(), Positive(), **arguments)
    graph = afape.check_missingness(recorded_together(True), afape.MAR(given=["a"])).suggestion
    assert "y -> R_b" in graph.edges


def test_what_predicts_missing_labels_is_told_beside_the_assumption():
    found = afape.check_missingness(records_with_gaps(), afape.MAR(given=["a"]))
    assert found.holds
    assert not found.labels.by_chance
    assert found.labels.missing == int((~records_with_gaps().labelled).sum())
    assert "a predicts the recording of y, odds ratio" in repr(found)
    assert found.to_dict()["labels"]["rows"] == 500
    chance = afape.check_missingness(recorded_together(False), afape.MAR(given=["a"])).labels
    assert chance.by_chance
    assert chance.words[0].endswith("have no 'y'. No group that every row has predicts which rows these are.")
    assert afape.check_missingness(small_records.records(small_records.frame(50)), afape.MCAR()).labels is None
