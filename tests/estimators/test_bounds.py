"""Bounds where positivity fails: against brute force, and against the truth."""

import json
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
from by_hand import fitted_by
from numpy.testing import assert_allclose
from planted import KINDS, Planted
from worlds import WORLDS, ExactValues, World

import afape
from afape.estimators.eff.mixture import Mixture
from afape.run.options import Options
from afape.run.plan import make_plan
from afape.run.reduce import reduced

EVERYTHING = afape.SupportThresholds(share=0.0)
ignored = pytest.mark.filterwarnings(
    "ignore::afape.warnings.SupportWarning",
    "ignore::afape.warnings.NormalizerWarning",
    "ignore::afape.warnings.HeavyWeightsWarning",
    "ignore::afape.warnings.BalanceWarning",
    "ignore::afape.warnings.AssumptionWarning",
)


class Broken(World):
    """A world in which one costly group, or a pair of them, is never recorded at one level of the first group."""

    pair = False

    def pattern_law(self, levels, label=None):
        law = super().pattern_law(levels)
        if levels[self.given[0]] == 0:
            return law
        groups = np.flatnonzero(self.costly & ~self.always)[: 2 if self.pair else 1]
        law = law * ~self.patterns[:, groups].all(axis=1)
        return law / law.sum()

    def lacks(self, levels, required):
        return self.superset(levels, required) == 0


class BrokenPair(Broken):
    pair = True


def broken_worlds():
    return [kind(world.seed, **shape(world)) for world in WORLDS for kind in (Broken, BrokenPair) if fits(world)]


def shape(world):
    return {n: getattr(world, n) for n in ("n_groups", "n_levels", "n_classes", "n_free", "given", "free_gaps")}


def fits(world):
    return len(world.given) > 0 and (world.costly & ~world.always).sum() > 1 and not world.free_gaps


BROKEN = broken_worlds()
each_world = pytest.mark.parametrize("world", BROKEN, ids=lambda w: f"{type(w).__name__}{w.seed}")


def brute_bounds(world):
    """(least, largest) of (acquisition, misclassification): every trajectory, until it wants what is never recorded."""
    out = np.zeros((2, 2))
    lost = 0.0
    for x, y, mass in zip(world.cell_levels, world.cell_label, world.cell_mass, strict=True):
        everything = np.ones(world.n_groups, dtype=bool)
        seen = set()
        for _, steps in world.trajectories(world.values(x), ~world.costly, everything):
            p, paid = 1.0, 0.0
            for t, (acquired, a) in enumerate(steps):
                p *= world.policy.of(world.seen(world.values(x), acquired), acquired)[a]
                paid += 0.0 if a == world.n_groups else world.prices[a]
                if a == world.n_groups:
                    cost = world.stop_cost(world.values(x), y, acquired)
                    out += mass * p * np.array([paid, cost])
                    break
                grown = np.array(acquired)
                grown[a] = True
                if world.lacks(x, grown):
                    if steps[: t + 1] not in seen:  # ways on from here are one and the same loss
                        seen.add(steps[: t + 1])
                        left = world.prices[~grown].sum()
                        out += mass * p * np.array([[paid, world.costs[y].min()], [paid + left, world.costs[y].max()]])
                        lost += mass * p
                    break
    return out, lost


def terms(estimate):
    return estimate.influence + estimate.value


def run(world, data, **options):
    return afape.evaluate(
        data,
        world.policy,
        world.classifier,
        missingness=afape.MAR(given=[f"g{i}" for i in world.given]),
        propensity=world.known_propensity(),
        thresholds=EVERYTHING,
        **options,
    )


@ignored
@each_world
@pytest.mark.parametrize("acquisition_weight", ["before", "after"])
def test_plain_bounds_equal_brute_force(world, acquisition_weight):
    data, _, mass = world.everything()
    result = run(world, data, normalize=False, estimators=["ipw-semi"], acquisition_weight=acquisition_weight)
    (least, largest), lost = brute_bounds(world)
    truth = world.true_costs()
    for j, target in enumerate(("acquisition", "misclassification")):
        found = result["ipw-semi"][target]
        if lost == 0:  # the policy never wants the set there
            assert not isinstance(found, afape.Bounds)
            continue
        assert_allclose(terms(found.least) @ mass, least[j], rtol=1e-9, atol=1e-12)
        assert_allclose(terms(found.largest) @ mass, largest[j], rtol=1e-9, atol=1e-12)
        assert least[j] - 1e-9 <= truth[j] <= largest[j] + 1e-9


def test_most_broken_worlds_are_broken_for_their_policy():
    assert sum(brute_bounds(w)[1] > 0 for w in BROKEN) > len(BROKEN) / 2


@dataclass
class AnyDonors:
    """Lend levels that are any function of what is shown, of the label and of which groups these are."""

    world: World
    seed: int = 0

    def halves(self, data, table):
        return np.arange(len(data)) % 2

    def positions(self, data, number):
        return np.zeros(len(data)), np.zeros(len(data))

    def pool(self, data, rows, table, half):
        return None

    def tree(self, pool, table, half, shown, number, min_leaf):
        return AnyTree(self.world, shown, 57 * len(number))


@dataclass
class AnyTree:
    world: World
    shown: np.ndarray
    salt: int

    def complete(self, values, labels, position):
        columns = [list(self.world.frame_columns).index(name) for name in self.world.group_columns]
        shown, levels = self.shown[columns], values[:, columns].astype(int)
        key = np.where(shown, levels + 1, 0) @ (7 ** np.arange(len(columns))) * 3 + labels
        hidden = (key[:, None] * 31 + 97 * np.arange(len(columns)) + self.salt) % 101 % self.world.n_levels
        completed = np.array([self.world.values(x) for x in np.where(shown, levels, hidden)])
        return completed, np.full(len(values), -1)


@ignored
@each_world
def test_efficient_bounds_equal_brute_force_whatever_the_means(world, monkeypatch):
    """Completed rows want what no record with the same start wants: the known propensity is asked about these too.

    Rows that enumerate a world are no sample, in which shares are chosen on other rows: all have the same shares.
    """
    monkeypatch.setattr(Mixture, "left_out", property(lambda mixture: np.tile(mixture.shares, (20, 1))))
    data, _, mass = world.everything()
    options = {"propensity": world.known_propensity(), "thresholds": EVERYTHING, "normalize": False, "n_folds": 1}
    given = afape.MAR(given=[f"g{i}" for i in world.given])
    plan = make_plan(data, world.classifier, given, Options(estimators=["eff-semi"], **options))
    plan = replace(plan, donors=AnyDonors(world), recipe=replace(plan.recipe, averaged=mass))
    answer = reduced(plan.choices[0], [fitted_by(plan, world.policy)]).answer()
    (least, largest), lost = brute_bounds(world)
    for j, target in enumerate(("acquisition", "misclassification")):
        found = answer.estimates[target]
        if lost == 0:
            assert_allclose(found.value, world.true_costs()[j], rtol=1e-9)
            continue
        assert_allclose(found.bound_lower, least[j], rtol=1e-9, atol=1e-12)
        assert_allclose(found.bound_upper, largest[j], rtol=1e-9, atol=1e-12)


@ignored
@each_world
def test_doubly_robust_bounds_equal_brute_force_whatever_the_values(world):
    data, _, mass = world.everything()
    exact = ExactValues(world, label=True)
    wrong = afape.KnownValues(lambda v, a, y: 0.3 * exact.function(v, a, y) + 1.0)
    result = run(world, data, normalize=False, estimators=["drl-semi"], values=wrong)
    (least, largest), lost = brute_bounds(world)
    for j, target in enumerate(("acquisition", "misclassification")):
        found = result["drl-semi"][target]
        if lost > 0:
            assert_allclose(terms(found.least) @ mass, least[j], rtol=1e-9, atol=1e-9)
            assert_allclose(terms(found.largest) @ mass, largest[j], rtol=1e-9, atol=1e-9)


@ignored
@each_world
def test_rows_without_complete_twins_get_all_that_their_label_allows(world):
    data, levels, mass = world.everything()
    result = run(world, data, normalize=False, estimators=["ipw-miss"])
    everything = np.ones(world.n_groups, dtype=bool)
    lacking = np.array([world.lacks(x, everything) for x in levels])
    found = result["ipw-miss"]
    if lacking.all():
        return
    assert_allclose(found["total"].unsupported, lacking.mean())
    costs = data.costs
    truth = np.zeros((2, 2))
    whole = np.array([world.lacks(x, everything) for x in world.cell_levels])
    complete = afape.true_cost(world.complete(), world.policy, world.classifier)
    for j, target in enumerate(("acquisition", "misclassification")):
        inside = terms(complete[target]) * ~whole @ world.cell_mass
        y = world.cell_label
        low = (0.0 * y, costs.min(axis=1)[y])[j] * whole @ world.cell_mass
        high = (world.prices.sum() + 0.0 * y, costs.max(axis=1)[y])[j] * whole @ world.cell_mass
        truth[:, j] = inside + low, inside + high
        assert_allclose(terms(found[target].least) @ mass, truth[0, j], rtol=1e-9)
        assert_allclose(terms(found[target].largest) @ mass, truth[1, j], rtol=1e-9)


@ignored
def test_normalised_bounds_divide_by_normaliser_plus_unsupported():
    world = Planted(5, "level", n=2000)
    options = {"missingness": world.missingness, "estimators": ["ipw-semi"]}
    result, plain = (
        afape.evaluate(world.data, world.policy, world.classifier, normalize=n, **options) for n in (True, False)
    )
    normalizer = result.answers["ipw-semi"].normalizer
    found, raw = (r["ipw-semi"]["misclassification"] for r in (result, plain))
    assert_allclose(found.bound_lower, raw.bound_lower / normalizer)
    assert_allclose(found.bound_upper, raw.bound_upper / normalizer)
    widest = np.array([6.0, 9.0]).max()
    assert (found.bound_upper - found.bound_lower) * normalizer <= widest * found.unsupported + 1e-9


@pytest.fixture(scope="module")
def level():
    """One violated world, evaluated with everything."""
    world = Planted(5, "level", n=1500)
    with pytest.warns(afape.warnings.SupportWarning, match="runs want a set of groups that the records do not support"):
        result = afape.evaluate(
            world.data,
            world.policy,
            world.classifier,
            missingness=world.missingness,
            estimators=["blocking", "ipw-semi", "dm-semi", "drl-semi"],
            bootstrap=5,
            n_folds=2,
        )
    return world, result


def test_the_table_says_bounds(level):
    _, result = level
    table = result.table.set_index(["estimator", "target"])
    for name in ("ipw-semi", "drl-semi", "dm-semi"):
        line, found = table.loc[(name, "total")], result[name]["total"]
        assert isinstance(found, afape.Bounds)
        assert np.isnan(line["estimate"])
        assert (line["bound_lower"], line["bound_upper"]) == (found.bound_lower, found.bound_upper)
        assert line["lower"] < line["bound_lower"] < line["bound_upper"] < line["upper"]
        assert "of the policy's runs want sets that the records do not support" in line["note"]
        assert "% unsupported" in repr(found)
    point = table.loc[("blocking", "total")]
    assert np.isfinite(point["estimate"])
    assert np.isnan(point["bound_lower"])
    again = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert again["violations"][0]["set"]
    assert "bound_lower" in repr(result)


def test_replicates_bound_both_sides(level):
    _, result = level
    for name in ("ipw-semi", "dm-semi"):
        found = result[name]["total"]
        assert len(found.least.replicates) == len(found.largest.replicates) == 5
        assert (found.least.replicates < found.largest.replicates).all()
        low, high = found.interval(kind="bootstrap-percentile")
        assert low < high


def test_differences_of_bounds(level):
    _, result = level
    bounds, point = result["ipw-semi"]["total"], result["blocking"]["total"]
    assert_allclose((bounds - point).bound_lower, bounds.bound_lower - point.value)
    assert_allclose((bounds - point).bound_upper, bounds.bound_upper - point.value)
    assert_allclose((point - bounds).bound_lower, point.value - bounds.bound_upper)
    assert_allclose((point - bounds).bound_upper, point.value - bounds.bound_lower)
    itself = bounds - bounds
    assert itself.bound_lower == -itself.bound_upper
    assert_allclose((bounds + point).bound_upper, bounds.bound_upper + point.value)
    with pytest.raises(TypeError):
        bounds - 1.0


def test_an_interval_of_bounds_is_that_of_an_estimate_where_they_meet():
    rng = np.random.default_rng(0)
    phi = rng.normal(size=200)
    same = afape.Estimate(1.0, phi - phi.mean())
    meeting = afape.Bounds.between(same, same, 0.1)
    assert_allclose(meeting.interval(), same.interval(), rtol=1e-9)
    wide = afape.Bounds.between(same, afape.Estimate(100.0, phi - phi.mean()), 0.1)
    assert_allclose(wide.interval(0.95)[0], same.interval(0.90)[0], rtol=1e-3)


@pytest.mark.filterwarnings("ignore::afape.warnings.SupportWarning")
def test_comparisons_leave_bounds_out():
    world = Planted(5, "level", n=3000)
    policies = {"wants it": world.policy, "nothing": afape.AcquireNone(), "nothing either": afape.AcquireNone()}
    found = afape.compare(
        world.data, policies, world.classifier, missingness=world.missingness, estimators=["ipw-semi"]
    )
    assert isinstance(found["wants it"]["ipw-semi"]["total"], afape.Bounds)
    assert set(found.ranking("ipw-semi")["policy"]) == {"nothing", "nothing either"}
    assert len(found.differences("ipw-semi")) == 1
    assert "policies on 3000 rows" in repr(found)
    alone = afape.compare(
        world.data, {"wants it": world.policy}, world.classifier, missingness=world.missingness, estimators=["ipw-semi"]
    )
    with pytest.raises(ValueError, match="'ipw-semi' has only bounds for"):
        alone.ranking("ipw-semi")


@pytest.mark.filterwarnings("ignore::afape.warnings.SupportWarning", "ignore::afape.warnings.ClippedWeightsWarning")
@pytest.mark.filterwarnings("ignore::afape.warnings.NormalizerWarning", "ignore::afape.warnings.PropensityFitWarning")
@pytest.mark.filterwarnings("ignore::afape.warnings.BalanceWarning", "ignore::afape.warnings.HeavyWeightsWarning")
def test_bounds_contain_the_truth():
    """Of 50 violated worlds, at least 47; the weights of supported rows are learned."""
    hits, n_bounds = 0, 0
    for seed in range(50):
        world = Planted(seed, KINDS[seed % len(KINDS)])
        population, _ = world.population(5000, np.random.default_rng([seed, 99]))
        truth = afape.true_cost(population, world.policy, world.classifier)
        result = afape.evaluate(
            world.data,
            world.policy,
            world.classifier,
            missingness=world.missingness,
            propensity=afape.LearnedPropensity(form="linear"),
            estimators=["ipw-semi"],
            n_folds=2,
        )
        inside = []
        for target, found in result["ipw-semi"].items():
            low, high = found.interval()
            slack = 2 * truth[target].std_error + 1e-9  # the population is a sample too
            inside.append(low - slack <= truth[target].value <= high + slack)
            n_bounds += isinstance(found, afape.Bounds)
        hits += all(inside)
    assert hits >= 47
    assert n_bounds == 150


# --- the estimate that holds if models may be extrapolated -----------------------------------------------------------


def edge_world(n=1500, level=False):
    """b is recorded by a slope in a, and never below an edge, or never in a ward."""
    rng = np.random.default_rng(0)
    a, b, ward = rng.normal(size=n), rng.normal(size=n), rng.integers(3, size=n)
    has = (rng.random(n) < 1 / (1 + np.exp(-0.5 - a))) & ((ward > 0) if level else (a > -0.5))
    frame = pd.DataFrame({"a": a, "ward": [f"w{w}" for w in ward], "b": np.where(has, b, np.nan)})
    frame["y"] = (a + b + rng.normal(size=n) > 0).astype(int)
    groups = {"base": ["a", "ward"], "b": ["b"]}
    return afape.Retrospective(frame, afape.Problem(groups, {"b": 1.0}, "y", 5.0))


class Sums:
    def predict(self, values, acquired):
        return (np.nansum(values[:, [0, -1]], axis=1) > 0).astype(int)


@pytest.mark.filterwarnings("ignore::afape.warnings.AfapeWarning")
def test_the_extrapolated_estimate_is_that_without_unsupported_regions():
    names = ["ipw-miss", "ipw-semi", "dm-semi", "drl-semi", "eff-semi"]
    options = {"missingness": afape.MAR(given=["base"]), "estimators": names}
    options["bootstrap"] = afape.Bootstrap(n_replicates=4)
    bounded = afape.evaluate(edge_world(), afape.AcquireAll(), Sums(), **options)
    plain = afape.evaluate(
        edge_world(), afape.AcquireAll(), Sums(), **options, thresholds=afape.SupportThresholds(share=1.0)
    )
    for prices in ({}, {"costs": {"b": 3.0}}):
        found, expected = bounded.reprice(**prices), plain.reprice(**prices)
        for name in names:
            for target in ("acquisition", "misclassification", "total"):
                further, reference = found[name][target].extrapolated, expected[name][target]
                assert_allclose(further.value, reference.value, rtol=1e-9)
                assert_allclose(further.std_error, reference.std_error, rtol=1e-9)
    table = bounded.table.set_index(["estimator", "target"])
    line = table.loc["drl-semi", "total"]
    assert_allclose(line["extrapolated"], plain["drl-semi"]["total"].value, rtol=1e-9)
    assert line["extrapolated_lower"] < line["extrapolated"] < line["extrapolated_upper"]
    assert "extrapolated" in repr(bounded["drl-semi"]["total"])


@pytest.mark.filterwarnings("ignore::afape.warnings.AfapeWarning")
def test_nothing_is_extrapolated_into_a_level_of_a_category():
    result = afape.evaluate(
        edge_world(level=True), afape.AcquireAll(), Sums(), missingness=afape.MAR(["base"]), estimators=["ipw-semi"]
    )
    assert isinstance(result["ipw-semi"]["total"], afape.Bounds)
    assert result["ipw-semi"]["total"].extrapolated is None
    assert result.table["extrapolated"].isna().all()


@pytest.mark.filterwarnings("ignore::afape.warnings.AfapeWarning")
def test_bounds_outside_the_other_estimates_are_ranked():
    policies = {"none": afape.AcquireNone(), "all": afape.AcquireAll()}
    for price, ranked in ((20.0, True), (0.5, False)):
        data = edge_world()
        found = afape.compare(data, policies, Sums(), missingness=afape.MAR(["base"]), estimators=["ipw-semi"]).reprice(
            {"b": price}
        )
        table = found.ranking()
        assert table["policy"].tolist() == (["none", "all"] if ranked else ["none"])
        assert table["rank_lower"].tolist() == ([1, 2] if ranked else [1])
        assert table["verdict"].tolist() == (["lowest estimate, in doubt", "not the cheapest"] if ranked else ["alone"])
        if ranked:
            total = found["all"]["ipw-semi"]["total"]
            assert_allclose(
                table.loc[1, ["bound_lower", "bound_upper"]].tolist(), [total.bound_lower, total.bound_upper]
            )
            assert table["best"].tolist() == [1.0, 0.0]
