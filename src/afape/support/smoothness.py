"""If a smooth probability of being recorded explains a region with few recorded rows: a likelihood ratio test."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.special import expit, ndtri

from .._arrays import Bools, Floats, Ints
from .boxes import Box, Scan
from .intervals import Axis, CountedInterval

__all__ = ["contradicts_smoothness", "least_ratio", "likelihood_ratio"]

_LEVEL = 1e-5  # level of the test, corrected for the number of regions searched
_BINS = {1: 64, 2: 10}  # bins below, in and above the interval of each axis; fewer with more axes
_FEWEST_BINS = 5
_FEW_LEVELS = 3  # an axis with at most this many values enters linearly
_RIDGE, _STEPS, _TOLERANCE = 1e-6, 50, 1e-7


def contradicts_smoothness(scan: Scan, box: Box, n_tries: float) -> bool:
    """True if no smooth probability explains how few rows in the box are recorded; ``n_tries`` boxes were searched."""
    return likelihood_ratio(scan, box) >= least_ratio(n_tries)


def least_ratio(n_tries: float) -> float:
    """Likelihood ratio that the largest of ``n_tries`` independent ones exceeds with a probability of 1e-5."""
    return float(ndtri(_LEVEL / n_tries) ** 2)


def likelihood_ratio(scan: Scan, box: Box) -> float:
    r"""Twice the log-likelihood ratio of "a probability of its own in the box" to "a smooth probability everywhere".

    The smooth probability is a logistic regression on z, asinh(z) and asinh(z)^2 of each axis of the box (z is the column by
    median and interquartile range; asinh, so that heavy tails do not decide) and on products of two axes. A column with
    two values enters linearly if the box has another axis, otherwise not at all: any two rates are smooth in it.

    Rows are counted in bins, which the sides of the box divide. If rows have clusters, the ratio is multiplied by the
    clusters per row in the box.
    """
    inside = scan.inside(box)
    features, cell = _features(scan, box), _cells(scan, box)
    n_cells = int(cell.max()) + 1
    among = scan.among
    n = np.bincount(cell[among], minlength=n_cells)
    used = n > 0
    k = np.bincount(cell[among & scan.recorded], minlength=n_cells)[used]
    within = (np.bincount(cell[inside], minlength=n_cells) > 0)[used]
    n = n[used]
    sums = [np.bincount(cell[among], weights=column[among], minlength=n_cells)[used] for column in features.T]
    mean = np.column_stack([np.ones(len(n)), *(s / n for s in sums)])
    hits, size = float(k[within].sum()), float(n[within].sum())
    apart = _loglikelihood(mean[~within], n[~within], k[~within]) + _entropy(hits, size)
    ratio = max(2.0 * (apart - _loglikelihood(mean, n, k)), 0.0)
    units = scan.criterion.units
    return ratio if units is None else ratio * len(np.unique(units[inside])) / max(int(inside.sum()), 1)


def _features(scan: Scan, box: Box) -> Floats:
    """Columns (n, q) of the smooth probability, without the constant; rows that are not searched have zeros."""
    lines, curves = [], []
    for j in box:
        x = scan.axes[j].values
        levels = scan.axes[j].n_tries  # m (m + 1) / 2 for m values, unless there are many
        low, centre, high = np.quantile(x[scan.among], [0.25, 0.5, 0.75])
        spread = high - low if high > low else float(np.ptp(x[scan.among])) or 1.0
        z = np.where(scan.among, (x - centre) / spread, 0.0)
        if levels > 3:  # more than two values
            bent = np.arcsinh(z)
            lines.append(bent)
            curves += [] if levels <= _FEW_LEVELS * (_FEW_LEVELS + 1) / 2 else [z, bent**2]
        elif len(box) > 1:
            lines.append(z)
    products = [a * b for a, b in combinations(lines, 2)]
    several = any(scan.axes[j].n_tries > 3 for j in box)
    columns = [*lines, *curves, *(products if several else [])]
    return np.column_stack(columns) if columns else np.zeros((len(scan.among), 0))


def _cells(scan: Scan, box: Box) -> Ints:
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
