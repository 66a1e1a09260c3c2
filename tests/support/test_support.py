"""The support check: what it finds, what it leaves alone, and what it says."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from planted import KINDS, Planted
from worlds import Zero

import afape
from afape.propensity.autoregressive import AutoregressivePropensity
from afape.propensity.chain import ChainPropensity
from afape.propensity.unsupported import SupportMap, Violation
from afape.support.regions import RegionSearch
from afape.support.search import find_violations
from afape.support.thresholds import SupportThresholds


def check(world, **options):
    return afape.check_support(world.data, world.policy, missingness=world.missingness, n_folds=1, **options)


@pytest.mark.filterwarnings("ignore::afape.warnings.HeavyWeightsWarning")
def test_every_planted_violation_is_named():
    """60 worlds: intervals, tails, levels, categories, corners and all rows; one group or a pair; p = 0 or 0.0005."""
    missed = []
    for seed in range(60):
        world = Planted(seed, KINDS[seed % 6])
        with pytest.warns(afape.warnings.SupportWarning) as told:
            support = check(world)
        if world.name not in set(support.violations["set"]) or repr(world.name) not in str(told[0].message):
            missed.append((seed, world.kind, world.name))
        assert not support.holds
    assert missed == []


@pytest.mark.filterwarnings("ignore::afape.warnings.HeavyWeightsWarning")
def test_healthy_worlds_are_left_alone():
    """100 worlds in which every set has probability of at least 0.02 in every row: 95 are to be quiet."""
    quiet = 0
    for seed in range(100):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", afape.warnings.SupportWarning)
            support = check(Planted(seed))
        quiet += not told
        assert support.holds or told or support.heavy
    assert quiet >= 95


class Where:
    """Wants the second group where the first column says so."""

    def __init__(self, sign):
        self.sign = sign

    def probabilities(self, values, acquired):
        out = np.zeros((len(values), acquired.shape[1] + 1))
        wanted = (self.sign * values[:, 0] > 0) & ~acquired[:, 1]
        out[:, 1], out[:, -1] = wanted, ~wanted
        return out


@pytest.fixture(scope="module")
def half():
    """Lactate is never recorded below 0, and often above."""
    rng = np.random.default_rng(2)
    age = rng.normal(size=4000)
    lactate = np.where((age > 0) & (rng.random(4000) < 0.3), rng.normal(size=4000), np.nan)
    ecg = np.where(rng.random(4000) < 0.6, 1.0, np.nan)
    frame = pd.DataFrame({"age": age, "lactate": lactate, "ecg": ecg, "y": rng.integers(0, 2, 4000)})
    groups = {n: [n] for n in ("age", "lactate", "ecg")}
    return afape.Retrospective(frame, afape.Problem(groups, {"lactate": 1.0, "ecg": 2.0}, "y", 5.0))


def test_what_the_policy_never_wants_is_no_violation(half):
    mar = afape.MAR(given=["age"])
    assert afape.check_support(half, Where(+1), missingness=mar).warnings == ()
    with pytest.warns(
        afape.warnings.SupportWarning, match=r"'lactate' \(.* % of runs; recorded in 0 of \d+ rows with age < "
    ):
        support = afape.check_support(half, Where(-1), missingness=mar)
    assert_allclose(support.unsupported, 0.5, atol=0.03)
    assert not support.holds


def test_advice_in_words(half):
    with pytest.warns(afape.warnings.SupportWarning):
        support = afape.check_support(half, afape.AcquireAll(), missingness=afape.MAR(given=["age"]))
    assert any("Drop group 'lactate' from the policy: the other sets" in text for text in support.advice)
    assert any("leave out rows with age < " in text for text in support.advice)
    assert any("bounds" in text for text in support.advice)
    shown = repr(support)
    assert "! An estimated" in shown
    assert "> Drop group 'lactate'" in shown
    rest = half.take(half.values[:, 0] > 0.05)
    assert afape.check_support(rest, afape.AcquireAll(), missingness=afape.MAR(given=["age"])).holds


def test_views_groups_and_sets(half):
    with pytest.warns(afape.warnings.SupportWarning):
        support = afape.check_support(half, afape.RandomSubset(0.5), missingness=afape.MAR(given=["age"]))
    views = support.views.set_index("view")
    assert not views["holds"].any()
    assert_allclose(views["unsupported"], [0.25, 0.5], atol=0.03)
    assert views.loc["missing-data", "rows_usable"] == half.complete.sum()
    groups = support.groups.set_index("group")
    assert_allclose(groups["wanted"], [0.5, 0.375], atol=0.03)  # after lactate fails, ecg is not reached
    assert_array_equal(groups["rows_recorded"], half.recorded[:, 1:].sum(axis=0))
    sets = support.sets.set_index("set")
    assert sets.loc["ecg", "ess"] > 1000
    assert 0.2 < sets.loc["lactate", "smallest_propensity"] < 0.35  # where it is supported


def test_missing_data_view_may_fail_alone(half):
    support = afape.check_support(half, afape.FixedOrder(["ecg"]), missingness=afape.MAR(given=["age"]))
    assert support.warnings == ()
    assert support.views["holds"].tolist() == [True, False]
    assert any("do not use ipw-miss and cc" in text for text in support.advice)


def test_pairs_never_recorded_together(half):
    either = half.hide(np.column_stack([np.ones(len(half)), half.labels == 0, half.labels == 1]).astype(bool))
    with pytest.warns(afape.warnings.SupportWarning, match="that is not recorded in any row"):
        support = afape.check_support(either, afape.RandomSubset(0.5), missingness=afape.MCAR())
    assert support.pairs.to_dict("records") == [{"group": "lactate", "and": "ecg", "both_wanted": True}]
    assert any("never all of them in one row" in text for text in support.advice)


def test_known_propensities_speak_for_themselves(half):
    def chance(values, required):
        p = np.where(required[:, 1], np.where(values[:, 0] > 0, 0.3, 0.0), 1.0)
        return p * np.where(required[:, 2], 0.6, 1.0)

    known = afape.KnownPropensity(chance)
    with pytest.warns(afape.warnings.SupportWarning, match="'lactate'"):
        support = afape.check_support(half, Where(-1), missingness=afape.MAR(given=["age"]), propensity=known)
    assert_allclose(support.unsupported, (half.values[:, 0] < 0).mean(), atol=1e-12)
    assert afape.check_support(half, Where(+1), missingness=afape.MAR(given=["age"]), propensity=known).holds


def test_evaluate_reports_the_same(half):
    with pytest.warns(afape.warnings.SupportWarning):
        support = afape.check_support(half, afape.RandomSubset(0.5), missingness=afape.MAR(given=["age"]))
    zero = Zero()
    with pytest.warns(afape.warnings.SupportWarning):
        result = afape.evaluate(
            half, afape.RandomSubset(0.5), zero, missingness=afape.MAR(given=["age"]), estimators=["ipw-semi"]
        )
    for name in ("sets", "groups", "views", "violations", "pairs"):
        pd.testing.assert_frame_equal(getattr(support, name), getattr(result.support, name))
    assert (support.warnings, support.advice) == (result.support.warnings, result.support.advice)


@pytest.mark.filterwarnings("ignore::afape.warnings.NormalizerWarning")
@pytest.mark.filterwarnings("ignore::afape.warnings.BalanceWarning")
def test_thresholds_can_be_set(half):
    strict = SupportThresholds(rows=5000, wanted=0.01)
    with pytest.warns(
        afape.warnings.SupportWarning, match=r"runs want 'ecg', but it is recorded in only \d+ of the rows"
    ):
        afape.check_support(half, afape.FixedOrder(["ecg"]), missingness=afape.MCAR(), thresholds=strict)
    strict = SupportThresholds(effective_rows=4000)
    with pytest.warns(afape.warnings.SupportWarning, match="have an effective sample size of only"):
        afape.check_support(half, afape.FixedOrder(["ecg"]), missingness=afape.MCAR(), thresholds=strict)
    lax = SupportThresholds(share=0.9)
    with pytest.warns(afape.warnings.SupportWarning, match=r"'lactate' .* Estimates ignore these runs\."):
        result = afape.evaluate(
            half,
            afape.AcquireAll(),
            Zero(),
            missingness=afape.MAR(given=["age"]),
            thresholds=lax,
            estimators=["ipw-semi"],
        )
    assert not isinstance(result["ipw-semi"]["total"], afape.Bounds)


class Seldom:
    """Wants the second group three times in two thousand."""

    def probabilities(self, values, acquired):
        out = np.zeros((len(values), acquired.shape[1] + 1))
        out[:, 1] = np.where(acquired[:, 1], 0.0, 0.0015)
        out[:, -1] = 1 - out[:, 1]
        return out


def test_what_few_runs_want_is_named_and_not_bounded(half):
    with pytest.warns(
        afape.warnings.SupportWarning, match=r"0\.07\d % of .* 'lactate' .* with age < .* Estimates ignore these runs"
    ):
        support = afape.check_support(half, Seldom(), missingness=afape.MAR(given=["age"]))
    assert support.violations["set"].tolist() == ["lactate"]
    assert not support.holds


def test_supersets_of_the_unsupported_are_unsupported(half):
    sets = np.array([[True, True, False], [True, True, True], [True, False, True]])
    found = find_violations(half, sets, RegionSearch.of(half.values[:, [0]], SupportThresholds())).unsupported
    assert [v.name(half) for v in found.violations] == ["lactate"]
    rows, one = np.arange(len(half)), np.zeros(len(half), dtype=int)
    assert_array_equal(found.lacks(rows, sets[:1], one), found.lacks(rows, sets[1:2], one))
    assert not found.lacks(rows, sets[2:], one).any()
    assert_array_equal(found.lacking(sets[1]), found.lacks(rows, sets[1:2], one))


@pytest.mark.parametrize("learn", [ChainPropensity, AutoregressivePropensity])
def test_rows_without_support_do_not_teach(half, learn):
    """Where lactate is supported it has probability 0.3; a model of all rows would say something else."""
    fold = np.arange(len(half)) % 2
    given = afape.MAR([half.problem.group_names[0]]).conditioning(half, np.ones(3, dtype=bool))
    bad = half.values[:, 0] < 0
    violation = Violation(np.array([False, True, False]), bad, 0)
    linear = afape.LearnedPropensity(form="linear")
    model = learn(half, given, fold, linear).excluding(SupportMap((violation,)))
    rows = np.flatnonzero(~bad)
    p = model.probability(rows, np.array([[False, True, False], [False, True, True]]), np.zeros(len(rows), dtype=int))
    assert_allclose(p, 0.3, atol=0.08)
    plain = learn(half, given, fold, linear)
    assert plain.probability(rows, np.array([[False, True, False]]), np.zeros(len(rows), dtype=int)).min() < 0.2
    again = model.refit(np.ones(len(half)))
    assert_allclose(
        again.probability(rows, np.array([[False, True, False]]), np.zeros(len(rows), dtype=int)), p, atol=0.01
    )


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"propensity": 2.0}, "'propensity' must lie in .0, 1., but is 2.0"),
        ({"propensity": 0.05}, "'propensity' must be smaller than 'healthy'"),
        ({"share": -1}, "'share' must lie in .0, 1., but is -1"),
        ({"rows": "many"}, "'rows' must be a whole number"),
    ],
)
def test_bad_thresholds(options, match):
    with pytest.raises(ValueError, match=match):
        SupportThresholds(**options)


def test_bad_arguments(half):
    mar = afape.MAR(given=["age"])
    with pytest.raises(TypeError, match=r"'thresholds' must be an afape\.SupportThresholds"):
        afape.check_support(half, afape.AcquireAll(), missingness=mar, thresholds=0.1)
    with pytest.raises(TypeError, match="'data' must be"):
        afape.check_support("data", afape.AcquireAll(), missingness=mar)
    with pytest.raises(TypeError, match="'missingness' must be"):
        afape.check_support(half, afape.AcquireAll(), missingness="MAR")
    known = afape.KnownPropensity(lambda v, r: np.ones(len(v)))
    with pytest.raises(TypeError, match="'propensity' must be one propensity here"):
        afape.check_support(half, afape.AcquireAll(), missingness=mar, propensity=[None, known])


# --- what a second look found ---------------------------------------------------------------------------------------


def frame_of(n, seed, **columns):
    """Records: each column is (values, recorded), the label is a coin."""
    rng = np.random.default_rng(seed)
    data = {name: np.where(has, values, np.nan) for name, (values, has) in columns.items()}
    return pd.DataFrame(data).assign(y=rng.integers(0, 2, n))


def test_rows_that_belong_together_are_counted_as_one():
    """Whole clusters are recorded or not, at a healthy 10 %: empty stretches of rows are no violation."""
    flagged = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        n, size = 4000, 20
        cluster = np.repeat(np.arange(n // size), size)
        x = rng.normal(size=n // size)[cluster]
        has = (rng.random(n // size) < 0.1)[cluster]
        frame = frame_of(n, seed, x=(x, True), a=(rng.normal(size=n), has)).assign(who=cluster)
        problem = afape.Problem({"x": ["x"], "a": ["a"]}, {"a": 1.0}, "y", 4.0)
        data = afape.Retrospective(frame, problem, cluster="who")
        flagged += not afape.check_support(data, afape.AcquireAll(), missingness=afape.MAR(["x"])).holds
    assert flagged == 0


@pytest.mark.parametrize("never", [0, 3])
def test_a_label_class_without_support_is_named(never):
    rng = np.random.default_rng(never)
    y = rng.integers(0, 5, 5000)
    frame = pd.DataFrame({"a": np.where((rng.random(5000) < 0.5) & (y != never), 1.0, np.nan), "y": y})
    data = afape.Retrospective(frame, afape.Problem({"a": ["a"]}, {"a": 1.0}, "y", 4.0))
    with pytest.warns(afape.warnings.SupportWarning, match=f"y={never}"):
        support = afape.check_support(data, afape.AcquireAll(), missingness=afape.MAR([], label=True))
    assert_allclose(support.unsupported, 0.2, atol=0.02)


@pytest.mark.filterwarnings("ignore::afape.warnings.AssumptionWarning", "ignore::afape.warnings.BalanceWarning")
def test_many_small_violations_are_not_small_together():
    """Ten groups in five panels that are never ordered together; a policy that takes any two."""
    rng = np.random.default_rng(0)
    n, groups = 3000, [f"g{i}" for i in range(10)]
    panel = rng.integers(0, 5, n)
    frame = pd.DataFrame({g: np.where(panel == i // 2, rng.normal(size=n), np.nan) for i, g in enumerate(groups)})
    data = afape.Retrospective(
        frame.assign(y=panel % 2), afape.Problem({g: [g] for g in groups}, dict.fromkeys(groups, 1.0), "y", 4.0)
    )

    class TwoOfThem:
        def probabilities(self, values, acquired):
            out = np.zeros((len(acquired), 11))
            open_ = ~acquired & (acquired.sum(axis=1) < 2)[:, None]
            out[:, :10] = open_ / np.maximum(open_.sum(axis=1), 1)[:, None]
            out[:, 10] = ~open_.any(axis=1)
            return out

    limits = afape.SupportThresholds(share=0.05)  # every pair alone is wanted by fewer runs than this
    with pytest.warns(afape.warnings.SupportWarning):
        result = afape.evaluate(
            data, TwoOfThem(), Zero(), missingness=afape.MCAR(), estimators=["ipw-semi"], thresholds=limits
        )
    assert isinstance(result["ipw-semi"]["total"], afape.Bounds)


def chained(order, n=4000, seed=0):
    """x decides g1, g1 decides g2: g1 never recorded for x below 0; columns in the given order."""
    rng = np.random.default_rng(seed)
    x, g1, g2 = rng.normal(size=(3, n))
    has1 = (x > 0) & (rng.random(n) < 0.7)
    has2 = rng.random(n) < 1 / (1 + np.exp(-0.5 - g1))
    parts = {"x": (x, True), "g1": (g1, has1), "g2": (g2, has2)}
    frame = frame_of(n, seed, **{name: parts[name] for name in order})
    return afape.Retrospective(frame, afape.Problem({g: [g] for g in order}, {"g1": 1.0, "g2": 1.0}, "y", 4.0))


@pytest.mark.parametrize("known", [False, True])
def test_what_is_adjusted_for_is_searched_by_its_own_columns(known):
    data = chained(["g1", "x", "g2"])
    propensity = afape.KnownPropensity(lambda values, required: np.full(len(values), 0.4)) if known else None
    with pytest.warns(afape.warnings.SupportWarning, match="rows with x < "):
        support = afape.check_support(
            data, afape.FixedOrder(["g2"]), missingness=afape.MNAR("x -> R_g1; g1 -> R_g2"), propensity=propensity
        )
    assert not support.holds
    assert_allclose(support.unsupported, 0.5, atol=0.03)


def test_no_answer_where_rows_with_a_part_of_what_is_given_lack_the_rest():
    """g2 is never recorded where g1 is low, and both have gaps: such rows have no twins, and no bounds are known."""
    rng = np.random.default_rng(1)
    n = 5000
    x, g1, g2, g3 = rng.normal(size=(4, n))
    has1 = rng.random(n) < 0.7
    has2 = (g1 > -0.3) & (rng.random(n) < 0.7)
    has3 = rng.random(n) < 1 / (1 + np.exp(-0.5 - g2))
    frame = frame_of(n, 1, x=(x, True), g1=(g1, has1), g2=(g2, has2), g3=(g3, has3))
    problem = afape.Problem({g: [g] for g in ("x", "g1", "g2", "g3")}, dict.fromkeys(["g1", "g2", "g3"], 1.0), "y", 4.0)
    data = afape.Retrospective(frame, problem)
    graph = afape.MNAR("x -> R_g1; g1 -> R_g2; g2 -> R_g3")
    with pytest.warns(afape.warnings.SupportWarning, match="No estimate: g2 is never recorded in rows with g1 <"):
        result = afape.evaluate(data, afape.FixedOrder(["g3"]), Zero(), missingness=graph)
    for name in ("ipw-miss", "ipw-semi-miss", "dm-semi-miss", "drl-semi-miss"):
        assert "no recorded row represents them" in result.answers[name].reason
    assert not result.support.holds


# --- slanted edges, and too few rows ------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::afape.warnings.HeavyWeightsWarning")
def test_slanted_edges_are_named():
    """One side of a line through two columns, at any angle: 95 % are to be named, and this many worlds all but one."""
    named = 0
    for seed in range(100, 112):
        world = Planted(seed, "slanted")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", afape.warnings.SupportWarning)
            named += world.name in set(check(world).violations["set"])
    assert named >= 11


def small(seed, n, edge, slope=0.5):
    """b is recorded by a slope in a, and never below the edge."""
    rng = np.random.default_rng(seed)
    a, c, b = rng.normal(size=(3, n))
    has = (rng.random(n) < 1 / (1 + np.exp(-0.3 - slope * a))) & (a > edge)
    frame = frame_of(n, seed, a=(a, True), c=(c, True), b=(b, has))
    return afape.Retrospective(frame, afape.Problem({"base": ["a", "c"], "b": ["b"]}, {"b": 1.0}, "y", 4.0))


def test_the_limit_of_the_search_is_said(half, monkeypatch):
    for module in ("search", "support"):
        monkeypatch.setattr(f"afape.support.{module}.MOST_SETS", 2)
    with pytest.warns(afape.warnings.SupportWarning):
        support = afape.check_support(half, afape.RandomSubset(0.5), missingness=afape.MAR(given=["age"]))
    assert support.unsearched == support.to_dict()["unsearched_sets"] == 1
    assert "only 2 sets were searched for regions without support, 1 were not" in support.words[0]


@pytest.mark.parametrize("n", [400, 800])
def test_too_few_rows_to_tell_are_said(n):
    for seed in range(5):
        data = small(seed, n, -0.5)
        with pytest.warns(
            afape.warnings.SupportWarning, match=r"'b' is recorded in 0 of \d+ rows with a < .* too few to test"
        ) as told:
            support = afape.check_support(data, afape.AcquireAll(), missingness=afape.MAR(["base"]))
        assert "274 are needed" in str(told[0].message)
        assert not support.holds
        line = support.undecided.iloc[0]
        assert (line["set"], line["rows_recorded"], line["rows_needed"]) == ("b", 0, 274)
        below = data.values[:, 0] < -0.5
        assert abs(line["rows"] - below.sum()) < 0.1 * n
        assert_allclose(line["wanted"], line["rows"] / n, atol=1e-9)


def test_small_healthy_records_are_left_alone():
    quiet = 0
    for seed in range(30):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            quiet += afape.check_support(
                small(seed, 400 + 20 * seed, -9.0, 1.2), afape.AcquireAll(), missingness=afape.MAR(["base"])
            ).holds
        assert quiet or told
    assert quiet >= 29
