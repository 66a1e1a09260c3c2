"""Positivity of one policy: what is unsupported in each view, and the views that leave it out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .arrays import Bools, Floats, Ints, every, tally, units_of
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
        return self._scan(np.zeros_like(self.given.gaps))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns in which regions are told."""
        return self.given.searched(self.data)[0]

    def _scan(self, without: Bools) -> RegionScan:
        """The search over what is given but for these groups."""
        columns = self.given.searched(self.data)[1].copy()
        mine = self.given.columns(self.data)
        columns[:, np.flatnonzero(without[self.data.column_group[mine]])] = 0.0  # constant columns are not searched
        cluster = self.data.cluster
        return RegionScan(columns, self.thresholds, None if cluster is None else units_of(len(self.data), cluster))

    def _start(self, adjust: Bools) -> SupportMap:
        """Whether what is given, and has gaps, is itself recorded everywhere, by what is always recorded."""
        if not self.given.gaps.any():
            return SupportMap()
        return find_violations(self.data, adjust[None], self._scan(self.given.gaps))

    def _search(self, sets: Bools, adjust: Bools) -> SupportMap:
        """Sets without support."""
        start = self._start(adjust).violations
        if self.given.gaps.any() and adjust.all():
            return SupportMap(start)
        beyond = find_violations(self.data, sets, self.scan).violations
        return SupportMap((*start, *(v for v in beyond if not start or (v.required & ~adjust).any())))

    def _refusal(self, adjust: Bools) -> str:
        """Why there can be neither estimate nor bounds, where what is given has gaps.

        Rows that have a part of it recorded may never have the rest. They stand for more than themselves, but for how
        much depends on a part of the propensity that bounds do not know.
        """
        gaps, given = self.given.gaps, self.given
        if not gaps.any():
            return ""
        known = np.zeros_like(gaps)
        for block in (*given.blocks, None):
            if block is not None:
                known[list(block.groups)] = True
                if (known >= gaps).all():
                    continue
            elif not adjust.all():
                continue
            else:
                known = gaps
            found = find_violations(self.data, adjust[None], self._scan(gaps & ~known)).violations
            for violation in found:
                if violation.terms and violation.rows.mean() > self.thresholds.share:
                    where = violation.where(self.names)
                    return f"{violation.name(self.data)} is never recorded in rows with {where}, so that they have no twins"
        return ""

    def view(self, propensity: BoundPropensity, adjust: Bools, wanted: Bools, tables: Tables) -> View:
        """The view of a policy that wants these sets; its map holds what more than a negligible share of runs meets."""
        sets = wanted | adjust
        if isinstance(propensity, BoundKnownPropensity):
            found = self._known(propensity, adjust, tables)
        else:
            found = self._search(sets, adjust)
        view = View(propensity, self.data.recorded, adjust, refusal=self._refusal(adjust))
        if view.refusal:
            return view
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
        known = sorted(found, key=lambda v: (int(v.required.sum()), v.required.tobytes()))
        return SupportMap((*self._start(adjust).violations, *known))

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
