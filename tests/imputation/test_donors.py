"""Donors: rows completed from similar rows of other folds."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import afape
from afape.imputation.donors import Donors

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
    tree = donors.tree(donors.pool(data, others, 2, 0), 0, 0, shown, groups, min_leaf=10)
    values = np.where(shown, data.values[:200], 0.0)
    return [tree.complete(values, data.labels[:200]) for _ in range(2)]


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
    for _ in range(2):
        again = completed(shared, data, shown, [])
        assert_array_equal(again[0], first)
        assert_array_equal(again[1], second)
    assert (first != second).any()
