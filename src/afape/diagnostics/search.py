"""What is unsupported for one policy in a view: found in the records, or said by a known propensity, and met by its runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from ..arrays import Bools, Floats, Ints, every, tally, unique_sets
from ..data import Retrospective
from ..nuisance.propensity.known import BoundKnownPropensity
from ..nuisance.weights import View
from ..support import SupportMap, SupportSearch, Violation
from ..walk import Tables, WalkTable

__all__ = ["known_unsupported", "supported_view", "wanted_enough", "wanted_sets"]


def supported_view(view: View, found: SupportMap, data: Retrospective, tables: Tables, share: float) -> View:
    """The view without what is unsupported, as far as more than a ``share`` of the policy's runs meets it."""
    plain = view
    while found:
        view = View(plain.propensity.excluding(found), plain.recorded, plain.adjust, found)
        kept = found.having(*_shares(view, data, tables), share)
        if len(kept.violations) == len(found.violations):
            return View(view.propensity, view.recorded, view.adjust, kept)
        found, view = kept, View(plain.propensity, plain.recorded, plain.adjust, kept)
    return view


def wanted_enough(view: View, found: SupportMap, data: Retrospective, tables: Tables, share: float) -> SupportMap:
    """Of what may be unsupported, that which more than a ``share`` of the policy's runs wants, with these shares."""
    shares, _ = _shares(View(view.propensity, view.recorded, view.adjust, found), data, tables)
    told = [replace(v, share=min(float(s), 1.0)) for v, s in zip(found.violations, shares, strict=True) if s > share]
    return SupportMap(tuple(told))


def known_unsupported(
    search: SupportSearch, propensity: BoundKnownPropensity, adjust: Bools, tables: Tables
) -> SupportMap:
    """Ask a known propensity about every set that the policy wants in some row, where the view may ask.

    A set that is unsupported for somebody is asked about in all rows: completed ones may want it where no record does.
    """
    data, least = search.data, search.thresholds.propensity
    rows: dict[bytes, Bools] = {}
    answerable = np.asarray(~np.isnan(search.conditioning.matrix(data)).any(axis=1))
    for table in tables:
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
    found, everybody = [], np.flatnonzero(answerable)
    for key, mask in rows.items():
        wanted = np.frombuffer(key, dtype=bool)
        mask[everybody] |= propensity.impossible(
            everybody, wanted[None], np.zeros(len(everybody), dtype=np.intp), least
        )
        required = wanted & ~data.always_recorded
        n_recorded = int(every(data.recorded[mask][:, required]).sum())
        found.append(Violation(required, mask, n_recorded, known=True))
    known = sorted(found, key=lambda v: (int(v.required.sum()), v.required.tobytes()))
    return SupportMap((*search.of_start(adjust).violations, *known))


def _shares(view: View, data: Retrospective, tables: Iterable[WalkTable]) -> tuple[Floats, Floats]:
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
        sets, index = table.edge_sets(data.problem.free)
        state = table.edge_state
        blamed = view.unsupported.blame(table.row[state], sets | view.adjust, index)
        flow = weight[state] * table.reach[state] * table.edge_probability
        total += tally(blamed + 1, flow, len(total))
        for v, violation in enumerate(violations):
            before, after = (every(s | view.adjust | ~violation.required) for s in (table.sets, sets))
            wanted[v] += flow @ (after[index] & ~before[table.set_index[state]])
    return total[1:] / len(data), wanted / len(data)


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
