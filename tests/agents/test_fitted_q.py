"""Fitted Q iteration: the states it learns from, and values against those worked out."""

import numpy as np
import pytest
from learned import OnlyTogether, at_start, only_together, table
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

from afape.agents.fitted_q import FittedQ, recorded_states
from afape.agents.replay import Records


def small():
    recorded = np.array([[1, 1, 1], [1, 0, 1], [1, 0, 0], [0, 1, 1]], dtype=bool)
    return table(np.arange(12.0).reshape(4, 3), recorded, [0, 1, 0, 1], [0, 1, 1], 5.0)


def test_states_are_all_sets_that_a_row_has():
    row, acquired = recorded_states(Records.of(small(), None, None), 100, np.random.default_rng(0))
    found = {(int(r), *np.flatnonzero(a).tolist()) for r, a in zip(row, acquired, strict=True)}
    # the last row lacks the free group and cannot start
    assert found == {(0, 0), (0, 0, 1), (0, 0, 2), (0, 0, 1, 2), (1, 0), (1, 0, 2), (2, 0)}
    assert len(row) == 7


def test_too_many_states_are_drawn():
    data = only_together(200)
    row, acquired = recorded_states(Records.of(data, None, None), 150, np.random.default_rng(0))
    assert len(row) == 150
    assert (acquired <= data.recorded[row]).all()
    assert acquired[:, 0].all()
    assert len({tuple(a) for a in acquired.tolist()}) == 4


def test_iterations_plan_ahead_step_by_step():
    """With one iteration the agent sees one group ahead, 1 + 2.5; with two, both: see `only_together`."""
    data = only_together()
    for n_iterations, expected in ((1, 3.5), (2, 2.0), (3, 2.0)):
        agent = FittedQ(n_iterations=n_iterations).fit(data, OnlyTogether())
        assert_allclose(at_start(agent, data)[[1, 2, 3]], [expected, expected, 2.5], atol=0.12)
        assert len(agent.learning_curve_) == n_iterations
    assert agent.learning_curve_["expected_cost"].iloc[-1] == pytest.approx(2.0, abs=0.1)


def test_any_regressor_will_do_and_is_saved():
    data = only_together(1000)
    agent = FittedQ(DecisionTreeRegressor(min_samples_leaf=20)).fit(data, OnlyTogether())
    assert_allclose(at_start(agent, data)[[1, 2, 3]], [2.0, 2.0, 2.5], atol=0.25)
    back = FittedQ.from_state(agent.state())
    assert isinstance(back.regressor, DecisionTreeRegressor)
    assert_array_equal(at_start(back, data), at_start(agent, data))
    FittedQ(LinearRegression()).fit(data, OnlyTogether())  # needs no NaN


def test_a_problem_without_prices_has_an_agent_that_stops():
    data = table(np.zeros((10, 1)), np.ones((10, 1), dtype=bool), [0, 1] * 5, [0], 5.0)

    class Zero:
        def predict(self, values, acquired):
            return np.zeros(len(values), dtype=int)

    agent = FittedQ().fit(data, Zero())
    assert agent.probabilities(np.zeros((1, 1)), np.ones((1, 1), dtype=bool)).tolist() == [[0.0, 1.0]]
