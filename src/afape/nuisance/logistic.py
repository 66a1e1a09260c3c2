"""The default model of an indicator: unpenalised logistic regression, with its score."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpstrf
from scipy.special import expit, logit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from ..arrays import Bools, Floats, Ints

__all__ = ["LogisticFit", "fit_logistic", "log_odds_variance", "logistic_design"]


class LogisticFit(NamedTuple):
    r"""Coefficients, and what the standard error needs to know about them.

    With z the design row, the score of row j is :math:`s_j = (y_j - p_j) z_j`, and
    :math:`\hat\theta - \theta \approx A^{-1} \sum_j s_j` with :math:`A = \sum_j p_j (1 - p_j) z_j z_j'`.
    """

    coefficients: Floats  # (p,), 0 for columns that the rows of the fit cannot tell from others
    inverse_information: Floats  # (p, p)
    bias: Floats  # (p,) of the coefficients, to second order (Cox and Snell 1968)
    converged: bool


def logistic_design(columns: Floats) -> Floats:
    """Intercept and standardised columns; a constant column becomes 0."""
    centred = columns - columns.mean(axis=0)
    scale = centred.std(axis=0)
    scaled = np.divide(centred, scale, out=np.zeros_like(centred), where=scale > 1e-12)
    return np.column_stack([np.ones(len(columns)), scaled])


def fit_logistic(design: Floats, outcome: Bools) -> LogisticFit:
    """Fit by maximum likelihood; ``design`` has the intercept first, ``outcome`` both classes."""
    keep = _independent_columns(design)
    coefficients = np.zeros(design.shape[1])
    converged = True
    if len(keep) == 1:
        coefficients[0] = logit(outcome.mean())
    else:
        # No penalty (C = inf): a penalised score is not zero at the fit, and the stacked standard error needs it zero.
        model = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-8, max_iter=200)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(design[:, keep[1:]], outcome)
        converged = not any(issubclass(w.category, ConvergenceWarning) for w in caught)
        coefficients[keep[1:]] = model.coef_[0]
        coefficients[0] = model.intercept_[0]
    kept = design[:, keep]
    p = expit(kept @ coefficients[keep])
    information = (kept * (p * (1 - p))[:, None]).T @ kept
    inverse = np.zeros((design.shape[1],) * 2)
    inverse[np.ix_(keep, keep)] = np.linalg.pinv(information, hermitian=True)
    spread = log_odds_variance(inverse, design)
    bias = inverse @ (design.T @ (p * (1 - p) * spread * (p - 0.5)))
    return LogisticFit(coefficients, inverse, bias, converged)


def log_odds_variance(inverse_information: Floats, design: Floats) -> Floats:
    """Variance z' A^-1 z of the fitted log-odds in these rows."""
    return np.asarray(((design @ inverse_information) * design).sum(axis=1))


def _independent_columns(design: Floats) -> Ints:
    """Columns of a maximal independent set, the intercept first.

    One-hot columns sum to the intercept, and a level may be absent from the rows of a fit; the solver would
    stumble over either.
    """
    rest = design[:, 1:] - design[:, 1:].mean(axis=0)
    scale = np.sqrt((rest**2).mean(axis=0))
    varying = np.flatnonzero(scale > 1e-9)
    if len(varying) == 0:
        return np.array([0])
    scaled = rest[:, varying] / scale[varying]
    _, pivot, rank, _ = dpstrf(scaled.T @ scaled / len(scaled), tol=1e-9)
    return np.concatenate([[0], 1 + np.sort(varying[pivot[:rank] - 1])])
