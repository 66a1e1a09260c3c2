"""Quadratic ridge regression: its predictions are linear in the targets."""

from __future__ import annotations

from functools import cache

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from .._arrays import Floats, Ints

__all__ = ["PooledRidge", "QuadraticRidge"]

_MAX_PRODUCTS = 30  # largest number of columns with products; 30 columns have 465
_CUT = 1.5  # in squares and products, columns are cut at this many standard deviations
_PENALTIES = 10.0 ** np.arange(-1.0, 3.5, 0.5)


class QuadraticRidge(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    r"""Ridge regression on standardised columns, their squares and (up to 30 columns) products.

    In squares and products, columns are cut at 1.5 standard deviations. Extreme rows often have the largest weights, and there
    a parabola has its largest errors.

    Parameters
    ----------
    alpha : float, optional
        Penalty, in units of one row. Default: the penalty between 0.1 and 1000 with the least generalised cross-validation
        error, :math:`\|y - \hat y\|^2 / (n - \mathrm{df})^2`.
    """

    def __init__(self, alpha: float | None = None) -> None:
        self.alpha = alpha

    def fit(self, X: Floats, y: Floats, sample_weight: Floats | None = None, by: Ints | None = None) -> QuadraticRidge:
        """Fit; y has shape (m,) or (m, V), and ``by`` are the columns of y that choose the penalty, by default all.

        All targets have one penalty, so predictions are linear in the targets: the prediction of a linear combination is the
        linear combination of the predictions.
        """
        w = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        total = w.sum()
        self.centre_ = w @ X / total
        unit = np.frexp(np.abs(X).max(axis=0, initial=0.0))[1]  # scaling by powers of two is exact and avoids overflow
        spread = np.ldexp(np.sqrt(w @ np.ldexp(X - self.centre_, -unit) ** 2 / total), unit)
        varies = spread > 1e-12 * np.abs(self.centre_)
        self.scale_ = np.where(varies & (spread > 0), spread, 1.0)
        Z = self._expand(X)
        self.offset_ = w @ Z / total
        self.intercept_ = w @ y / total
        Z -= self.offset_
        target = y - self.intercept_
        if sample_weight is not None:
            Z *= np.sqrt(w)[:, None]
            target *= np.sqrt(w)[:, None] if y.ndim == 2 else np.sqrt(w)
        values, vectors = np.linalg.eigh(Z.T @ Z)
        values, rotated = values.clip(0.0), vectors.T @ (Z.T @ target)
        chosen_by = ... if by is None else np.s_[:, by]
        best = _best_penalty(values, rotated[chosen_by], target[chosen_by]) if self.alpha is None else self.alpha
        self.alpha_ = best
        shrunk = rotated / (values + self.alpha_).reshape(-1, *[1] * (target.ndim - 1))
        self.coef_ = vectors @ shrunk
        return self

    def predict(self, X: Floats, columns: Ints | None = None) -> Floats:
        """Predict all targets, or some columns of them."""
        chosen = ... if columns is None else np.s_[..., columns]
        return np.asarray((self._expand(X) - self.offset_) @ self.coef_[chosen] + self.intercept_[chosen])

    def _expand(self, X: Floats) -> Floats:
        Z = (X - self.centre_) / self.scale_
        bent = Z.clip(-_CUT, _CUT)
        if Z.shape[1] > _MAX_PRODUCTS:
            return np.column_stack([Z, bent**2])
        rows, columns = _products(Z.shape[1])
        return np.column_stack([Z, bent[:, rows] * bent[:, columns]])


class PooledRidge(QuadraticRidge):
    """Quadratic ridge regression for lines of many sets: NaN becomes the mean; indicators of the set are inputs too."""

    def fit(self, X: Floats, y: Floats, sample_weight: Floats | None = None, by: Ints | None = None) -> PooledRidge:
        """Fit; arguments as in `QuadraticRidge.fit`."""
        known = ~np.isnan(X)
        self.blank_ = np.where(known, X, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
        super().fit(self._filled(X), y, sample_weight, by)
        return self

    def _expand(self, X: Floats) -> Floats:
        return super()._expand(self._filled(X))

    def _filled(self, X: Floats) -> Floats:
        return np.where(np.isnan(X), self.blank_, X)


@cache
def _products(n_columns: int) -> tuple[Ints, Ints]:
    """Return all pairs of columns, including each column with itself."""
    return np.triu_indices(n_columns)


def _best_penalty(values: Floats, rotated: Floats, target: Floats) -> float:
    """Return the penalty with the least generalised cross-validation error, summed over targets divided by their variance."""
    rotated, target = rotated.reshape(len(values), -1), target.reshape(len(target), -1)
    total = (target**2).sum(axis=0)
    used = total > 0
    if not used.any():
        return 1.0
    errors = []
    explained = np.divide(rotated**2, values[:, None], out=np.zeros_like(rotated), where=values[:, None] > 0)
    for alpha in _PENALTIES:
        shrink = (values / (values + alpha))[:, None]
        residual = (total - (explained * shrink * (2 - shrink)).sum(axis=0)).clip(0.0)
        freedom = max(len(target) - 1 - float(shrink.sum()), 1e-9)
        errors.append(float((residual / np.where(used, total, 1.0)).sum() / freedom**2))
    return float(_PENALTIES[int(np.argmin(errors))])
