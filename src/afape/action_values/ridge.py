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
_CONSTANT = 1e-24  # squared deviations below this share of the squares are rounding, and must not choose the penalty
_MAX_STORED = 150  # with more coefficients, the normal matrix is computed again where it is needed


class QuadraticRidge(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    r"""Ridge regression on standardised columns, their squares and (up to 30 columns) products.

    In squares and products, columns are cut at 1.5 standard deviations. Extreme rows often have the largest weights, and there
    a parabola has its largest errors.

    Parameters
    ----------
    alpha : float, optional
        Penalty, in units of one row. Default: the penalty between 0.1 and 1000 with the least generalised cross-validation
        error, :math:`\|y - \hat y\|^2 / (n - \mathrm{df})^2`.
    cases : bool
        True if a line counts as many cases as its weight says: n is then the sum of the weights, and a leverage that of one
        case.

    Notes
    -----
    Fitted with weights w on lines z (standardised, products included) with targets y, the prediction at z is
    :math:`\bar y + (z - \bar z)' b` with :math:`b = (\tilde Z' W \tilde Z + \alpha I)^{-1} \tilde Z' W y` and
    :math:`\tilde z = z - \bar z`. For a sum :math:`F = \sum_e \kappa_e \hat y(z_e)` of predictions, with centre, scale and
    penalty held fixed,

    .. math::
       \frac{\partial F}{\partial y_j} = v_j, \qquad w_j \frac{\partial F}{\partial w_j} = v_j (y_j - \hat y_j), \qquad
       v_j = w_j \Big( \frac{\sum_e \kappa_e}{\sum_l w_l} +
       \tilde z_j' (\tilde Z' W \tilde Z + \alpha I)^{-1} \sum_e \kappa_e \tilde z_e \Big) .

    `slopes` returns the derivatives of F in intercept and coefficients, :math:`\sum_e \kappa_e` and
    :math:`\sum_e \kappa_e \tilde z_e`, and `shares` returns v.
    """

    def __init__(self, alpha: float | None = None, cases: bool = False) -> None:
        self.alpha, self.cases = alpha, cases

    def fit(
        self,
        X: Floats,
        y: Floats,
        sample_weight: Floats | None = None,
        by: Ints | None = None,
        keep: bool = False,
    ) -> QuadraticRidge:
        """Fit; y has shape (m,) or (m, V), and ``by`` are the columns of y that choose the penalty, by default all.

        All targets have one penalty, so predictions are linear in the targets: the prediction of a linear combination is the
        linear combination of the predictions. ``keep`` stores ``residual_``, shape of y, and
        ``leverage_``, (m,), the derivative of the prediction of each line in its own target.
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
        target[..., w @ target**2 <= _CONSTANT * (w @ y**2)] = 0.0
        root = np.ones(1) if sample_weight is None else np.sqrt(w).reshape(-1, *[1] * (y.ndim - 1))
        if sample_weight is not None:
            Z *= np.sqrt(w)[:, None]
            target *= root
        values, vectors = np.linalg.eigh(Z.T @ Z)
        values, rotated = values.clip(0.0), vectors.T @ (Z.T @ target)
        chosen_by = ... if by is None else np.s_[:, by]
        best, lines = self.alpha, total if self.cases else len(X)
        if best is None:
            best = _best_penalty(values, rotated[chosen_by], target[chosen_by], lines)
        self.alpha_ = best
        shrunk = rotated / (values + self.alpha_).reshape(-1, *[1] * (target.ndim - 1))
        self.coef_ = vectors @ shrunk
        self.normal_ = (values, vectors) if len(values) <= _MAX_STORED else None
        if keep:
            self.residual_ = (target - Z @ self.coef_) / root
            spread = vectors / np.sqrt(values + best)
            self.leverage_ = w / total + ((Z @ spread) ** 2).sum(axis=1)
            if self.cases:
                self.leverage_ /= w
        return self

    def predict(self, X: Floats, columns: Ints | None = None) -> Floats:
        """Predict all targets, or some columns of them."""
        chosen = ... if columns is None else np.s_[..., columns]
        return np.asarray((self._expand(X) - self.offset_) @ self.coef_[chosen] + self.intercept_[chosen])

    def slopes(self, X: Floats, amount: Floats) -> Floats:
        """Derivatives of the sum of ``amount`` (m,) times the prediction of each line, (1 + p,): intercept, coefficients."""
        Z, bent = self._standardised(X)
        if Z.shape[1] > _MAX_PRODUCTS:
            curved = amount @ bent**2
        else:
            curved = (bent.T @ (bent * amount[:, None]))[_products(Z.shape[1])]
        total = amount.sum()
        return np.concatenate([[total], np.concatenate([amount @ Z, curved]) - total * self.offset_])

    def shares(self, X: Floats, weight: Floats, slopes: Floats) -> Floats:
        """Derivatives of a sum of predictions in the target of each line that the model was fitted on, (m,).

        ``weight`` (m,) are the weights of these lines, ``slopes`` the derivatives of the sum in intercept and coefficients.
        """
        solution = self._solved(X, weight, slopes[1:])
        Z, bent = self._standardised(X)
        q = Z.shape[1]
        if q > _MAX_PRODUCTS:
            curved = bent**2 @ solution[q:]
        else:
            form = np.zeros((q, q))
            form[_products(q)] = solution[q:]
            curved = np.einsum("ij,ij->i", bent @ form, bent)
        return np.asarray(weight * (slopes[0] / weight.sum() + Z @ solution[:q] + curved - self.offset_ @ solution))

    def _solved(self, X: Floats, weight: Floats, slopes: Floats) -> Floats:
        """Solve with the penalised normal matrix of the fit."""
        if self.normal_ is not None:
            values, vectors = self.normal_
            return np.asarray(vectors @ ((vectors.T @ slopes) / (values + self.alpha_)))
        Z = self._expand(X) - self.offset_
        return np.linalg.solve(Z.T @ (Z * weight[:, None]) + self.alpha_ * np.eye(Z.shape[1]), slopes)

    def _expand(self, X: Floats) -> Floats:
        Z, bent = self._standardised(X)
        if Z.shape[1] > _MAX_PRODUCTS:
            return np.column_stack([Z, bent**2])
        rows, columns = _products(Z.shape[1])
        return np.column_stack([Z, bent[:, rows] * bent[:, columns]])

    def _standardised(self, X: Floats) -> tuple[Floats, Floats]:
        """Return the standardised columns, and the same columns cut at 1.5 standard deviations."""
        Z = (X - self.centre_) / self.scale_
        return Z, Z.clip(-_CUT, _CUT)


class PooledRidge(QuadraticRidge):
    """Quadratic ridge regression for lines of many sets: NaN becomes the mean; indicators of the set are inputs too."""

    def fit(
        self,
        X: Floats,
        y: Floats,
        sample_weight: Floats | None = None,
        by: Ints | None = None,
        keep: bool = False,
    ) -> PooledRidge:
        """Fit; arguments as in `QuadraticRidge.fit`."""
        known = ~np.isnan(X)
        if self.cases and sample_weight is not None:
            count = np.maximum(sample_weight @ known, np.finfo(float).tiny)
            self.blank_ = sample_weight @ np.where(known, X, 0.0) / count
        else:
            self.blank_ = np.where(known, X, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
        super().fit(self._filled(X), y, sample_weight, by, keep)
        return self

    def _standardised(self, X: Floats) -> tuple[Floats, Floats]:
        return super()._standardised(self._filled(X))

    def _filled(self, X: Floats) -> Floats:
        return np.where(np.isnan(X), self.blank_, X)


@cache
def _products(n_columns: int) -> tuple[Ints, Ints]:
    """Return all pairs of columns, including each column with itself."""
    return np.triu_indices(n_columns)


def _best_penalty(values: Floats, rotated: Floats, target: Floats, lines: float) -> float:
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
        freedom = max(lines - 1 - float(shrink.sum()), 1e-9)
        errors.append(float((residual / np.where(used, total, 1.0)).sum() / freedom**2))
    return float(_PENALTIES[int(np.argmin(errors))])
