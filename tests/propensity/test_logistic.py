"""Logistic regression: score, collinear columns, bias, and far values."""

import numpy as np
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression

from afape.propensity.logistic import fit_logistic, logistic_design


def test_logistic_fit_has_zero_score_and_copes_with_collinear_columns():
    rng = np.random.default_rng(0)
    level = rng.integers(0, 3, 500)
    columns = np.column_stack([np.eye(3)[level], rng.normal(size=500), np.ones(500)])
    design = logistic_design(columns)
    y = rng.random(500) < 1 / (1 + np.exp(-level + columns[:, 3]))
    fit = fit_logistic(design, y)
    p = 1 / (1 + np.exp(-design @ fit.coefficients))
    assert fit.converged
    assert_allclose(design.T @ (y - p), 0, atol=1e-5)
    reference = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(columns[:, 1:4], y)
    assert_allclose(p, reference.predict_proba(columns[:, 1:4])[:, 1], atol=1e-5)


def test_firth_takes_away_the_bias_of_the_coefficients():
    rng = np.random.default_rng(0)
    design = logistic_design(rng.normal(size=(60, 1)))
    theta = np.array([0.4, 1.0])
    p = 1 / (1 + np.exp(-design @ theta))
    outcomes = [rng.random(60) < p for _ in range(2000)]
    for firth in (False, True):
        found = np.array([fit_logistic(design, y, firth=firth).coefficients for y in outcomes]) - theta
        off = np.abs(found.mean(axis=0)) / (found.std(axis=0) / np.sqrt(len(found)))
        assert off.max() < 4 if firth else off.max() > 6
