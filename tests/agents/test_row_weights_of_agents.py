"""Agents and classifiers learn from weighted rows as from repeated rows."""

import numpy as np
import pytest
import small_records
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import afape
from afape.agents import ClusterAgent, CostSensitiveNaiveBayes, CostSensitiveTree, FittedQ, ValueOfInformation


@pytest.fixture(scope="module")
def rows():
    """The rows with weights, the rows repeated, and the rows alone."""
    table = small_records.frame(400)
    table["w"] = np.random.default_rng(1).integers(1, 5, size=len(table)) * np.where(table["y"] == 0, 3, 1)
    repeated = table.loc[table.index.repeat(table["w"])]
    return small_records.records(table, weight="w"), small_records.records(repeated), small_records.records(table)


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        make_pipeline(StandardScaler(), LogisticRegression()),
        KNeighborsClassifier(9),
    ],
)
def test_classifiers(rows, estimator):
    made = [afape.ImputedClassifier(estimator, drop_probability=0.0, calibrate=False).fit(data) for data in rows]
    values, acquired = rows[2].values, rows[2].recorded
    p, repeated, alone = (classifier.predict_proba(values, acquired) for classifier in made)
    assert_allclose(p, repeated, atol=1e-4)
    assert np.abs(p - alone).max() > 0.05


def test_calibrated_classifiers_use_weights(rows):
    made = [afape.ImputedClassifier(LogisticRegression(), decide="cost").fit(data) for data in rows]
    shares = [c.predict_proba(rows[2].values, rows[2].recorded)[:, 0].mean() for c in made]
    assert abs(shares[0] - shares[1]) < 0.2 * abs(shares[0] - shares[2])


def learned(agent, data):
    return agent.fit(data, small_records.Above())


def test_naive_bayes(rows):
    made = [learned(CostSensitiveNaiveBayes(min_leaf=1, n_bins=4), data) for data in rows]
    p, repeated, alone = (agent.posterior(rows[2].values, rows[2].recorded) for agent in made)
    assert_allclose(p, repeated, rtol=1e-9)
    assert np.abs(p - alone).max() > 0.1


def test_fitted_q(rows):
    made = [learned(FittedQ(LeastSquares()), data) for data in rows]
    q, repeated, alone = (agent.action_values(rows[2].values, rows[2].recorded) for agent in made)
    known = np.isfinite(q)
    assert_allclose(q[known], repeated[known], rtol=0.05)  # mean values replace gaps, and they are weighted too
    assert np.abs(q[known] - alone[known]).max() > 0.1


def test_cost_sensitive_tree():
    """The least number of rows is one of rows with mean weight. Few values: all thresholds are tried."""
    table = small_records.frame(400).round(1)
    table["w"] = np.random.default_rng(1).integers(1, 5, size=len(table)) * np.where(table["y"] == 0, 3, 1)
    table.loc[0, "w"] += 2000 - table["w"].sum()
    copies, plain = small_records.records(table.loc[table.index.repeat(table["w"])]), small_records.records(table)
    lessons = ((20, small_records.records(table, weight="w")), (100, copies), (20, plain))
    trees = [learned(CostSensitiveTree(min_rows=m, min_z=0.0), data).describe() for m, data in lessons]
    assert trees[0] == trees[1] != trees[2]


@pytest.mark.parametrize("make", [lambda: ClusterAgent(4), lambda: ValueOfInformation(n_draws=5)])
def test_agents_that_draw_at_random(rows, make):
    start = np.tile([True, False, False], (400, 1))
    shares = [learned(make(), data).probabilities(rows[2].values, start)[:, -1].mean() for data in rows]
    assert abs(shares[0] - shares[1]) <= max(0.1, abs(shares[0] - shares[2]))


class LeastSquares(BaseEstimator):
    """Least squares with weights."""

    def fit(self, X, y, sample_weight=None):
        root = np.sqrt(np.ones(len(X)) if sample_weight is None else sample_weight)[:, None]
        Z = np.column_stack([np.ones(len(X)), X])
        self.coef_ = np.linalg.lstsq(root * Z, root[:, 0] * y, rcond=None)[0]
        return self

    def predict(self, X):
        return np.column_stack([np.ones(len(X)), X]) @ self.coef_
