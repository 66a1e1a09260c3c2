"""The agent that searches several acquisitions ahead with an imputation model."""

import numpy as np
import pandas as pd
import pytest
from classics import small
from numpy.testing import assert_allclose, assert_array_equal

import afape
from afape.agents import LookAhead, ValueOfInformation

PROBLEM = afape.Problem({"a": ["a"], "b": ["b"], "c": ["c"]}, {"b": 1.0, "c": 1.0}, "y", 10.0)


class Parity:
    """Predicts if b and c differ; 0 unless both are known."""

    def predict(self, values, acquired):
        return np.where(acquired[:, 1] & acquired[:, 2], values[:, 1] != values[:, 2], 0).astype(int)


def parity_world(n, seed, gaps=0.0):
    """The label says if b and c differ: each of them alone tells nothing, both tell everything. a is noise."""
    rng = np.random.default_rng(seed)
    a, b, c = (rng.random((3, n)) < 0.5).astype(float)
    frame = pd.DataFrame({"a": a, "b": b, "c": c, "y": (b != c).astype(int)})
    for column in "bc":
        frame.loc[rng.random(n) < gaps, column] = np.nan
    return afape.Retrospective(frame, PROBLEM)


def test_two_groups_that_are_only_useful_together_are_found_at_depth_two():
    train, complete = parity_world(3000, 0, 0.3), parity_world(2000, 1)
    costs = {
        depth: afape.true_cost(complete, LookAhead(depth).fit(train, Parity()), Parity())["total"].value
        for depth in (1, 2)
    }
    assert costs[1] == pytest.approx(10 * complete.labels.mean())  # it stops: neither group alone saves anything
    assert costs[2] == 2.0  # the least possible: both prices, no error


def test_depth_one_is_the_value_of_information():
    classifier, data = small()
    one, same = (agent.fit(data, classifier) for agent in (LookAhead(1, n_draws=7), ValueOfInformation(n_draws=7)))
    rng = np.random.default_rng(0)
    acquired = data.problem.free | (rng.random((300, 3)) < 0.4)
    values = np.where(acquired[:, data.column_group], data.values[:300], np.nan)
    assert_array_equal(one.probabilities(values, acquired), same.probabilities(values, acquired))


def by_hand(agent, values, acquired, depth):
    """The formula, one state and one draw at a time."""
    classifier, costs, free = agent.classifier_, agent.costs_, agent.layout_.free
    prices = np.where(free, np.inf, agent.layout_.prices)

    def predict(x, taken):
        return int(classifier.predict(x[None], taken[None])[0])

    best = 0.0
    for g, tree in agent.trees_.items():
        if acquired[g]:
            continue
        leaf = tree.apply(agent._without(values[None], g))[0]
        total = 0.0
        for k in range(agent.n_draws):
            x, taken = values.copy(), acquired.copy()
            x[agent.layout_.column_group == g] = agent.donors_[g][leaf, k]
            taken[g] = True
            p = agent._posterior_of(x[None])[0]
            total += p @ (costs[:, predict(values, acquired)] - costs[:, predict(x, taken)])
            left = prices[~taken]
            if depth > 1 and len(left) and p @ costs[:, predict(x, taken)] > left.min():
                total += by_hand(agent, x, taken, depth - 1)
        best = max(best, total / agent.n_draws - agent.layout_.prices[g])
    return best


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_savings_follow_the_formula(depth):
    data = parity_world(400, 2, 0.2)
    agent = LookAhead(depth, n_draws=3, min_leaf=20).fit(data, Parity())
    acquired = np.array([[True, False, False], [True, True, False], [False, False, True], [True, True, True]])
    values = np.where(acquired, np.nan_to_num(data.values[:4]), np.nan)
    now = Parity().predict(values, acquired)
    found = agent._worth(values, acquired, now, depth).max(axis=1)
    assert_allclose(found, [by_hand(agent, x, s, depth) for x, s in zip(values, acquired, strict=True)], rtol=1e-12)
    assert found[0] > 0 or depth == 1


def test_chunks_change_nothing(monkeypatch):
    data = parity_world(300, 3)
    agent = LookAhead(n_draws=3).fit(data, Parity())
    acquired = np.repeat([[True, False, False]], 300, axis=0)
    values = np.where(acquired, data.values, np.nan)
    whole = agent.probabilities(values, acquired)
    monkeypatch.setattr("afape.agents.value_of_information._CHUNK", 20)
    assert_array_equal(agent.probabilities(values, acquired), whole)


def test_depth_is_checked():
    with pytest.raises(ValueError, match=r"'depth' must be a whole number of at least 1, but is 0"):
        LookAhead(0).fit(parity_world(100, 0), Parity())
