"""One factor of a learned propensity: a binary regression, one model per fold."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import logit

from .._arrays import Bools, Floats, Ints
from .._models import fit_weighted
from .forms import CERTAIN, Inputs, recorded_probability
from .logistic import (
    EXACT,
    ROUGH,
    LogisticFit,
    clustered_covariance,
    fit_logistic,
    log_odds_variance,
    rows_of,
    sigmoid,
)

if TYPE_CHECKING:
    from .adjustment import FitWeights

__all__ = ["Crossfit", "Factor", "NotLearnableError"]


class NotLearnableError(ValueError):
    """The records lack the rows that a factor of a graph has to be learned from."""


@dataclass(frozen=True, eq=False)
class Crossfit:
    """Folds and row weights of cross-fitted models: one model per fold, fitted on the rows outside of it.

    With one fold, the model is fitted on all rows. ``drawn`` (n,) is how often a bootstrap replicate drew each row, ``cluster``
    (n,) the clusters of rows that belong together, ``weight`` (n,) how many cases each row stands for.
    """

    fold: Ints
    drawn: Floats | None = None
    cluster: Ints | None = None
    weight: Floats | None = None

    @cached_property
    def row_weight(self) -> Floats | None:
        """Weight of each row in the fits, (n,); None if all weights are 1."""
        if self.drawn is None or self.weight is None:
            return self.weight if self.drawn is None else self.drawn
        return self.drawn * self.weight

    def cases_of(self, rows: Ints) -> Floats | None:
        """How many cases these rows stand for, (m,); None if every row stands for itself."""
        return None if self.weight is None else self.weight[rows]

    @property
    def tolerance(self) -> float:
        """Tolerance of logistic fits."""
        return EXACT if self.drawn is None else ROUGH

    @cached_property
    def _alone(self) -> bool:
        """True if no two rows belong together, and every row stands for itself."""
        together = self.cluster is not None and len(np.unique(self.cluster)) < len(self.cluster)
        return self.weight is None and not together

    @cached_property
    def n_folds(self) -> int:
        """Number of folds."""
        return int(self.fold.max()) + 1

    def training(self, k: int) -> Bools:
        """Rows that the model of fold k may be fitted on, (n,)."""
        rows = np.full(len(self.fold), True) if self.n_folds == 1 else self.fold != k
        return rows if self.drawn is None else rows & (self.drawn > 0)

    def covariance(
        self, fit: LogisticFit, design: Floats, response: Bools, rows: Ints, weight: Floats | None = None
    ) -> Floats:
        """Covariance of the coefficients of a fit on these rows: the inverse information, or a sandwich.

        The sandwich is for rows with clusters or weights. ``weight`` (m,) are the weights of the fit; default: those of the rows.
        """
        if self._alone:
            return fit.inverse_information
        if weight is None and self.row_weight is not None:
            weight = self.row_weight[rows]
        return clustered_covariance(fit, design, response, weight, None if self.cluster is None else self.cluster[rows])


class Factor:
    r"""Probability p(z) of a response among eligible rows, one model per fold.

    Parameters
    ----------
    crossfit : Crossfit
        Folds and row weights.
    estimator : scikit-learn classifier, or None for logistic regression
        The model.
    eligible : ndarray of bool, or None for all rows
        Rows that it may be fitted on.
    response : ndarray of bool
        What to predict: groups recorded.
    inputs : Inputs
        Regressors z.
    near : Factor, optional
        The factor before resampling, whose coefficients are good starting values.
    weighting : FitWeights, optional
        Further row weights, which depend on other factors; they multiply the row weights of ``crossfit``.
    """

    def __init__(
        self,
        crossfit: Crossfit,
        estimator: Any,
        eligible: Bools | None,
        response: Bools,
        inputs: Inputs,
        near: Factor | None = None,
        weighting: FitWeights | None = None,
    ) -> None:
        self.crossfit, self.estimator, self.eligible, self.response = crossfit, estimator, eligible, response
        self.inputs, self.near, self.weighting = inputs, near, weighting
        self.constant = np.full(crossfit.n_folds, np.nan)  # the probability, if the rows of a fit have one class
        self.fits: list[LogisticFit | None] = [None] * crossfit.n_folds
        self.models: list[Any] = [None] * crossfit.n_folds
        for k in range(crossfit.n_folds):
            self._fit(k)
        self.coefficients = np.array([np.zeros(self._width) if fit is None else fit.coefficients for fit in self.fits])

    @property
    def scored(self) -> bool:
        """True for logistic regression, whose score enters the standard errors."""
        return self.estimator is None

    @property
    def design(self) -> Floats:
        """Design of the logistic model in all rows, (n, p)."""
        return self.inputs.design

    @property
    def _width(self) -> int:
        return int((self.design if self.scored else self.inputs.columns).shape[1])

    def training(self, k: int) -> Bools:
        """Rows that the model of fold k is fitted on, (n,)."""
        rows = self.crossfit.training(k)
        return rows if self.eligible is None else rows & self.eligible

    def _fit(self, k: int) -> None:
        rows = np.flatnonzero(self.training(k))
        response = self.response[rows]
        weight = self._weights(k, rows)
        # Without any rows, the factor of the earlier groups is 0 already.
        if response.all() or not response.any():
            self.constant[k] = float(len(response) > 0 and response[0])
        elif self.scored:
            self.fits[k] = fit_logistic(
                rows_of(self.design, rows),
                response,
                weight,
                firth=self.crossfit.n_folds > 1,
                ridge=self.inputs.ridge,
                start=self._start(k),
                tolerance=self.crossfit.tolerance,
            )
        elif self._width == 0:
            self.constant[k] = np.average(response, weights=weight)
        else:
            self.models[k] = fit_weighted(self.estimator, self.inputs.columns[rows], response.astype(int), weight)

    def _weights(self, k: int, rows: Ints) -> Floats | None:
        weight = None if self.crossfit.row_weight is None else self.crossfit.row_weight[rows]
        if self.weighting is None:
            return weight
        response = self.response[rows]
        by_others, _ = self.weighting.of(k, rows, response, self.crossfit.cases_of(rows))
        lost = any(group.any() and not by_others[group].any() for group in (response, ~response))
        if lost or not np.isfinite(by_others).all():
            raise NotLearnableError(
                "The factorisation of this graph cannot be learned: in the rows that it needs, some groups are always or "
                "never recorded together with the others, so a probability that must be positive is 0."
            )
        return by_others if weight is None else by_others * weight

    def _start(self, k: int) -> Floats | None:
        """Starting coefficients: those before resampling, or those of another fold."""
        fits = [self.near.fits[k]] if self.near is not None else self.fits
        return next((fit.coefficients for fit in fits if fit is not None and fit.converged), None)

    def log_odds(self, k: int, rows: Ints) -> Floats:
        """Log-odds in these rows by the model of fold k."""
        if not np.isnan(self.constant[k]):
            return np.full(len(rows), logit(self.constant[k]))
        if self.scored:
            return np.asarray(rows_of(self.design, rows) @ self.coefficients[k])
        p = recorded_probability(self.models[k], self.inputs.columns[rows])
        return np.asarray(logit(np.clip(p, CERTAIN, 1 - CERTAIN)))

    def fitted(self, k: int) -> Floats:
        """Probability in every row by the logistic model of fold k, (n,)."""
        return sigmoid(self.design @ self.coefficients[k])

    @cached_property
    def probability(self) -> Floats:
        r"""Probability in every row by the model that was not fitted on it, (n,); NaN where a classifier lacks an input.

        The log-odds of cross-fitted logistic models are shifted so that the *weight* is unbiased to second order. A weight
        has factors :math:`1 + e^{-\eta}`. Outside the rows of its fit, the fitted log-odds vary around the true ones with
        variance v and, by Firth's correction, no bias to that order, so that :math:`E[e^{-\hat\eta}] = e^{-\eta + v/2}`:
        without a shift, weights are too large on average. Adding v/2 corrects this; a cell of N rows, k of them recorded,
        then gets about (N + 1) / (k + 1), which is finite also for k = 0. If rows have clusters, v is a sandwich over
        clusters. The errors of the factors of a chain are uncorrelated, so the product needs no other correction. A model
        that is used on its own rows is not shifted: its errors are correlated with these rows, and most of the bias cancels.
        """
        out = np.full(len(self.response), np.nan)
        for k, (fit, model) in enumerate(zip(self.fits, self.models, strict=True)):
            mine = self.crossfit.fold == k
            if not np.isnan(self.constant[k]):
                out[mine] = self.constant[k]
            elif fit is not None:
                z = rows_of(self.design, mine)
                eta = z @ fit.coefficients
                shifted = self.crossfit.n_folds > 1
                out[mine] = sigmoid(eta + log_odds_variance(self._covariance(k, fit), z) / 2 if shifted else eta)
            else:
                rows = np.flatnonzero(mine & ~np.isnan(self.inputs.columns).any(axis=1))
                if len(rows):
                    out[rows] = recorded_probability(model, self.inputs.columns[rows])
        return out

    def _covariance(self, k: int, fit: LogisticFit) -> Floats:
        rows = np.flatnonzero(self.training(k))
        design = rows_of(self.design, rows)
        return self.crossfit.covariance(fit, design, self.response[rows], rows, self._weights(k, rows))

    def moves(self, rows: Ints) -> Bools:
        """True for rows whose probability comes from a model, not from rows of one class only."""
        return np.asarray(np.isnan(self.constant)[self.crossfit.fold[rows]])

    def slope(self, rows: Ints) -> Floats:
        """Derivative of the log probability with respect to its log-odds, 1 - p, in these rows (m,); 0 where p is not learned."""
        return (1 - self.probability[rows]) * self.moves(rows)
