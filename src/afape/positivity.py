"""Positivity of one policy: what is unsupported in each view, and the views that leave it out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from .arrays import Bools, Floats, Ints, every, tally
from .data import Retrospective
from .estimators import View
from .nuisance import BoundPropensity, Conditioning
from .nuisance.known import BoundKnownPropensity
from .support import RegionScan, SupportMap, SupportThresholds, Violation, find_violations
from .walk import WalkTable
from .walk.sets import unique_sets

__all__ = ["Positivity", "Tables", "wanted_sets"]

Tables = Callable[[], Iterable[WalkTable]]  # the tables of a walk, as often as they are asked for


@dataclass(frozen=True, eq=False)
class Positivity:
    """Searches the records for sets without support.

    Parameters
    ----------
    data : Retrospective
        Records.
    given : Conditioning
        What missingness depends on.
    thresholds : SupportThresholds
        What counts as too little.
    """

    data: Retrospective
    given: Conditioning
    thresholds: SupportThresholds

    @cached_property
    def scan(self) -> RegionScan:
        """The search over all that is given; rows that lack a part of it lie in no region."""
        return RegionScan(self.given.matrix(self.data), self.thresholds)

    @cached_property
    def open_scan(self) -> RegionScan:
        """The search over what is given and always recorded."""
        always = replace(self.given, groups=self.given.groups & ~self.given.gaps)
        return RegionScan(always.matrix(self.data), self.thresholds)

    def _search(self, sets: Bools, adjust: Bools) -> SupportMap:
        """Sets without support; where what is given has gaps, also whether it is itself recorded everywhere."""
        if not self.given.gaps.any():
            return find_violations(self.data, sets, self.scan)
        start = find_violations(self.data, adjust[None], self.open_scan)
        if adjust.all():
            return start
        beyond = find_violations(self.data, sets, self.scan).violations
        return SupportMap((*start.violations, *(v for v in beyond if (v.required & ~adjust).any())))

    def view(self, propensity: BoundPropensity, adjust: Bools, wanted: Bools, tables: Tables) -> View:
        """The view of a policy that wants these sets; its map holds what more than a negligible share of runs meets."""
        sets = wanted | adjust
        if isinstance(propensity, BoundKnownPropensity):
            found = self._known(propensity, adjust, tables)
        else:
            found = self._search(sets, adjust)
        view = View(propensity, self.data.recorded, adjust)
        while found:
            view = View(propensity.excluding(found), self.data.recorded, adjust, found)
            kept = found.having(*self._shares(view, tables()), self.thresholds.share)
            if len(kept.violations) == len(found.violations):
                return View(view.propensity, view.recorded, adjust, kept)
            found, view = kept, View(propensity, self.data.recorded, adjust, kept)
        return view

    def _known(self, propensity: BoundKnownPropensity, adjust: Bools, tables: Tables) -> SupportMap:
        """Ask a known propensity about every row and set that the policy wants, where the view may ask."""
        data, least = self.data, self.thresholds.propensity
        rows: dict[bytes, Bools] = {}
        answerable = np.asarray(~np.isnan(self.given.matrix(data)).any(axis=1))
        for table in tables():
            weighted = View(propensity, data.recorded, adjust).weigh(table)
            _note(rows, table.row[weighted.lines], weighted.sets, weighted.set_of, weighted.raw < least, len(data))
            for row, sets, index in _unrecorded(table, data, adjust):
                ask = answerable[row]
                below = np.zeros(len(row), dtype=bool)
                below[ask] = propensity.impossible(row[ask], sets, index[ask], least)
                _note(rows, row, sets, index, below, len(data))
                for s in sets[np.unique(index)]:
                    if not every(data.recorded[:, s]).any():
                        rows[s.tobytes()] = np.ones(len(data), dtype=bool)
        found = []
        for key, mask in rows.items():
            required = np.frombuffer(key, dtype=bool) & ~data.always_recorded
            n_recorded = int(every(data.recorded[mask][:, required]).sum())
            found.append(Violation(required, mask, n_recorded, known=True))
        return SupportMap(tuple(sorted(found, key=lambda v: (int(v.required.sum()), v.required.tobytes()))))

    def _shares(self, view: View, tables: Iterable[WalkTable]) -> tuple[Floats, Floats]:
        """Share of the runs that meets each violation first, and that wants its set anywhere."""
        violations = view.unsupported.violations
        total, wanted = np.zeros(len(violations) + 1), np.zeros(len(violations))
        for table in tables:
            weighted = view.weigh(table)
            weight = np.zeros(len(table.row))
            weight[weighted.lines] = weighted.weight
            roots = np.flatnonzero(view.lacks(table) & (table.depth == 0))
            blamed = view.unsupported.blame(table.row[roots], table.sets | view.adjust, table.set_index[roots])
            total += tally(blamed + 1, weight[roots], len(total))
            weight[roots] = 0.0
            sets, index = table.edge_sets(self.data.problem.free)
            state = table.edge_state
            blamed = view.unsupported.blame(table.row[state], sets | view.adjust, index)
            flow = weight[state] * table.reach[state] * table.edge_probability
            total += tally(blamed + 1, flow, len(total))
            for v, violation in enumerate(violations):
                before, after = (every(s | view.adjust | ~violation.required) for s in (table.sets, sets))
                wanted[v] += flow @ (after[index] & ~before[table.set_index[state]])
        return total[1:] / len(self.data), wanted / len(self.data)


def _note(rows: dict[bytes, Bools], row: Ints, sets: Bools, index: Ints, below: Bools, n: int) -> None:
    """Note down in which rows each set is unsupported."""
    for u in np.unique(index[below]):
        rows.setdefault(sets[u].tobytes(), np.zeros(n, dtype=bool))[row[below & (index == u)]] = True


def _unrecorded(table: WalkTable, data: Retrospective, adjust: Bools) -> Iterator[tuple[Ints, Bools, Ints]]:
    """Rows and sets that the policy wants and that are not recorded: where rows start, and where edges lead to."""
    if adjust.any():
        lacking = ~every(data.recorded | ~adjust)
        roots = np.flatnonzero((table.depth == 0) & lacking[table.row])
        yield table.row[roots], table.sets | adjust, table.set_index[roots]
    if not adjust.all():
        edges = np.flatnonzero(~table.edge_available & (table.reach[table.edge_state] > 0))
        sets, index = table.edge_sets(data.problem.free)
        yield table.row[table.edge_state[edges]], sets | adjust, index[edges]


def wanted_sets(tables: Iterable[WalkTable], data: Retrospective) -> Bools:
    """Distinct sets that the policy wants somewhere, (u, G)."""
    found = []
    for table in tables:
        sets, index = table.edge_sets(data.problem.free)
        found.append(sets[np.unique(index[table.reach[table.edge_state] > 0])])
    nothing = np.zeros((1, data.problem.n_groups), dtype=bool)
    return unique_sets(np.concatenate([nothing, *found]))[0]
