"""One factor of a learned propensity: a binary regression, cross-fitted."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, logit

from ...arrays import Bools, Floats, Ints, row_dot
from ..fitting import fit_weighted
from .logistic import LogisticFit, fit_logistic, log_odds_variance, logistic_design

if TYPE_CHECKING:
    from .weighting import Weighting

__all__ = ["NEVER", "Crossfit", "Factor", "Inputs", "NotLearnableError"]


NEVER = 1e-9  # a forest may call something certain; odds that others are multiplied with must stay finite


class NotLearnableError(ValueError):
    """The records lack the rows that a factor of a graph has to be learned from."""


class Inputs:
    """Regressors of every row, NaN where they are not recorded."""

    def __init__(self, columns: Floats) -> None:
        self.columns = columns

    @cached_property
    def design(self) -> Floats:
        """Intercept and standardised columns; 0 where a column is not known."""
        return logistic_design(self.columns)


class Crossfit:
    """Who learns from which rows: one model per fold, fitted on the rows outside it (all rows, where there is one fold)."""

    def __init__(self, fold: Ints, estimator: Any, row_weight: Floats | None) -> None:
        self.fold, self.estimator, self.row_weight = fold, estimator, row_weight
        self.n_folds = int(fold.max()) + 1
        rows = np.arange(len(fold)) if row_weight is None else np.flatnonzero(row_weight > 0)
        self.outside = [rows] if self.n_folds == 1 else [rows[fold[rows] != k] for k in range(self.n_folds)]


class Factor:
    r"""Probability p(z) of an outcome among eligible rows, one model per fold.

    Parameters
    ----------
    fits : Crossfit
        Folds, model and row weights.
    key : tuple
        What to know it by.
    eligible : ndarray of bool, or None for all rows
        Rows that it may learn from.
    outcome : ndarray of bool
        What is to be predicted: groups recorded.
    inputs : Inputs
        Regressors z.
    near : Factor, optional
        The same before resampling, to start the fits from.
    weighting : Weighting, optional
        What the rows weigh by other factors, on top of their own weight.
    """

    def __init__(
        self,
        fits: Crossfit,
        key: tuple[Any, ...],
        eligible: Bools | None,
        outcome: Bools,
        inputs: Inputs,
        near: Factor | None = None,
        weighting: Weighting | None = None,
    ) -> None:
        self.of, self.key, self.eligible, self.outcome = fits, key, eligible, outcome
        self.inputs, self.near, self.weighting = inputs, near, weighting
        self.constant = np.full(fits.n_folds, np.nan)  # where the rows show one class only
        self.fits: list[LogisticFit | None] = [None] * fits.n_folds
        self.models: list[Any] = [None] * fits.n_folds
        for k in range(fits.n_folds):
            self._fit(k)
        self.coefficients = np.array([np.zeros(self._width) if fit is None else fit.coefficients for fit in self.fits])

    @property
    def design(self) -> Floats:
        """Design of the logistic model, all rows."""
        return self.inputs.design

    @property
    def _width(self) -> int:
        return int(self.inputs.columns.shape[1]) + 1

    def training(self, k: int) -> Ints:
        """Rows that the model of fold k is fitted on."""
        rows = self.of.outside[k]
        return rows if self.eligible is None else rows[self.eligible[rows]]

    def _fit(self, k: int) -> None:
        rows = self.training(k)
        outcome = self.outcome[rows]
        estimator, weight = self.of.estimator, self._weights(k, rows)
        # No rows at all: nothing is known of the earlier groups being recorded, so their factor is 0 already.
        if outcome.all() or not outcome.any():
            self.constant[k] = float(len(outcome) > 0 and outcome[0])
        elif estimator is None:
            self.fits[k] = fit_logistic(
                self.design[rows],
                outcome,
                weight,
                firth=self.of.n_folds > 1,
                start=self._near(k),
                exact=self.of.row_weight is None,
            )
        elif self._width == 1:
            self.constant[k] = np.average(outcome, weights=weight)
        else:
            self.models[k] = fit_weighted(estimator, self.inputs.columns[rows], outcome.astype(int), weight)

    def _weights(self, k: int, rows: Ints) -> Floats | None:
        weight = None if self.of.row_weight is None else self.of.row_weight[rows]
        if self.weighting is None:
            return weight
        outcome = self.outcome[rows]
        by_others, _ = self.weighting.of(k, rows, outcome)
        lost = any(part.any() and not by_others[part].any() for part in (outcome, ~outcome))
        if lost or not np.isfinite(by_others).all():
            raise NotLearnableError(
                "The factorisation of this graph cannot be learned: among the rows that it needs, some groups are always or "
                "never recorded together with the others, so that a probability that must be positive is 0."
            )
        return by_others if weight is None else by_others * weight

    def _near(self, k: int) -> Floats | None:
        """Coefficients to start from: the same model before resampling, or another fold's."""
        fits = [self.near.fits[k]] if self.near is not None else self.fits
        return next((fit.coefficients for fit in fits if fit is not None and fit.converged), None)

    def log_odds(self, k: int, rows: Ints) -> Floats:
        """Log odds in these rows by the model of fold k."""
        if not np.isnan(self.constant[k]):
            return np.full(len(rows), logit(self.constant[k]))
        if self.of.estimator is None:
            return np.asarray(self.design[rows] @ self.coefficients[k])
        return np.asarray(logit(np.clip(_positive(self.models[k], self.inputs.columns[rows]), NEVER, 1 - NEVER)))

    def fitted(self, k: int) -> Floats:
        """Probability in every row by the logistic model of fold k."""
        return np.asarray(expit(self.design @ self.coefficients[k]))

    def _shift(self, rows: Ints, fold: Ints) -> Floats:
        r"""What to add to the log-odds so that the *weight* is unbiased to second order.

        A weight has factors :math:`1 + e^{-\eta}`. Outside the rows of its fit, the fitted log-odds vary around the
        true ones with variance v and, by Firth's correction, no bias to that order, so that
        :math:`E[e^{-\hat\eta}] = e^{-\eta + v/2}`: cross-fitted weights come out too large on average. Adding v/2
        undoes it; a cell of N rows, k of them recorded, then gets about (N + 1) / (k + 1), finite also for k = 0.
        The errors of the factors of a chain are uncorrelated, so the product needs no more. Models used on
        their own rows are left as they are: there row and fit move together, and most of the bias cancels.
        """
        shift = np.zeros(len(rows))
        if self.of.n_folds > 1:
            for k, fit in enumerate(self.fits):
                if fit is not None:
                    mine = np.flatnonzero(fold == k)
                    shift[mine] = log_odds_variance(fit.inverse_information, self.design[rows[mine]]) / 2
        return shift

    def predict(self, rows: Ints) -> Floats:
        """Probability in these rows by the model that has not seen them."""
        fold = self.of.fold[rows]
        if self.of.estimator is None:
            p = expit(row_dot(self.design[rows], self.coefficients[fold]) + self._shift(rows, fold))
        else:
            p = np.empty(len(rows))
            for k, model in enumerate(self.models):
                mine = fold == k
                if model is not None and mine.any():
                    p[mine] = _positive(model, self.inputs.columns[rows[mine]])
        constant = self.constant[fold]
        return np.where(np.isnan(constant), p, constant)

    def moves(self, rows: Ints) -> Bools:
        """Rows whose probability comes from a model that can vary, not from rows of one class only."""
        return np.asarray(np.isnan(self.constant)[self.of.fold[rows]])


def _positive(model: Any, columns: Floats) -> Floats:
    return np.asarray(model.predict_proba(columns)[:, list(model.classes_).index(1)], dtype=float)
