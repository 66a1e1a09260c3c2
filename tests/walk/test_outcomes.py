"""Metrics, outcomes of one's own, scores, subgroups: by hand, and what is refused."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import roc_auc_score
from small_rule import COSTS, MAR, RULE, Sign, act, evaluated, problem_with, table_of

import afape
from afape.estimators.proportion import Proportion

pytestmark = pytest.mark.filterwarnings(
    "ignore::afape.warnings.HeavyWeightsWarning",
    "ignore::afape.warnings.BalanceWarning",
    "ignore::afape.warnings.NormalizerWarning",
)
OWN = {"brier": afape.brier(Sign()), "log_loss": afape.log_loss(Sign()), "risk": afape.score(Sign())}


def complete_table(n=500, seed=3):
    return table_of(n, seed).assign(**pd.DataFrame(np.random.default_rng(9).normal(size=(n, 2)), columns=["b", "c"]))


def final(frame):
    """Predicted class and probability with which the rule stops, row by row."""
    values = frame[["a", "b", "c"]].to_numpy()
    acquired = np.column_stack([np.ones(len(frame)), np.zeros((len(frame), 2))]).astype(bool)
    for _ in range(3):
        action = act(np.where(acquired, values, np.nan), acquired)
        going = np.flatnonzero(action < 3)
        acquired[going, action[going]] = True
    seen = np.where(acquired, values, np.nan)
    return Sign().predict(seen, acquired), Sign().predict_proba(seen, acquired)[:, 1], acquired


def test_metrics_are_those_of_the_confusion_matrix():
    frame = complete_table()
    predicted, _, acquired = final(frame)
    y = frame["y"].to_numpy()
    result = evaluated(frame, estimators=["cc", "ipw-semi", "eff-semi"])
    for name in result.answers:
        found = result.metrics(name).set_index("metric")["estimate"]
        assert found["sensitivity"] == pytest.approx((predicted[y == 1] == 1).mean())
        assert found["specificity"] == pytest.approx((predicted[y == 0] == 0).mean())
        assert found["positive predictive value"] == pytest.approx((y[predicted == 1] == 1).mean())
        assert found["negative predictive value"] == pytest.approx((y[predicted == 0] == 0).mean())
        assert found["accuracy"] == pytest.approx((predicted == y).mean())
        assert found["balanced accuracy"] == pytest.approx((found["sensitivity"] + found["specificity"]) / 2)
        parts = result.parts(name)
        assert parts.rates["c"].value == pytest.approx(acquired[:, 2].mean())
        assert parts.acquisitions.value == pytest.approx(acquired[:, 1:].sum(axis=1).mean())
        assert parts.counts[2].value == pytest.approx((acquired[:, 1:].sum(axis=1) == 2).mean())
    # The standard error of a proportion among n cases.
    line = result.metrics("cc").set_index("metric").loc["sensitivity"]
    p, n = line["estimate"], (y == 1).sum()
    assert line["std_error"] == pytest.approx(np.sqrt(p * (1 - p) / n), rel=0.01)
    assert 0 < line["lower"] < p < line["upper"] < 1


def test_three_classes_have_metrics_each():
    data = afape.Retrospective(table_of(n_classes=3), problem_with({"b": 1.0, "c": 1.0}, 5.0, 3))

    class Three(Sign):
        classes_ = np.array([0, 1, 2])

    result = afape.evaluate(data, RULE, Three(), missingness=MAR, estimators=["ipw-semi"])
    table = result.metrics()
    assert table["metric"].value_counts()["sensitivity"] == 3
    never = table[(table["label"] == 2) & (table["metric"] == "positive predictive value")].iloc[0]
    assert never["note"] == "class 2 is never predicted"
    assert np.isnan(never["estimate"])
    zero = table[(table["label"] == 2) & (table["metric"] == "sensitivity")].iloc[0]
    assert zero["estimate"] == pytest.approx(0.0)
    assert 0 == zero["lower"] < zero["upper"] < 0.2  # no case was found, which does not prove that none ever is


def test_a_metric_without_any_case_says_so():
    frame = table_of().assign(y=0)
    table = evaluated(frame, estimators=["ipw-semi"]).metrics().set_index("metric")
    assert table.loc["sensitivity", "note"] == "no case of class 1"
    assert table.loc["balanced accuracy", "note"] == "no case of class 1"
    assert np.isfinite(table.loc["specificity", "estimate"])


def test_differences_of_metrics_are_paired():
    data = afape.Retrospective(table_of(), problem_with({"b": 2.0, "c": 3.0}, 10.0))
    policies = {"rule": RULE, "none": afape.AcquireNone()}
    several = afape.compare(data, policies, Sign(), missingness=MAR, estimators=["ipw-semi", "mi"], n_imputations=3)
    for name in ("ipw-semi", "mi"):
        table = several.metric_differences(name)
        both = several.metrics(name).set_index(["policy", "metric"])["estimate"]
        for line in table.to_dict("records"):
            gap = both["rule", line["metric"]] - both["none", line["metric"]]
            assert line["difference"] == pytest.approx(gap)
            assert line["lower"] < line["difference"] < line["upper"]
    alone = several.metrics("ipw-semi").set_index(["policy", "metric"])["std_error"]
    paired = several.metric_differences("ipw-semi").set_index("metric")["std_error"]
    assert paired["accuracy"] < np.hypot(alone["rule", "accuracy"], alone["none", "accuracy"])


def test_own_outcomes_are_those_of_the_final_state():
    frame = complete_table()
    _, risk, _ = final(frame)
    y = frame["y"].to_numpy()
    names = ["imp-mean", "blocking", "cc", "ipw-semi", "drl-semi", "eff-semi"]
    result = evaluated(frame, estimators=names, outcomes=OWN)
    for name in names:
        assert result[name]["brier"].value == pytest.approx(((risk - y) ** 2).mean())
        assert result[name]["log_loss"].value == pytest.approx(-np.log(np.where(y == 1, risk, 1 - risk)).mean())
        assert result[name]["risk"].value == pytest.approx(risk.mean())
    assert set(result.table["target"]) == {*COSTS, *OWN}
    assert result.reprice()["cc"]["brier"].value == pytest.approx(result["cc"]["brier"].value)


def test_area_under_the_curve_and_calibration_on_complete_rows():
    frame = complete_table()
    _, risk, _ = final(frame)
    y = frame["y"].to_numpy()
    result = evaluated(frame, estimators=["ipw-semi"], outcomes=OWN)
    area = result.auc()
    assert isinstance(area, Proportion)
    assert area.value == pytest.approx(roc_auc_score(y, risk))
    # Hanley and McNeil's error, by DeLong's placements.
    below = np.array([(risk[y == 0] < s).mean() + (risk[y == 0] == s).mean() / 2 for s in risk[y == 1]])
    above = np.array([(risk[y == 1] > s).mean() + (risk[y == 1] == s).mean() / 2 for s in risk[y == 0]])
    delong = np.sqrt(below.var() / len(below) + above.var() / len(above))
    assert area.std_error == pytest.approx(delong, rel=0.01)
    assert result.auc("risk", label=0).value == pytest.approx(1 - area.value)
    table = result.calibration(bins=[0, 0.3, 0.6, 1]).table
    for line, (low, high) in zip(table.to_dict("records"), [(0, 0.3), (0.3, 0.6), (0.6, 1)], strict=True):
        mine = (risk >= low) & (risk < high)
        assert line["share"] == pytest.approx(mine.mean())
        assert line["observed"] == pytest.approx(y[mine].mean())
        assert line["predicted"] == pytest.approx(risk[mine].mean())
        p = line["observed"]
        logit_error = 1 / np.sqrt(p * (1 - p) * mine.sum())
        width = np.log(line["upper"] / (1 - line["upper"])) - np.log(line["lower"] / (1 - line["lower"]))
        assert width == pytest.approx(2 * 1.96 * logit_error, rel=0.05)


@pytest.mark.slow
def test_intervals_cover_with_gaps():
    """Sensitivity, Brier score, AUC and a rate: estimates are unbiased, errors are right, within Monte Carlo error."""
    from studies.outcomes import make_outcome_world, outcome_records
    from studies.simulation import summarise

    world = make_outcome_world(n_population=10_000)
    records = pd.DataFrame([line for k in range(16) for line in outcome_records(world, 400, k)])
    summary = summarise(records, ["quantity"]).set_index("quantity")
    for name in ("rate of x2", "sensitivity", "specificity", "brier", "AUC"):
        line = summary.loc[name]
        assert abs(line["bias"]) < 4 * line["bias_mc_error"]
        assert line["mean_std_error"] == pytest.approx(line["std_deviation"], rel=0.6)
        assert line["coverage"] >= 0.75


def test_subgroups_are_the_evaluation_of_their_rows():
    """With known propensities nothing is learned from the other rows."""
    frame = table_of(500)
    frame["sex"] = np.where(frame["a"] > 0, "f", "m")
    known = afape.KnownPropensity(lambda v, r: (1 / (1 + np.exp(-0.8 - 0.6 * v[:, 0]))) ** r[:, 1:].sum(axis=1))
    names = ["imp-mean", "blocking", "cc", "ipw-miss", "ipw-semi"]
    whole = evaluated(frame, estimators=names, propensity=known, by=frame["sex"], outcomes=OWN)
    assert list(whole.subgroups) == ["f", "m"]
    for level, found in whole.subgroups.items():
        alone = evaluated(frame[frame["sex"] == level], estimators=names, propensity=known, outcomes=OWN)
        for name in names[1:]:  # mean imputation takes its means from all rows
            for target in (*COSTS, "brier"):
                one, other = found[name][target], alone[name][target]
                assert_allclose(one.value, other.value, rtol=1e-9)
                assert_allclose(one.std_error, other.std_error, rtol=0.01)
        assert_allclose(found.auc().value, alone.auc().value, rtol=1e-9)
        assert_allclose(found.metrics("cc")["estimate"], alone.metrics("cc")["estimate"], rtol=1e-9)
    line = whole.subgroup_differences("ipw-semi").iloc[0]
    gap = whole.subgroups["f"]["ipw-semi"]["total"] - whole.subgroups["m"]["ipw-semi"]["total"]
    assert line["difference"] == pytest.approx(gap.value)
    assert line["std_error"] == pytest.approx(gap.std_error)


def test_every_estimator_has_small_subgroups_or_a_reason():
    frame = table_of(300)
    level = np.where(np.arange(300) < 1, "one", np.where(np.arange(300) < 5, "few", "many")).astype(object)
    level[10:20] = None
    result = evaluated(frame, by=level, n_imputations=2)
    assert list(result.subgroups) == ["few", "many", "one", "not recorded"]
    assert any("10 of 300 rows have no" in note for note in result.assumption)
    assert all("subgroup has 1 row" in a.reason for a in result.subgroups["one"].answers.values())
    few, many = (result.subgroups[level]["drl-semi"]["total"] for level in ("few", "many"))
    assert few.std_error > many.std_error
    assert len(result.subgroup_differences("drl-semi")) == 3
    assert result.subgroups["many"].reprice({"b": 1.0, "c": 1.0})["drl-semi"]["total"].value > 0


@pytest.mark.parametrize("budget", [4096, 0])
def test_weights_and_sampled_rows_of_a_subgroup_are_its_own(budget):
    """Known propensities weigh the rows of a subgroup as they do alone; sets and regions are told of all rows."""
    third = np.arange(300) % 3 == 0
    known = afape.KnownPropensity(lambda values, required: 1 / (1.3 + 0.4 * required.sum(axis=1)))
    options = {"estimators": ["ipw-semi"], "propensity": known, "walk": afape.WalkOptions(max_states=budget)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # these propensities are not those of the records
        whole = evaluated(table_of(300), by=np.where(third, "x", "y"), **options)
        alone = evaluated(table_of(300)[third].reset_index(drop=True), **options)
    mine, shown = whole.subgroups["x"].support, ["ess", "ten_heaviest", "normalizer", "largest_weight"]
    assert_allclose(mine.estimators[shown].astype(float), alone.support.estimators[shown].astype(float), rtol=1e-9)
    assert (mine.n_rows, mine.sampled) == (100, 0 if budget else 100)
    assert whole.support.sampled == (0 if budget else 300)
    assert mine.sets.equals(whole.support.sets)


def test_subgroups_by_a_recorded_column():
    frame = table_of(200).assign(s=np.where(np.arange(200) % 3 == 0, "x", "y"))
    frame.loc[:9, "s"] = None
    groups = {"a": ["a"], "b": ["b"], "c": ["c"], "s": ["s"]}
    problem = afape.Problem(groups, {"b": 1.0, "c": 1.0}, "y", 5.0)
    data = afape.Retrospective(frame, problem)
    options = {"missingness": MAR, "estimators": ["ipw-semi"]}
    stop = afape.AcquireNone()
    found = afape.evaluate(data, stop, Sign(), by="s", **options).subgroups
    assert {level: e.support.n_rows for level, e in found.items()} == {"x": 63, "y": 127, "not recorded": 10}
    assert list(afape.evaluate(data, stop, Sign(), by="y", **options).subgroups) == ["0", "1"]


# --- what is refused ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def result():
    return evaluated(table_of(300), estimators=["ipw-semi"], outcomes=OWN)


@pytest.mark.parametrize(
    ("prices", "words"),
    [
        ({"b": 1.0, "c": 1.0, "mri": 9.0}, "'mri' is not one"),
        ({"b": 1.0, "c": 1.0, "a": 1.0}, "'a' is free"),
        ({"b": 1.0, "c": -1.0}, "not negative"),
        ({"b": 1.0, "c": float("nan")}, "finite"),
        ({"b": 1.0, "c": True}, "price of 'c' is True"),
    ],
)
def test_prices_are_checked(result, prices, words):
    with pytest.raises(ValueError, match=words):
        result.reprice(prices)


def test_other_arguments_are_checked(result):
    with pytest.raises(TypeError, match="'costs' must be a mapping"):
        result.reprice([1.0, 2.0])
    with pytest.raises(ValueError, match="'misclassification_cost' must have one row"):
        result.reprice(misclassification_cost=np.ones((3, 3)))
    with pytest.raises(ValueError, match="'misclassification_cost' must be finite"):
        result.reprice(misclassification_cost=-1.0)
    for prices in ({}, {"b": (0, 1), "c": (0, 1), "misclassification": (0, 1)}, ["b"]):
        with pytest.raises(ValueError, match="'prices' must map one or two groups"):
            result.price_plane(prices)
    for prices, words in (({"a": (0, 1)}, "is neither"), ({"b": (2, 1)}, "least < largest"), ({"b": 3}, "a range")):
        with pytest.raises(ValueError, match=words):
            result.price_plane(prices)
    with pytest.raises(KeyError, match="No estimator 'drl'"):
        result.parts("drl")
    with pytest.raises(ValueError, match="'score' must name an outcome"):
        result.auc("brisk")
    with pytest.raises(ValueError, match="'label' must be the class that 'brier' scores"):
        result.auc("brier")
    with pytest.raises(ValueError, match="'bins' must"):
        result.calibration(bins=[1.0, 0.0])
    with pytest.raises(ValueError, match="There are no subgroups"):
        result.subgroup_differences()
    plain = evaluated(table_of(300), estimators=["ipw-semi"])
    with pytest.raises(ValueError, match=r"afape.score\(classifier\)"):
        plain.auc()


@pytest.mark.parametrize(
    ("outcomes", "kind", "words"),
    [
        (["brier"], TypeError, "'outcomes' must be a mapping"),
        ({"total": np.mean}, ValueError, "must have other names"),
        ({3: np.mean}, TypeError, "with texts as names, but one name is 3"),
        ({"x": 1.0}, TypeError, "'x' is 1.0"),
        ({"x": lambda v, a, y: np.ones((len(v), 2))}, ValueError, r"'x' must return one number per row"),
        ({"x": lambda v, a, y: "many"}, ValueError, r"'x' must return one number per row"),
        ({"x": lambda v, a, y: v[:, 1]}, ValueError, "'x' must be a finite number wherever a run stops"),
    ],
)
def test_outcomes_are_checked(outcomes, kind, words):
    data = afape.Retrospective(table_of(100), problem_with({"b": 1.0, "c": 1.0}, 5.0))
    with pytest.raises(kind, match=words):
        afape.evaluate(data, afape.AcquireNone(), Sign(), missingness=MAR, estimators=["ipw-semi"], outcomes=outcomes)


def test_scores_need_probabilities():
    class Silent:
        def predict(self, values, acquired):
            return np.zeros(len(values), dtype=int)

    with pytest.raises(TypeError, match="must have predict_proba"):
        afape.brier(Silent())
    with pytest.raises(ValueError, match="'label' must be the code"):
        afape.score(Sign(), label=-1)


@pytest.mark.parametrize(
    ("by", "words"),
    [
        ("sex", "'sex' is not a column of a group"),
        ("a", "at most 50 levels, but 'a' has 300"),
        (np.arange(3), "one entry per row"),
        (np.full(300, None), "blank in every row"),
        ([1] * 150 + ["1"] * 150, "different texts"),
    ],
)
def test_subgroups_are_checked(by, words):
    with pytest.raises(ValueError, match=words):
        evaluated(table_of(300), estimators=["ipw-semi"], by=by)
