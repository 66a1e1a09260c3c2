"""The mathematics of sensitivity bounds against a general linear-programming solver and brute force."""

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import linprog

from afape.sensitivity_analysis.marginal import ValidWeights, bounds, largest_ratio, odds_box
from afape.sensitivity_analysis.order import RowOrders
from afape.sensitivity_analysis.stops import Ratio
from afape.sensitivity_analysis.tipping import certainly_below, certainly_cheaper, tipping_strength


class Case:
    """States of a few rows, with nominal weights, flows and amounts; everything written out."""

    def __init__(self, seed, n_groups=3, n_rows=3, crossing=False, n_policies=1):
        rng = np.random.default_rng([seed, 3])
        everything = np.array(list(itertools.product([False, True], repeat=n_groups)))
        rows, sets = [], []
        for i in range(n_rows):
            k = int(rng.integers(1, len(everything) + 1))
            rows += [i] * k
            sets.append(everything[np.sort(rng.choice(len(everything), k, replace=False))])
        self.row, self.sets = np.array(rows), np.concatenate(sets)
        s = len(self.row)
        if crossing:  # learned set by set: a larger set may come out more likely
            self.nominal = 1 + 2 * rng.exponential(size=s)
        else:
            odds = rng.exponential(size=(n_rows, n_groups))
            self.nominal = np.array([np.prod(1 + odds[i, m]) for i, m in zip(self.row, self.sets, strict=True)])
        self.ratios = []
        for _ in range(n_policies):
            flow = rng.random(s) * (rng.random(s) < 0.7)
            flow[0] += 0.1
            self.ratios.append(Ratio(flow * rng.choice([0.0, 1.0, 3.0, 5.0], size=s), flow))
        self.weights = ValidWeights(self.nominal, RowOrders.of(self.row, self.sets).under(self.nominal))

    @property
    def ordered(self):
        """Every pair S inside T of one row that the nominal weights do not break."""
        s = range(len(self.row))
        return [
            (j, k)
            for j in s
            for k in s
            if j != k
            and self.row[j] == self.row[k]
            and (self.sets[j] <= self.sets[k]).all()
            and self.nominal[j] <= self.nominal[k]
        ]

    def constraints(self, strength):
        """A and b of A w <= b for box and order."""
        s = len(self.row)
        low, high = odds_box(self.nominal, strength)
        order = np.zeros((len(self.ordered), s))
        for line, (j, k) in zip(order, self.ordered, strict=True):
            line[j], line[k] = 1, -1
        return np.vstack([np.eye(s), -np.eye(s), order]), np.concatenate([high, -low, np.zeros(len(order))])

    def solver(self, ratio, strength, sign):
        """Charnes and Cooper: y = t w with flow @ y = 1."""
        A, b = self.constraints(strength)
        found = linprog(
            np.append(-sign * ratio.amount, 0.0),
            A_ub=np.column_stack([A, -b]),
            b_ub=np.zeros(len(b)),
            A_eq=[np.append(ratio.flow, 0.0)],
            b_eq=[1.0],
            bounds=(0, None),
        )
        return -sign * found.fun


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.integers(0, 10**6),
    n_groups=st.integers(1, 4),
    n_rows=st.integers(1, 4),
    crossing=st.booleans(),
    strength=st.floats(1.01, 8),
)
def test_bounds_equal_a_general_solver(seed, n_groups, n_rows, crossing, strength):
    case = Case(seed, n_groups, n_rows, crossing)
    (ratio,) = case.ratios
    lower, upper = bounds(ratio, case.weights, [strength])
    assert_allclose(lower[0], case.solver(ratio, strength, -1), rtol=1e-8, atol=1e-10)
    assert_allclose(upper[0], case.solver(ratio, strength, 1), rtol=1e-8, atol=1e-10)


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10**6), crossing=st.booleans())
def test_best_weights_are_possible_weights(seed, crossing):
    case = Case(seed, 4, 2, crossing)
    A, b = case.constraints(2.5)
    gain = np.random.default_rng(seed).normal(size=len(case.row)).round(1)  # with ties and zeros
    w = case.weights.maximise(gain, 2.5)
    assert (A @ w <= b + 1e-9).all()
    assert_allclose(gain @ w, -linprog(-gain, A_ub=A, b_ub=b, bounds=(None, None)).fun, rtol=1e-9, atol=1e-9)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10**6), crossing=st.booleans())
def test_bounds_open_with_strength_from_the_estimate(seed, crossing):
    case = Case(seed, crossing=crossing)
    (ratio,) = case.ratios
    lower, upper = bounds(ratio, case.weights, [1.0, 1.0 + 1e-9, 1.2, 1.5, 2.0, 4.0, 20.0])
    nominal = (ratio.amount @ case.nominal) / (ratio.flow @ case.nominal)
    assert lower[0] == upper[0] == nominal
    assert (np.diff(lower) <= 1e-12).all()
    assert (np.diff(upper) >= -1e-12).all()
    assert_allclose(upper[1], nominal, rtol=1e-7)


def test_order_makes_bounds_tighter():
    """One row stops in a small set wrongly or in a larger one rightly: their weights cannot cross."""
    row, sets, nominal = np.zeros(2, int), np.array([[False], [True]]), np.array([2.0, 2.5])
    ratio = Ratio(np.array([0.5, 0.0]), np.array([0.5, 0.5]))
    free = ValidWeights(nominal, RowOrders.of(row, np.array([[True, False], [False, True]])).under(nominal))
    tied = ValidWeights(nominal, RowOrders.of(row, sets).under(nominal))
    upper_free, upper_tied = (largest_ratio(ratio, w, 4.0)[0] for w in (free, tied))
    assert_allclose(upper_free, 5 / (5 + 1.375))
    assert_allclose(upper_tied, 0.5)


def test_rows_with_many_sets_keep_the_order_along_chains():
    """32 sets of one row: wider than with all constraints, tighter than with none, and exact along the chains."""
    rng = np.random.default_rng(5)
    sets = np.array(list(itertools.product([False, True], repeat=5)))
    row = np.zeros(len(sets), int)
    odds = rng.exponential(size=5)
    nominal = np.where(sets, 1 + odds, 1.0).prod(axis=1)
    flow = rng.random(len(sets))
    ratio = Ratio(flow * rng.choice([0.0, 2.0], size=len(sets)), flow)
    orders = RowOrders.of(row, sets)
    assert orders.relaxed == 1
    tied = orders.under(nominal)
    relaxed, _ = largest_ratio(ratio, ValidWeights(nominal, tied), 3.0)
    exact = RowOrders.of(row, sets, exact=32).under(nominal)

    def solved(pairs):
        low, high = odds_box(nominal, 3.0)
        order = np.zeros((len(pairs[0]), len(nominal) + 1))
        order[np.arange(len(order)), pairs[0]], order[np.arange(len(order)), pairs[1]] = 1, -1
        box = np.vstack([np.column_stack([np.eye(32), -high]), np.column_stack([-np.eye(32), low])])
        lines = np.vstack([box, order])
        return -linprog(
            np.append(-ratio.amount, 0),
            A_ub=lines,
            b_ub=np.zeros(len(lines)),
            A_eq=[np.append(flow, 0)],
            b_eq=[1],
            bounds=(0, None),
        ).fun

    nothing = (np.zeros(0, int), np.zeros(0, int))
    assert_allclose(relaxed, solved(tied.pairs), rtol=1e-9)
    assert solved(exact.pairs) < relaxed < solved(nothing)
    assert len(tied.pairs[0]) == 32 - 10  # ten chains cover the subsets of five groups


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 10**6), length=st.integers(2, 9), crossing=st.booleans())
def test_chains_equal_a_general_solver(seed, length, crossing):
    """Where nominal weights fall along a chain, it breaks; what is left of it stays in order."""
    rng = np.random.default_rng(seed)
    row, sets = np.repeat([0, 1], length), np.tile(np.tril(np.ones((length, length), bool)), (2, 1))
    steps = rng.exponential(size=(2, length))
    nominal = 1 + (steps if crossing else np.cumsum(steps, axis=1)).ravel()
    gain = rng.normal(size=2 * length).round(1)
    low, high = odds_box(nominal, 3.0)
    small = np.flatnonzero((row[1:] == row[:-1]) & (nominal[1:] >= nominal[:-1]))
    order = np.zeros((len(small), 2 * length))
    order[np.arange(len(small)), small], order[np.arange(len(small)), small + 1] = 1, -1
    solved = linprog(-gain, A_ub=order, b_ub=np.zeros(len(small)), bounds=np.column_stack([low, high]))
    w = RowOrders.of(row, sets, exact=1).under(nominal).maximise(gain, low, high)
    assert_allclose(gain @ w, -solved.fun, rtol=1e-9, atol=1e-9)
    assert (order @ w <= 1e-9).all()
    assert ((w >= low - 1e-9) & (w <= high + 1e-9)).all()


def _room(case, strength):
    """Largest s with N_a - v D_a >= s and v D_b - N_b >= s for some v: above 0, some weights make a as dear as b."""
    a, b = case.ratios
    A, rhs = case.constraints(strength)
    s = len(case.row)
    least, most = case.solver(b, strength, -1), case.solver(a, strength, 1)
    if most < least:
        return -1.0

    def at(v):
        lines = np.vstack([np.append(v * a.flow - a.amount, 1.0), np.append(b.amount - v * b.flow, 1.0)])
        return -linprog(
            np.append(np.zeros(s), -1.0),
            A_ub=np.vstack([np.column_stack([A, np.zeros(len(A))]), lines]),
            b_ub=np.append(rhs, [0.0, 0.0]),
            bounds=(None, None),
        ).fun

    coarse = np.linspace(least, most, 61)
    best = coarse[np.argmax([at(v) for v in coarse])]
    step = coarse[1] - coarse[0]
    return max(at(v) for v in np.linspace(best - step, best + step, 41))


# Of the first 600 cases, those in which one end of an interval, or one half of it, is not enough; and a few others.
@pytest.mark.parametrize("seed", [0, 1, 2, 17, 25, 35, 71, 77, 145, 277])
def test_shared_weights_decide_which_policy_is_cheaper(seed):
    """Against a linear programme at each of a hundred costs between the two policies."""
    case = Case(seed, n_groups=2, n_rows=3, n_policies=2, crossing=bool(seed % 2))
    a, b = case.ratios
    if a.at(case.nominal) > b.at(case.nominal):
        case.ratios = a, b = b, a
    tip = tipping_strength(lambda s: certainly_cheaper(a, b, case.weights, s), 50.0)
    apart = tipping_strength(lambda s: largest_ratio(a, case.weights, s)[0] < bounds(b, case.weights, [s])[0][0], 50.0)
    assert tip >= apart * (1 - 2e-3)  # bounds that meet come earlier
    if np.isfinite(tip):
        assert _room(case, tip * 1.01) > 0
        assert _room(case, 1 + (tip - 1) * 0.98) < 0
    else:
        assert _room(case, 50.0) < 0


def test_shared_weights_matter():
    """Some case tips at its own Lambda only because both policies share their weights."""
    gaps = []
    for seed in range(12):
        case = Case(seed, n_groups=2, n_rows=3, n_policies=2)
        a, b = sorted(case.ratios, key=lambda r: r.at(case.nominal))
        for s in (1.05, 1.2, 1.5, 2.0):
            together = certainly_cheaper(a, b, case.weights, s)
            alone = largest_ratio(a, case.weights, s)[0] < bounds(b, case.weights, [s])[0][0]
            assert together or not alone
            gaps.append(together and not alone)
    assert any(gaps)


def test_a_limit_tips_where_the_upper_bound_meets_it():
    case = Case(4)
    (ratio,) = case.ratios
    limit = largest_ratio(ratio, case.weights, 1.7)[0]
    tip = tipping_strength(lambda s: certainly_below(ratio, limit, case.weights, s), 50.0)
    assert 1.7 * (1 - 2e-3) < tip <= 1.7
    assert tipping_strength(lambda s: certainly_below(ratio, 0.0, case.weights, s), 50.0) == 1.0
    assert tipping_strength(lambda s: certainly_below(ratio, 1e6, case.weights, s), 50.0) == np.inf
