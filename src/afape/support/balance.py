"""Balance: how much rows that have a set differ from all rows, before and after weighting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from scipy.special import stdtr

from .._arrays import Bools, Floats, Ints, every, in_own_units, tally
from ..data.retrospective import Retrospective
from ..propensity.probabilities import FactorLines, PatternLines
from ..propensity.weights import View

__all__ = ["balance_table"]

_MOST_SETS, _MOST_ROWS = 12, 10_000  # sets compared, the most wanted first, and rows used
_MOST_SCORED = 100_000  # rows up to which the learning of propensities counts in standard errors


def balance_table(data: Retrospective, view: View, sets: Mapping[str, Bools]) -> pd.DataFrame:
    r"""Difference between rows that have a set and all rows, in columns that are always recorded; the largest first.

    .. math:: d = \frac1s \Big( \frac{\sum_i 1(R_i \ge S) w_i x_i}{\sum_i 1(R_i \ge S) w_i} - \bar x \Big), \qquad
       w_i = 1 / P(R \ge S \mid X_o)

    Mean and standard deviation s are over all rows in which the set is supported. Before weighting, w = 1. Row weights multiply
    w and count in the mean and in s. Each class of the label counts as a column. At most 10,000 rows, evenly spread, are used.
    ``sets`` are (G,) masks by name.

    A learned propensity balances the columns that it depends on. Standard errors include this for logistic propensities, by the
    scores of their fits (`StackedScores`), up to 100,000 rows. With more, the 10,000 rows carry nearly all of the error.
    """
    n = len(data)
    rows = np.unique(np.linspace(0, n - 1, min(n, _MOST_ROWS)).astype(np.intp))
    names, values = _always_recorded(data, rows)
    values = in_own_units(values)
    lines: list[tuple[object, ...]] = []
    for name, required in list(sets.items())[:_MOST_SETS]:
        target = ~view.unsupported.lacking(required)[rows] if view.unsupported else np.ones(len(rows), dtype=bool)
        has = np.flatnonzero(target & every(data.recorded[rows][:, required]))
        if len(has) < 2 or view.refusal:
            continue
        probability, made_of = view.propensity.probabilities(rows[has], required[None], [np.arange(len(has))])
        clipped = probability < view.propensity.min_propensity
        with np.errstate(divide="ignore"):
            weight = 1.0 / np.maximum(probability, view.propensity.min_propensity)
        if np.isfinite(weight).all():
            compared = _Compared(data, rows, values, target, has, weight)
            learned = _learned(compared, view, made_of, clipped) if n <= _MOST_SCORED else None
            lines += zip([name] * len(names), names, *compared.differences(learned), strict=True)
    table = pd.DataFrame(lines, columns=["set", "column", "before", "after", "std_error", "p_value"])
    order = np.argsort(-table["after"].abs().to_numpy(dtype=float), kind="stable")
    return table.iloc[order].reset_index(drop=True)


@dataclass(frozen=True, eq=False)
class _Compared:
    """Rows that have a set, to be compared with all rows in which it is supported.

    Parameters
    ----------
    data : Retrospective
        Records.
    rows : ndarray of int, shape (m,)
        Rows in use.
    values : ndarray of shape (m, C)
        Columns that are always recorded.
    target : ndarray of bool, shape (m,)
        Rows in which the set is supported.
    has : ndarray of int, shape (h,)
        Places, among the rows in use, of those that have the set.
    weight : ndarray of shape (h,)
        One over the probability of the set.
    """

    data: Retrospective
    rows: Ints
    values: Floats
    target: Bools
    has: Ints
    weight: Floats

    @cached_property
    def cases(self) -> Floats:
        """How many cases each row stands for, (m,); 0 where the set is unsupported."""
        return np.asarray(self.data.row_weight[self.rows] * self.target)

    @cached_property
    def weighted(self) -> Floats:
        """Weights of the rows that have the set, (h,)."""
        return np.asarray(self.weight * self.cases[self.has])

    @cached_property
    def mean(self) -> Floats:
        """Weighted means of the rows that have the set, (C,)."""
        return np.asarray(self.weighted @ self.values[self.has] / self.weighted.sum())

    def differences(self, learned: Floats | None) -> tuple[Floats, Floats, Floats, Floats]:
        """Standardised differences before and after weighting, standard errors and p-values of the latter, by column.

        Rows that have the set are among all rows, so the variance is that of the paired difference of both means.
        ``learned`` (n, C) is what each row adds to the weighted mean through the learned propensity.
        """
        x, cases, has = self.values, self.cases, self.has
        mean = cases @ x / cases.sum()
        spread = np.sqrt(cases @ (x - mean) ** 2 / cases.sum())
        spread = np.where(spread > 1e-12 * np.abs(mean), spread, np.inf)  # a constant column does not differ
        near = cases[has] @ x[has] / cases[has].sum()
        before, after = (near - mean) / spread, (self.mean - mean) / spread
        terms = np.zeros((len(self.data), x.shape[1])) if learned is None else learned.copy()
        terms[self.rows] -= (cases / cases.sum())[:, None] * (x - mean)
        terms[self.rows[has]] += (self.weighted / self.weighted.sum())[:, None] * (x[has] - mean)
        squares = np.array([tally(self.data.unit, column, len(self.data)) for column in terms.T]).T ** 2
        error = np.sqrt(squares.sum(axis=0)) / spread
        # Degrees of freedom: the effective number of terms; see Estimate.degrees_of_freedom.
        freedom = squares.sum(axis=0) ** 2 / np.maximum((squares**2).sum(axis=0), 1e-300)
        p_value = 2 * stdtr(np.maximum(freedom, 1.0), -np.abs(after) / np.maximum(error, 1e-300))
        return before, after, error, p_value


def _learned(compared: _Compared, view: View, made_of: FactorLines | PatternLines, clipped: Bools) -> Floats | None:
    """Return what each row adds to the weighted means through the learned propensity, (n, C); None without scores."""
    data, rows = compared.data, compared.rows[compared.has]
    scores = view.propensity.scores(data.row_weight)
    if scores is None:
        return None
    centred = compared.values[compared.has] - compared.mean
    moved = (compared.weighted * ~clipped)[:, None] * centred
    scores.add(rows, made_of, np.zeros(len(rows), dtype=np.intp), moved)
    width = centred.shape[1]
    found = scores.influence(np.eye(width)[:, None, :])
    return np.asarray(found.T / compared.weighted.sum())


def _always_recorded(data: Retrospective, rows: Ints) -> tuple[list[str], Floats]:
    """Names and columns of the groups without gaps and of the classes of the label, in these rows."""
    columns = np.flatnonzero(data.always_recorded[data.column_group])
    codes = np.arange(0 if len(data.classes) > 2 else 1, len(data.classes))
    names = [*(data.columns[j] for j in columns), *(f"{data.problem.label}={data.classes[c]}" for c in codes)]
    return names, np.column_stack([data.values[rows][:, columns], data.labels[rows, None] == codes])
