"""Weighted sums over the walk of a policy, by which its support is judged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from heapq import nsmallest
from typing import NamedTuple

import numpy as np

from .._arrays import Bools, Floats, Ints, count_supersets, every, stable_order, tally, unique_sets
from ..data.retrospective import Retrospective
from ..propensity.unsupported import unsupported_edges
from ..propensity.weights import View, WeightedStates
from ..walk.table import FREE, WalkTable

__all__ = ["HeavyState", "SetSums", "WalkSums", "sums_over_walk"]

_ASKED = 4096  # wanted but unrecorded sets whose propensity is computed, per table
_HEAVIEST = 10


@dataclass(frozen=True, eq=False)
class SetSums:
    """Figures about each distinct set that the policy wants or reaches: sums, counts, a smallest and a largest value.

    The *amount* of a state is its weight times its reach, times the weight of its row. A set is wanted
    by the amount of the state before it, times the probability of the decision. Arrays have shape (u,) where no other is given.
    """

    sets: Bools  # (u, G)
    wanted: Floats  # amount that wants the set, recorded or not
    smallest: Floats  # smallest propensity
    largest: Floats  # largest weight
    amount: Floats  # sum of the amounts
    squares: Floats  # sum of their squares
    rows: Floats  # rows that have the set and want it
    asked: Floats  # edges to the set where it is not recorded and its propensity was computed
    small: Floats  # how many of these propensities are below the threshold
    top: Floats  # (u, 10) largest amounts

    def take(self, order: Ints) -> SetSums:
        """The sums of these sets, in this order."""
        return SetSums(self.sets[order], **{name: getattr(self, name)[order] for name in (*_POOLED, "top")})


_POOLED = {
    "wanted": np.add, "smallest": np.minimum, "largest": np.maximum, "amount": np.add, "squares": np.add, "rows": np.add,
    "asked": np.add, "small": np.add,
}  # fmt: skip


def _set_sums(sets: Bools, **given: Floats) -> SetSums:
    """Sums of some kinds; those of the other kinds are neutral."""
    neutral = {name: np.full(len(sets), np.inf if how is np.minimum else 0.0) for name, how in _POOLED.items()}
    return SetSums(sets, **({"top": np.zeros((len(sets), _HEAVIEST))} | neutral | given))


def _pooled(parts: Sequence[SetSums]) -> SetSums:
    """Sums of several parts together."""
    sets, index = unique_sets(np.concatenate([part.sets for part in parts]))
    out = _set_sums(sets)
    for name, how in _POOLED.items():
        how.at(getattr(out, name), index, np.concatenate([getattr(part, name) for part in parts]))
    tops = np.concatenate([part.top for part in parts])
    top = _largest(np.repeat(index, _HEAVIEST), tops.ravel(), len(sets))
    return SetSums(sets, **{name: getattr(out, name) for name in _POOLED}, top=top)


def _largest(index: Ints, values: Floats, n: int) -> Floats:
    """The ten largest positive values of each index, (n, 10), filled up with zeros."""
    some = np.flatnonzero(values > 0)
    some = some[np.argsort(-values[some])]
    some = some[stable_order(index[some], n)]
    rank = np.arange(len(some)) - np.searchsorted(index[some], index[some])
    out = np.zeros((n, _HEAVIEST))
    kept = some[rank < _HEAVIEST]
    out[index[kept], rank[rank < _HEAVIEST]] = values[kept]
    return out


class HeavyState(NamedTuple):
    """A state in which a row stops with a large weight."""

    amount: float  # weight times the flow that stops
    row: int
    acquired: Bools  # (G,)
    weight: float


@dataclass(frozen=True, eq=False)
class WalkSums:
    """Sums over all states of a walk, in the semi-offline or hybrid view; D is a limit of the depth."""

    sets: SetSums
    acquired: Floats  # (D, G) amount that acquires each group, by depth of the decision
    rows_wanting: Ints  # (G,) rows that have the group and want it
    arriving: Floats  # (D,) amount that arrives at each depth
    ending: Floats  # (D,) amount that ends there: it stops, or wants what is unsupported
    final: Floats  # (n,) weight with which a row stops
    followed: Floats  # (n,) flow that a row follows to a stop, in supported sets
    largest: float  # largest weight of a stop
    heaviest: tuple[HeavyState, ...]  # the ten stops of largest amount
    lost: float  # amount that wants an unsupported set
    sampled: int  # rows whose walk was sampled

    def plus(self, other: WalkSums) -> WalkSums:
        """Sums of two parts of the walk that share no row."""
        return WalkSums(
            _pooled([self.sets, other.sets]),
            self.acquired + other.acquired,
            self.rows_wanting + other.rows_wanting,
            self.arriving + other.arriving,
            self.ending + other.ending,
            self.final + other.final,
            self.followed + other.followed,
            max(self.largest, other.largest),
            _heaviest((*self.heaviest, *other.heaviest)),
            self.lost + other.lost,
            self.sampled + other.sampled,
        )

    @property
    def before(self) -> Floats:
        """Amount before the decision at each depth, (D,); a run that has ended counts with its last weight."""
        ended = np.concatenate([[0.0], np.cumsum(self.ending)[:-1]])
        return np.asarray(np.maximum(self.arriving + ended, 1e-300))


def sums_over_walk(data: Retrospective, tables: Iterable[WalkTable], view: View, least: float) -> WalkSums:
    """Sums over the tables of a walk; a propensity below ``least`` counts as too small."""
    return reduce(WalkSums.plus, (_sums_of_table(data, table, view, least) for table in tables))


def _sums_of_table(data: Retrospective, table: WalkTable, view: View, least: float) -> WalkSums:
    weighted, n = view.weigh(table), len(data)
    # A weight is infinite if the probability is 0; estimators then have no answer.
    weight = np.where(np.isfinite(weighted.weight), weighted.weight, 0.0)
    weight *= data.row_weight[table.row[weighted.lines]]
    amount, stopping = np.zeros(len(table.row)), np.zeros(len(table.row))
    amount[weighted.lines] = weight * table.reach[weighted.lines]
    stopping[weighted.lines] = weight * table.stop_flow[weighted.lines]
    followed = tally(table.row[weighted.lines], table.stop_flow[weighted.lines], n)
    along = amount[table.edge_state] * table.edge_probability
    levels = data.problem.n_groups + 2
    ending, lost = np.zeros(levels), 0.0
    if view.unsupported:
        whole = (table.depth == 0) & view.lacks(table)  # starts that are unsupported: the row ends there
        followed[table.row[whole]] = 0.0
        edges = unsupported_edges(table, data, view.unsupported, view.adjust) & ~whole[table.edge_state]
        lost = float(along[edges].sum()) + float(amount[whole].sum())
        ending += tally(table.depth[table.edge_state[edges]], along[edges], levels)
        ending += tally(table.depth[whole], amount[whole], levels)
        stopping[whole] = 0.0
    acquired, rows_wanting = _by_group(table, along, levels, data.problem.n_groups)
    stops = stopping[weighted.lines]
    return WalkSums(
        sets=_by_set(data, table, view, weighted, amount[weighted.lines], along, least),
        acquired=acquired,
        rows_wanting=rows_wanting,
        arriving=tally(table.depth, amount, levels),
        ending=ending + tally(table.depth, stopping, levels),
        final=tally(table.row[weighted.lines], stops, n),
        followed=followed,
        largest=float(weighted.weight[stops > 0].max(initial=0.0)),
        heaviest=_heavy_states(table, weighted, stops),
        lost=lost,
        sampled=len(table.sampled),
    )


def _by_group(table: WalkTable, along: Floats, levels: int, n_groups: int) -> tuple[Floats, Ints]:
    """Amount that acquires each group by depth (D, G), and the rows that have the group and want it (G,)."""
    costly = table.edge_group != FREE
    group, state = table.edge_group[costly], table.edge_state[costly]
    acquired = tally(table.depth[state] * n_groups + group, along[costly], levels * n_groups)
    taken = table.edge_available[costly] & (along[costly] > 0)
    row = table.row[state[taken]]
    row = row - np.min(row, initial=np.iinfo(row.dtype).max)
    wanting = np.zeros((row.max(initial=-1) + 1, n_groups), dtype=bool)  # a chunk is a range of rows
    wanting[row, group[taken]] = True
    return acquired.reshape(levels, n_groups), wanting.sum(axis=0)


def _heavy_states(table: WalkTable, weighted: WeightedStates, stops: Floats) -> tuple[HeavyState, ...]:
    if len(stops) == 0:
        return ()
    top = np.argpartition(stops, -min(_HEAVIEST, len(stops)))[-_HEAVIEST:]
    lines = weighted.lines[top]
    states = zip(stops[top], table.row[lines], table.acquired[lines], weighted.weight[top], strict=True)
    return _heaviest(HeavyState(float(a), int(row), acquired, float(w)) for a, row, acquired, w in states)


def _heaviest(states: Iterable[HeavyState]) -> tuple[HeavyState, ...]:
    return tuple(nsmallest(_HEAVIEST, states, key=lambda state: (-state.amount, state.row)))


def _by_set(
    data: Retrospective,
    table: WalkTable,
    view: View,
    weighted: WeightedStates,
    amount: Floats,
    along: Floats,
    least: float,
) -> SetSums:
    """Sums for each set; ``amount`` is that of the weighted states, ``along`` that of the edges."""
    target, index = table.edge_sets(data.problem.free)
    wanted = _set_sums(target, wanted=tally(index, along, len(target)))
    return _pooled(
        [wanted, _of_states(table, weighted, amount), _of_unrecorded(data, table, view, target, index, least)]
    )


def _of_states(table: WalkTable, weighted: WeightedStates, amount: Floats) -> SetSums:
    n = len(table.sets)
    own = weighted.set_of < n  # the others are rows that represent only themselves
    index, amount = weighted.set_of[own], amount[own]
    smallest, largest = np.full(n, np.inf), np.zeros(n)
    np.minimum.at(smallest, index, weighted.raw[own])
    np.maximum.at(largest, index, weighted.weight[own])
    return _set_sums(
        table.sets,
        smallest=smallest,
        largest=largest,
        amount=tally(index, amount, n),
        squares=tally(index, amount**2, n),
        rows=tally(index, (amount > 0).astype(float), n),
        top=_largest(index, amount, n),
    )


def _of_unrecorded(
    data: Retrospective, table: WalkTable, view: View, target: Bools, index: Ints, least: float
) -> SetSums:
    """Learned propensities of wanted sets that are not recorded: some may be too small only there."""
    nothing = _set_sums(target[:0])
    if not view.propensity.learned:
        return nothing
    row, sets = table.row[table.edge_state], target | view.adjust
    exists = count_supersets(data.recorded, sets) > 0
    edges = np.flatnonzero(~table.edge_available & (table.reach[table.edge_state] > 0) & exists[index])
    edges = edges[every(data.recorded[row[edges]] | ~view.adjust)]
    if view.unsupported:
        edges = edges[~view.unsupported.lacks(row[edges], sets, index[edges])]
    if len(edges) == 0:
        return nothing
    edges = edges[np.linspace(0, len(edges) - 1, min(_ASKED, len(edges))).astype(np.intp)]
    p, place, n = view.propensity.probability(row[edges], sets, index[edges]), index[edges], len(target)
    smallest = np.full(n, np.inf)
    np.minimum.at(smallest, place, p)
    asked, small = tally(place, np.ones(len(p)), n), tally(place, (p < least).astype(float), n)
    return _set_sums(target, smallest=smallest, asked=asked, small=small)
