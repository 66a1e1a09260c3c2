"""The efficient estimator against enumeration: unbiased for any m, right for any propensity, at the bound."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from by_hand import KEY, costs_of, evidence
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from part_worlds import (
    PartComponents,
    arbitrary_part_means,
    exact_part_means,
    n_parts,
    own_outcome,
    priced,
    true_parts,
)
from scipy.sparse import csr_array
from worlds import GRAPH_WORLDS, WORLDS, World

import afape
from afape.estimators.eff.completion import KnownGroups
from afape.estimators.eff.components import assembled
from afape.estimators.eff.conditional_means import ShownAmounts
from afape.estimators.eff.efficient import ComponentFormula, efficient
from afape.estimators.eff.mixture import Alike, Mixed, Mixture, least_variance_shares
from afape.estimators.eff.splits import Lattice, Split, splits_up_to
from afape.estimators.flows import Flows
from afape.estimators.normalisers import weighed
from afape.estimators.weighted import Weighted
from afape.missingness.assumptions import Conditioning
from afape.propensity.known import BoundKnownPropensity
from afape.walk.columns import PartColumns
from afape.walk.outcomes import check_outcomes

worlds = pytest.mark.parametrize(
    "world",
    [
        *WORLDS[1:3],
        pytest.param(WORLDS[3], marks=pytest.mark.slow),
        *WORLDS[4:7],
        World(41, n_groups=4, n_levels=2),
    ],
    ids=lambda w: f"w{w.seed}",
)
each_mean = pytest.mark.parametrize("means", [exact_part_means, arbitrary_part_means])
WRONG = afape.KnownPropensity(lambda values, required: 0.3 + 0.5 / (1 + required.sum(axis=1)))
OWN = check_outcomes({"own": own_outcome})


class Planted:
    """The enumerated world with planted conditional means: components and evidence of the package, and the oracle.

    In rows that have the groups ``adjust`` these are known too, and only such rows are used.
    """

    def __init__(self, world, means, propensity=None, adjust=(), **options):
        self.world, (self.data, self.levels, self.mass) = world, world.everything()
        data, n, adjusted = self.data, len(self.data), np.isin(np.arange(world.n_groups), adjust)
        usable = (data.recorded | ~adjusted).all(axis=1)
        known = KnownGroups(data.always_recorded | adjusted, usable, np.ones(n, dtype=bool))
        self.exact = PartComponents(world, known.groups, means)
        place = {(*x, y): k for k, (x, y) in enumerate(zip(world.cell_levels, world.cell_label, strict=True))}
        self.cell = np.array([place[*x, y] for x, y in zip(self.levels, data.labels, strict=True)])
        inner = self.exact.inner
        amounts = [self.amounts(None, known), *(self.amounts(t, known) for t in inner)]
        splits = splits_up_to(max((int(t.sum()) for t in inner), default=0))
        self.components = assembled(data, known, self.exact.sets, amounts, splits, PartColumns.of(data, 1))
        given = Conditioning(np.isin(np.arange(world.n_groups), world.given) | adjusted, label=False, gaps=adjusted)
        bound = BoundKnownPropensity(propensity or world.known_propensity(), data)
        seen = evidence(world, data, bound, given, outcomes=OWN, normalize=False, **options)
        self.evidence = replace(seen, fitted=replace(seen.fitted, components={KEY: self.components}))

    def amounts(self, t, known):
        """What runs cost in every set, as rows know it that have the set (t is None), or expect it given t."""
        data, sets = self.data, self.exact.sets
        if t is None:
            found = self.exact.parts[self.cell]
            has = np.array([(data.recorded | ~s).all(axis=1) & known.usable for s in sets]).T
        else:
            found = self.exact.mean(t)[self.cell]
            has = np.repeat(((data.recorded | ~t).all(axis=1) & known.usable)[:, None], len(sets), axis=1)
        row, reached = np.nonzero(has)
        return ShownAmounts(t, row, reached, csr_array(found[row, reached]))

    def rows(self):
        """Parts of every row by split, the largest order last: (splits, n, P)."""
        seen, components = self.evidence, self.components
        tables = [weighed(seen, table, Flows.of(table)) for table in components.tables()]
        out = []
        for split in components.splits:
            weighted = Weighted(seen, ComponentFormula(components, split), normalize=False, tables=tables)
            found = weighted.amounts(components.columns)
            out.append(found.influence + found.values)
        return np.array(out)

    def expected(self, i):
        """Parts of row i by split, by the recursion that defines components: (splits, P)."""
        recorded = self.data.recorded[i] | self.data.always_recorded
        return [
            (self.exact.row_parts_by_steps if split.stepwise else self.exact.row_parts)(
                self.cell[i], recorded, lambda t: 1 / self.world.superset(self.levels[i], t), split.order
            )
            for split in self.components.splits
        ]


@worlds
@each_mean
def test_with_the_right_propensity_any_m_is_unbiased(world, means):
    """Rates, confusion, numbers of acquisitions and an outcome, over every cell and pattern, and row by row."""
    planted = Planted(world, means)
    rows = planted.rows()
    for split in rows:
        assert_allclose(planted.mass @ split, true_parts(world), rtol=1e-9, atol=1e-9)
        assert_allclose(planted.mass @ split @ priced(world), world.true_costs(), rtol=1e-9)
    for i in range(0, len(planted.data), 5):
        assert_allclose(rows[:, i], planted.expected(i), rtol=1e-9, atol=1e-9)


@worlds
def test_with_the_right_m_any_propensity_is_right(world):
    planted = Planted(world, exact_part_means, WRONG)
    for split in planted.rows():
        assert_allclose(planted.mass @ split, true_parts(world), rtol=1e-9, atol=1e-9)


@worlds
def test_both_wrong_is_wrong(world):
    planted = Planted(world, arbitrary_part_means, WRONG)
    off = np.abs(planted.mass @ planted.rows() @ priced(world).sum(axis=1) - sum(world.true_costs()))
    assert len(planted.exact.inner) == 0 or (off > 1e-3).any()


# In these graphs recording depends on g1, which has gaps itself: the hybrid view weights rows that have it.
hybrid = pytest.mark.parametrize("world", [GRAPH_WORLDS[name] for name in ("paper", "label", "free group with gaps")])


@hybrid
@each_mean
def test_in_the_hybrid_view_any_m_is_unbiased(world, means):
    planted = Planted(world, means, adjust=[1])
    for split in planted.rows():
        assert_allclose(planted.mass @ split, true_parts(world), rtol=1e-9, atol=1e-9)


@each_mean
def test_in_the_hybrid_view_every_split_is_unbiased(means):
    """Three groups besides what is adjusted for: steps and three orders."""
    world = World(50, n_groups=5, n_levels=2)
    planted = Planted(world, means, adjust=[1])
    rows = planted.rows()
    assert len(rows) == 4
    for split in rows:
        assert_allclose(planted.mass @ split, true_parts(world), rtol=1e-9, atol=1e-9)


@hybrid
def test_in_the_hybrid_view_the_right_m_needs_the_root_alone(world):
    """The probability of what is adjusted for must be right; that of the rest may be anything."""
    root = np.isin(np.arange(world.n_groups), [1])
    columns = [list(world.frame_columns).index(name) for name in world.group_columns]

    def half_wrong(values, required, labels):
        levels = np.nan_to_num(values[:, columns], nan=0).astype(int)
        right = [
            world.superset(x, s & (root | world.always), y) for x, s, y in zip(levels, required, labels, strict=True)
        ]
        return np.array(right) / (1 + 0.4 * (required & ~root & ~world.always).sum(axis=1))

    wrong = afape.KnownPropensity(half_wrong, labels=True)
    planted = Planted(world, exact_part_means, wrong, adjust=[1])
    for split in planted.rows():
        assert_allclose(planted.mass @ split, true_parts(world), rtol=1e-9, atol=1e-9)
    planted = Planted(world, arbitrary_part_means, wrong, adjust=[1])
    assert len(planted.exact.inner)
    assert (np.abs(planted.mass @ planted.rows() - true_parts(world)) > 1e-3).any()


def nearly_independent(seed, dependence, n_groups=4):
    """A world whose groups are independent given what is known and the label, but for a share of dependence."""
    world = World(seed, n_groups=n_groups, n_levels=2)
    rng = np.random.default_rng([seed, 5])
    first, label = world.cell_levels[:, 0], world.cell_label
    mass = rng.uniform(0.5, 1.5, (2, 2))[first, label]
    for g in range(1, n_groups):
        one = rng.uniform(0.2, 0.8, (2, 2))[first, label]
        mass = mass * np.where(world.cell_levels[:, g] == 1, one, 1 - one)
    mass = mass * np.exp(dependence * rng.normal(size=len(mass)))
    world.cell_mass = mass / mass.sum()
    return world


def spreads(world):
    """Standard deviations of the splits, the largest order last, and of weighting alone, over the bound."""
    planted = Planted(world, exact_part_means)
    plain = Planted(world, lambda exact, t: np.zeros_like(exact.parts)).rows()[:1]
    totals = np.concatenate([planted.rows(), plain]) @ priced(world).sum(axis=1)
    return np.sqrt((totals - (totals @ planted.mass)[:, None]) ** 2 @ planted.mass) / planted.exact.bound()


@pytest.mark.parametrize("seed", [61, 62, 63])
def test_the_largest_order_attains_the_bound_where_groups_are_independent(seed):
    splits = spreads(nearly_independent(seed, 0.0))[:-1]
    assert_allclose(splits[-1], 1.0, rtol=1e-9)
    assert (splits[-1] < splits[:-1]).all()


@pytest.mark.parametrize("seed", [61, 62, 63])
def test_the_largest_order_is_near_the_bound_under_some_dependence(seed):
    splits = spreads(nearly_independent(seed, 0.15))[:-1]
    assert 1 <= splits[-1] < 1.002


@worlds
def test_no_split_is_below_the_bound_and_all_are_below_weighting(world):
    found = spreads(world)
    assert (found >= 1 - 1e-9).all()
    assert (found[:-1] <= found[-1] + 1e-9).all()


def wrong_values(world):
    """Action values that are no such thing."""
    shape = world.n_groups + 1, n_parts(world)
    return afape.KnownValues(
        lambda v, a, y: np.ones((len(v), shape[0], 2)),
        lambda v, y: np.ones((len(v), 2)),
        lambda v, a, y: np.tile(np.sin(np.arange(shape[0] * shape[1])).reshape(shape), (len(v), 1, 1)),
        lambda v, y: np.tile(np.cos(np.arange(shape[1])), (len(v), 1)),
    )


@worlds
@each_mean
def test_the_mixture_is_unbiased_whatever_its_shares(world, means, monkeypatch):
    """Splits and the doubly robust estimator with wrong action values, mixed, and completed by what follows from others.

    In a sample, shares are chosen on other rows. Rows that enumerate a world are no sample: all have the same shares.
    """
    shares = np.random.default_rng(world.seed).dirichlet(np.ones(9))
    monkeypatch.setattr(
        Mixture,
        "left_out",
        property(lambda m: np.tile(shares[: len(m.shares)] / shares[: len(m.shares)].sum(), (20, 1))),
    )
    _, _, mass = world.everything()
    planted = Planted(world, means, row_weight=mass, values=wrong_values(world))
    found = efficient(planted.evidence)
    assert_allclose(found.parts().amounts.values, true_parts(world), rtol=1e-9, atol=1e-9)
    assert_allclose(costs_of(found), world.true_costs(), rtol=1e-9)


@worlds
def test_parts_of_the_mixture_add_up_in_every_row(world):
    """Right predictions are the rows of a label without its errors, the most frequent count is what the others leave."""
    _, _, mass = world.everything()
    planted = Planted(world, arbitrary_part_means, row_weight=mass, values=wrong_values(world))
    found, columns = efficient(planted.evidence).parts(), planted.components.columns
    cells = found.amounts.influence[:, columns.cells].reshape(len(mass), world.n_classes, -1)
    labels = np.eye(world.n_classes)[planted.data.labels]
    share = mass @ labels
    assert_allclose(cells.sum(axis=2), (labels - share) * (mass * len(mass))[:, None], atol=1e-9)
    assert_allclose(found.amounts.influence[:, columns.counts].sum(axis=1), 0, atol=1e-9)


# --- the mixture ------------------------------------------------------------------------------------------------------


def test_a_mixture_takes_what_has_least_variance():
    rng = np.random.default_rng(0)
    common, own = rng.normal(size=5000), rng.normal(size=(3, 1, 5000))
    influence = common + own * np.array([0.1, 3.0, 3.0])[:, None, None]
    shares = least_variance_shares(influence, start=1)
    assert_allclose(shares.sum(), 1.0)
    assert shares[0] > 0.95


def test_a_gain_that_may_be_chance_is_left_alone():
    rng = np.random.default_rng(1)
    influence = rng.normal(size=(1, 1, 400)) + 0.01 * rng.normal(size=(3, 1, 400))
    assert_allclose(least_variance_shares(influence, start=2), [0, 0, 1], atol=1e-12)
    # The same estimate twice is not twice the evidence.
    once = rng.normal(size=(1, 1, 400)) + 0.5 * rng.normal(size=(3, 1, 400))
    assert_allclose(least_variance_shares(np.repeat(once, 2, axis=1), 2), least_variance_shares(once, 2), atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 7), st.integers(1, 3), st.integers(0, 10_000), st.sampled_from([1.0, 1e-6, 1e-12, 0.0]))
def test_a_mixture_lies_on_the_simplex_and_never_has_more_variance(n, n_estimates, seed, apart):
    """Candidates may be the same, or nearly so: for some policies two ways to split costs are one."""
    rng = np.random.default_rng(seed)
    influence = rng.normal(size=(n, n_estimates, 60)) * rng.uniform(0.1, 3, (n, 1, 1)) + rng.normal(size=60)
    influence[1::2] = influence[: 2 * (n // 2) : 2] + apart * influence[1::2]
    start = seed % n
    shares = least_variance_shares(influence, start)
    assert_allclose(shares.sum(), 1.0)
    assert (shares >= -1e-12).all()
    assert (np.tensordot(shares, influence, 1) ** 2).sum() <= (influence[start] ** 2).sum() * (1 + 1e-9)


def mixed(influence, start, cluster=None, values=None, yardsticks=None):
    """Mixture of several parts, (C, n, P), all of one kind; by each of them unless said otherwise."""
    n_parts = influence.shape[2]
    values = np.ones((len(influence), n_parts)) if values is None else values
    unit = np.arange(influence.shape[1]) if cluster is None else cluster
    kind = Alike("all", np.arange(n_parts), np.eye(n_parts) if yardsticks is None else yardsticks)
    return Mixed(list(zip(values, influence, strict=True)), [None] * len(values), [kind], start, unit, None)


def test_where_there_is_no_choice_influence_values_stay_as_they_are():
    rng = np.random.default_rng(0)
    alike = np.repeat(rng.normal(size=(1, 200, 2)), 3, axis=0)
    alike -= alike.mean(axis=1, keepdims=True)
    assert_allclose(mixed(alike, start=2).influence, alike[0], atol=1e-12)
    assert not mixed(np.zeros((3, 200, 2)), start=2).influence.any()
    few = rng.normal(size=(3, 8, 1))  # too few to set some apart
    few -= few.mean(axis=1, keepdims=True)
    found = mixed(few, start=2)
    assert_allclose(found.influence[:, 0], found.mixtures[0].shares @ few[:, :, 0], atol=1e-12)


@settings(max_examples=40)
@given(n=st.integers(10, 60), candidates=st.integers(1, 4), clustered=st.booleans(), seed=st.integers(0, 2**16))
def test_mixed_influence_values_have_mean_zero_in_any_unit(n, candidates, clustered, seed):
    rng = np.random.default_rng(seed)
    influence = rng.standard_t(3, size=(candidates, n, 2))
    cluster = rng.integers(n // 2, size=n) if clustered else None
    found = mixed(influence, 0, cluster).influence
    assert_allclose(found.sum(axis=0), 0, atol=1e-9 * np.abs(influence).sum())
    assert_allclose(mixed(1024 * influence, 0, cluster).influence, 1024 * found, rtol=1e-6, atol=1e-6)


def test_what_is_certain_is_not_mixed_by_rounding_errors():
    """A policy that always acquires two groups: their number has no variance, and its rounding errors choose nothing."""
    rng = np.random.default_rng(0)
    influence = 1e-16 * rng.normal(size=(3, 100, 1))
    assert_allclose(mixed(influence, 1).mixtures[0].shares, [0, 1, 0])


def test_shares_of_other_rows_show_what_the_choice_hides():
    """Variance of the mixture in new rows over what its own rows say: above 1, and near 1 with shares of other rows."""
    rng = np.random.default_rng(3)
    spread = np.array([1.0, 1.0, 1.6])
    naive, honest = [], []
    for _ in range(400):
        common = rng.standard_t(4, size=60)
        influence = common + spread[:, None] * rng.standard_t(4, size=(3, 60))
        shares = least_variance_shares(influence[:, None], start=2)
        true = 2 * (1 + (shares**2) @ spread**2)  # a t variable with 4 degrees of freedom has variance 2
        naive.append(((shares @ influence) ** 2).mean() / true)
        honest.append((mixed(influence[:, :, None], start=2).influence ** 2).mean() / true)
    error = np.std(naive) / 20
    assert np.mean(naive) < 1 - 2 * error
    assert abs(np.mean(honest) - 1) < 3 * error + 0.02


def test_shares_of_other_rows_do_not_go_with_the_values():
    """Skewed costs: a draw with large values has a large variance, so shares chosen on its own rows prefer small values."""
    rng = np.random.default_rng(4)
    own, other = [], []
    for _ in range(2000):
        rows = rng.exponential(size=60) + rng.lognormal(0, 0.7, size=(2, 60)) - np.exp(0.245)  # all have mean 1
        values = rows.mean(axis=1)
        found = mixed((rows - values[:, None])[:, :, None], 1, values=values[:, None])
        own.append(found.mixtures[0].shares @ values)
        other.append(found.values[0])
    error = np.std(other) / np.sqrt(len(other))
    assert np.mean(own) < 1 - 4 * error
    assert abs(np.mean(other) - 1) < 3 * error
    assert np.std(other) < 1.1 * np.std(own)


@pytest.mark.filterwarnings("ignore::afape.warnings.NormalizerWarning")  # 300 rows, few of them complete
def test_a_cost_of_right_predictions_is_added_to_every_row(parts):
    """Shares of labels are known: with 100 more for everybody, costs are 100 more, and no less certain."""
    classifier, data, _ = parts
    result = afape.evaluate(
        data.take(np.arange(300)),
        afape.AcquireAll(),
        classifier,
        missingness=afape.MAR(["x0"]),
        estimators=["eff-semi"],
    )
    found, costs = result["eff-semi"]["total"], data.costs
    dearer = result.reprice(misclassification_cost=costs + 100)["eff-semi"]["total"]
    assert_allclose(dearer.value, found.value + 100, rtol=1e-12)
    assert_allclose(dearer.std_error, found.std_error, rtol=1e-9)
    broken_down = result.parts("eff-semi")
    assert_allclose(sum(e.value for e in broken_down.confusion.values()), 1)
    assert_allclose(sum(e.value for e in broken_down.counts.values()), 1)
    share = np.mean(data.labels[:300] == 1)
    assert_allclose(sum(e.value for (true, _), e in broken_down.confusion.items() if true == data.classes[1]), share)


def test_it_is_the_default_and_says_what_it_did(parts):
    classifier, data, _ = parts
    policies = {"half": afape.RandomSubset(0.5), "none": afape.AcquireNone()}
    found = afape.compare(
        data, policies, classifier, missingness=afape.MAR(["x0"]), estimators=["ipw-semi", "eff-semi", "drl-semi"]
    )
    assert found.best_estimator == "eff-semi"
    note = found["half"].table.set_index("estimator").loc["eff-semi", "note"].iloc[0]
    assert "components of up to 1 groups; acquisitions: step by step" in note
    assert found["none"]["eff-semi"]["total"].value == pytest.approx(found["none"]["ipw-semi"]["total"].value, rel=1e-9)


def test_it_is_close_to_the_truth_and_no_less_precise(parts):
    classifier, data, complete = parts
    policy = afape.RandomSubset(0.9)
    truth = afape.true_cost(complete, policy, classifier)
    result = afape.evaluate(
        data, policy, classifier, missingness=afape.MAR(["x0"]), estimators=["ipw-semi", "drl-semi", "eff-semi"]
    )
    for target in ("acquisition", "misclassification", "total"):
        found = result["eff-semi"][target]
        assert abs(found.value - truth[target].value) < 4 * np.hypot(found.std_error, truth[target].std_error) + 1e-9
    assert result["eff-semi"]["total"].std_error < result["drl-semi"]["total"].std_error
    assert result["eff-semi"]["total"].std_error < 0.9 * result["ipw-semi"]["total"].std_error


def test_same_seed_same_numbers_whatever_the_jobs(parts):
    classifier, data, _ = parts
    options = {"missingness": afape.MAR(["x0"]), "estimators": ["eff-semi"]}
    one, two = (afape.evaluate(data, afape.RandomSubset(0.5), classifier, n_jobs=j, **options) for j in (None, 2))
    assert one["eff-semi"]["total"].value == two["eff-semi"]["total"].value
    other = afape.evaluate(data, afape.RandomSubset(0.5), classifier, random_state=3, **options)
    assert other["eff-semi"]["total"].value != one["eff-semi"]["total"].value


def test_the_seed_moves_the_estimate_little(parts):
    """Conditional means from many trees, and most draws for the rows with the largest weights."""
    classifier, data, _ = parts
    options = {"missingness": afape.MAR(["x0"]), "estimators": ["eff-semi"]}
    policy = afape.RandomSubset(0.5)
    found = [
        afape.evaluate(data, policy, classifier, random_state=seed, **options)["eff-semi"]["total"] for seed in range(5)
    ]
    influence = np.array([estimate.influence for estimate in found])
    moved = influence.var(axis=0, ddof=1).mean() / (influence**2).mean()
    assert moved < 0.27**2  # 0.32 with three trees of bootstrap samples and twelve draws for every row


@pytest.mark.parametrize("n_folds", [1, 5])
def test_no_row_lends_its_values_to_itself(n_folds):
    """Labels at random: conditional means that knew their own rows would promise errors that are too small."""
    rng = np.random.default_rng(3)
    from small_records import Above, Look, frame, records

    table = frame(900, seed=4).assign(y=rng.integers(0, 3, 900))
    options = {"missingness": afape.MAR(["a"]), "estimators": ["ipw-semi", "eff-semi"], "n_folds": n_folds}
    result = afape.evaluate(records(table), Look(), Above(), **options)
    ratio = result["eff-semi"]["total"].std_error / result["ipw-semi"]["total"].std_error
    assert 0.85 < ratio < 1.1


def test_bounds_hold_what_weighting_bounds(parts):
    from small_records import Above, Look, frame, records

    table = frame(1500)
    table.loc[table["a"] < -0.7, "b"] = np.nan  # never recorded there
    with pytest.warns(afape.warnings.SupportWarning):
        result = afape.evaluate(
            records(table),
            Look(),
            Above(),
            missingness=afape.MAR(["a"]),
            estimators=["ipw-semi", "eff-semi"],
            bootstrap=3,
        )
    for target in ("acquisition", "misclassification", "total"):
        found, twin = result["eff-semi"][target], result["ipw-semi"][target]
        assert isinstance(found, afape.Bounds)
        assert found.bound_lower < found.bound_upper
        error = np.hypot(found.least.std_error, twin.least.std_error)
        assert abs(found.bound_lower - twin.bound_lower) < 4 * error
        assert abs(found.bound_upper - twin.bound_upper) < 4 * error


def test_intervals_stay_within_what_a_run_can_cost():
    from small_records import Above, Look, frame, records

    data = records(frame(60))
    result = afape.evaluate(
        data, Look(), Above(), missingness=afape.MAR(["a"]), estimators=["cc", "ipw-miss", "ipw-semi", "eff-semi"],
        confidence=0.999999,
    )  # fmt: skip
    limits = {"acquisition": (0, 3), "misclassification": (0, 9), "total": (0, 12)}
    cut = 0
    for line in result.table.itertuples():
        least, largest = limits[line.target]
        assert least <= line.lower <= line.upper <= largest
        cut += line.lower == least or line.upper == largest
    assert cut  # without the limits some of these would leave the range
    gap = result["ipw-semi"]["total"] - result["cc"]["total"]
    assert gap.limits == (-12, 12)
    assert -12 <= gap.lower <= gap.upper <= 12


def parabola(n, seed):
    """A group that is a parabola of another, which a linear imputer misses."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n))
    c = b**2 + 0.3 * rng.normal(size=n)
    label = (a + rng.normal(size=n) > -0.7).astype(int)
    keep = rng.random((2, n)) < 1 / (1 + np.exp(-0.3 - 0.5 * a))
    frame = {"a": a, "b": np.where(keep[0], b, np.nan), "c": np.where(keep[1], c, np.nan), "y": label}
    problem = afape.Problem({g: [g] for g in "abc"}, {"b": 1.0, "c": 1.0}, "y", 10.0)
    return afape.Retrospective(pd.DataFrame(frame), problem)


class OnTheParabola:
    def predict(self, values, acquired):
        return (np.abs(values[:, 2] - values[:, 1] ** 2) < 1).astype(int)


@pytest.mark.parametrize(("imputer", "wrong"), [("linear", True), ("trees", False)])
def test_a_wrong_imputation_model_is_found(imputer, wrong):
    result = afape.evaluate(
        parabola(6000, 1), afape.AcquireAll(), OnTheParabola(), missingness=afape.MAR(["a"]), estimators=["eff-semi", "mi"],
        imputer=imputer, n_imputations=5,
    )  # fmt: skip
    check = result.imputation_check()
    assert check.estimator == "eff-semi"
    assert_allclose(check.difference, result["eff-semi"]["total"].value - result["mi"]["total"].value)
    assert (check.p_value < 0.01) == wrong
    assert ("seems wrong" in str(check)) == wrong


def test_the_imputation_check_needs_both_estimates(parts):
    classifier, data, _ = parts
    result = afape.evaluate(data, afape.AcquireNone(), classifier, missingness=afape.MAR(["x0"]), estimators=["cc"])
    with pytest.raises(afape.NotEstimableError, match="needs 'mi', and"):
        result.imputation_check()


@pytest.mark.filterwarnings("ignore::afape.warnings.AfapeWarning")
def test_a_group_that_hardly_any_row_has_stops_nothing():
    """Some folds have nobody to take it from; the policy may or may not want it."""
    from small_records import Above, Look, frame, records

    table = frame(300)
    table.loc[table.index[1:], "c"] = np.nan
    for policy in (Look(), afape.FixedOrder(["b"])):
        result = afape.evaluate(
            records(table), policy, Above(), missingness=afape.MAR(["a"]), estimators=["ipw-semi", "eff-semi"]
        )
        assert result.answers["eff-semi"].estimates


def test_sets_met_in_completed_rows_alone_have_components_of_mean_zero():
    """A set without conditional means of its own is not told apart: its coefficient holds no lone lower component."""

    def mask(*groups):
        return np.isin(np.arange(3), groups)

    every_set = np.array([mask(), mask(0, 1), mask(2), mask(0, 2), mask(0), mask(1)])
    is_inner = np.array([True, False, False, False, True, True])  # nothing was met beyond {c} when means were chosen
    lattice = Lattice(every_set, 4, is_inner)
    signs = lattice.signs(Split(1), mask())
    assert_allclose(signs[3], [1, 0, 0, 0, -1, 0])  # {a, c}: at nothing, at {a}, and what is left at itself
    assert_allclose(signs.sum(axis=1), 0)
    steps = lattice.signs(Split(1, stepwise=True), mask())
    assert_allclose(steps[3], [1, 0, 0, -1, 0, 0])  # a step to {c} is not known, so there is none to {a} either
    assert_allclose(steps[1], [1, 0, 0, 0, -0.5, -0.5])
    assert_allclose(steps.sum(axis=1), 0)


def test_candidates_are_small_orders_the_largest_and_steps():
    assert splits_up_to(0) == (Split(0),)
    assert splits_up_to(2) == (Split(2, stepwise=True), Split(0), Split(1), Split(2))
    assert [split.order for split in splits_up_to(6)] == [6, 0, 1, 2, 3, 6]


@given(st.integers(1, 5), st.integers(0, 4), st.booleans())
def test_what_a_conditional_mean_adds_is_taken_away_again(n_groups, order, stepwise):
    """Over the sets inside S it adds up to nothing, so that any conditional mean leaves the estimate unbiased."""
    every_set = np.array(list(np.ndindex(*(2,) * n_groups)), dtype=bool)
    lattice = Lattice(every_set, len(every_set), every_set.sum(axis=1) <= order)
    used = np.zeros((len(every_set), len(every_set)))
    for t in every_set[every_set.sum(axis=1) <= order]:
        signs = lattice.signs(Split(order, stepwise), t)
        assert_allclose(signs.sum(axis=1), 0, atol=1e-12)
        assert not signs[(~every_set & t).any(axis=1)].any()
        used += np.abs(signs)
    beyond = (every_set[None] & ~every_set[:, None]).any(axis=2)  # sets that are not inside S
    assert not used[beyond].any()
    assert used[every_set.sum(axis=1) > 0].any(axis=1).all()  # every S has its costs explained


def test_replicates_choose_their_mixture_as_samples_do():
    rng = np.random.default_rng(0)
    common, own = rng.normal(size=2000), rng.normal(size=(3, 1, 2000))
    influence = common + own * np.array([0.9, 1.0, 1.0])[:, None, None]
    shares = least_variance_shares(influence, start=2)
    drawn = np.array([np.bincount(rng.integers(2000, size=2000), minlength=2000) for _ in range(60)])
    weighted = [least_variance_shares(influence * d / np.sqrt(np.maximum(d, 1)), start=2) for d in drawn]
    assert_allclose(np.mean(weighted, axis=0), shares, atol=0.05)


@pytest.mark.filterwarnings("ignore::afape.warnings.AfapeWarning")
def test_too_many_sets_leave_the_doubly_robust_estimate(monkeypatch):
    from small_records import Above, Look, frame, records

    monkeypatch.setattr("afape.estimators.eff.conditional_means._CELLS", 100)
    names = ["drl-semi", "eff-semi"]
    result = afape.evaluate(records(frame()), Look(), Above(), missingness=afape.MAR(["a"]), estimators=names)
    assert_allclose(result["eff-semi"]["total"].value, result["drl-semi"]["total"].value, rtol=1e-12)
    assert "too many sets" in result.answers["eff-semi"].caveat


def test_a_known_propensity_of_the_reached_sets_is_enough(experiment, parts):
    """Components need the probabilities of smaller sets; without them the estimate is the doubly robust one."""
    classifier, data, complete = parts
    p = experiment.mechanism.probabilities(complete, complete.values)
    known = afape.KnownPropensity.from_arrays({"x1": p[:, 1], ("x1", "x2"): p[:, 1] * p[:, 2]})
    options = {"missingness": experiment.missingness, "propensity": known, "estimators": ["drl-semi", "eff-semi"]}
    result = afape.evaluate(data, afape.AcquireAll(), classifier, **options)
    assert_allclose(result["eff-semi"]["total"].value, result["drl-semi"]["total"].value, rtol=1e-12)
    assert "this is the doubly robust estimate" in result.answers["eff-semi"].caveat
