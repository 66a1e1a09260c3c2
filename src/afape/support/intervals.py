"""Intervals of one column, or of one linear score, in which few rows have a set recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from .._arrays import Bools, Floats, Ints

__all__ = [
    "INDEPENDENT_INTERVALS",
    "Axis",
    "CountedInterval",
    "longest_intervals",
    "places",
    "rates_beside",
    "rounded_limits",
]

INDEPENDENT_INTERVALS = 150.0  # intervals of one continuous column that count as independent tries
_BINS = 16  # bins of a column in the search for boxes
_NOISE = 2.5  # standard deviations by which a rate may differ by chance


class CountedInterval(NamedTuple):
    """Open interval ``low < value < high``, its number of rows, and how many of them have the set recorded."""

    low: float
    high: float
    n: int
    k: int


@dataclass(frozen=True, eq=False)
class Axis:
    """A column of X_o, or a linear score of its columns, sorted once for many searches."""

    values: Floats  # (n,) NaN only in rows that are not searched
    order: Ints  # (n,) rows in ascending order of value
    continuous: bool  # True if many values are distinct
    n_tries: float  # number of intervals that count as independent tries
    edges: Floats  # inner edges of the bins
    codes: Ints  # (n,) bin of each row

    @staticmethod
    def of_column(values: Floats, known: Bools) -> Axis:
        """Sort and bin a column; ``known`` are the rows without NaN."""
        levels = np.unique(values[known])
        continuous = len(levels) > max(50, 0.2 * int(known.sum()))
        n_tries = min(INDEPENDENT_INTERVALS, len(levels) * (len(levels) + 1) / 2)
        if len(levels) <= _BINS:
            edges = (levels[1:] + levels[:-1]) / 2
        else:
            edges = np.unique(np.quantile(values[known], np.arange(1, _BINS) / _BINS))
        codes = np.searchsorted(edges, values, side="right")
        return Axis(values, np.argsort(values, kind="stable"), continuous, n_tries, edges, codes)

    @staticmethod
    def of_score(values: Floats) -> Axis:
        """Sort a score; it is searched for intervals only, so it has no bins."""
        order, empty = np.argsort(values, kind="stable"), np.zeros(0)
        return Axis(values, order, True, INDEPENDENT_INTERVALS, empty, np.zeros(0, np.intp))

    def sorted(self, inside: Bools) -> Ints:
        """Rows of the mask ``inside``, in ascending order of value."""
        return self.order[inside[self.order]]

    def within(self, interval: CountedInterval) -> Bools:
        """Mask (n,) of the rows strictly between the ends of the interval."""
        return (self.values > interval.low) & (self.values < interval.high)


def longest_intervals(axis: Axis, recorded: Bools, inside: Bools, most: int) -> list[CountedInterval]:
    """For each of 0, 1, ..., ``most`` - 1 recorded rows, the longest interval with this many of them.

    Ends are recorded rows, or infinite. Only rows ``inside`` count. With ties an interval may contain fewer recorded rows.
    """
    order = axis.sorted(inside)
    x, have = axis.values[order], recorded[order]
    ends = np.concatenate([[-np.inf], x[have], [np.inf]])
    first, last = np.searchsorted(x, ends, side="right"), np.searchsorted(x, ends, side="left")
    count = np.concatenate([[0], np.cumsum(have)])
    out = []
    for gap in range(min(most, len(ends) - 1)):
        length = last[gap + 1 :] - first[: len(first) - gap - 1]
        a = int(length.argmax())
        b = a + gap + 1
        n = int(length[a])
        if n > 0:
            out.append(CountedInterval(float(ends[a]), float(ends[b]), n, int(count[last[b]] - count[first[a]])))
    return out


def places(axis: Axis, order: Ints, interval: CountedInterval) -> tuple[int, int]:
    """First position in ``order`` inside the interval, and the first position after it."""
    x = axis.values[order]
    return int(np.searchsorted(x, interval.low, side="right")), int(np.searchsorted(x, interval.high, side="left"))


def rates_beside(axis: Axis, interval: CountedInterval, recorded: Bools, inside: Bools) -> list[float]:
    """Lower limit of the rate of recording in an equal number of rows on each side of the interval.

    Each side begins with a recorded row, because the interval ends there; this row does not count.
    """
    order = axis.sorted(inside)
    x = axis.values[order]
    first, last = places(axis, order, interval)
    width = max(last - first, 1)
    sides = ((_tied(x, first - width, "left"), first), (last, _tied(x, last + width - 1, "right")))
    rates = []
    for low, high in sides:
        if high > low:
            hits = max(int(recorded[order[low:high]].sum()) - 1, 0)
            rates.append(max(hits - _NOISE * np.sqrt(hits), 0.0) / max(high - low - 1, 1))
    return rates


def _tied(x: Floats, place: int, side: Literal["left", "right"]) -> int:
    """Position where the rows that share the value at this place begin, or end."""
    place = min(max(place, 0), len(x) - 1)
    return int(np.searchsorted(x, x[place], side=side))


def rounded_limits(axis: Axis, interval: CountedInterval, recorded: Bools, inside: Bools) -> tuple[float, float]:
    """Limits ``low <= value < high`` of the interval, as round numbers.

    The interval ends at recorded rows, so it is wider than the region. In a continuous column, each finite limit is moved
    inwards by the mean number of rows between two recorded rows outside, by at most 5 % of the rows of the interval.
    """
    order = axis.sorted(inside)
    x, have = axis.values[order], recorded[order]
    first, last = places(axis, order, interval)
    if axis.continuous:
        most, outside = (last - first) // 20, max((last - first) // 4, 50)
        if first > 0:
            first += min(_spacing(have[max(first - outside, 0) : first]), most)
        if last < len(x):
            last -= min(_spacing(have[last : last + outside]), most)
    low = -np.inf if first == 0 else _round_between(x[first - 1], x[first])
    high = np.inf if last == len(x) else _round_between(x[last - 1], x[last])
    return low, high


def _spacing(have: Bools) -> int:
    """Mean number of rows without the set per recorded row."""
    hits = int(have.sum())
    return round((len(have) - hits) / max(hits, 1))


def _round_between(a: float, b: float) -> float:
    """The number with the fewest digits that is above a and at most b."""
    for digits in range(-6, 15):
        candidate = round(float(np.floor(b * 10.0**digits) / 10.0**digits), max(digits, 0))
        if a < candidate <= b:
            return candidate
    return float(b)
