"""Donors: rows completed from similar rows of other folds."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import afape
from afape.estimators.eff.completion import Completer, KnownGroups, counts_of_draws
from afape.imputation.donors import DonorPool, Donors, DonorTree

PROBLEM = afape.Problem({"x": ["x"], "g": ["a", "b"], "h": ["h"]}, {"g": 1.0, "h": 1.0}, "y", 1.0)


@pytest.fixture(scope="module")
def data():
    """b is twice a; a is near x; h is never recorded."""
    rng = np.random.default_rng(0)
    x, has = rng.normal(size=600), rng.random(600) < 0.6
    a = np.where(has, x + 0.1 * rng.normal(size=600), np.nan)
    frame = pd.DataFrame({"x": x, "a": a, "b": 2 * a, "h": np.nan, "y": rng.integers(0, 2, 600)})
    return afape.Retrospective(frame, PROBLEM)


def completed(donors, data, shown, groups):
    others = np.arange(len(data)) >= 200
    tree = donors.tree(donors.pool(data, others, 0, 0), 0, 0, shown, groups, min_leaf=10)
    values = np.where(shown, data.values[:200], 0.0)
    return [tree.complete(values, data.labels[:200], np.full(200, position))[0] for position in (0.2, 0.7)]


def test_a_row_takes_all_hidden_columns_from_one_similar_row(data):
    shown = np.array([True, False, False, False])
    for table in completed(Donors(0), data, shown, []):
        assert_array_equal(table[:, 0], data.values[:200, 0])
        assert_allclose(table[:, 2], 2 * table[:, 1])
        assert np.corrcoef(table[:, 0], table[:, 1])[0, 1] > 0.95
        assert (table[:, 3] == 0).all()  # nobody has it
        assert np.isin(table[:, 1], data.values[200:, 1]).all()


def test_draws_do_not_depend_on_who_asked_before(data):
    shown, more = np.array([True, False, False, False]), np.array([True, True, True, False])
    alone, shared = Donors(3), Donors(3)
    completed(shared, data, more, [1])
    first, second = completed(alone, data, shown, [])
    again = completed(shared, data, shown, [])
    assert_array_equal(again[0], first)
    assert_array_equal(again[1], second)
    assert (first != second).any()


def test_every_donor_of_a_leaf_is_equally_likely(data):
    """Evenly spaced positions take each donor of a leaf equally often, whatever its order."""
    shown = np.array([True, False, False, False])
    donors = Donors(0)
    tree = donors.tree(donors.pool(data, np.arange(600) >= 200, 0, 0), 0, 0, shown, [], min_leaf=10)
    position = (np.arange(1000) + 0.5) / 1000
    values = np.tile(np.where(shown, data.values[0], 0.0), (1000, 1))
    taken = tree.complete(values, np.repeat(data.labels[0], 1000), position)[0][:, 1]
    number = np.unique(taken, return_counts=True)[1]
    assert len(number) > 3
    assert number.min() > 0


class Lent:
    """Notes who takes from whom: the first column of a donor is its row number."""

    def __init__(self, data):
        self.donors, self.asked = Donors(5), []
        self.halves, self.positions = self.donors.halves, self.donors.positions

    def pool(self, data, rows, table, half):
        return rows, table

    def tree(self, pool, table, half, shown, number, min_leaf):
        return Noted(self.asked, *pool)


class Noted:
    def __init__(self, asked, rows, table):
        self.asked, self.rows, self.table = asked, rows, table

    def complete(self, values, labels, position):
        self.asked.append((self.rows, self.table, values[:, 0], position))
        return values, np.full(len(values), -1)


def test_no_row_lends_to_itself_and_counts_do_not_favour_a_table(data):
    n = len(data)
    count = np.where(np.arange(n) % 2, 5, 30)
    lent = Lent(data)
    known = KnownGroups(np.array([True, False, False]), np.ones(n, dtype=bool), np.ones(n, dtype=bool))
    row_of = {x: i for i, x in enumerate(data.values[:, 0])}
    rows = np.concatenate(
        [row for row, *_ in Completer(data, known, lent).draws(np.zeros(3, bool), np.arange(n), count)]
    )
    assert_array_equal(np.bincount(rows), count)
    tables = np.zeros((2, 12))
    for others, table, x, position in lent.asked:
        asks = np.array([row_of[v] for v in x])
        assert not others[asks].any()
        assert ((position >= 0) & (position < 1)).all()
        tables[:, table] += np.bincount(asks % 2, minlength=2)
    share = tables / tables.sum(axis=1, keepdims=True)
    assert_allclose(share, 1 / 12, atol=4 * np.sqrt(1 / 12 / 1500))


def test_draws_go_to_large_weights():
    weight, n_sets = np.append(np.linspace(1, 5, 100), 1000.0), np.arange(101) % 3 + 1
    count = counts_of_draws(weight, n_sets, 6)
    assert count[-1] == 48
    assert count[0] >= 2
    assert_allclose(count[:-1] / weight[:-1], count[50] / weight[50], atol=1)
    assert abs(n_sets @ count / n_sets.sum() - 6) < 0.2
    assert_array_equal(counts_of_draws(np.ones(4), np.ones(4, dtype=int), 6), 6)
    assert (counts_of_draws(np.array([1.0, np.inf]), np.ones(2, dtype=int), 6) > 0).all()


def test_donors_are_drawn_in_proportion_to_their_weights():
    """Rows with b = 1 stand for three cases each, so that three quarters of the draws are 1."""
    frame = pd.DataFrame(
        {"a": 0.0, "b": np.tile([0.0, 1.0], 200), "y": np.repeat([0, 1], 200), "w": np.tile([1, 3], 200)}
    )
    problem = afape.Problem({"a": ["a"], "b": ["b"]}, {"b": 1.0}, "y", 1.0)
    shares = {}
    for weight in (None, "w"):
        data = afape.Retrospective(frame, problem, weight=weight)
        rng = np.random.default_rng(0)
        pool = DonorPool.of(data, np.arange(400), rng)
        tree = DonorTree(pool, np.array([True, False]), rng, 20)
        drawn, _ = tree.complete(np.zeros((20_000, 2)), np.zeros(20_000, dtype=np.intp), rng.random(20_000))
        shares[weight] = drawn[:, 1].mean()
    assert_allclose([shares[None], shares["w"]], [0.5, 0.75], atol=0.01)
