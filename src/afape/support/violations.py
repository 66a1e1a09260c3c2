"""Violations of positivity for one policy: those that its runs meet, and those that a known propensity implies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from .._arrays import Bools, Floats, Ints, every, pack, supersets_of, tally
from ..data.retrospective import Retrospective
from ..propensity.known import BoundKnownPropensity
from ..propensity.unsupported import SupportMap, Violation
from ..propensity.weights import View
from ..walk.table import Tables, WalkTable
from .search import SupportSearch

__all__ = ["known_unsupported", "supported_view", "wanted_enough"]


def supported_view(view: View, found: SupportMap, data: Retrospective, tables: Tables, share: float) -> View:
    """The view without the unsupported sets that more than a ``share`` of the policy's runs want."""
    while found:
        trial = View(view.propensity.excluding(found), view.recorded, view.adjust, found)
        kept = found.met(*_shares(trial, data, tables), share)
        if len(kept.violations) == len(found.violations):
            return View(trial.propensity, view.recorded, view.adjust, kept)
        found = kept
    return View(view.propensity, view.recorded, view.adjust, found)


def wanted_enough(view: View, found: SupportMap, data: Retrospective, tables: Tables, share: float) -> SupportMap:
    """The violations that more than a ``share`` of the policy's runs want, with these shares."""
    shares, _ = _shares(View(view.propensity, view.recorded, view.adjust, found), data, tables)
    pairs = zip(found.violations, shares, strict=True)
    return SupportMap(tuple(replace(v, share=min(float(s), 1.0)) for v, s in pairs if s > share))


def known_unsupported(
    search: SupportSearch, propensity: BoundKnownPropensity, adjust: Bools, tables: Tables
) -> SupportMap:
    """Sets that the policy wants in some row and whose known propensity is below the threshold.

    A set that is unsupported in one row is asked about in all rows: a row with imputed values may want it too.
    """
    data, least = search.data, search.thresholds.propensity
    answerable = np.asarray(~np.isnan(search.conditioning.matrix(data)).any(axis=1))
    rows: dict[bytes, Bools] = {}
    for table in tables:
        for required, lacking in _known_in_table(propensity, data, adjust, table, answerable, least):
            rows.setdefault(required.tobytes(), np.zeros(len(data), dtype=bool))[lacking] = True
    found, asked = [], np.flatnonzero(answerable)
    for key, mask in rows.items():
        wanted = np.frombuffer(key, dtype=bool)
        mask[asked] |= propensity.impossible(asked, wanted[None], np.zeros(len(asked), dtype=np.intp), least)
        required = wanted & ~data.always_recorded
        n_recorded = int(every(data.recorded[mask][:, required]).sum())
        found.append(Violation(required, mask, n_recorded, known=True))
    known = sorted(found, key=lambda v: (int(v.required.sum()), v.required.tobytes()))
    return SupportMap((*search.of_start(adjust).violations, *known))


def _known_in_table(
    propensity: BoundKnownPropensity,
    data: Retrospective,
    adjust: Bools,
    table: WalkTable,
    answerable: Bools,
    least: float,
) -> Iterator[tuple[Bools, Ints | slice]]:
    """Sets (G,) of this table with a known propensity below ``least``, each with the rows concerned."""
    weighted = View(propensity, data.recorded, adjust).weigh(table)
    yield from _by_set(table.row[weighted.lines], weighted.sets, weighted.set_of, weighted.raw < least)
    for row, sets, index in _unrecorded(table, data, adjust):
        ask = answerable[row]
        below = np.zeros(len(row), dtype=bool)
        below[ask] = propensity.impossible(row[ask], sets, index[ask], least)
        yield from _by_set(row, sets, index, below)
        for required in sets[np.unique(index)]:
            if not every(data.recorded[:, required]).any():
                yield required, slice(None)


def _by_set(row: Ints, sets: Bools, index: Ints, below: Bools) -> Iterator[tuple[Bools, Ints]]:
    """Each set with the rows in which its propensity is too small."""
    for u in np.unique(index[below]):
        yield sets[u], row[below & (index == u)]


def _unrecorded(table: WalkTable, data: Retrospective, adjust: Bools) -> Iterator[tuple[Ints, Bools, Ints]]:
    """Rows and sets that the policy wants and that are not recorded: starts of rows, and ends of edges."""
    if adjust.any():
        lacking = ~every(data.recorded | ~adjust)
        roots = np.flatnonzero((table.depth == 0) & lacking[table.row])
        yield table.row[roots], table.sets | adjust, table.set_index[roots]
    if not adjust.all():
        edges = np.flatnonzero(~table.edge_available & (table.reach[table.edge_state] > 0))
        sets, index = table.edge_sets(data.problem.free)
        yield table.row[table.edge_state[edges]], sets | adjust, index[edges]


def _shares(view: View, data: Retrospective, tables: Iterable[WalkTable]) -> tuple[Floats, Floats]:
    """Share of the runs that end at each violation, and share of the runs that want its set in whatever row, (V,) each.

    If several violations apply, the run ends at the first one of the list.
    """
    violations = view.unsupported.violations
    total, wanted = np.zeros(len(violations) + 1), np.zeros(len(violations))
    for table in tables:
        weighted = view.weigh(table)
        weight, cases = np.zeros(len(table.row)), data.row_weight[table.row[weighted.lines]]
        weight[weighted.lines] = weighted.weight * cases
        roots = np.flatnonzero(view.lacks(table) & (table.depth == 0))
        met = view.unsupported.first_violation(table.row[roots], table.sets | view.adjust, table.set_index[roots])
        total += tally(met + 1, weight[roots], len(total))
        weight[roots] = 0.0
        sets, index = table.edge_sets(data.problem.free)
        state = table.edge_state
        met = view.unsupported.first_violation(table.row[state], sets | view.adjust, index)
        flow = weight[state] * table.reach[state] * table.edge_probability
        total += tally(met + 1, flow, len(total))
        packed = pack(table.sets | view.adjust), pack(sets | view.adjust)
        for v, violation in enumerate(violations):
            before, after = (supersets_of(one, violation.required) for one in packed)
            if after.any():
                wanted[v] += flow @ (after[index] & ~before[table.set_index[state]])
    n_cases = data.row_weight.sum()
    return total[1:] / n_cases, wanted / n_cases
