"""A few hundred records with gaps in two of three groups, three classes, a stochastic policy."""

import numpy as np
import pandas as pd

import afape


class Above:
    """Predicts by the sum of what it sees; three classes."""

    def predict(self, values, acquired):
        return np.digitize(np.nan_to_num(values).sum(axis=1), [-0.5, 0.7])


class Look:
    """Acquires b with probability 0.7 where a is small, then c where b is large."""

    def probabilities(self, values, acquired):
        p = np.zeros((len(values), 4))
        p[:, 1] = np.where(acquired[:, 1], 0.0, np.where(np.abs(values[:, 0]) < 1, 0.7, 0.2))
        p[:, 2] = np.where(acquired[:, 1] & ~acquired[:, 2], np.where(np.nan_to_num(values[:, 1]) > 0, 0.6, 0.1), 0.0)
        p[:, 3] = 1 - p.sum(axis=1)
        return p


def frame(n=500, seed=0, gaps=True):
    rng = np.random.default_rng(seed)
    a, b, c = rng.normal(size=(3, n))
    label = np.digitize(a + b + 0.5 * c + rng.normal(size=n), [-0.5, 0.7])
    keep_b = rng.random(n) < 1 / (1 + np.exp(-0.8 - 0.4 * a))
    keep_c = rng.random(n) < 1 / (1 + np.exp(-0.6 + 0.3 * a))
    if gaps:
        b, c = np.where(keep_b, b, np.nan), np.where(keep_c, c, np.nan)
    return pd.DataFrame({"a": a, "b": b, "c": c, "y": label, "row": np.arange(n)})


def records(table, scale=1.0, **options):
    costs = scale * np.array([[0, 4, 9], [5, 0, 3], [8, 2, 0]])
    problem = afape.Problem({g: [g] for g in "abc"}, {"b": scale * 1.0, "c": scale * 2.0}, "y", costs, [0, 1, 2])
    return afape.Retrospective(table, problem, **options)
