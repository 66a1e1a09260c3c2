"""If a smooth probability of being recorded explains a region with few recorded rows: a likelihood ratio test."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from scipy.special import expit, ndtri

from .._arrays import Bools, Floats, Ints
from .boxes import Box, RegionScan
from .intervals import Axis, CountedInterval

__all__ = ["contradicts_smoothness", "least_ratio", "likelihood_ratio"]

_LEVEL = 1e-5  # level of the test, corrected for the number of regions searched
_BINS = {1: 64, 2: 10}  # bins below, in and above the interval of each axis; fewer with more axes
_FEWEST_BINS = 5
_FEW_LEVELS = 3  # an axis with at most this many values enters linearly
_MOST_ROWS, _MOST_OTHERS = 20_000, 8  # rows outside the box, and other columns, in the regression by rows
_MANY_ROWS = 20_000  # rows from which a further power of each column is added
_RIDGE, _STEPS, _TOLERANCE = 1e-6, 50, 1e-7


def contradicts_smoothness(scan: RegionScan, box: Box, n_tries: float, others: Sequence[Axis]) -> bool:
    """True if no smooth probability explains how few rows in the box are recorded; ``n_tries`` boxes were searched.

    A probability that depends on the columns of the box alone is tested first, because that is fast; then one that depends
    on ``others`` as well.
    """
    least = least_ratio(n_tries)
    return likelihood_ratio(scan, box) >= least and _ratio_with_others(scan, box, others) >= least


def least_ratio(n_tries: float) -> float:
    """Likelihood ratio that the largest of ``n_tries`` independent ones exceeds with a probability of 1e-5."""
    return float(ndtri(_LEVEL / n_tries) ** 2)


def likelihood_ratio(scan: RegionScan, box: Box) -> float:
    r"""Twice the log-likelihood ratio of "a probability of its own in the box" to "a smooth probability everywhere".

    The smooth probability is a logistic regression on z, asinh(z) and asinh(z)^2 of each axis of the box (z is the column by
    median and interquartile range; asinh, so that heavy tails do not decide) and on products of two axes. A column with
    two values enters linearly if the box has another axis, otherwise not at all: any two rates are smooth in it.

    With 20,000 rows or more, asinh(z)^3 is added, because many rows contradict curves that are only nearly right.

    Rows are counted in bins, which the sides of the box divide. If rows have clusters, the ratio is multiplied by the
    clusters per row in the box.
    """
    inside, among = scan.inside(box), scan.among
    features, cell = _features(scan, box), _cells(scan, box)
    n_cells = int(cell.max()) + 1
    n = np.bincount(cell[among], minlength=n_cells)
    used = n > 0
    k = np.bincount(cell[among & scan.recorded], minlength=n_cells)[used]
    within = (np.bincount(cell[inside], minlength=n_cells) > 0)[used]
    n = n[used]
    sums = [np.bincount(cell[among], weights=column[among], minlength=n_cells)[used] for column in features.T]
    mean = np.column_stack([np.ones(len(n)), *(s / n for s in sums)])
    return _ratio(mean, n, k, within) * _independent_share(scan, inside)


def _ratio_with_others(scan: RegionScan, box: Box, others: Sequence[Axis]) -> float:
    """The likelihood ratio if the smooth probability depends on the first of the other columns too, row by row."""
    inside = scan.inside(box)
    outside = np.flatnonzero(scan.among & ~inside)
    outside = outside[np.linspace(0, len(outside) - 1, min(len(outside), _MOST_ROWS)).astype(np.intp)]
    rows = np.concatenate([np.flatnonzero(inside), outside])
    columns = [np.ones((len(rows), 1)), _features(scan, box)[rows]]
    for axis in [axis for axis in others if _n_levels(axis) > 2][:_MOST_OTHERS]:
        z, bent = _standard(axis, scan.among)
        columns.append(np.column_stack([bent, z, *_powers(bent, scan)])[rows])
    have = scan.recorded[rows].astype(np.intp)
    ratio = _ratio(np.column_stack(columns), np.ones_like(have), have, inside[rows])
    return ratio * _independent_share(scan, inside)


def _ratio(features: Floats, n: Ints, k: Ints, within: Bools) -> float:
    """Compare one logistic regression for all cells with one for the cells outside and a probability inside."""
    hits, size = float(k[within].sum()), float(n[within].sum())
    apart = _loglikelihood(features[~within], n[~within], k[~within]) + _entropy(hits, size)
    return max(2.0 * (apart - _loglikelihood(features, n, k)), 0.0)


def _independent_share(scan: RegionScan, inside: Bools) -> float:
    """Clusters per row in the box; 1 without clusters."""
    units = scan.criterion.units
    return 1.0 if units is None else len(np.unique(units[inside])) / max(int(inside.sum()), 1)


def _features(scan: RegionScan, box: Box) -> Floats:
    """Columns (n, q) of the smooth probability, without the constant; rows that are not searched have zeros."""
    lines, curves = [], []
    for j in box:
        z, bent = _standard(scan.axes[j], scan.among)
        if _n_levels(scan.axes[j]) > 2:
            lines.append(bent)
            curves += [z, *_powers(bent, scan)] if _n_levels(scan.axes[j]) > _FEW_LEVELS else []
        elif len(box) > 1:
            lines.append(z)
    several = any(_n_levels(scan.axes[j]) > 2 for j in box)
    columns = [*lines, *curves, *(a * b for a, b in combinations(lines, 2) if several)]
    return np.column_stack(columns) if columns else np.zeros((len(scan.among), 0))


def _standard(axis: Axis, among: Bools) -> tuple[Floats, Floats]:
    """The column z by median and interquartile range, and asinh(z), (n,) each."""
    x = axis.values[among]
    low, centre, high = np.quantile(x, [0.25, 0.5, 0.75])
    spread = high - low if high > low else float(np.ptp(x)) or 1.0
    z = np.where(among, (axis.values - centre) / spread, 0.0)
    return z, np.arcsinh(z)


def _powers(bent: Floats, scan: RegionScan) -> list[Floats]:
    return [bent**2, bent**3] if scan.among.sum() >= _MANY_ROWS else [bent**2]


def _n_levels(axis: Axis) -> float:
    """Number of values of a column, up to a limit: its tries are m (m + 1) / 2 for m values."""
    return float((np.sqrt(8 * axis.n_tries + 1) - 1) / 2)


def _cells(scan: RegionScan, box: Box) -> Ints:
    """Cell of each row in the grid of the axes of the box, (n,)."""
    bins = _BINS.get(len(box), _FEWEST_BINS)
    cell = np.zeros(len(scan.among), dtype=np.intp)
    for j, interval in box.items():
        cell = cell * (3 * bins) + _bins(scan.axes[j], interval, scan.among, bins)
    return np.asarray(np.unique(cell, return_inverse=True)[1].reshape(-1))


def _bins(axis: Axis, interval: CountedInterval, among: Bools, bins: int) -> Ints:
    """Bin of each row: below, in and above the interval, each divided into at most ``bins`` by its quantiles."""
    x, code = axis.values, np.zeros(len(among), dtype=np.intp)
    parts = (x <= interval.low, (x > interval.low) & (x < interval.high), x >= interval.high)
    for part, mask in enumerate(parts):
        mine = mask & among
        if mine.any():
            edges = np.unique(np.quantile(x[mine], np.arange(1, bins) / bins))
            code[mine] = part * bins + np.searchsorted(edges, x[mine], side="right")
    return code


def _entropy(k: float, n: float) -> float:
    """Largest log-likelihood of k of n."""
    return 0.0 if k <= 0 or k >= n else k * np.log(k / n) + (n - k) * np.log1p(-k / n)


def _loglikelihood(features: Floats, n: Ints, k: Ints) -> float:
    """Largest log-likelihood of a logistic regression with k of n in each cell, by Newton steps."""
    total, hits = float(n.sum()), float(k.sum())
    if hits <= 0 or hits >= total:
        return 0.0
    scale = np.sqrt((n @ features**2) / total)
    x = features / np.where(scale > 0, scale, 1.0)
    penalty = _RIDGE * total * np.r_[0.0, np.ones(x.shape[1] - 1)]

    def objective(b: Floats) -> float:
        eta = x @ b
        return float(k @ eta - n @ np.logaddexp(0.0, eta) - penalty @ b**2 / 2)

    b = np.zeros(x.shape[1])
    b[0] = np.log(hits / (total - hits))
    best = objective(b)
    for _ in range(_STEPS):
        p = expit(x @ b)
        slope = x.T @ (k - n * p) - penalty * b
        curvature = (x * (n * p * (1 - p))[:, None]).T @ x + np.diag(penalty + 1e-9 * total)
        step, length = np.linalg.solve(curvature, slope), 1.0
        while (value := objective(b + length * step)) < best and length > 1e-4:
            length /= 2
        if value <= best + _TOLERANCE:
            break
        b, best = b + length * step, value
    return best
