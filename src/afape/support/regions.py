"""Regions of X_o in which a set of groups is hardly ever recorded, found without a model."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from itertools import combinations, product
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import bdtr, bdtrc

from ..arrays import Bools, Floats, Ints
from .thresholds import SupportThresholds

__all__ = ["Region", "RegionScan", "Slant", "Term", "rows_needed"]

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
_ANGLES, _FANS = 8, 15  # directions of each pair of continuous columns, and pairs at most, to start from
_TURNS = (0.4, 0.15, 0.05)  # by how much of its length a direction is turned towards each column
_PROMISING = 0.3  # of what a region must explain: a direction that explains less is not turned
_WORTH = 1.2  # by how much more a slanted region must explain than a box
_NEAR = 5  # how many times its width around an interval is looked at while its direction is turned
_GAPS = 12  # recorded rows in an interval of a score, at most
_FITTED_ROWS = 5_000  # rows in which directions to start from are compared, at most


class Term(NamedTuple):
    """``low <= column < high``."""

    column: int
    low: float
    high: float


class Slant(NamedTuple):
    """``low <= sum of weights times columns < high``."""

    columns: tuple[int, ...]
    weights: tuple[float, ...]
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Region:
    """A box in X_o, or one side of a slanted line; no terms mean all rows."""

    terms: tuple[Term | Slant, ...]
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
    a third column is added where it helps. Then intervals of linear scores: the direction in which recording grows, by
    least squares, and a fan of directions for every pair of continuous columns; the best are turned towards each column as
    long as that finds more. A region of another shape is found in part: what is called unsupported is then less than what is.

    Parameters
    ----------
    columns : ndarray of shape (n, p)
        X_o; rows with NaN lie in no region.
    thresholds : SupportThresholds
        Which probabilities are healthy, and which too small.
    units : ndarray of int, optional
        Rows that belong together; the tests then hold for clusters as well, which sees less where these are large.
    healthy : float, optional
        The probability that a region has to contradict, in place of that of the thresholds. A region is then compared with
        what is recorded around it alone.
    """

    def __init__(
        self,
        columns: Floats,
        thresholds: SupportThresholds,
        units: Ints | None = None,
        healthy: float | None = None,
    ) -> None:
        self.units = units
        self.healthy = thresholds.healthy if healthy is None else healthy
        self.floor = thresholds.healthy if healthy is None else 0.0  # least rate that a region is compared with
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
        small, healthy = thresholds.propensity, self.healthy
        self.gain = float(np.log((1 - small) / (1 - healthy)))
        self.loss = float(np.log(healthy / max(small, 1e-12)))
        self.need = self._needed(n)
        self.centre, self.scale = np.zeros(p), np.ones(p)
        if p:  # quartiles: no unit is too large or too small for them
            x = self.columns[self.known]
            low, self.centre, high = np.quantile(x, [0.25, 0.5, 0.75], axis=0)
            self.scale = np.where(high > low, high - low, x.max(axis=0) - x.min(axis=0))
        self.slope = np.zeros(0)  # weights of the last column, where it is a score of the others
        self.clean = True  # whether the last search saw no box that could be one, corrected or not

    def _needed(self, n: int) -> Ints:
        """How many rows a region with k = 0, 1, ... recorded ones needs; as long as n rows are enough."""
        small, healthy = self.thresholds.propensity, self.healthy
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
        if self.violates(n, k) and self._in_clusters(among, recorded, self.healthy, 1.0):
            self.clean = False
            return Region((), among.copy(), n, k)
        boxes: list[tuple[float, dict[int, _Interval]]] = []
        for j in range(len(self.order)):
            boxes += [(self._score(i), {j: i}) for i in self._intervals(j, recorded, among)]
        # Where too few rows decide, only intervals of one column are searched: boxes of fewer rows say nothing.
        if self.floor > 0 and not any(self._passes(box, recorded, among) for _, box in boxes):
            boxes += self._pairs(recorded, among)
        found = sorted((b for b in boxes if self._passes(b[1], recorded, among)), key=lambda b: -b[0])
        slanted = self._slanted(recorded, among, _WORTH * found[0][0] if found else 0.0)
        if slanted is not None:
            return slanted
        return self._region(found[0][1], recorded, among) if found else None

    def _slanted(self, recorded: Bools, among: Bools, worth: float) -> Region | None:
        """The best interval of a linear score, if it explains more than this."""
        p = len(self.order)
        if p < 2 or self.floor == 0:
            return None
        start = max(
            self._starts(recorded, among), key=lambda d: self._along(d)._longest(recorded, among)[0], default=None
        )
        least = max(worth / 2, _PROMISING * self.gain * self.need[0])
        if start is None or self._along(start)._longest(recorded, among)[0] < least:
            return None
        scan = self._along(self._turned(start, recorded, among))
        score, interval = scan._longest(recorded, among)
        if interval is None or score <= worth:
            return None
        passes = scan._passes({p: interval}, recorded, among)
        self.clean &= scan.clean
        return scan._region({p: interval}, recorded, among) if passes else None

    def _starts(self, recorded: Bools, among: Bools) -> list[Floats]:
        """Directions in standardised columns to start from, those with the longest runs of rows without the set.

        The one in which recording grows, by least squares, and a fan of angles for every pair of continuous columns.
        """
        rows = np.flatnonzero(among)
        rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), _FITTED_ROWS)).astype(np.intp)]
        z, have = np.clip((self.columns[rows] - self.centre) / self.scale, -4.0, 4.0), recorded[rows]
        if have.all() or not have.any():
            return []
        centred = z - z.mean(axis=0)
        moments = centred.T @ centred + 1e-3 * len(rows) * np.eye(z.shape[1])
        grown = np.linalg.solve(moments, centred.T @ (have - have.mean()))
        angles = np.pi * (np.arange(_ANGLES) + 0.5) / _ANGLES
        pairs = list(combinations(np.flatnonzero(self.continuous), 2))[:_FANS]
        fans = np.zeros((len(pairs), _ANGLES, z.shape[1]))
        for k, (i, j) in enumerate(pairs):
            fans[k, :, i], fans[k, :, j] = np.cos(angles), np.sin(angles)
        directions = np.concatenate(
            [grown[None] / max(float(np.linalg.norm(grown)), 1e-12), fans.reshape(-1, z.shape[1])]
        )
        sorted_have = have[np.argsort(z @ directions.T, axis=0)]
        longest = [np.diff(np.flatnonzero(column), prepend=-1, append=len(have)).max() for column in sorted_have.T]
        return [directions[d] for d in np.argsort(longest)[-_SEEDS:]]

    def _turned(self, direction: Floats, recorded: Bools, among: Bools) -> Floats:
        """The direction, turned towards each column as long as that finds more; small weights are left out."""
        scan = self._along(direction)
        score, interval = scan._longest(recorded, among)
        assert interval is not None
        near = scan._around(interval, among, _NEAR)  # rows far away have no say in where the edge is
        score = scan._longest(recorded, near)[0]
        for turn in _TURNS:
            for j, sign in product(range(len(direction)), (1.0, -1.0)):
                other = direction + sign * turn * np.eye(len(direction))[j]
                found = self._along(other / np.linalg.norm(other))._longest(recorded, near)[0]
                if found > score:
                    score, direction = found, other / np.linalg.norm(other)
        simple = np.where(np.abs(direction) < 0.25 * np.abs(direction).max(), 0.0, direction)
        return simple if self._along(simple)._longest(recorded, near)[0] >= 0.95 * score else direction

    def _along(self, direction: Floats) -> RegionScan:
        """The same search with one column more: the score in this direction, in round weights of the original columns."""
        weights = direction / self.scale
        weights = np.array([float(f"{w:.2g}") for w in weights / np.abs(weights).max()])
        scan, p = copy(self), len(self.order)
        score = self.columns @ weights
        scan.columns = np.column_stack([self.columns, score])
        scan.order = [*self.order, np.argsort(score, kind="stable")]
        scan.continuous, scan.slope = [*self.continuous, True], weights
        scan.tries = [*self.tries, _INTERVALS**2 * _choices(p, 2) / (p + 1)]
        scan.clean = True
        return scan

    def _longest(self, recorded: Bools, among: Bools) -> tuple[float, _Interval | None]:
        """The interval of the last column that explains most."""
        found = self._intervals(len(self.order) - 1, recorded, among, every=True, most=_GAPS)
        best = max(found, key=self._score, default=None)
        return (0.0, None) if best is None else (self._score(best), best)

    def _around(self, interval: _Interval, among: Bools, times: int) -> Bools:
        """Rows in the interval of the last column, and so many times as many on each side."""
        order = self.order[-1][among[self.order[-1]]]
        x = self.columns[order, -1]
        first, last = np.searchsorted(x, interval.low, side="right"), np.searchsorted(x, interval.high, side="left")
        near = np.zeros(len(among), dtype=bool)
        width = times * max(int(last - first), 1)
        near[order[max(int(first) - width, 0) : int(last) + width]] = True
        return near

    def _score(self, interval: _Interval) -> float:
        return self.gain * interval.n - self.loss * interval.k

    def _intervals(
        self, j: int, recorded: Bools, inside: Bools, every: bool = False, most: int | None = None
    ) -> list[_Interval]:
        """For k = 0, 1, ... the longest interval of column j with k recorded rows, if long enough."""
        order = self.order[j][inside[self.order[j]]]
        x, have = self.columns[order, j], recorded[order]
        ends = np.concatenate([[-np.inf], x[have], [np.inf]])
        first, last = np.searchsorted(x, ends, side="right"), np.searchsorted(x, ends, side="left")
        count = np.concatenate([[0], np.cumsum(have)])
        out = []
        for gap in range(min(len(self.need), len(ends) - 1, most or len(ends))):
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
        healthy = max(rate, self.floor)
        return bool(bdtr(k, n, healthy) * tries <= _SEARCHED) and self._in_clusters(inside, recorded, healthy, tries)

    def _in_clusters(self, inside: Bools, recorded: Bools, healthy: float, tries: float) -> bool:
        """Whether the number of clusters contradicts a healthy probability too.

        Rows that belong together may be recorded or not as one.
        """
        if self.units is None:
            return True
        n, k = len(np.unique(self.units[inside])), len(np.unique(self.units[inside & recorded]))
        contradicted = bdtr(k, n, self.healthy) <= _CONTRADICTED
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
        terms: list[Term | Slant] = []
        rows = among.copy()
        for j, interval in sorted(box.items()):
            term = self._term(j, interval, recorded, self._inside(box, among, skip=j))
            column = self.columns[:, j]
            rows &= (column >= term.low) & (column < term.high)
            terms.append(self._placed(term))
        return Region(tuple(terms), rows, int(rows.sum()), int((recorded & rows).sum()))

    def _placed(self, term: Term) -> Term | Slant:
        """The term with places among all columns."""
        if term.column < len(self.place):
            return Term(self.place[term.column], term.low, term.high)
        used = np.flatnonzero(self.slope)
        return Slant(tuple(self.place[j] for j in used), tuple(float(w) for w in self.slope[used]), term.low, term.high)

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


def rows_needed(n_recorded: int, healthy: float) -> int:
    """How many rows a region with so many recorded ones must have to contradict a healthy probability."""
    n = n_recorded + 1
    while bdtr(n_recorded, n, healthy) > _CONTRADICTED:
        n += 1
    return n


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
