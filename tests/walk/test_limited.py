"""Walks within several budgets of one policy: one walk, the same tables as separate walks."""

from types import SimpleNamespace

import pytest
from numpy.testing import assert_allclose, assert_array_equal
from worlds import WORLDS

import afape
from afape.agents.budgets import CostBudget, StepBudget
from afape.agents.policy import bind
from afape.run.walk import walk_policies
from afape.walk.ground import Ground
from afape.walk.outcomes import check_outcomes
from afape.walk.table import WalkTable
from afape.walk.walker import WalkOptions, walk

OUTCOMES = check_outcomes({"known": lambda values, acquired, labels: acquired.sum(axis=1) + labels})


class Counted:
    """A policy or classifier that counts the states that it is asked about."""

    def __init__(self, inner):
        self.inner, self.states = inner, 0

    def probabilities(self, values, acquired):
        self.states += len(values)
        return self.inner.probabilities(values, acquired)

    def predict(self, values, acquired):
        self.states += len(values)
        return self.inner.predict(values, acquired)


def plan(data, classifier, predicts, options):
    method = SimpleNamespace(valued=predicts)
    return SimpleNamespace(
        data=data,
        classifier=classifier,
        missingness=afape.MCAR(),
        recipe=SimpleNamespace(values=afape.LearnedValues()),
        choices=[SimpleNamespace(method=method)],
        outcomes=OUTCOMES,
        walk=options,
        walk_seed=0,
        n_jobs=None,
    )


def budgets(world, data, kind):
    top = data.problem.prices.sum() if kind is CostBudget else data.problem.n_groups
    limits = [0, 1, 2, 3] if kind is StepBudget else [0.0, top / 4, top / 2, 0.9 * top, 2 * top]
    policy = Counted(world.policy)
    return policy, {str(limit): bind(kind(policy, limit), data.problem) for limit in limits}


@pytest.mark.parametrize("predicts", [False, True])
@pytest.mark.parametrize("kind", [CostBudget, StepBudget])
@pytest.mark.parametrize("world", WORLDS, ids=lambda w: f"world{w.seed}")
def test_one_walk_gives_the_tables_of_separate_walks(world, kind, predicts):
    data = world.draw(300, 1)
    policy, bound = budgets(world, data, kind)
    classifier = Counted(world.classifier)
    found = walk_policies(plan(data, classifier, predicts, WalkOptions()), bound)
    asked = policy.states, classifier.states
    most = 0
    for name, budget in bound.items():
        policy.states = classifier.states = 0
        ground = Ground.recorded(data, budget, classifier, predicts, OUTCOMES)
        expected, got = WalkTable.concatenate(list(walk(ground))), found[name].tables.whole()
        most = max(most, len(expected.row))
        for column in vars(expected):
            if column.startswith("_") or column in ("sampled", "edge_child"):
                continue
            a, b = getattr(got, column), getattr(expected, column)
            assert_allclose(a.astype(float), b.astype(float), rtol=1e-12, atol=1e-13, err_msg=f"{name} {column}")
        assert_array_equal(got.edge_child, expected.edge_child)
    assert max(asked) <= most + 16 * (data.problem.n_groups + 2)  # the largest walk, and states that are asked again


def test_sampled_walks_are_not_shared():
    world = WORLDS[0]
    data = world.draw(60, 1)
    options = WalkOptions(max_states=0, n_trajectories=8)
    _, bound = budgets(world, data, StepBudget)
    found = walk_policies(plan(data, world.classifier, False, options), bound)
    for name, budget in bound.items():
        ground = Ground.recorded(data, budget, world.classifier, False, OUTCOMES)
        expected = WalkTable.concatenate(list(walk(ground, None, options)))
        assert_array_equal(found[name].tables.whole().stop_flow, expected.stop_flow)
