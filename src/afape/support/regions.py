"""Regions of X_o in which a set of groups is hardly ever recorded, found without a model."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import bdtr, bdtrc

from ..arrays import Bools, Floats, Ints
from .thresholds import SupportThresholds

__all__ = ["Region", "RegionScan", "Term"]

_CONTRADICTED = 4e-3  # level at which the rows of one given region contradict a healthy probability
_COMPATIBLE = 1e-3  # level at which they contradict one below the threshold
_SEARCHED = 0.05  # level after correction for the search, against what is recorded around the region
_INTERVALS = 150.0  # how many intervals of one continuous column count as independent tries
_NOISE = 2.5  # standard deviations by which a rate may differ by chance
_BINS = 16  # a column's bins in the search for boxes
_SEEDS = 3  # boxes of a pair of columns that are refined
_MILDER = (1.0, 0.25)  # how much a recorded row counts against a box while its sides move
_PAIRS = 400  # pairs of columns searched at most
_MOST_REGIONS = 8


class Term(NamedTuple):
    """``low <= column < high``."""

    column: int
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Region:
    """A box in X_o; no terms mean all rows."""

    terms: tuple[Term, ...]
    rows: Bools  # (n,)
    n_rows: int
    n_recorded: int


class _Interval(NamedTuple):
    low: float
    high: float
    n: int
    k: int


class RegionScan:
    r"""Searches boxes of X_o for one in which the records contradict positivity.

    A box of N rows, k of them with the set recorded, is a violation if

    - a healthy probability is contradicted: :math:`P(Bin(N, p_{healthy}) \le k)` is small,
    - one below the threshold is not: :math:`P(Bin(N, p_{threshold}) \ge k)` is not small, and
    - k is small against the least rate on any side of the box, by an exact binomial test corrected for the number of
      boxes searched. A box cut out of an area that is recorded seldom but evenly has neighbours like itself, and is
      judged by the full correction; a box with edges stands out from them.

    All intervals of each column are searched, to the row, and boxes of two columns on a grid and then to the row;
    a third column is added where it helps. A region of another shape, such as one side of a slanted line, is found in
    part: what is called unsupported is then less than what is.

    Parameters
    ----------
    columns : ndarray of shape (n, p)
        X_o; rows with NaN lie in no region.
    thresholds : SupportThresholds
        Which probabilities are healthy, and which too small.
    units : ndarray of int, optional
        Rows that belong together; the tests then hold for clusters as well, which sees less where these are large.
    """

    def __init__(self, columns: Floats, thresholds: SupportThresholds, units: Ints | None = None) -> None:
        self.units = units
        self.known = np.asarray(~np.isnan(columns).any(axis=1))
        spread = [j for j in range(columns.shape[1]) if len(np.unique(columns[self.known, j])) > 1]
        self.columns, self.place, self.thresholds = columns[:, spread], spread, thresholds
        n, p = self.columns.shape
        self.order = [np.argsort(self.columns[:, j], kind="stable") for j in range(p)]
        levels = [np.unique(self.columns[self.known, j]) for j in range(p)]
        self.continuous = [len(u) > max(50, 0.2 * int(self.known.sum())) for u in levels]
        self.tries = [min(_INTERVALS, len(u) * (len(u) + 1) / 2) for u in levels]
        self.edges = [_bin_edges(self.columns[self.known, j], u) for j, u in enumerate(levels)]
        self.codes = [np.searchsorted(e, self.columns[:, j], side="right") for j, e in enumerate(self.edges)]
        # log of the likelihood ratio of too small to healthy: what a row without, and one with the set, adds
        small, healthy = thresholds.propensity, thresholds.healthy
        self.gain = float(np.log((1 - small) / (1 - healthy)))
        self.loss = float(np.log(healthy / max(small, 1e-12)))
        self.need = self._needed(n)
        self.clean = True  # whether the last search saw no box that could be one, corrected or not

    def _needed(self, n: int) -> Ints:
        """How many rows a region with k = 0, 1, ... recorded ones needs; as long as n rows are enough."""
        small, healthy = self.thresholds.propensity, self.thresholds.healthy
        k = np.arange(int(n * small + 6 * np.sqrt(n * small)) + 20)
        low, high = k.copy(), np.full(len(k), n + 1)
        while (high - low > 1).any():  # both tests are monotone in the number of rows
            middle = (low + high) // 2
            enough = bdtr(k, middle, healthy) <= _CONTRADICTED
            enough &= (k == 0) | (bdtrc(np.maximum(k - 1, 0), middle, small) >= _COMPATIBLE)
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return np.asarray(high[high <= n])

    def find(self, recorded: Bools, among: Bools) -> list[Region]:
        """Regions of the rows ``among`` in which the set is unsupported; ``recorded`` says which rows have it."""
        found: list[Region] = []
        self.clean = True
        left = among & self.known
        for _ in range(_MOST_REGIONS):
            region = self._best(recorded, left)
            if region is None:
                break
            found.append(region)
            left = left & ~region.rows
        return found

    def violates(self, n: int, k: int) -> bool:
        """Whether k recorded of n rows contradict a healthy probability, but not one below the threshold."""
        return k < len(self.need) and n >= self.need[k]

    def _best(self, recorded: Bools, among: Bools) -> Region | None:
        n, k = int(among.sum()), int((recorded & among).sum())
        if n == 0 or len(self.need) == 0 or n < self.need[0]:
            return None
        if self.violates(n, k) and self._in_clusters(among, recorded, self.thresholds.healthy, 1.0):
            self.clean = False
            return Region((), among.copy(), n, k)
        boxes: list[tuple[float, dict[int, _Interval]]] = []
        for j in range(len(self.order)):
            boxes += [(self._score(i), {j: i}) for i in self._intervals(j, recorded, among)]
        if not any(self._passes(box, recorded, among) for _, box in boxes):
            boxes += self._pairs(recorded, among)
        for _, box in sorted(boxes, key=lambda b: -b[0]):
            if self._passes(box, recorded, among):
                return self._region(box, recorded, among)
        return None

    def _score(self, interval: _Interval) -> float:
        return self.gain * interval.n - self.loss * interval.k

    def _intervals(self, j: int, recorded: Bools, inside: Bools, every: bool = False) -> list[_Interval]:
        """For k = 0, 1, ... the longest interval of column j with k recorded rows, if long enough."""
        order = self.order[j][inside[self.order[j]]]
        x, have = self.columns[order, j], recorded[order]
        ends = np.concatenate([[-np.inf], x[have], [np.inf]])
        first, last = np.searchsorted(x, ends, side="right"), np.searchsorted(x, ends, side="left")
        count = np.concatenate([[0], np.cumsum(have)])
        out = []
        for gap in range(min(len(self.need), len(ends) - 1)):
            length = last[gap + 1 :] - first[: len(first) - gap - 1]
            a = int(length.argmax())
            b = a + gap + 1
            n = int(length[a])
            if n <= 0:
                continue
            k = int(count[last[b]] - count[first[a]])
            if every or self.violates(n, k):
                out.append(_Interval(float(ends[a]), float(ends[b]), n, k))
        return out

    def _inside(self, box: dict[int, _Interval], among: Bools, skip: int = -1) -> Bools:
        """Rows strictly between the ends of the box."""
        inside = among.copy()
        for j, interval in box.items():
            if j != skip:
                inside &= (self.columns[:, j] > interval.low) & (self.columns[:, j] < interval.high)
        return inside

    def _passes(self, box: dict[int, _Interval], recorded: Bools, among: Bools) -> bool:
        inside = self._inside(box, among)
        n, k = int(inside.sum()), int((recorded & inside).sum())
        if not self.violates(n, k):
            return False
        self.clean = False
        beside = [self._beside(j, interval, self._inside(box, among, skip=j), recorded) for j, interval in box.items()]
        rate = min((r for sides in beside for r in sides), default=0.0)
        tries = float(np.prod([self.tries[j] for j in box])) * _choices(len(self.order), len(box))
        healthy = max(rate, self.thresholds.healthy)
        return bool(bdtr(k, n, healthy) * tries <= _SEARCHED) and self._in_clusters(inside, recorded, healthy, tries)

    def _in_clusters(self, inside: Bools, recorded: Bools, healthy: float, tries: float) -> bool:
        """Whether the number of clusters contradicts a healthy probability too.

        Rows that belong together may be recorded or not as one.
        """
        if self.units is None:
            return True
        n, k = len(np.unique(self.units[inside])), len(np.unique(self.units[inside & recorded]))
        contradicted = bdtr(k, n, self.thresholds.healthy) <= _CONTRADICTED
        return bool(contradicted and bdtr(k, n, healthy) * tries <= max(_SEARCHED, _CONTRADICTED * (tries == 1.0)))

    def _beside(self, j: int, interval: _Interval, inside: Bools, recorded: Bools) -> list[float]:
        """Rate of recording in as many rows again on each side of the interval, at the least.

        Each side begins with a recorded row, because the interval ends there; it does not count. And a few rows more
        than expected make no edge.
        """
        order = self.order[j][inside[self.order[j]]]
        x = self.columns[order, j]
        first, last = np.searchsorted(x, interval.low, side="right"), np.searchsorted(x, interval.high, side="left")
        width = max(int(last - first), 1)
        rates = []
        for low, high in (
            (_tied(x, int(first) - width, "left"), int(first)),
            (int(last), _tied(x, int(last) + width - 1, "right")),
        ):
            if high > low:
                hits = max(int(recorded[order[low:high]].sum()) - 1, 0)
                rates.append(max(hits - _NOISE * np.sqrt(hits), 0.0) / max(high - low - 1, 1))
        return rates

    def _pairs(self, recorded: Bools, among: Bools) -> list[tuple[float, dict[int, _Interval]]]:
        """Boxes of two columns, and of three where a pair leaves too many recorded."""
        out: list[tuple[float, dict[int, _Interval]]] = []
        low_rate: list[tuple[float, dict[int, _Interval]]] = []
        for i, j in list(combinations(range(len(self.order)), 2))[:_PAIRS]:
            seeds, lowest = self._grid(i, j, recorded, among)
            out += [self._refined(box, recorded, among, mild) for box in seeds for mild in _MILDER]
            low_rate.append(lowest)
        for _, box in sorted(low_rate, key=lambda b: -b[0])[: 2 * _SEEDS]:
            box = {j: self._shrunk(j, interval) for j, interval in box.items()}
            inside = self._inside(box, among)
            for j in range(len(self.order)):
                deeper = [] if j in box else self._intervals(j, recorded, inside, every=True)
                if deeper:
                    seed = max(deeper, key=self._score)
                    if self._score(seed) > 0.4 * self.gain * self.need[0]:
                        out += [self._refined({**box, j: seed}, recorded, among, mild) for mild in _MILDER]
        return out

    def _shrunk(self, j: int, interval: _Interval) -> _Interval:
        """Without the outermost bins of a continuous column, which an edge may run through."""
        if not self.continuous[j]:
            return interval
        edges = np.concatenate([[-np.inf], self.edges[j], [np.inf]])
        inner = edges[(edges > interval.low) & (edges < interval.high)]
        if len(inner) < 2:
            return interval
        low = inner[0] if np.isfinite(interval.low) else interval.low
        high = inner[-1] if np.isfinite(interval.high) else interval.high
        return interval._replace(low=float(low), high=float(high))

    def _grid(
        self, i: int, j: int, recorded: Bools, among: Bools
    ) -> tuple[list[dict[int, _Interval]], tuple[float, dict[int, _Interval]]]:
        """Most suspicious boxes of a grid over two columns, and the one whose rate is lowest against all rows."""
        a, b = len(self.edges[i]) + 1, len(self.edges[j]) + 1
        n, (low_i, high_i), (low_j, high_j) = self._boxes(i, j, among)
        k, _, _ = self._boxes(i, j, among & recorded)
        score = self.gain * n - self.loss * k

        def box(place: int) -> dict[int, _Interval]:
            u, v = np.unravel_index(place, n.shape)
            sizes = int(n[u, v]), int(k[u, v])
            return {
                i: _Interval(*self._bounds(i, int(low_i[u]), int(high_i[u]), a), *sizes),
                j: _Interval(*self._bounds(j, int(low_j[v]), int(high_j[v]), b), *sizes),
            }

        # Bins that an edge runs through stay outside, so a box on the grid is smaller than what it stands for.
        score[n < 0.4 * self.need[0]] = 0.0
        best = np.argpartition(score, -_SEEDS, axis=None)[-_SEEDS:] if score.size > _SEEDS else np.arange(score.size)
        contrast = _low_rate(n, k)
        lowest = int(contrast.argmax())
        return [box(int(p)) for p in best if score.flat[p] > 0], (float(contrast.flat[lowest]), box(lowest))

    def _boxes(self, i: int, j: int, rows: Bools) -> tuple[Ints, tuple[Ints, Ints], tuple[Ints, Ints]]:
        """Rows in every box of bins, with the bins where it begins and ends."""
        a, b = len(self.edges[i]) + 1, len(self.edges[j]) + 1
        cell = self.codes[i][rows] * b + self.codes[j][rows]
        total = np.zeros((a + 1, b + 1), dtype=np.intp)
        total[1:, 1:] = np.bincount(cell, minlength=a * b).reshape(a, b).cumsum(axis=0).cumsum(axis=1)
        low_i, high_i = np.triu_indices(a + 1, 1)
        low_j, high_j = np.triu_indices(b + 1, 1)
        slab = total[high_i] - total[low_i]
        return np.asarray(slab[:, high_j] - slab[:, low_j]), (low_i, high_i), (low_j, high_j)

    def _bounds(self, j: int, low: int, high: int, n_bins: int) -> tuple[float, float]:
        """Ends of an interval of bins, as an open interval of values."""
        edges = self.edges[j]
        first = -np.inf if low == 0 else np.nextafter(edges[low - 1], -np.inf)
        last = np.inf if high == n_bins else edges[high - 1]
        return float(first), float(last)

    def _refined(
        self, box: dict[int, _Interval], recorded: Bools, among: Bools, mild: float
    ) -> tuple[float, dict[int, _Interval]]:
        """Move the sides of a box, one column at a time, to where its score is best.

        A recorded row costs less in a milder score, so that a box does not end at one that is there by chance.
        """
        for _ in range(2):
            for j in list(box):
                found = self._intervals(j, recorded, self._inside(box, among, skip=j), every=True)
                if found:
                    box = {**box, j: max(found, key=lambda i: self.gain * i.n - mild * self.loss * i.k)}
        inside = self._inside(box, among)
        whole = _Interval(0.0, 0.0, int(inside.sum()), int((recorded & inside).sum()))
        open_sides = {j: i for j, i in box.items() if np.isfinite(i.low) or np.isfinite(i.high)}
        return self._score(whole), open_sides or box

    def _region(self, box: dict[int, _Interval], recorded: Bools, among: Bools) -> Region:
        terms = []
        rows = among.copy()
        for j, interval in sorted(box.items()):
            term = self._term(j, interval, recorded, self._inside(box, among, skip=j))
            column = self.columns[:, j]
            rows &= (column >= term.low) & (column < term.high)
            terms.append(Term(self.place[j], term.low, term.high))
        return Region(tuple(terms), rows, int(rows.sum()), int((recorded & rows).sum()))

    def _term(self, j: int, interval: _Interval, recorded: Bools, inside: Bools) -> Term:
        """Where the interval begins and ends, in words that a person would use.

        The interval reaches to the next recorded rows. The true edge lies before them, on average by as many rows as
        are recorded one by one out there; move it back by so many.
        """
        order = self.order[j][inside[self.order[j]]]
        x, have = self.columns[order, j], recorded[order]
        first, last = (
            int(np.searchsorted(x, interval.low, side="right")),
            int(np.searchsorted(x, interval.high, side="left")),
        )
        if self.continuous[j]:
            most = (last - first) // 20
            outside = max((last - first) // 4, 50)
            if first > 0:
                first += min(_spacing(have[max(first - outside, 0) : first]), most)
            if last < len(x):
                last -= min(_spacing(have[last : last + outside]), most)
        low = -np.inf if first == 0 else _between(x[first - 1], x[first])
        high = np.inf if last == len(x) else _between(x[last - 1], x[last])
        return Term(j, low, high)


def _bin_edges(x: Floats, levels: Floats) -> Floats:
    """Inner edges of at most _BINS bins."""
    if len(levels) <= _BINS:
        return np.asarray((levels[1:] + levels[:-1]) / 2)
    return np.unique(np.quantile(x, np.arange(1, _BINS) / _BINS))


def _tied(x: Floats, place: int, side: Literal["left", "right"]) -> int:
    """Where the rows that share the value at this place begin, or end."""
    place = min(max(place, 0), len(x) - 1)
    return int(np.searchsorted(x, x[place], side=side))


def _choices(n: int, k: int) -> float:
    return float(np.prod([(n - i) / (i + 1) for i in range(k)]))


def _spacing(have: Bools) -> int:
    """Mean number of rows without, before one with the set."""
    hits = int(have.sum())
    return round((len(have) - hits) / max(hits, 1))


def _between(a: float, b: float) -> float:
    """The roundest number above a, up to b."""
    for digits in range(-6, 15):
        candidate = round(float(np.floor(b * 10.0**digits) / 10.0**digits), max(digits, 0))
        if a < candidate <= b:
            return candidate
    return float(b)


def _low_rate(n: Ints, k: Ints) -> Floats:
    """Log-likelihood ratio of a box with a rate of its own, lower than that of all rows (Kulldorff 1997)."""
    tiny, gained = 1e-12, np.zeros(n.shape)
    rates = []
    for hits, size in ((k, n), (k.max() - k, n.max() - n)):
        rate = hits / np.maximum(size, 1)
        gained += hits * np.log(rate + tiny) + (size - hits) * np.log(1 - rate + tiny)
        rates.append(rate)
    return np.where((rates[0] < rates[1]) & (n > 0), gained, -np.inf)
