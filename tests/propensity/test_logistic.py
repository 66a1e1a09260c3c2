"""Logistic regression: score, collinear columns, bias, and far values."""

import numpy as np
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression

from afape.propensity.logistic import fit_logistic, log_odds_variance, logistic_design


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


def test_firth_converges_where_a_level_has_one_row_from_any_start():
    """The row alone has leverage 1: its probability is (1 + 1/2) / (1 + 1), and no start may change that."""
    rng = np.random.default_rng(1)
    level, x = np.zeros(2000), rng.normal(size=2000)
    level[7] = 1.0
    y = rng.random(2000) < 1 / (1 + np.exp(-2 - x))
    y[7] = True
    design = logistic_design(np.column_stack([level, x]))
    for start in (None, np.array([2.0, 0.0, 1.0]), np.array([3.0, 28.0, 1.0]), np.array([-5.0, -28.0, 9.0])):
        fit = fit_logistic(design, y, firth=True, start=start)
        assert fit.converged
        assert_allclose(1 / (1 + np.exp(-design[7] @ fit.coefficients)), 0.75, rtol=1e-5)
        assert_allclose(log_odds_variance(fit.inverse_information, design[[7]]), 1 / (0.75 * 0.25), rtol=1e-5)


def test_infinite_coefficients_add_nothing_to_the_covariance():
    """Levels whose rows are all recorded are fitted exactly, so the others have the covariance of a fit without them."""
    rng = np.random.default_rng(19)
    level, x = rng.integers(0, 8, 400), rng.normal(size=(400, 3))
    certain = level >= 5
    y = certain | (rng.random(400) < 1 / (1 + np.exp(-x[:, 0])))
    design = logistic_design(np.column_stack([np.eye(8)[level], x, np.where(certain, 3 * x[:, 0], 0.0)]))
    fit, alone = fit_logistic(design, y), fit_logistic(design[~certain], y[~certain])
    found, expected = (log_odds_variance(f.inverse_information, design[~certain]) for f in (fit, alone))
    assert_allclose(found, expected, rtol=1e-5)
    scores = design * (y - 1 / (1 + np.exp(-design @ fit.coefficients)))[:, None]
    assert_allclose(fit.inverse_information @ scores[certain].T, 0, atol=1e-6)


def test_columns_are_standardised_over_the_rows_that_have_them():
    rng = np.random.default_rng(5)
    columns = np.column_stack([rng.normal(7, 3, 60), rng.normal(-1, 2, 60), np.full(60, 4.0)])
    columns[::4, 1] = np.nan
    has = ~np.isnan(columns[:, 1])
    design = logistic_design(columns)
    assert_allclose(design[:, 0], 1.0)
    assert_allclose(design[:, 1], (columns[:, 0] - columns[:, 0].mean()) / columns[:, 0].std())
    assert_allclose(design[has, 2], (columns[has, 1] - columns[has, 1].mean()) / columns[has, 1].std())
    assert not design[~has, 2].any()
    assert not design[:, 3].any()
    weight = rng.integers(1, 4, 60).astype(float)
    repeated = np.repeat(np.arange(60), weight.astype(int))
    assert_allclose(logistic_design(columns, weight)[repeated], logistic_design(columns[repeated]), atol=1e-12)
