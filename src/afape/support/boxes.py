"""Boxes: intervals of one, two or three columns at once, in which few rows have a set recorded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations, islice
from typing import NamedTuple

import numpy as np

from .._arrays import Bools, Floats, Ints
from .criterion import Criterion
from .intervals import Axis, CountedInterval, longest_intervals, rates_beside, rounded_limits

__all__ = ["Box", "RegionScan", "ScoredBox", "boxes_of_columns", "choices", "intervals_of_columns"]

_PAIRS = 400  # pairs of columns searched at most
_SEEDS = 3  # boxes of each pair of columns that are refined
_MILDNESS = (1.0, 0.25)  # factors of the loss per recorded row while the sides of a box are moved
_FRACTION = 0.4  # a seed has at least this fraction of the rows, or of the score, that a region needs

Box = dict[int, CountedInterval]  # interval by position of the axis


class ScoredBox(NamedTuple):
    """A box and the evidence that the set is unsupported in it."""

    score: float
    box: Box


@dataclass(frozen=True, eq=False)
class RegionScan:
    """One search for regions without support."""

    axes: tuple[Axis, ...]
    criterion: Criterion
    recorded: Bools  # (n,) rows that have the set
    among: Bools  # (n,) rows to search

    def inside(self, box: Box, skip: int | None = None) -> Bools:
        """Mask (n,) of the rows in the box, without the condition on the axis ``skip``."""
        inside = self.among.copy()
        for j, interval in box.items():
            if j != skip:
                inside &= self.axes[j].within(interval)
        return inside

    def count(self, inside: Bools) -> tuple[int, int]:
        """Number of rows, and of recorded rows."""
        return int(inside.sum()), int((self.recorded & inside).sum())

    def intervals(self, j: int, inside: Bools) -> list[CountedInterval]:
        """Longest intervals of axis j with 0, 1, ... recorded rows."""
        return longest_intervals(self.axes[j], self.recorded, inside, len(self.criterion.need))

    def suspicious(self, box: Box) -> bool:
        """True if the counts of the box alone contradict positivity."""
        return self.criterion.suspicious(*self.count(self.inside(box)))

    def stands_out(self, box: Box, n_tries: float) -> bool:
        """True if the box also has fewer recorded rows than its neighbours, given the number of boxes searched."""
        beside = [rates_beside(self.axes[j], i, self.recorded, self.inside(box, skip=j)) for j, i in box.items()]
        rate = min((r for sides in beside for r in sides), default=0.0)
        return self.criterion.stands_out(self.inside(box), self.recorded, rate, n_tries)

    def limits(self, box: Box) -> dict[int, tuple[float, float]]:
        """Round limits of each side of the box, by position of the axis."""
        return {
            j: rounded_limits(self.axes[j], interval, self.recorded, self.inside(box, skip=j))
            for j, interval in sorted(box.items())
        }


def choices(n: int, k: int) -> float:
    """Number of subsets of size k of n elements."""
    return float(np.prod([(n - i) / (i + 1) for i in range(k)]))


def intervals_of_columns(scan: RegionScan) -> list[ScoredBox]:
    """Suspicious intervals of single columns."""
    criterion = scan.criterion
    return [
        ScoredBox(criterion.score(interval.n, interval.k), {j: interval})
        for j in range(len(scan.axes))
        for interval in scan.intervals(j, scan.among)
        if criterion.suspicious(interval.n, interval.k)
    ]


def boxes_of_columns(scan: RegionScan) -> list[ScoredBox]:
    """Boxes of two columns, found on a grid of bins and then refined, and boxes of three columns.

    A third column is added to the boxes of the grid whose rate is lowest compared with all rows.
    """
    criterion = scan.criterion
    out: list[ScoredBox] = []
    lowest: list[ScoredBox] = []
    for i, j in islice(combinations(range(len(scan.axes)), 2), _PAIRS):
        seeds, low_rate = _grid(scan, i, j)
        out += [_refined(scan, box, mildness) for box in seeds for mildness in _MILDNESS]
        lowest.append(low_rate)
    for _, coarse in sorted(lowest, key=lambda found: -found.score)[: 2 * _SEEDS]:
        box = {j: _without_outer_bins(scan.axes[j], interval) for j, interval in coarse.items()}
        inside = scan.inside(box)
        for j in range(len(scan.axes)):
            third = [] if j in box else scan.intervals(j, inside)
            if third:
                seed = max(third, key=lambda i: criterion.score(i.n, i.k))
                if criterion.score(seed.n, seed.k) > _FRACTION * criterion.gain * criterion.need[0]:
                    out += [_refined(scan, {**box, j: seed}, mildness) for mildness in _MILDNESS]
    return out


def _refined(scan: RegionScan, box: Box, mildness: float) -> ScoredBox:
    """Move the sides of a box, one column at a time, to where its score is largest.

    A recorded row costs less with a smaller ``mildness``, so that a box need not end at a row recorded by chance.
    """
    criterion = scan.criterion
    for _ in range(2):
        for j in list(box):
            found = scan.intervals(j, scan.inside(box, skip=j))
            if found:
                box = {**box, j: max(found, key=lambda i: criterion.gain * i.n - mildness * criterion.loss * i.k)}
    bounded = {j: i for j, i in box.items() if np.isfinite(i.low) or np.isfinite(i.high)}
    return ScoredBox(criterion.score(*scan.count(scan.inside(box))), bounded or box)


def _without_outer_bins(axis: Axis, interval: CountedInterval) -> CountedInterval:
    """Leave out the outermost bins of a continuous column: the true edge may lie in them."""
    if not axis.continuous:
        return interval
    inner = axis.edges[(axis.edges > interval.low) & (axis.edges < interval.high)]
    if len(inner) < 2:
        return interval
    low = inner[0] if np.isfinite(interval.low) else interval.low
    high = inner[-1] if np.isfinite(interval.high) else interval.high
    return interval._replace(low=float(low), high=float(high))


def _grid(scan: RegionScan, i: int, j: int) -> tuple[list[Box], ScoredBox]:
    """Boxes of bins of two columns with the largest scores, and the one with the lowest rate compared with all rows."""
    criterion, axes = scan.criterion, (scan.axes[i], scan.axes[j])
    n, k = _box_counts(axes, scan.among), _box_counts(axes, scan.among & scan.recorded)
    (low_i, high_i), (low_j, high_j) = (np.triu_indices(len(axis.edges) + 2, 1) for axis in axes)

    def box(place: int) -> Box:
        u, v = np.unravel_index(place, n.shape)
        sizes = int(n[u, v]), int(k[u, v])
        return {
            i: CountedInterval(*_bin_limits(axes[0], int(low_i[u]), int(high_i[u])), *sizes),
            j: CountedInterval(*_bin_limits(axes[1], int(low_j[v]), int(high_j[v])), *sizes),
        }

    score = criterion.gain * n - criterion.loss * k
    # A box on the grid is smaller than the region that it represents: it lacks the bins in which the true edges lie.
    score[n < _FRACTION * criterion.need[0]] = 0.0
    best: Iterable[int] = np.arange(score.size)
    if score.size > _SEEDS:
        best = np.argpartition(score, -_SEEDS, axis=None)[-_SEEDS:]
    contrast = _low_rate(n, k)
    lowest = int(contrast.argmax())
    return [box(int(p)) for p in best if score.flat[p] > 0], ScoredBox(float(contrast.flat[lowest]), box(lowest))


def _box_counts(axes: tuple[Axis, Axis], rows: Bools) -> Ints:
    """Rows in every box of bins, (intervals of bins of the first axis, of the second)."""
    a, b = len(axes[0].edges) + 1, len(axes[1].edges) + 1
    cell = axes[0].codes[rows] * b + axes[1].codes[rows]
    total = np.zeros((a + 1, b + 1), dtype=np.intp)
    total[1:, 1:] = np.bincount(cell, minlength=a * b).reshape(a, b).cumsum(axis=0).cumsum(axis=1)
    low_i, high_i = np.triu_indices(a + 1, 1)
    low_j, high_j = np.triu_indices(b + 1, 1)
    slab = total[high_i] - total[low_i]
    return np.asarray(slab[:, high_j] - slab[:, low_j])


def _bin_limits(axis: Axis, low: int, high: int) -> tuple[float, float]:
    """Ends of the bins from ``low`` up to ``high``, as an open interval of values."""
    first = -np.inf if low == 0 else np.nextafter(axis.edges[low - 1], -np.inf)
    last = np.inf if high == len(axis.edges) + 1 else axis.edges[high - 1]
    return float(first), float(last)


def _low_rate(n: Ints, k: Ints) -> Floats:
    """Log-likelihood with one rate in a box and another outside (Kulldorff 1997); -inf unless the rate inside is lower."""
    tiny, gained = 1e-12, np.zeros(n.shape)
    rates = []
    for hits, size in ((k, n), (k.max() - k, n.max() - n)):
        rate = hits / np.maximum(size, 1)
        gained += hits * np.log(rate + tiny) + (size - hits) * np.log(1 - rate + tiny)
        rates.append(rate)
    return np.where((rates[0] < rates[1]) & (n > 0), gained, -np.inf)
