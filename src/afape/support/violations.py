"""Which sets the records do not support, and in which rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np

from ..arrays import Bools, Floats, Ints, every, units_of
from ..data import Retrospective
from ..missingness.assumptions import Conditioning
from .regions import Region, RegionScan, Slant, Term, rows_needed
from .thresholds import SupportThresholds

__all__ = ["SupportMap", "SupportSearch", "Violation", "find_violations"]

_EDGE_RUNS, _EDGE_SHARE = 0.005, 0.01  # fewer runs, of all and of those that want the set, may be an edge
_EDGE_ROWS = 25  # an edge of fewer rows is not worth a word
_UNDECIDED = 0.1  # a region that does not even contradict this is not worth a word
_MOST_SETS = 512  # sets searched for regions: of more, the smallest three quarters and the largest of this number


@dataclass(frozen=True, eq=False)
class Violation:
    """A set that is not recorded, or hardly ever, in some rows.

    Attributes
    ----------
    required : ndarray of bool, shape (G,)
        The set, groups that are always recorded left out.
    rows : ndarray of bool, shape (n,)
        Where.
    n_recorded : int
        Of these rows, how many have it recorded.
    terms : tuple of Term
        The region of X_o that the rows make up; empty for all rows.
    known : bool
        Whether a known propensity says so, not the records.
    share : float
        Of the policy's runs, how many want the set there.
    """

    required: Bools
    rows: Bools
    n_recorded: int
    terms: tuple[Term | Slant, ...] = ()
    known: bool = False
    share: float = float("nan")

    def name(self, data: Retrospective) -> str:
        """Names of the groups."""
        return " + ".join(np.array(data.problem.group_names, dtype=object)[self.required])

    def where(self, columns: Sequence[str]) -> str:
        """The region in words; "" for all rows."""
        return " and ".join(_words(term, columns) for term in self.terms)


def _words(term: Term | Slant, columns: Sequence[str]) -> str:
    if isinstance(term, Slant):
        parts = [
            f"{'-' if w < 0 else '+'} {abs(w):g} {columns[j]}" for j, w in zip(term.columns, term.weights, strict=True)
        ]
        name = " ".join(parts).removeprefix("+ ")
        return _limits(name, term.low, term.high)
    name = columns[term.column]
    if "=" in name and 0 < term.low <= 1 and term.high == np.inf:  # a level of a categorical column
        return name
    if "=" in name and 0 < term.high <= 1 and term.low == -np.inf:
        return f"not {name}"
    return _limits(name, term.low, term.high)


def _limits(name: str, low: float, high: float) -> str:
    if low == -np.inf:
        return f"{name} < {high:.6g}"
    if high == np.inf:
        return f"{name} >= {low:.6g}"
    return f"{low:.6g} <= {name} < {high:.6g}"


@dataclass(frozen=True, eq=False)
class SupportMap:
    """Says of any row and set whether it is unsupported: so is every set that holds an unsupported one.

    Attributes
    ----------
    violations : tuple of Violation
        What is unsupported.
    minor : tuple of Violation
        What so few runs meet that estimates may ignore it; to be named all the same.
    """

    violations: tuple[Violation, ...] = ()
    minor: tuple[Violation, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.violations)

    def blame(self, rows: Ints, sets: Bools, index: Ints) -> Ints:
        """Place of the first violation that sets[index] runs into in these rows; -1 where it is supported."""
        out = np.full(len(rows), -1, dtype=np.intp)
        for v, violation in enumerate(self.violations):
            holds = every(sets | ~violation.required)[index]
            out[holds & violation.rows[rows] & (out < 0)] = v
        return out

    def lacks(self, rows: Ints, sets: Bools, index: Ints) -> Bools:
        """Whether sets[index] is unsupported in these rows."""
        return self.blame(rows, sets, index) >= 0

    def lacking(self, required: Bools) -> Bools:
        """Rows of the whole table in which this set is unsupported."""
        out = np.zeros(len(self.violations[0].rows) if self.violations else 0, dtype=bool)
        if self.violations:
            for v in np.flatnonzero(every(required | ~self._required)):
                out |= self.violations[v].rows
        return out

    @cached_property
    def _required(self) -> Bools:
        """Sets of the violations, (V, G): many sets are held against them."""
        return np.array([violation.required for violation in self.violations])

    def having(self, shares: Floats, wanted: Floats, least: float) -> SupportMap:
        """Sort the violations by the share of runs that meets them.

        Where a policy wants a set just beyond the edge of its region, a few rows may fall on the wrong side of the
        estimated edge; that is no violation. ``wanted`` is the share of runs that wants the set anywhere.
        """
        kept: list[Violation] = []
        minor: list[Violation] = []
        # Many small ones are not small together: only as many are set aside as stay below the limit in sum.
        ignored = sum(v.share for v in self.minor)
        small = set()
        for i in np.argsort(shares, kind="stable"):
            if ignored + max(float(shares[i]), 0.0) <= least:
                ignored += max(float(shares[i]), 0.0)
                small.add(int(i))
        for i, (violation, share, total) in enumerate(zip(self.violations, shares, wanted, strict=True)):
            told = replace(violation, share=float(share))
            edge = bool(violation.terms) and not violation.known and share < _EDGE_RUNS and share < _EDGE_SHARE * total
            if share <= 0 or (edge and share * len(violation.rows) <= _EDGE_ROWS):
                continue
            (minor if edge or i in small else kept).append(told)
        return SupportMap(tuple(kept), (*self.minor, *minor))


def find_violations(data: Retrospective, sets: Iterable[Bools], scan: RegionScan) -> SupportMap:
    """Search the wanted sets, small ones first; of each violation the smallest set that explains it.

    A region in which a set has enough records has enough of every smaller set, so sets within one that the search found
    beyond suspicion are not searched.
    """
    sometimes = ~data.always_recorded
    wanted = {(s & sometimes).tobytes(): s & sometimes for s in sets}
    todo = sorted((s for s in wanted.values() if s.any()), key=lambda s: (int(s.sum()), s.tobytes()))
    searched = todo if len(todo) <= _MOST_SETS else todo[: _MOST_SETS * 3 // 4] + todo[-_MOST_SETS // 4 :]
    everywhere = np.ones(len(data), dtype=bool)
    clean: list[Bools] = []
    suspicious: dict[bytes, list[Region]] = {}
    for s in searched[::-1]:  # large ones first, to see which need no search
        if any(not (s & ~c).any() for c in clean):
            continue
        regions = scan.find(every(data.recorded[:, s]), everywhere)
        if scan.clean:
            clean.append(s)
        else:
            suspicious[s.tobytes()] = regions
    found: list[Violation] = []
    so_far = SupportMap()
    for s in todo:
        so_far = so_far if len(so_far.violations) == len(found) else SupportMap(tuple(found))
        lacking = so_far.lacking(s) if found else ~everywhere
        if not (recorded := every(data.recorded[:, s])).any():
            if not lacking.all():
                found.append(_smallest(data, s, Region((), everywhere, len(data), 0), scan))
        elif s.tobytes() in suspicious:
            regions = scan.find(recorded, ~lacking) if lacking.any() else suspicious[s.tobytes()]
            found += [_smallest(data, s, region, scan) for region in regions]
    return SupportMap(tuple(found))


def _smallest(data: Retrospective, s: Bools, region: Region, scan: RegionScan) -> Violation:
    """The smallest set within s that lacks support in the region as well."""
    groups = np.flatnonzero(s)
    inside = data.recorded[region.rows]
    for size in range(1, min(len(groups), 3)):
        for part in combinations(groups, size):
            k = int(every(inside[:, list(part)]).sum())
            whole = not region.terms and region.n_recorded == 0
            if (k == 0 and whole) or scan.violates(region.n_rows, k):
                required = np.zeros_like(s)
                required[list(part)] = True
                return Violation(required, region.rows, k, region.terms)
    return Violation(s, region.rows, region.n_recorded, region.terms)


def _within(violation: Violation, found: SupportMap) -> bool:
    """Whether most of this is known already."""
    lacking = found.lacking(violation.required) if found else ~np.ones_like(violation.rows)
    return bool((violation.rows & lacking).sum() > violation.rows.sum() / 2)


@dataclass(frozen=True, eq=False)
class SupportSearch:
    """Searches the records for sets without support, by what recording depends on and without a model.

    Parameters
    ----------
    data : Retrospective
        Records.
    conditioning : Conditioning
        What recording depends on.
    thresholds : SupportThresholds
        What counts as too little.
    """

    data: Retrospective
    conditioning: Conditioning
    thresholds: SupportThresholds

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns in which regions are told."""
        return self.conditioning.searched(self.data)[0]

    @cached_property
    def _everything(self) -> RegionScan:
        """The search over all that is given; rows that lack a part of it lie in no region."""
        return self._scan(np.zeros_like(self.conditioning.gaps))

    def _scan(self, without: Bools, healthy: float | None = None) -> RegionScan:
        """The search over what is given but for these groups."""
        columns = self.conditioning.searched(self.data)[1].copy()
        mine = self.conditioning.columns(self.data)
        columns[:, np.flatnonzero(without[self.data.column_group[mine]])] = 0.0  # constant columns are not searched
        cluster = self.data.cluster
        units = None if cluster is None else units_of(len(self.data), cluster)
        return RegionScan(columns, self.thresholds, units, healthy)

    def of_start(self, adjust: Bools) -> SupportMap:
        """Where what is given, and has gaps, is itself not recorded, by what is always recorded."""
        if not self.conditioning.gaps.any():
            return SupportMap()
        return find_violations(self.data, adjust[None], self._scan(self.conditioning.gaps))

    def of_sets(self, sets: Bools, adjust: Bools) -> SupportMap:
        """Sets without support; ``adjust`` are the groups that the view adds to every set."""
        start = self.of_start(adjust).violations
        if self.conditioning.gaps.any() and adjust.all():
            return SupportMap(start)
        beyond = find_violations(self.data, sets | adjust, self._everything).violations
        return SupportMap((*start, *(v for v in beyond if not start or (v.required & ~adjust).any())))

    def undecided(self, sets: Bools, adjust: Bools, found: SupportMap) -> SupportMap:
        """Sets that are never recorded in a region beside which they are, where too few rows tell whether they could be.

        A region has to contradict a probability of 0.1, and that of its neighbours. Regions that are too small a share of
        the rows to matter are not searched for.
        """
        enough = rows_needed(0, self.thresholds.healthy)
        if len(self.data) * self.thresholds.share > enough or self.conditioning.gaps.any():
            return SupportMap()
        scan = self._scan(np.zeros_like(self.conditioning.gaps), _UNDECIDED)
        seen = find_violations(self.data, sets | adjust, scan).violations
        never = (v for v in seen if v.terms and v.n_recorded == 0)
        return SupportMap(tuple(v for v in never if not _within(v, found)))

    def refusal(self, adjust: Bools) -> str:
        """Why there can be neither estimate nor bounds, where what is given has gaps.

        Rows that have a part of it recorded may never have the rest. They stand for more than themselves, but for how
        much depends on a part of the propensity that bounds do not know.
        """
        given = self.conditioning
        if not given.gaps.any():
            return ""
        known = np.zeros_like(given.gaps)
        for block in (*given.blocks, None):
            if block is not None:
                known[list(block.groups)] = True
                if (known >= given.gaps).all():
                    continue
            elif not adjust.all():
                continue
            else:
                known = given.gaps
            found = find_violations(self.data, adjust[None], self._scan(given.gaps & ~known)).violations
            for violation in found:
                if violation.terms and violation.rows.mean() > self.thresholds.share:
                    where = violation.where(self.columns)
                    return (
                        f"{violation.name(self.data)} is never recorded in rows with {where}, so that no recorded row is "
                        "like them"
                    )
        return ""
