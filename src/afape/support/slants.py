"""Slanted regions: intervals of a linear score of several columns, in which few rows have a set recorded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import NamedTuple

import numpy as np

from .._arrays import Bools, Floats
from .boxes import RegionScan, choices
from .intervals import INDEPENDENT_INTERVALS, Axis, CountedInterval, longest_intervals, places

__all__ = ["SlantedInterval", "StandardColumns", "slanted_interval"]

_ANGLES, _FANS = 8, 15  # directions per pair of continuous columns, and number of pairs, to start from
_STARTS = 3  # directions compared in all rows
_TURNS = (0.4, 0.15, 0.05)  # fraction of its length by which a direction is turned towards a column
_PROMISING = 0.3  # fraction of the score of a smallest region below which a direction is not turned
_NEAR = 5  # rows on each side of an interval that are used while its direction is turned, in multiples of its size
_RECORDED = 12  # recorded rows in an interval of a score, at most
_COMPARED_ROWS = 5_000  # rows in which starting directions are compared, at most
_SMALL_WEIGHT, _AS_GOOD = 0.25, 0.95  # weights below this share are dropped if the score stays as good


@dataclass(frozen=True, eq=False)
class StandardColumns:
    """Columns (n, p), with the centre and scale (p,) by which their directions are compared."""

    values: Floats
    centre: Floats
    scale: Floats

    @staticmethod
    def of(values: Floats, known: Bools) -> StandardColumns:
        """Return the columns, with median and interquartile range as centre and scale, because outliers do not change these.

        ``known`` are the rows without NaN.
        """
        p = values.shape[1]
        if p == 0:
            return StandardColumns(values, np.zeros(p), np.ones(p))
        x = values[known]
        low, centre, high = np.quantile(x, [0.25, 0.5, 0.75], axis=0)
        return StandardColumns(values, centre, np.where(high > low, high - low, x.max(axis=0) - x.min(axis=0)))

    def weights(self, direction: Floats) -> Floats:
        """Weights (p,) of the original columns for a direction in standardised ones, with two digits."""
        weights = direction / self.scale
        return np.array([float(f"{w:.2g}") for w in weights / np.abs(weights).max()])


class SlantedInterval(NamedTuple):
    """An interval of the score ``columns @ weights``, the evidence for it, and the scan along this score."""

    weights: Floats  # (p,)
    interval: CountedInterval
    score: float
    scan: RegionScan
    n_tries: float


def slanted_interval(scan: RegionScan, columns: StandardColumns, least: float) -> SlantedInterval | None:
    """The interval of a linear score with most evidence, if its evidence exceeds ``least``.

    The search starts from the direction in which recording grows, by least squares, and from several directions for
    every pair of continuous columns. The best one is turned towards each column as long as the evidence grows.
    """
    started = [(_longest(_along(scan, columns, d))[0], d) for d in _starts(scan, columns)]
    score, direction = max(started, key=lambda s: s[0], default=(0.0, np.zeros(0)))
    if score < max(least / 2, _PROMISING * scan.criterion.gain * scan.criterion.need[0]):
        return None
    direction = _turned(scan, columns, direction)
    along = _along(scan, columns, direction)
    score, interval = _longest(along)
    if interval is None or score <= least:
        return None
    n_tries = INDEPENDENT_INTERVALS**2 * choices(len(direction), 2)
    return SlantedInterval(columns.weights(direction), interval, score, along, n_tries)


def _along(scan: RegionScan, columns: StandardColumns, direction: Floats) -> RegionScan:
    """The scan with the score in this direction as its only axis."""
    return replace(scan, axes=(Axis.of_score(columns.values @ columns.weights(direction)),))


def _longest(along: RegionScan) -> tuple[float, CountedInterval | None]:
    """Evidence for the best interval of the score, and the interval; 0 and None if there is none."""
    criterion = along.criterion
    most = min(_RECORDED, len(criterion.need))
    found = longest_intervals(along.axes[0], along.recorded, along.among, most)
    best = max(found, key=lambda i: criterion.score(i.n, i.k), default=None)
    return (0.0, None) if best is None else (criterion.score(best.n, best.k), best)


def _starts(scan: RegionScan, columns: StandardColumns) -> list[Floats]:
    """Directions in standardised columns to start from: those with the longest runs of rows without the set."""
    rows = np.flatnonzero(scan.among)
    rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), _COMPARED_ROWS)).astype(np.intp)]
    z, have = np.clip((columns.values[rows] - columns.centre) / columns.scale, -4.0, 4.0), scan.recorded[rows]
    if have.all() or not have.any():
        return []
    p = z.shape[1]
    centred = z - z.mean(axis=0)
    moments = centred.T @ centred + 1e-3 * len(rows) * np.eye(p)
    growth = np.linalg.solve(moments, centred.T @ (have - have.mean()))
    angles = np.pi * (np.arange(_ANGLES) + 0.5) / _ANGLES
    continuous = [j for j, axis in enumerate(scan.axes) if axis.continuous]
    fans = np.zeros((min(_FANS, int(choices(len(continuous), 2))), _ANGLES, p))
    for fan, (i, j) in zip(fans, combinations(continuous, 2), strict=False):
        fan[:, i], fan[:, j] = np.cos(angles), np.sin(angles)
    directions = np.concatenate([growth[None] / max(float(np.linalg.norm(growth)), 1e-12), fans.reshape(-1, p)])
    sorted_have = have[np.argsort(z @ directions.T, axis=0)]
    longest = [np.diff(np.flatnonzero(column), prepend=-1, append=len(have)).max() for column in sorted_have.T]
    return [directions[d] for d in np.argsort(longest)[-_STARTS:]]


def _turned(scan: RegionScan, columns: StandardColumns, direction: Floats) -> Floats:
    """Turn the direction towards each column as long as the evidence grows; then drop small weights."""
    near = replace(scan, among=_around(_along(scan, columns, direction)))  # far rows do not show where the edge is
    score = _longest(_along(near, columns, direction))[0]
    for turn in _TURNS:
        for j, sign in product(range(len(direction)), (1.0, -1.0)):
            other = direction + sign * turn * np.eye(len(direction))[j]
            other = other / np.linalg.norm(other)
            found = _longest(_along(near, columns, other))[0]
            if found > score:
                score, direction = found, other
    simple = np.where(np.abs(direction) < _SMALL_WEIGHT * np.abs(direction).max(), 0.0, direction)
    return simple if _longest(_along(near, columns, simple))[0] >= _AS_GOOD * score else direction


def _around(along: RegionScan) -> Bools:
    """Mask (n,) of the rows in the best interval of the score and near it on each side."""
    axis, (_, interval) = along.axes[0], _longest(along)
    assert interval is not None
    order = axis.sorted(along.among)
    first, last = places(axis, order, interval)
    width = _NEAR * max(last - first, 1)
    near = np.zeros(len(along.among), dtype=bool)
    near[order[max(first - width, 0) : last + width]] = True
    return near
