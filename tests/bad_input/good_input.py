"""Good input, of which each case spoils one piece."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

import afape
from afape import MCAR, ImputedClassifier, KnownPropensity, WalkOptions

NAN, INF = float("nan"), float("inf")
GROUPS = {"a": ["a"], "b": ["b"], "cd": ["c", "d"]}
N = 40


class CountingPolicy:
    """Acquires b with probability one half, then stops; counts how often it is asked."""

    def __init__(self):
        self.calls = 0

    def probabilities(self, values, acquired):
        self.calls += 1
        p = np.zeros((len(values), acquired.shape[1] + 1))
        p[:, 1] = np.where(acquired[:, 1], 0.0, 0.5)
        p[:, -1] = 1 - p[:, 1]
        return p


class CountingClassifier:
    def __init__(self):
        self.calls = 0

    def predict(self, values, acquired):
        self.calls += 1
        return np.zeros(len(values), dtype=int)


def frame(**columns):
    """Build a table with gaps in group b (10 of 40 rows) and group cd (8 of 40 rows); group a is free."""
    x = np.random.default_rng(0).normal(size=(N, 4))
    x[::4, 1] = np.nan
    x[::5, 2:] = np.nan
    return pd.DataFrame(x, columns=list("abcd")).assign(y=["no", "yes"] * (N // 2)).assign(**columns)


class World:
    """Good input, of which each case spoils one piece."""

    def __init__(self):
        self.policy, self.classifier = CountingPolicy(), CountingClassifier()

    def problem(self, **spoiled):
        good = {"groups": GROUPS, "costs": {"b": 1.0, "cd": 2.0}, "label": "y", "misclassification_cost": 5.0}
        return afape.Problem(**(good | spoiled))

    def data(self, table=None, *, cluster=None, missing_labels="raise", **problem):
        table = frame() if table is None else table
        return afape.Retrospective(table, self.problem(**problem), cluster=cluster, missing_labels=missing_labels)

    def evaluate(self, **spoiled):
        good = {
            "data": self.data(),
            "policy": self.policy,
            "classifier": self.classifier,
            "missingness": MCAR(),
            "estimators": None,
        }
        return afape.evaluate(**(good | spoiled))

    def true_cost(self, **spoiled):
        good = {"data": self.data(frame().fillna(0.0)), "policy": self.policy, "classifier": self.classifier}
        return afape.true_cost(**(good | spoiled))


class Bad(NamedTuple):
    what: str
    attempt: Any
    error: Any
    match: str


def known(answer):
    def function(values, required):
        return answer(len(values))

    return KnownPropensity(function)


def column_twice():
    doubled = frame(e=1.0)
    doubled.columns = ["a", "b", "c", "d", "y", "b"]
    return doubled


def trained_on(data):
    return ImputedClassifier(DecisionTreeClassifier()).fit(data)


WRONG = (TypeError, ValueError)
WEAK_SIMULATION = WalkOptions(max_states=0, simulation=afape.AcquireNone())


def refused(bad):
    """Try a case, which has to fail before any model is called."""
    world = World()
    with pytest.raises(bad.error, match=bad.match):
        bad.attempt(world)
    assert (world.policy.calls, world.classifier.calls) == (0, 0)
