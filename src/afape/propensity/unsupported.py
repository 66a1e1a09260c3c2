"""Violations of positivity: sets of groups that the records do not support, and in which rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from .._arrays import Bools, Floats, Ints, every, pack, supersets_of
from ..data.retrospective import Retrospective
from ..walk.table import WalkTable

__all__ = ["ColumnRange", "ScoreRange", "SupportMap", "Violation", "unsupported_edges"]

# If a violation concerns smaller shares of all runs and of the runs that want its set, its edge may just be inexact.
_EDGE_RUNS, _EDGE_SHARE = 0.005, 0.01
_EDGE_ROWS = 25  # an inexact edge of at most this many rows is not reported


class ColumnRange(NamedTuple):
    """``low <= column < high``."""

    column: int
    low: float
    high: float


class ScoreRange(NamedTuple):
    """``low <= sum of weights times columns < high``."""

    columns: tuple[int, ...]
    weights: tuple[float, ...]
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Violation:
    """A set of groups that is never, or hardly ever, recorded in some rows.

    Attributes
    ----------
    required : ndarray of bool, shape (G,)
        The set, without groups that are always recorded.
    rows : ndarray of bool, shape (n,)
        True in the rows concerned.
    n_recorded : int
        How many of these rows have the set recorded.
    ranges : tuple of ColumnRange or ScoreRange
        The region of X_o that contains the rows; empty for all rows.
    known : bool
        True if a known propensity was asked, False if the records were searched.
    share : float
        Share of the policy's runs that want the set in these rows.
    """

    required: Bools
    rows: Bools
    n_recorded: int
    ranges: tuple[ColumnRange | ScoreRange, ...] = ()
    known: bool = False
    share: float = float("nan")

    def name(self, data: Retrospective) -> str:
        """Names of the groups, joined by plus signs."""
        return " + ".join(np.array(data.problem.group_names, dtype=object)[self.required])

    def where(self, columns: Sequence[str]) -> str:
        """Text that describes the region; "" for all rows."""
        return " and ".join(_range_text(limits, columns) for limits in self.ranges)


def _range_text(limits: ColumnRange | ScoreRange, columns: Sequence[str]) -> str:
    if isinstance(limits, ScoreRange):
        terms = zip(limits.columns, limits.weights, strict=True)
        score = " ".join(f"{'-' if w < 0 else '+'} {abs(w):g} {columns[j]}" for j, w in terms)
        return _limits_text(score.removeprefix("+ "), limits.low, limits.high)
    name = columns[limits.column]
    if "=" in name and 0 < limits.low <= 1 and limits.high == np.inf:  # a level of a categorical column
        return name
    if "=" in name and 0 < limits.high <= 1 and limits.low == -np.inf:
        return f"not {name}"
    return _limits_text(name, limits.low, limits.high)


def _limits_text(name: str, low: float, high: float) -> str:
    if low == -np.inf:
        return f"{name} < {high:.6g}"
    if high == np.inf:
        return f"{name} >= {low:.6g}"
    return f"{low:.6g} <= {name} < {high:.6g}"


@dataclass(frozen=True, eq=False)
class SupportMap:
    """Violations. A set is unsupported in a row if it contains the set of a violation that concerns the row.

    Attributes
    ----------
    violations : tuple of Violation
        What is unsupported.
    minor : tuple of Violation
        Violations that only few runs meet. Estimates ignore them, but they are reported.
    """

    violations: tuple[Violation, ...] = ()
    minor: tuple[Violation, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.violations)

    def first_violation(self, rows: Ints, sets: Bools, index: Ints) -> Ints:
        """Position of the first violation that makes sets[index] unsupported in these rows; -1 if supported."""
        out, packed = np.full(len(rows), -1, dtype=np.intp), pack(sets)
        for v, violation in enumerate(self.violations):
            contains = supersets_of(packed, violation.required)
            if contains.any():
                out[contains[index] & violation.rows[rows] & (out < 0)] = v
        return out

    def lacks(self, rows: Ints, sets: Bools, index: Ints) -> Bools:
        """True where sets[index] is unsupported in these rows."""
        return self.first_violation(rows, sets, index) >= 0

    def lacking(self, required: Bools) -> Bools:
        """Mask (n,) of the rows in which this set is unsupported; empty without violations."""
        out = np.zeros(len(self.violations[0].rows) if self.violations else 0, dtype=bool)
        if self.violations:
            for v in np.flatnonzero(every(required | ~self._required)):
                out |= self.violations[v].rows
        return out

    @cached_property
    def _required(self) -> Bools:
        """Sets of the violations, (V, G): many sets are compared with them."""
        return np.array([violation.required for violation in self.violations])

    def met(self, shares: Floats, wanted: Floats, negligible: float) -> SupportMap:
        """Violations that the policy's runs meet, with their shares of the runs.

        ``shares`` (V,) of the runs meet each violation, ``wanted`` (V,) of the runs want its set in any row. The smallest
        violations become ``minor`` as long as the sum of their shares stays within ``negligible``. The edge of a region is
        estimated: if a policy wants the set just outside, a few rows fall on the wrong side. Such a share is minor too, or
        left out.
        """
        kept: list[Violation] = []
        minor: list[Violation] = []
        ignored = sum(v.share for v in self.minor)
        small = set()
        for i in np.argsort(shares, kind="stable"):
            if ignored + max(float(shares[i]), 0.0) <= negligible:
                ignored += max(float(shares[i]), 0.0)
                small.add(int(i))
        for i, (violation, share, total) in enumerate(zip(self.violations, shares, wanted, strict=True)):
            edge = bool(violation.ranges) and not violation.known and share < _EDGE_RUNS and share < _EDGE_SHARE * total
            if share <= 0 or (edge and share * len(violation.rows) <= _EDGE_ROWS):
                continue
            (minor if edge or i in small else kept).append(replace(violation, share=float(share)))
        return SupportMap(tuple(kept), (*self.minor, *minor))


def unsupported_edges(table: WalkTable, data: Retrospective, unsupported: SupportMap, adjust: Bools) -> Bools:
    """True for edges, recorded or not, that lead to an unsupported set."""
    sets, index = table.edge_sets(data.problem.free)
    return unsupported.lacks(table.row[table.edge_state], sets | adjust, index)
