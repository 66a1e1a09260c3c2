"""Balance: how much rows that have a set differ from all rows, before and after weighting."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from scipy.special import stdtr

from .._arrays import Bools, Floats, Ints, every, in_own_units, mean_of
from ..data.retrospective import Retrospective
from ..propensity.weights import View

__all__ = ["balance_table"]

_MOST_SETS, _MOST_ROWS = 12, 10_000  # sets compared, the most wanted first, and rows used


def balance_table(data: Retrospective, view: View, sets: Mapping[str, Bools]) -> pd.DataFrame:
    r"""Difference between rows that have a set and all rows, in columns that are always recorded; the largest first.

    .. math:: d = \frac1s \Big( \frac{\sum_i 1(R_i \ge S) w_i x_i}{\sum_i 1(R_i \ge S) w_i} - \bar x \Big), \qquad
       w_i = 1 / P(R \ge S \mid X_o)

    Mean and standard deviation s are over all rows in which the set is supported. Before weighting, w = 1. Row weights multiply
    w and count in the mean and in s. Each class of the
    label counts as a column. At most 10,000 rows, evenly spread, are used. ``sets`` are (G,) masks by name.
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
        probability = view.propensity.probability(rows[has], required[None], np.zeros(len(has), dtype=np.intp))
        with np.errstate(divide="ignore"):
            weight = 1.0 / np.maximum(probability, view.propensity.min_propensity)
        if np.isfinite(weight).all():
            each = np.zeros(len(rows))
            each[has] = weight
            found = _differences(values[target], each[target], data.row_weight[rows][target])
            lines += zip([name] * len(names), names, *found, strict=True)
    table = pd.DataFrame(lines, columns=["set", "column", "before", "after", "std_error", "p_value"])
    order = np.argsort(-table["after"].abs().to_numpy(dtype=float), kind="stable")
    return table.iloc[order].reset_index(drop=True)


def _differences(x: Floats, weight: Floats, cases: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Standardised differences before and after weighting, standard errors and p-values of the latter, by column.

    Rows that have the set are among all rows, so the variance is that of the paired difference of both means. Weights count as
    known. A learned propensity balances the columns that it depends on, so their p-values are too large.
    """
    plain = bool((cases == cases[0]).all())
    has = weight > 0
    if plain:
        mean, spread, near = x.mean(axis=0), x.std(axis=0), x[has].mean(axis=0)
    else:
        mean, near, weight = mean_of(x, cases), mean_of(x[has], cases[has]), weight * cases
        spread = np.sqrt(mean_of((x - mean) ** 2, cases))
    spread = np.where(spread > 1e-12 * np.abs(mean), spread, np.inf)  # a constant column does not differ
    whole = weight.sum()
    before, after = (near - mean) / spread, (weight @ x / whole - mean) / spread
    terms = ((weight / whole - cases / cases.sum())[:, None] * (x - mean)) ** 2
    error = np.sqrt(terms.sum(axis=0)) / spread
    # Degrees of freedom: the effective number of terms; see Estimate.degrees_of_freedom.
    freedom = terms.sum(axis=0) ** 2 / np.maximum((terms**2).sum(axis=0), 1e-300)
    p_value = 2 * stdtr(np.maximum(freedom, 1.0), -np.abs(after) / np.maximum(error, 1e-300))
    return before, after, error, p_value


def _always_recorded(data: Retrospective, rows: Ints) -> tuple[list[str], Floats]:
    """Names and columns of the groups without gaps and of the classes of the label, in these rows."""
    columns = np.flatnonzero(data.always_recorded[data.column_group])
    codes = np.arange(0 if len(data.classes) > 2 else 1, len(data.classes))
    names = [*(data.columns[j] for j in columns), *(f"{data.problem.label}={data.classes[c]}" for c in codes)]
    return names, np.column_stack([data.values[rows][:, columns], data.labels[rows, None] == codes])
