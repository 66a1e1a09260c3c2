"""The synthetic problem and agents trained on it, each made once; and small worlds whose best agent is known."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd

from afape.agents.cwcf import CwCF
from afape.agents.dqn import DQN
from afape.agents.fitted_q import FittedQ
from afape.agents.joint_dqn import JointDQN
from afape.agents.settings import Training
from afape.benchmark.synthetic import synthetic_mar
from afape.data.problem import Problem
from afape.data.retrospective import Retrospective

SHORT = {"learning_rate": 1e-3, "n_rounds": 15, "n_steps": 250}
TINY = {"n_rounds": 2, "n_steps": 5, "n_episodes": 64, "batch_size": 32}

KINDS = {"DQN": DQN, "CwCF": CwCF, "JointDQN": JointDQN, "FittedQ": FittedQ}


@cache
def halves():
    """Classifier, records to train on, the same rows complete, other rows complete: neither agents nor classifier saw these."""
    classifier, gaps, complete = synthetic_mar().prepare()
    return classifier, gaps.split([0.5, 0.5])[0], *complete.split([0.5, 0.5])


def synthetic():
    """Classifier, records to train on, other rows complete."""
    classifier, train, _, test = halves()
    return classifier, train, test


@cache
def fresh():
    """Some of the complete rows."""
    return synthetic()[2].take(np.arange(25_000))


def make(kind, knobs=None, **arguments):
    """An untrained agent; ``knobs`` of the training where it has a network."""
    if kind == "FittedQ":
        return FittedQ(**{"max_states": 60_000, **arguments})
    return KINDS[kind](Training(**(knobs or SHORT)), **arguments)


def fit(agent, data, classifier, weights=None):
    return agent.fit(data, weights) if hasattr(agent, "predict") else agent.fit(data, classifier, weights)


@cache
def trained(kind):
    classifier, train, _ = synthetic()
    return fit(make(kind), train, classifier)


def judge(agent):
    """Who predicts where this agent stops."""
    return agent if hasattr(agent, "predict") else synthetic()[0]


def table(values, recorded, y, prices, cost):
    """Records with one column per group g0, g1, ..."""
    names = [f"g{k}" for k in range(len(prices))]
    problem = Problem(
        groups={name: [name] for name in names},
        costs={name: p for name, p in zip(names, prices, strict=True) if p},
        label="y",
        misclassification_cost=cost,
    )
    frame = pd.DataFrame(np.where(recorded, values, np.nan), columns=names).assign(y=np.asarray(y, dtype=int))
    return Retrospective(frame, problem)


class OnlyTogether:
    """Predicts whether g1 and g2 differ if both are there, otherwise class 0."""

    def predict(self, values, acquired):
        return np.where(acquired[:, 1] & acquired[:, 2], values[:, 1] != values[:, 2], 0).astype(int)


def only_together(n=4000, recorded_share=0.5, seed=0):
    """The label says whether g1 and g2 differ, each recorded in half of the rows; a wrong label costs 5.

    Stopping at once costs 5/2. Both groups cost 2, and nothing is wrong then: the best agent takes both. An agent that
    expects to be blocked thinks after the first group that it costs 1 + (1/2) 1 + (1/2) 5/2 = 2.75, and stops at once.
    """
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 2, size=(n, 3)).astype(float)
    recorded = np.column_stack([np.ones(n, dtype=bool), rng.random((n, 2)) < recorded_share])
    return table(x, recorded, x[:, 1] != x[:, 2], [0, 1, 1], 5.0)


class TellsByG1:
    """Predicts g1 if it is there, otherwise class 0."""

    def predict(self, values, acquired):
        return np.where(acquired[:, 1], values[:, 1] == 1, 0).astype(int)


def confounded(n=6000, seed=0):
    """g0 (price 4) is always recorded and decides whether g1 (price 1) is: in 9 of 10 rows with g0 = 1, else in 1 of 10.

    With g0 = 0 the label is g1, with g0 = 1 it is a coin. A wrong label costs 5. Stopping at once costs 5/2. After g1 the
    true cost is 1 + (1/2) 0 + (1/2) 5/2 = 2.25, but among rows with g1 recorded 1 + (1/10) 0 + (9/10) 5/2 = 3.25.
    """
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 2, size=(n, 2)).astype(float)
    y = np.where(x[:, 0] == 1, rng.random(n) < 0.5, x[:, 1] == 1)
    recorded = np.column_stack([np.ones(n, dtype=bool), rng.random(n) < np.where(x[:, 0] == 1, 0.9, 0.1)])
    return table(x, recorded, y, [4, 1], 5.0)


def at_start(agent, data):
    """Action values at the start, averaged over rows."""
    acquired = np.tile(data.problem.free, (len(data), 1))
    values = np.where(acquired[:, data.column_group], data.values, np.nan)
    return agent.action_values(values, acquired).mean(axis=0)
