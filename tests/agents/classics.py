"""Worlds and trained agents that the tests of the classics share."""

from functools import cache

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

import afape
from afape.agents.clusters import ClusterAgent
from afape.agents.cost_tree import CostSensitiveTree
from afape.agents.look_ahead import LookAhead
from afape.agents.naive_bayes import CostSensitiveNaiveBayes
from afape.agents.value_of_information import ValueOfInformation
from afape.benchmark.synthetic import synthetic_mar

CLASSICS = [CostSensitiveTree, CostSensitiveNaiveBayes, ClusterAgent, ValueOfInformation, LookAhead]


@cache
def synthetic():
    """Classifier, records to train agents on, complete rows to judge on: three parts of the synthetic problem."""
    experiment = synthetic_mar(60_000)
    shares = [0.3, 0.4, 0.3]
    first, second, _ = experiment.mechanism.hide(experiment.complete, 0).split(shares, 0)
    *_, complete = experiment.complete.split(shares, 0)
    return afape.ImputedClassifier().fit(first), second, complete


@cache
def small():
    """A quick classifier and few records, for what does not depend on size."""
    experiment = synthetic_mar(4_000)
    first, second = experiment.mechanism.hide(experiment.complete, 0).split([0.5, 0.5], 0)
    return afape.ImputedClassifier(LogisticRegression()).fit(first), second


@cache
def trained(kind):
    """One agent of this kind, trained on the small records."""
    classifier, data = small()
    return kind().fit(data, classifier)


class Knower:
    """Predicts perfectly from what it sees in `telling_world`: b where it is known and a = 1, else 0."""

    def predict(self, values, acquired):
        return ((values[:, 0] == 1) & (values[:, 1] == 1)).astype(int)


def telling_world(n=4000, seed=0):
    """Records in which b decides the label, but only where a = 1; b has gaps, c is noise.

    An error costs 10, b costs 1, c costs 1: acquiring b saves 10 P(b = 1) - 1 = 4 where a = 1 and nothing elsewhere.
    """
    rng = np.random.default_rng(seed)
    a, b, c = rng.random((3, n)) < 0.5
    frame = pd.DataFrame({"a": a.astype(float), "b": b.astype(float), "c": c.astype(float), "y": (a & b).astype(int)})
    frame.loc[rng.random(n) < 0.4, "b"] = np.nan
    frame.loc[rng.random(n) < 0.4, "c"] = np.nan
    problem = afape.Problem(
        {"a": ["a"], "b": ["b"], "c": ["c"]}, {"b": 1.0, "c": 1.0}, label="y", misclassification_cost=10.0
    )
    return afape.Retrospective(frame, problem)


def states(data, rng, n=400):
    """Rows with random sets acquired; in some, what is acquired or free is unknown all the same."""
    rows = rng.integers(len(data), size=n)
    acquired = rng.random((n, data.problem.n_groups)) < 0.5
    values = np.where(acquired[:, data.column_group], data.values[rows], np.nan)
    return values, acquired


def wide_world(n=1500, seed=0):
    """Twelve groups, one of them of text, three classes, unequal costs of errors, gaps everywhere, in the free group too."""
    rng = np.random.default_rng(seed)
    x, level = rng.normal(size=(n, 11)), rng.choice(["p", "q", "r"], n)
    names = [f"x{i}" for i in range(11)]
    frame = pd.DataFrame(x, columns=names).assign(level=level)
    frame["y"] = np.digitize(x[:, 0] + x[:, 1] + (level == "p"), [-0.5, 1])
    for column in (*names, "level"):
        frame.loc[rng.random(n) < (0.1 if column == "x0" else 0.4), column] = None
    groups = {f"g{i}": [name] for i, name in enumerate(names)} | {"level": ["level"]}
    costs = {group: 0.3 for group in groups if group != "g0"}
    errors = [[0, 5, 9], [4, 0, 5], [9, 2, 0]]
    return afape.Retrospective(frame, afape.Problem(groups, costs, "y", errors, categories={"level": ["p", "q", "r"]}))
