"""Regions of X_o in which a set of groups is hardly ever recorded, found without a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .._arrays import Bools, Floats, Ints
from ..propensity.unsupported import ColumnRange, ScoreRange
from .boxes import Box, RegionScan, ScoredBox, boxes_of_columns, choices, intervals_of_columns
from .criterion import Criterion
from .intervals import Axis
from .slants import SlantedInterval, StandardColumns, slanted_interval
from .thresholds import SupportThresholds
from .verdict import RegionVerdict, judge

__all__ = ["FoundRegions", "RegionSearch", "UnsupportedRegion", "find_regions"]

_MOST_REGIONS = 8
_WORTH = 1.2  # factor by which the evidence for a slanted region must exceed that for a box


@dataclass(frozen=True, eq=False)
class UnsupportedRegion:
    """A box in X_o, or a range of a linear score; without ranges it consists of all rows searched."""

    ranges: tuple[ColumnRange | ScoreRange, ...]
    rows: Bools  # (n,)
    n_rows: int
    n_recorded: int


class FoundRegions(NamedTuple):
    """Regions without support, a region that the rows do not decide, and True if any region searched was suspicious."""

    regions: list[UnsupportedRegion]
    doubtful: UnsupportedRegion | None
    suspicious: bool


@dataclass(frozen=True, eq=False)
class RegionSearch:
    """Columns of X_o, prepared once for the search of many sets."""

    criterion: Criterion
    axes: tuple[Axis, ...]  # columns that vary, sorted
    positions: tuple[int, ...]  # their positions among all columns
    columns: StandardColumns  # the same columns as a matrix
    known: Bools  # (n,) rows without NaN; the others belong to no region

    @staticmethod
    def of(
        columns: Floats, thresholds: SupportThresholds, units: Ints | None = None, healthy: float | None = None
    ) -> RegionSearch:
        """Prepare the columns (n, p).

        ``units`` are the clusters of rows, if rows belong together. With ``healthy``, a region must contradict this
        probability and is compared with its neighbours alone; then only intervals of single columns are searched.
        """
        known = np.asarray(~np.isnan(columns).any(axis=1))
        varying = [j for j in range(columns.shape[1]) if len(np.unique(columns[known, j])) > 1]
        axes = tuple(Axis.of_column(np.ascontiguousarray(columns[:, j]), known) for j in varying)
        criterion = Criterion.of(len(columns), thresholds, units, healthy)
        standard = StandardColumns.of(columns[:, varying], known)
        return RegionSearch(criterion, axes, tuple(varying), standard, known)


def find_regions(search: RegionSearch, recorded: Bools, among: Bools) -> FoundRegions:
    """Regions of the rows ``among`` in which a set is unsupported; ``recorded`` are the rows that have it.

    All intervals of each column are searched exactly; then boxes of two or three columns, if no interval is unsupported;
    then intervals of linear scores. A region of another shape is found in part: the rows called unsupported are then
    fewer than they should be.
    """
    found: list[UnsupportedRegion] = []
    suspected, doubtful = False, None
    left = among & search.known
    for _ in range(_MOST_REGIONS):
        region, doubtful, suspicious = _best_region(search, RegionScan(search.axes, search.criterion, recorded, left))
        suspected |= suspicious
        if region is None:
            break
        found.append(region)
        left = left & ~region.rows
    return FoundRegions(found, doubtful, suspected)


class _Best(NamedTuple):
    """The region with most evidence, if any is unsupported; else one that is not decided; if any was suspicious."""

    region: UnsupportedRegion | None = None
    doubtful: UnsupportedRegion | None = None
    suspicious: bool = False


def _best_region(search: RegionSearch, scan: RegionScan) -> _Best:
    criterion = search.criterion
    n, k = scan.count(scan.among)
    if n == 0 or len(criterion.need) == 0 or n < criterion.need[0]:
        return _Best()
    if criterion.suspicious(n, k) and criterion.in_clusters(scan.among, scan.recorded, criterion.healthy):
        return _Best(UnsupportedRegion((), scan.among.copy(), n, k), suspicious=True)
    suspects = intervals_of_columns(scan)
    best, doubtful = _judged(scan, suspects)
    if best is None and criterion.floor > 0:
        boxes = [s for s in boxes_of_columns(scan) if scan.suspicious(s.box)]
        suspects, (best, other) = suspects + boxes, _judged(scan, boxes)
        doubtful = doubtful or other
    suspected = len(suspects) > 0
    if len(scan.axes) > 1 and criterion.floor > 0:
        slant = slanted_interval(scan, search.columns, 0.0 if best is None else _WORTH * best.score)
        if slant is not None and slant.scan.suspicious({0: slant.interval}):
            suspected = True
            if (
                judge(slant.scan, {0: slant.interval}, slant.n_tries, _used_first(scan, slant))
                is RegionVerdict.UNSUPPORTED
            ):
                return _Best(_slanted_region(search, slant), suspicious=True)
    if best is not None:
        return _Best(_box_region(search, scan, best.box), suspicious=True)
    return _Best(None, None if doubtful is None else _box_region(search, scan, doubtful.box), suspected)


def _judged(scan: RegionScan, suspects: list[ScoredBox]) -> tuple[ScoredBox | None, ScoredBox | None]:
    """The box with the largest score that is unsupported, or else the one that is undecided.

    A box that shares most of its rows with a judged one of the same columns is not judged: it would be judged alike.
    """
    doubtful = None
    judged: dict[tuple[int, ...], Bools] = {}
    for suspect in sorted(suspects, key=lambda s: -s.score):
        columns, inside = tuple(suspect.box), scan.inside(suspect.box)
        known = judged.get(columns, np.zeros_like(inside))
        if 2 * (inside & known).sum() > inside.sum():
            continue
        n_tries = float(np.prod([scan.axes[j].n_tries for j in columns])) * choices(len(scan.axes), len(columns))
        others = [axis for j, axis in enumerate(scan.axes) if j not in columns]
        verdict = judge(scan, suspect.box, n_tries, others)
        if verdict is RegionVerdict.UNSUPPORTED:
            return suspect, None
        if verdict is RegionVerdict.UNDECIDED:
            doubtful = doubtful or suspect
        if verdict is not RegionVerdict.LIKE_NEIGHBOURS:
            judged[columns] = known | inside
    return None, doubtful


def _used_first(scan: RegionScan, slant: SlantedInterval) -> list[Axis]:
    """The columns of the scan, those of the score first."""
    order = np.argsort(slant.weights == 0, kind="stable")
    return [scan.axes[j] for j in order]


def _box_region(search: RegionSearch, scan: RegionScan, box: Box) -> UnsupportedRegion:
    limits = scan.limits(box)
    rows = scan.among.copy()
    for j, (low, high) in limits.items():
        rows &= (scan.axes[j].values >= low) & (scan.axes[j].values < high)
    ranges = tuple(ColumnRange(search.positions[j], low, high) for j, (low, high) in limits.items())
    return UnsupportedRegion(ranges, rows, *scan.count(rows))


def _slanted_region(search: RegionSearch, slant: SlantedInterval) -> UnsupportedRegion:
    scan = slant.scan
    ((low, high),) = scan.limits({0: slant.interval}).values()
    rows = scan.among & (scan.axes[0].values >= low) & (scan.axes[0].values < high)
    used = np.flatnonzero(slant.weights)
    columns, weights = tuple(search.positions[j] for j in used), tuple(float(w) for w in slant.weights[used])
    return UnsupportedRegion((ScoreRange(columns, weights, low, high),), rows, *scan.count(rows))
