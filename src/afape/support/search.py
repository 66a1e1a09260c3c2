"""Search of the records for sets of groups that they do not support, without a model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np

from .._arrays import Bools, every, mean_of, units_of
from ..data.retrospective import Retrospective
from ..missingness.assumptions import Conditioning
from ..propensity.unsupported import ColumnRange, SupportMap, Violation
from .criterion import rows_needed
from .regions import FoundRegions, RegionSearch, UnsupportedRegion, find_regions
from .thresholds import SupportThresholds

__all__ = ["MOST_SETS", "Findings", "SupportSearch", "find_violations"]

_UNDECIDED = 0.1  # probability that an undecided region must contradict
# Sets searched for regions. Of more sets, the smallest three quarters and the largest quarter of this number are searched.
MOST_SETS = 512


class Findings(NamedTuple):
    """What a search of the records found.

    Attributes
    ----------
    unsupported : SupportMap
        Violations.
    undecided : SupportMap
        Sets and regions that the rows do not decide: recording falls towards the region, and may go on there.
    unsearched : int
        Sets that were not searched for regions, because there are too many.
    """

    unsupported: SupportMap = SupportMap()
    undecided: SupportMap = SupportMap()
    unsearched: int = 0


def find_violations(data: Retrospective, sets: Iterable[Bools], search: RegionSearch) -> Findings:
    """Search the wanted sets (each (G,)), small ones first. A violation names the smallest set that explains it.

    If a set has enough records in a region, so has every subset. So subsets of a set without suspicious regions are
    not searched.
    """
    sometimes = ~data.always_recorded
    wanted = {(s & sometimes).tobytes(): s & sometimes for s in sets}
    todo = sorted((s for s in wanted.values() if s.any()), key=lambda s: (int(s.sum()), s.tobytes()))
    searched = todo if len(todo) <= MOST_SETS else todo[: MOST_SETS * 3 // 4] + todo[-MOST_SETS // 4 :]
    everywhere = np.ones(len(data), dtype=bool)
    suspicious = _suspicious(data, searched, search)
    found: list[Violation] = []
    doubtful: list[Violation] = []
    so_far = SupportMap()
    for s in todo:
        so_far = so_far if len(so_far.violations) == len(found) else SupportMap(tuple(found))
        lacking = so_far.lacking(s) if found else ~everywhere
        if not (recorded := every(data.recorded[:, s])).any():
            if not lacking.all():
                found.append(_smallest(data, s, UnsupportedRegion((), everywhere, len(data), 0), search))
        elif s.tobytes() in suspicious:
            known = suspicious[s.tobytes()]
            regions = find_regions(search, recorded, ~lacking) if lacking.any() else known
            found += [_smallest(data, s, region, search) for region in regions.regions]
            doubtful += [_smallest(data, s, region, search) for region in (regions.doubtful,) if region is not None]
    return Findings(SupportMap(tuple(found)), SupportMap(tuple(doubtful)), len(todo) - len(searched))


def _suspicious(data: Retrospective, sets: list[Bools], search: RegionSearch) -> dict[bytes, FoundRegions]:
    """Regions of the sets that have suspicious ones, searched over all rows; large sets first."""
    everywhere = np.ones(len(data), dtype=bool)
    clean: list[Bools] = []
    out = {}
    for s in sets[::-1]:
        if any(not (s & ~c).any() for c in clean):
            continue
        found = find_regions(search, every(data.recorded[:, s]), everywhere)
        if found.suspicious:
            out[s.tobytes()] = found
        else:
            clean.append(s)
    return out


def _smallest(data: Retrospective, s: Bools, region: UnsupportedRegion, search: RegionSearch) -> Violation:
    """The violation by the smallest subset of s that is unsupported in the region as well."""
    groups = np.flatnonzero(s)
    inside = data.recorded[region.rows]
    never_anywhere = not region.ranges and region.n_recorded == 0
    for size in range(1, min(len(groups), 3)):
        for part in combinations(groups, size):
            k = int(every(inside[:, list(part)]).sum())
            if (k == 0 and never_anywhere) or search.criterion.suspicious(region.n_rows, k):
                required = np.zeros_like(s)
                required[list(part)] = True
                return Violation(required, region.rows, k, region.ranges)
    return Violation(s, region.rows, region.n_recorded, region.ranges)


@dataclass(frozen=True, eq=False)
class SupportSearch:
    """Searches the records for unsupported sets, in regions of what recording depends on.

    Attributes
    ----------
    data : Retrospective
        Records.
    conditioning : Conditioning
        What recording depends on.
    thresholds : SupportThresholds
        Which probabilities are too small, and which are healthy.
    """

    data: Retrospective
    conditioning: Conditioning
    thresholds: SupportThresholds

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that describe regions."""
        return self.conditioning.searched(self.data)[0]

    @cached_property
    def _all_columns(self) -> RegionSearch:
        """The search over all given columns; rows that lack one of them belong to no region."""
        return self._regions(np.zeros_like(self.conditioning.gaps))

    def _regions(self, without: Bools, healthy: float | None = None) -> RegionSearch:
        """The search over the given columns, except for those of these groups (G,)."""
        columns = self.conditioning.searched(self.data)[1].copy()
        mine = self.conditioning.columns(self.data)
        columns[:, np.flatnonzero(without[self.data.column_group[mine]])] = 0.0  # constant columns are not searched
        cluster = self.data.cluster
        units = None if cluster is None else units_of(len(self.data), cluster)
        return RegionSearch.of(columns, self.thresholds, units, healthy)

    def of_start(self, adjust: Bools) -> SupportMap:
        """Regions, by columns that are always recorded, in which the groups to adjust for are not recorded."""
        if not self.conditioning.gaps.any():
            return SupportMap()
        return find_violations(self.data, adjust[None], self._regions(self.conditioning.gaps)).unsupported

    def of_sets(self, sets: Bools, adjust: Bools) -> Findings:
        """Search these sets (u, G); ``adjust`` (G,) are the groups that the view adds to every set."""
        start = self.of_start(adjust).violations
        if self.conditioning.gaps.any() and adjust.all():
            return Findings(SupportMap(start))
        beyond = find_violations(self.data, sets | adjust, self._all_columns)
        kept = (v for v in beyond.unsupported.violations if not start or (v.required & ~adjust).any())
        return beyond._replace(unsupported=SupportMap((*start, *kept)))

    def undecided(self, sets: Bools, adjust: Bools, findings: Findings) -> SupportMap:
        """Regions in which the rows do not decide if a set is supported.

        These are the undecided regions of ``findings``, and regions in which the set is never recorded, but with too few rows to
        test it. Such a region must contradict a probability of 0.1, and the rate of its neighbours. Large records are not
        searched for them: they would hold a negligible share of the rows.
        """
        if self.conditioning.gaps.any():
            return SupportMap()
        found, doubtful = findings.unsupported, findings.undecided.violations
        if len(self.data) * self.thresholds.share <= rows_needed(0, self.thresholds.healthy):
            search = self._regions(np.zeros_like(self.conditioning.gaps), _UNDECIDED)
            seen = find_violations(self.data, sets | adjust, search).unsupported.violations
            known = SupportMap((*found.violations, *doubtful))
            never = (v for v in seen if v.ranges and v.n_recorded == 0)
            doubtful = (*doubtful, *(v for v in never if not _mostly_within(v, known)))
        return SupportMap(doubtful)

    def extrapolates(self, found: SupportMap) -> bool:
        """True if a model may be extrapolated into every one of these regions.

        That needs a region with an edge in a column of more than two values. It is not possible into a level of a category, or
        to a set that no row has.
        """
        return all(self._has_edge(v) for v in found.violations)

    def _has_edge(self, violation: Violation) -> bool:
        columns = self.conditioning.searched(self.data)[1]
        single = [limits.column for limits in violation.ranges if isinstance(limits, ColumnRange)]
        many = any(len(np.unique(columns[~np.isnan(columns[:, j]), j])) > 2 for j in single)
        return not violation.known and (many or len(single) < len(violation.ranges))

    def refusal(self, adjust: Bools) -> str:
        """Reason why there is neither an estimate nor bounds if given groups have gaps; "" if there is none.

        Rows that have some of these groups recorded may never have the others. Such rows represent more rows than themselves, but
        how many depends on a part of the propensity that the bounds do not know.
        """
        given = self.conditioning
        if not given.gaps.any():
            return ""
        for known in self._known_parts(adjust):
            found = find_violations(self.data, adjust[None], self._regions(given.gaps & ~known)).unsupported
            for violation in found.violations:
                if violation.ranges and float(mean_of(violation.rows, self.data.weight)) > self.thresholds.share:
                    name, where = violation.name(self.data), violation.where(self.columns)
                    return f"{name} is never recorded in rows with {where}, so no recorded row represents them"
        return ""

    def _known_parts(self, adjust: Bools) -> Iterable[Bools]:
        """Given groups (G,) that a row may have while it lacks the others: block by block."""
        gaps = self.conditioning.gaps
        known = np.zeros_like(gaps)
        for block in self.conditioning.blocks:
            known = known.copy()
            known[list(block.groups)] = True
            if not (known >= gaps).all():
                yield known
        if adjust.all():
            yield gaps


def _mostly_within(violation: Violation, found: SupportMap) -> bool:
    """True if more than half of the rows of this violation are known to be unsupported already."""
    lacking = found.lacking(violation.required) if found else np.zeros_like(violation.rows)
    return bool((violation.rows & lacking).sum() > violation.rows.sum() / 2)
