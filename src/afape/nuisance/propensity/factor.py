"""One factor of a learned propensity: a binary regression, cross-fitted, in a form that the records choose."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import expit, logit
from sklearn.ensemble import HistGradientBoostingClassifier

from ...arrays import Bools, Floats, Ints, row_dot, standard_error, units_of
from ..fitting import fit_alone, fit_weighted
from .logistic import LogisticFit, fit_logistic, held, log_odds_variance, logistic_design, spline_columns

if TYPE_CHECKING:
    from .weighting import Weighting

__all__ = ["FORMS", "NEVER", "Crossfit", "Factor", "Form", "Forms", "Inputs", "NotLearnableError"]


NEVER = 1e-9  # a forest may call something certain; odds that others are multiplied with must stay finite

FORMS = ("linear", "spline", "boosting")
_RIDGES = (1.0, 10.0, 100.0)
_MANY_COLUMNS, _FEW_ROWS = (
    10,
    20,
)  # from so many columns on, and below so many rows of a class per column, shrinking is tried
_CHOICE_ROWS, _CHOICE_PARTS, _CHOICE_CLASS = 6000, 3, 30  # rows and parts of the choice, and least rows of a class
_CLEARLY = 2.0  # standard errors of the likelihood by which another form must be better than a simpler one
_BINS = 10


class NotLearnableError(ValueError):
    """The records lack the rows that a factor of a graph has to be learned from."""


class Inputs:
    """Regressors of every row, NaN where they are not recorded, and how the logistic model reads them."""

    def __init__(self, columns: Floats, spline: bool = False, ridge: float = 0.0) -> None:
        self.columns, self.spline, self.ridge = columns, spline, ridge

    @cached_property
    def design(self) -> Floats:
        """Intercept and standardised columns, far values held at a limit; 0 where a column is not known."""
        columns = held(self.columns)[0]
        return logistic_design(spline_columns(columns) if self.spline else columns)


class Form(NamedTuple):
    """The form of the models of one group, and how well it did on rows that it had not seen."""

    kind: str = "linear"
    ridge: float = 0.0
    gain: float = np.nan  # log-likelihood per row above the linear form
    slope: float = (
        np.nan
    )  # of a logistic regression on its log-odds: 1 where it is calibrated, below 1 where it overfits
    gap: float = np.nan  # largest difference of recorded share and mean probability in ten bins

    @property
    def name(self) -> str:
        """In words."""
        return self.kind if not self.ridge else f"{self.kind}, shrunk (ridge {self.ridge:g})"


class Forms:
    r"""The form of each group's models, chosen when first asked for.

    On at most 6,000 rows in three parts, P(R_g = 1 | given) is learned from two parts and judged on the third. With
    :math:`d_i` the difference of log-likelihoods in row i, a form takes the place of a simpler one where the mean of d is
    more than two standard errors above 0, and above 0 on the part that is judged first. Order: linear, splines that add
    up, boosted trees; and, where columns are many, the logistic ones shrunk towards 0. The choice depends on records,
    assumption and group alone.

    Parameters
    ----------
    columns : ndarray of shape (n, p)
        Regressors.
    recorded : ndarray of bool, shape (n, G)
        Outcomes.
    usable : ndarray of bool, shape (n,), or None for all rows
        Rows to choose by.
    cluster : ndarray of int, or None
        Rows that belong together.
    form : {"auto", "linear", "spline", "boosting"}
        What may be chosen.
    """

    def __init__(self, columns: Floats, recorded: Bools, usable: Bools | None, cluster: Ints | None, form: str) -> None:
        self.columns, self.recorded, self.form, self.cluster = columns, recorded, form, cluster
        units = units_of(len(columns), cluster)
        rank = np.random.default_rng(0).permutation(int(units.max()) + 1)[units]
        rows = np.arange(len(columns)) if usable is None else np.flatnonzero(usable)
        self.rows = rows[np.argsort(rank[rows], kind="stable")[:_CHOICE_ROWS]]
        self.part = rank[self.rows] % _CHOICE_PARTS
        self.chosen: dict[int, Form] = {}
        self._inputs: dict[tuple[bool, float], Inputs] = {}

    def of(self, group: int) -> Form:
        """The form of the models of this group."""
        if group not in self.chosen:
            self.chosen[group] = self._choose(self.recorded[self.rows, group])
        return self.chosen[group]

    def inputs(self, form: Form) -> Inputs:
        """Regressors of all rows in this form."""
        key = form.kind == "spline", form.ridge
        if key not in self._inputs:
            self._inputs[key] = Inputs(self.columns, *key)
        return self._inputs[key]

    def _choose(self, y: Bools) -> Form:
        best = Form("linear" if self.form == "auto" else self.form)
        sizes = [np.bincount(y[self.part != k], minlength=2).min() for k in range(_CHOICE_PARTS)]
        if self.columns.shape[1] == 0 or min(sizes) < _CHOICE_CLASS:
            return best
        cluster = None if self.cluster is None else self.cluster[self.rows]
        eta = first = self._log_odds(best, y, range(_CHOICE_PARTS))
        begin = self.part == 0
        for form in self._others(best, y):
            other = self._log_odds(form, y, [0])
            # A form that is no better on the first part is given up, which spares most of the boosted fits.
            if _log_likelihood(y[begin], other[begin]).mean() <= _log_likelihood(y[begin], eta[begin]).mean():
                continue
            other[~begin] = self._log_odds(form, y, range(1, _CHOICE_PARTS))[~begin]
            if _clearly_better(y, other, eta, cluster):
                best, eta = form, other
        gain = float(np.mean(_log_likelihood(y, eta) - _log_likelihood(y, first)))
        return Form(best.kind, best.ridge, gain, *_calibration(y, eta))

    def _others(self, first: Form, y: Bools) -> list[Form]:
        """What may take the place of the first form, simple ones first."""
        kinds = FORMS if self.form == "auto" else (first.kind,)
        least, p = min(y.sum(), (~y).sum()), self.columns.shape[1]
        many = p >= _MANY_COLUMNS and least < _FEW_ROWS * p
        shrunk = [Form(kind, ridge) for kind in kinds if kind != "boosting" and many for ridge in _RIDGES]
        return [*shrunk, *(Form(kind) for kind in kinds if kind != first.kind and not (many and kind == "spline"))]

    def _log_odds(self, form: Form, y: Bools, parts: Iterable[int]) -> Floats:
        """Log odds in the rows of these parts, each by the model that was learned from the other parts."""
        eta, columns = np.full(len(y), np.nan), self.columns[self.rows]
        z = Inputs(columns, form.kind == "spline", form.ridge).design if form.kind != "boosting" else columns
        for k in parts:
            learn, judge = self.part != k, self.part == k
            if form.kind == "boosting":
                model = fit_alone(boosted(), z[learn], y[learn].astype(int))
                eta[judge] = logit(np.clip(_positive(model, z[judge]), NEVER, 1 - NEVER))
            else:
                fit = fit_logistic(z[learn], y[learn], firth=True, ridge=form.ridge, exact=False)
                eta[judge] = z[judge] @ fit.coefficients
        return eta


def boosted() -> Any:
    """The boosted form: few small trees, because weights divide by what they say."""
    return HistGradientBoostingClassifier(
        max_iter=25, learning_rate=0.2, max_leaf_nodes=8, min_samples_leaf=20, early_stopping=False, random_state=0
    )


def _log_likelihood(y: Bools, eta: Floats) -> Floats:
    return np.asarray(y * eta - np.logaddexp(0.0, eta))


def _clearly_better(y: Bools, eta: Floats, than: Floats, cluster: Ints | None) -> bool:
    difference = _log_likelihood(y, eta) - _log_likelihood(y, than)
    mean = float(difference.mean())
    return mean > _CLEARLY * standard_error(difference - mean, cluster)


def _calibration(y: Bools, eta: Floats) -> tuple[float, float]:
    """Slope of the outcome's log-odds on these, and the largest gap in ten bins."""
    p = expit(eta)
    if np.ptp(eta) == 0:
        return np.nan, abs(float(y.mean() - p.mean()))
    scale = float(eta.std())
    slope = fit_logistic(np.column_stack([np.ones(len(eta)), eta / scale]), y, exact=False).coefficients[1] / scale
    bins = np.array_split(np.argsort(eta, kind="stable"), _BINS)
    return float(slope), max(abs(float(y[b].mean() - p[b].mean())) for b in bins)


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
        columns = self.inputs.columns if self.of.estimator is not None else self.design
        return int(columns.shape[1])

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
                ridge=self.inputs.ridge,
                start=self._near(k),
                exact=self.of.row_weight is None,
            )
        elif self._width == 0:
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

    @property
    def _shift(self) -> Floats:
        r"""What to add to the log-odds of every row so that the *weight* is unbiased to second order.

        A weight has factors :math:`1 + e^{-\eta}`. Outside the rows of its fit, the fitted log-odds vary around the
        true ones with variance v and, by Firth's correction, no bias to that order, so that
        :math:`E[e^{-\hat\eta}] = e^{-\eta + v/2}`: cross-fitted weights come out too large on average. Adding v/2
        undoes it; a cell of N rows, k of them recorded, then gets about (N + 1) / (k + 1), finite also for k = 0.
        The errors of the factors of a chain are uncorrelated, so the product needs no more. Models used on
        their own rows are left as they are: there row and fit move together, and most of the bias cancels.
        """
        shift = np.zeros(len(self.of.fold))
        if self.of.n_folds > 1:
            for k, fit in enumerate(self.fits):
                if fit is not None:
                    mine = np.flatnonzero(self.of.fold == k)
                    shift[mine] = log_odds_variance(fit.inverse_information, self.design[mine]) / 2
        return shift

    @cached_property
    def _logistic(self) -> Floats:
        """Probability in every row by the model that has not seen it; all at once, as chunks would round otherwise."""
        return np.asarray(expit(row_dot(self.design, self.coefficients[self.of.fold]) + self._shift))

    def predict(self, rows: Ints) -> Floats:
        """Probability in these rows by the model that has not seen them."""
        fold = self.of.fold[rows]
        if self.of.estimator is None:
            p = self._logistic[rows]
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
