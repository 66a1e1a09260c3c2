"""Records of three groups, a rule that acquires them one after the other, and a classifier that adds up what it sees."""

from __future__ import annotations

import numpy as np
import pandas as pd

import afape

COSTS = ("acquisition", "misclassification", "total")


def table_of(n=600, seed=0, n_classes=2):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    label = (x.sum(axis=1) + rng.normal(size=n) > 0).astype(int)
    if n_classes == 3:
        label = np.digitize(x.sum(axis=1) + rng.normal(size=n), [-1, 1])
    p = 1 / (1 + np.exp(-0.8 - 0.6 * x[:, 0]))
    frame = pd.DataFrame(x, columns=["a", "b", "c"]).assign(y=label)
    for column in ("b", "c"):
        frame.loc[rng.random(n) > p, column] = np.nan
    return frame


def problem_with(costs, wrong, n_classes=2):
    groups = {"a": ["a"], "b": ["b"], "c": ["c"]}
    return afape.Problem(groups, costs, "y", wrong, classes=list(range(n_classes)))


class Sign:
    """Predicts by the sum of what it sees."""

    classes_ = np.array([0, 1])

    def predict(self, values, acquired):
        return (np.nan_to_num(values).sum(axis=1) > 0).astype(int)

    def predict_proba(self, values, acquired):
        p = 1 / (1 + np.exp(-np.nan_to_num(values).sum(axis=1)))
        return np.column_stack([1 - p, p])


def act(values, acquired):
    known = np.nan_to_num(values)
    return np.where(acquired[:, 2], 3, np.where(acquired[:, 1], np.where(known[:, 1] > 0, 2, 3), 1))


RULE = afape.DecisionRule(act)
MAR = afape.MAR(given=["a"])


def evaluated(frame, costs=None, wrong=10.0, **options):
    data = afape.Retrospective(frame, problem_with(costs or {"b": 2.0, "c": 3.0}, wrong))
    return afape.evaluate(data, RULE, Sign(), missingness=MAR, **options)
