"""Weights for training, and what blocking does to an agent."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.tree import DecisionTreeRegressor

import afape
from afape.agents.fitted_q import FittedQ
from afape.benchmark.synthetic import synthetic_mar
from afape.data.problem import Problem
from afape.data.retrospective import Retrospective

pytestmark = pytest.mark.slow


def test_weights_are_one_over_the_share_of_rows_that_have_the_set():
    """With one binary column given, the logistic propensity is the share of rows within its levels."""
    rng = np.random.default_rng(0)
    n = 5000
    x = rng.integers(0, 2, size=(n, 3)).astype(float)
    problem = Problem(
        {"a": ["a"], "b": ["b"], "c": ["c"]}, costs={"b": 1.0, "c": 1.0}, label="y", misclassification_cost=5.0
    )
    data = Retrospective(pd.DataFrame(x, columns=["a", "b", "c"]).assign(y=rng.integers(0, 2, n)), problem)
    one = rng.random(n) < np.where(x[:, 0] == 1, 0.8, 0.3)
    data = data.hide(np.column_stack([np.ones(n, bool), one, one ^ (rng.random(n) < 0.1)]))  # recorded together
    weights = afape.optimisation.training_weights(data, afape.MAR(given=["a"]))
    rows = np.array([int(np.flatnonzero(x[:, 0] == 0)[0]), int(np.flatnonzero(x[:, 0] == 1)[0])])
    for wanted in ([1, 0, 0], [1, 1, 0], [1, 0, 1], [1, 1, 1]):
        wanted = np.array(wanted, dtype=bool)
        have = data.recorded[:, wanted].all(axis=1)
        shares = [have[x[:, 0] == level].mean() for level in (0, 1)]
        assert_allclose(weights(rows, np.tile(wanted, (2, 1))), 1 / np.array(shares), rtol=1e-6)


def test_weights_refuse_graphs_and_other_propensities():
    data = synthetic_mar(200).prepare()[1]
    with pytest.raises(
        TypeError, match=r"'missingness' must be afape.MCAR\(\) or afape.MAR\(given=\[...\]\), but is MNAR"
    ):
        afape.optimisation.training_weights(data, afape.MNAR(adjust=["x0"]))
    with pytest.raises(TypeError, match=r"'propensity' must be an afape.LearnedPropensity or None, but is str"):
        afape.optimisation.training_weights(data, afape.MCAR(), "logistic")


class OnlyTogether:
    """Predicts whether g1 and g2 differ if both are there, otherwise class 0."""

    def predict(self, values, acquired):
        return np.where(acquired[:, 1] & acquired[:, 2], values[:, 1] != values[:, 2], 0).astype(int)


def test_blocking_bias_in_training_is_visible_from_records():
    """The label says whether g1 and g2 differ: both cost 2, neither 5/2; each is recorded in half of the rows.

    The blocked agent expects that the second group is not to be had in half of the cases, and stops at once.
    """
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, size=(8000, 3)).astype(float)
    problem = Problem(
        {"g0": ["g0"], "g1": ["g1"], "g2": ["g2"]}, costs={"g1": 1.0, "g2": 1.0}, label="y", misclassification_cost=5.0
    )
    frame = pd.DataFrame(x, columns=["g0", "g1", "g2"]).assign(y=(x[:, 1] != x[:, 2]).astype(int))
    data = Retrospective(frame, problem).hide(np.column_stack([np.ones(8000, bool), rng.random((8000, 2)) < 0.5]))
    train, test = data.split([0.5, 0.5])
    agent = partial(FittedQ, DecisionTreeRegressor(min_samples_leaf=50, random_state=0))
    found = afape.optimisation.compare_training(
        agent, train, test, OnlyTogether(), missingness=afape.MCAR(), estimators=["ipw-semi"]
    )
    estimates = found.estimates("ipw-semi")
    assert estimates["blocked"].value == pytest.approx(2.5, abs=0.15)
    assert estimates["all actions"].value == pytest.approx(2.0, abs=0.01)
    assert estimates["weighted"].value == pytest.approx(2.0, abs=0.01)
    difference = found.differences("ipw-semi").set_index(["policy", "minus"]).loc[("blocked", "all actions")]
    assert difference["lower"] > 0


def test_labelled_rows_represent_all_rows():
    """The label is recorded more often where a is high; a mean of a over weighted rows is that of all rows."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 4000))
    y = np.where(rng.random(4000) < 1 / (1 + np.exp(-a)), (a + b > 0).astype(float), np.nan)
    problem = afape.Problem({"a": ["a"], "b": ["b"]}, {"b": 1.0}, "y", 5.0)
    table = pd.DataFrame({"a": a, "b": b, "y": y})
    data = afape.Retrospective(table, problem, missing_labels="weigh")
    found = afape.optimisation.labelled_rows(data, afape.MAR(given=["a"]))
    assert len(found) == np.isfinite(y).sum()
    assert abs(data.with_labels().values[:, 0].mean()) > 0.3
    assert abs(np.average(found.values[:, 0], weights=found.weight)) < 0.06
    whole = afape.Retrospective(table.dropna(), problem)
    assert afape.optimisation.labelled_rows(whole, afape.MCAR()) is whole


def test_training_is_compared_on_records_without_some_labels():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 400))
    y = np.where(rng.random(400) < 0.7, (a + b > 0).astype(float), np.nan)
    table = pd.DataFrame({"a": a, "b": np.where(rng.random(400) < 0.7, b, np.nan), "y": y})
    problem = afape.Problem({"a": ["a"], "b": ["b"]}, {"b": 1.0}, "y", 5.0, [0, 1])
    data = afape.Retrospective(table, problem, missing_labels="weigh")

    class Positive:
        def predict(self, values, acquired):
            return (np.nan_to_num(values).sum(axis=1) > 0).astype(int)

    train, test = data.split([0.5, 0.5])
    found = afape.optimisation.compare_training(
        FittedQ, train, test, Positive(), missingness=afape.MAR(given=["a"]), estimators=["ipw-semi"]
    )
    assert set(found.evaluations) == {"blocked", "all actions", "weighted"}
