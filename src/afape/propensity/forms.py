"""Forms of the default model: linear, splines or boosted trees, chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logit
from sklearn.ensemble import HistGradientBoostingClassifier

from .._arrays import Bools, Floats, Ints, mean_of, standard_error
from .._models import fit_weighted
from .logistic import ROUGH, fit_logistic, limit_far_values, logistic_design, rows_of, sigmoid, spline_columns

__all__ = ["CERTAIN", "FORMS", "Form", "Forms", "Inputs", "boosted", "recorded_probability"]

FORMS = ("linear", "spline", "boosting")
CERTAIN = 1e-9  # a forest may give probability 0 or 1; odds that are multiplied with others must stay finite
_RIDGES = (1.0, 10.0, 100.0)
# Shrinkage is tried from this many columns, below this many rows of a class per column.
_MANY_COLUMNS, _FEW_ROWS = 10, 20
_CHOICE_ROWS, _CHOICE_CLASS = 6000, 30  # rows that a form is chosen by, and least rows of a class
_CLEARLY = 2.0  # standard errors of the log-likelihood by which a form must be better than a simpler one
_BINS = 10
_ALL = slice(None)


class Inputs:
    """Regressors of every row (n, p), NaN where they are not recorded, and the form in which a logistic model reads them."""

    def __init__(self, columns: Floats, spline: bool = False, ridge: float = 0.0, weight: Floats | None = None) -> None:
        self.columns, self.spline, self.ridge, self.weight = columns, spline, ridge, weight

    @cached_property
    def design(self) -> Floats:
        """Intercept and standardised columns, far values limited; 0 where a column is not recorded."""
        columns = limit_far_values(self.columns, self.weight)[0]
        return logistic_design(spline_columns(columns, self.weight) if self.spline else columns, self.weight)


class Form(NamedTuple):
    """Form of the models of one group, and how well it predicted rows that it was not fitted on."""

    kind: str = "linear"
    ridge: float = 0.0
    gain: float = np.nan  # log-likelihood per row above the linear form
    slope: float = np.nan  # of the response on the log-odds: 1 if calibrated, below 1 if overfitted
    gap: float = np.nan  # largest difference between recorded share and mean probability in ten bins

    @property
    def name(self) -> str:
        """The form in words."""
        return self.kind if not self.ridge else f"{self.kind}, shrunk (ridge {self.ridge:g})"


class Forms:
    r"""The form of each group's models. A form is chosen when it is first asked for, and kept.

    On at most 6,000 rows, P(R_g = 1 | given) is learned from two thirds and validated on the other third, three times. With
    :math:`d_i` the difference of log-likelihoods in row i, a form replaces a simpler one if the mean of d is more than two
    standard errors above 0, and above 0 on the first third. The order is linear, additive splines,
    boosted trees; with many columns, also logistic models shrunk towards 0. The choice depends only on records, assumption
    and group.

    Parameters
    ----------
    columns : ndarray of shape (n, p)
        Regressors.
    recorded : ndarray of bool, shape (n, G)
        Which groups are recorded: the responses.
    usable : ndarray of bool, shape (n,), or None for all rows
        Rows to choose by.
    unit : ndarray of int, shape (n,)
        Cluster of each row, or the row itself, numbered by content.
    form : {"auto", "linear", "spline", "boosting"}
        "auto" to choose; otherwise the form itself.
    weight : ndarray of shape (n,), or None
        Row weights.
    """

    def __init__(
        self,
        columns: Floats,
        recorded: Bools,
        usable: Bools | None,
        unit: Ints,
        form: str,
        weight: Floats | None = None,
    ) -> None:
        self.columns, self.recorded, self.form, self.unit, self.weight = columns, recorded, form, unit, weight
        rank = np.random.default_rng(0).permutation(int(unit.max()) + 1)[unit]
        rows = np.arange(len(columns)) if usable is None else np.flatnonzero(usable)
        if len(rows) > _CHOICE_ROWS:
            rows = rows[rank[rows] <= np.partition(rank[rows], _CHOICE_ROWS)[_CHOICE_ROWS]]
        self.rows = rows[np.argsort(rank[rows], kind="stable")[:_CHOICE_ROWS]]
        self.third = rank[self.rows] % 3
        self._cases = np.ones(len(self.rows)) if weight is None else weight[self.rows]
        own = None if weight is None else self._cases
        self._linear, self._spline = (Inputs(columns[self.rows], spline, weight=own) for spline in (False, True))
        self.chosen: dict[int, Form] = {}
        self._inputs: dict[tuple[bool, float], Inputs] = {}

    def of(self, group: int) -> Form:
        """Form of the models of this group."""
        if group not in self.chosen:
            self.chosen[group] = self._choose(self.recorded[self.rows, group])
        return self.chosen[group]

    def inputs(self, form: Form) -> Inputs:
        """Regressors of all rows in this form."""
        key = form.kind == "spline", form.ridge
        if key not in self._inputs:
            self._inputs[key] = Inputs(self.columns, *key, weight=self.weight)
        return self._inputs[key]

    def _choose(self, y: Bools) -> Form:
        best = Form("linear" if self.form == "auto" else self.form)
        drawn = [self.third != k for k in range(3)]
        sizes = [np.bincount(y[mine], self._cases[mine], minlength=2).min() for mine in drawn]
        if self.columns.shape[1] == 0 or min(sizes) < _CHOICE_CLASS:
            return best
        eta = first = self._log_odds(best, y, range(3))
        begin = self.third == 0
        for form in self._others(best, y):
            other = self._log_odds(form, y, [0])
            # A form that is no better on the first third is dropped, which saves most of the boosted fits.
            found = (_log_likelihood(y[begin], e[begin]) for e in (other, eta))
            of_form, of_best = (self._mean(gain, begin) for gain in found)
            if of_form <= of_best:
                continue
            other[~begin] = self._log_odds(form, y, [1, 2])[~begin]
            if self._clearly_better(_log_likelihood(y, other) - _log_likelihood(y, eta)):
                best, eta = form, other
        gain = float(self._mean(_log_likelihood(y, eta) - _log_likelihood(y, first)))
        return Form(best.kind, best.ridge, gain, *_calibration(y, eta, None if self.weight is None else self._cases))

    def _mean(self, values: Floats, rows: Bools | slice = _ALL) -> float:
        """Mean of values in these rows."""
        return float(mean_of(values, None if self.weight is None else self._cases[rows]))

    def _clearly_better(self, gain: Floats) -> bool:
        """True if the gain in log-likelihood, (m,), is clearly above 0 on average."""
        mean, share = self._mean(gain), self._cases / self._cases.mean()
        return mean > _CLEARLY * standard_error(share * (gain - mean), self.unit[self.rows])

    def _others(self, first: Form, y: Bools) -> list[Form]:
        """Forms that may replace the first one, simple ones first."""
        kinds = FORMS if self.form == "auto" else (first.kind,)
        least, p = min(self._cases @ y, self._cases @ ~y), self.columns.shape[1]
        many = p >= _MANY_COLUMNS and least < _FEW_ROWS * p
        shrunk = [Form(kind, ridge) for kind in kinds if kind != "boosting" and many for ridge in _RIDGES]
        return [*shrunk, *(Form(kind) for kind in kinds if kind != first.kind and not (many and kind == "spline"))]

    def _log_odds(self, form: Form, y: Bools, thirds: Iterable[int]) -> Floats:
        """Log-odds in the rows of these thirds, each by the model that was learned from the other two."""
        eta, inputs = np.full(len(y), np.nan), self._spline if form.kind == "spline" else self._linear
        weight = None if self.weight is None else self._cases
        for k in thirds:
            learn, validate = self.third != k, self.third == k
            if form.kind == "boosting":
                of_fit = None if weight is None else weight[learn]
                model = fit_weighted(boosted(), inputs.columns[learn], y[learn].astype(int), of_fit)
                p = recorded_probability(model, inputs.columns[validate])
                eta[validate] = logit(np.clip(p, CERTAIN, 1 - CERTAIN))
            else:
                z = inputs.design
                fit = fit_logistic(
                    rows_of(z, learn),
                    y[learn],
                    None if weight is None else weight[learn],
                    firth=True,
                    ridge=form.ridge,
                    tolerance=ROUGH,
                )
                eta[validate] = rows_of(z, validate) @ fit.coefficients
        return eta


def boosted() -> Any:
    """Return the boosted form: few small trees, because weights divide by their probabilities."""
    return HistGradientBoostingClassifier(
        max_iter=25, learning_rate=0.2, max_leaf_nodes=8, min_samples_leaf=20, early_stopping=False, random_state=0
    )


def recorded_probability(model: Any, columns: Floats) -> Floats:
    """Probability of class 1 by a fitted scikit-learn classifier, (n,)."""
    answer = model.predict_proba(columns.copy())  # copies: the model may be the user's
    return np.array(answer[:, list(model.classes_).index(1)], dtype=float)


def _log_likelihood(y: Bools, eta: Floats) -> Floats:
    return np.asarray(y * eta - np.logaddexp(0.0, eta))


def _calibration(y: Bools, eta: Floats, weight: Floats | None) -> tuple[float, float]:
    """Slope of a logistic regression of the response on the log-odds, and the largest gap in ten bins of equally many rows."""
    p = sigmoid(eta)
    if np.ptp(eta) == 0:
        return np.nan, abs(float(mean_of(y, weight) - mean_of(p, weight)))
    scale = float(eta.std())
    design = np.column_stack([np.ones(len(eta)), eta / scale])
    slope = fit_logistic(design, y, weight, tolerance=ROUGH).coefficients[1] / scale
    bins = np.array_split(np.argsort(eta, kind="stable"), _BINS)
    cases = [None if weight is None else weight[b] for b in bins]
    gaps = (mean_of(y[b], w) - mean_of(p[b], w) for b, w in zip(bins, cases, strict=True))
    return float(slope), max(abs(float(gap)) for gap in gaps)
