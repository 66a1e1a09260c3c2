"""Action values and state values, by exact backward induction over the depth of the walk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from scipy.sparse import csr_array

from ...arrays import Bools, Floats, Ints, distinct, every, lines_of, tally
from ...data import Retrospective
from ...walk import FREE, PartColumns, WalkTable
from .models import DEFAULT_VALUES, DepthModel, Features, LearnedValues
from .targets import ACQUISITION, MISCLASSIFICATION, FixedEdges, KnownTargets, Targets

__all__ = ["ACQUISITION", "MISCLASSIFICATION", "ActionValues", "Lessons", "PartValues", "TableValues"]

_AT_ONCE = 50_000  # edges whose parts are predicted together


class TableValues(NamedTuple):
    """Values of the states and edges of a table; both targets, acquisition and misclassification, as columns."""

    edge: Floats  # (e, 2) expected cost to go after the edge, the edge's own price not included
    stop: Floats  # (s,) Q(S, stop), the misclassification cost expected of stopping
    state: Floats  # (s, 2) V(S)


class PartValues(Protocol):
    """Action values of the parts of costs, asked for in pieces: all at once would be many."""

    def part_edges(self, edges: Ints) -> Floats:
        """Parts to go after these edges, (m, P)."""
        ...

    def part_stops(self, states: Ints) -> Floats | None:
        """Expected parts of stopping in these states, (m, P); None where they are those of the stop itself."""
        ...


@dataclass(frozen=True, eq=False)
class Lessons:
    """What action values are learned from.

    Parameters
    ----------
    given_columns : ndarray of int
        Columns of X_o.
    fold : ndarray of int
        Fold of each row; a row's values come from models fitted on the other folds.
    learned : LearnedValues
        The regressor, and whether it knows the label: Q(S, stop) is then C_S itself.
    row_weight : ndarray of shape (n,), optional
        Weights of a bootstrap replicate.
    averaged : ndarray of bool, optional
        Rows whose values are wanted; those of the others are 0.
    usable : ndarray of bool, optional
        Rows that have everything given recorded: only these are learned from, and only these get values.
    max_lines : int
        A fit uses at most this many lines, taken at even distances.
    """

    given_columns: Ints
    fold: Ints
    learned: LearnedValues = DEFAULT_VALUES
    row_weight: Floats | None = None
    averaged: Bools | None = None
    usable: Bools | None = None
    max_lines: int = 200_000


class ActionValues:
    r"""Q and V under the policy, learned from blocked records (von Kleist et al. 2023, Theorem "Bellman equation").

    .. math::
       Q(x_S, S, stop, X_o) &= E[C_S \mid x_S, X_o] \\
       Q(x_S, S, a, X_o) &= c_a + E[V(S + a) \mid x_S, X_o] \\
       V(S) &= \sum_a \pi(a \mid x_S, S) \, Q(S, a)

    Sets only grow, so depth by depth from the deepest the regressions are exact targets of each other: nothing is
    bootstrapped. E[V(S + a) | .] is fitted on rows that have S + a recorded; under MAR given X_o they need no
    weights, as long as X_o is among the inputs, acquired or not.

    Parameters
    ----------
    data : Retrospective
        Records.
    table : WalkTable
        The walk over what is recorded, all rows.
    lessons : Lessons
        What is learned, from which rows.
    fixed : FixedEdges, optional
        Edges whose cost to go is not learned, and what it is taken to be.
    columns : PartColumns, optional
        Parts of the costs whose values are learned beside them, in the same regressions.

    Notes
    -----
    By ridge regression, nothing that is chosen depends on prices: penalties are chosen by the number of groups still to be
    acquired and the probability of a wrong prediction, which are carried along, and with the label the features are labels. So
    action values of a cost are the same combination of those of its parts under any prices.
    """

    def __init__(
        self,
        data: Retrospective,
        table: WalkTable,
        lessons: Lessons,
        fixed: FixedEdges | None = None,
        columns: PartColumns | None = None,
    ) -> None:
        self.data, self.table, self.fixed, self.columns = data, table, fixed, columns
        fold, self.regressor, self.augment_label = (
            lessons.fold,
            lessons.learned.regressor,
            lessons.learned.augment_label,
        )
        self.fold, self.row_weight, self.max_lines = fold, lessons.row_weight, lessons.max_lines
        everyone = np.ones(len(data), dtype=bool)
        self.train = everyone if self.row_weight is None else self.row_weight > 0
        self.averaged = everyone if lessons.averaged is None else lessons.averaged
        if lessons.usable is not None:
            self.train, self.averaged = self.train & lessons.usable, self.averaged & lessons.usable
        self.n_folds = int(fold.max()) + 1
        self.given = np.isin(np.arange(len(data.columns)), lessons.given_columns)
        self.fallbacks = 0  # predictions for which no row had anything like it recorded
        n_states = len(table.row)
        self.first_edge = np.searchsorted(table.edge_state, np.arange(n_states + 1))
        self._models: dict[tuple[int, int, str], DepthModel] = {}
        self.known = KnownTargets(data, table, columns, self.regressor.linear)
        blank = tally(table.depth, (table.predicted < 0).astype(float), table.n_depths)
        self._predicted = blank == 0  # depths at which the classifier was asked in every state
        for k in self._used_folds():
            for depth in range(table.n_depths - 1, -1, -1):
                self._fit(k, depth)

    def _used_folds(self) -> list[int]:
        """Folds whose rows are averaged over; in a split, rows that are only learned from need no values."""
        return [k for k in range(self.n_folds) if self.averaged[self.fold == k].any()]

    def _fit(self, k: int, depth: int) -> None:
        table = self.table
        allowed = self.train & (self.fold != k) if self.n_folds > 1 else self.train
        learnable = allowed[table.row] & (table.depth == depth)
        if not self.augment_label:
            lines = self._thin(np.flatnonzero(learnable & (table.predicted >= 0)))
            self._models[k, depth, "stop"] = self._learn(depth, lines, None, self.known.stop(lines, "all"))
        leads = table.edge_child >= 0
        if self.fixed is not None:
            leads &= ~self.fixed.edges
        edges = self._thin(np.flatnonzero(leads & learnable[table.edge_state]))
        targets = self._state_values(np.full(len(edges), k), table.edge_child[edges])
        self._models[k, depth, "edge"] = self._learn(depth, table.edge_state[edges], table.edge_group[edges], targets)

    def _thin(self, lines: Ints) -> Ints:
        if len(lines) <= self.max_lines:
            return lines
        return lines[np.linspace(0, len(lines) - 1, self.max_lines).astype(np.intp)]

    def _learn(self, depth: int, states: Ints, group: Ints | None, targets: Targets) -> DepthModel:
        rows = self.table.row[states]
        weight = None if self.row_weight is None else self.row_weight[rows]
        features, actions = self._features(states), self._actions(group, len(states))
        return DepthModel(self.regressor, features, actions, targets, weight, self._shared(depth))

    def _shared(self, depth: int) -> Bools:
        """Columns that are known in every state of this depth, whether or not it can be learned from."""
        table = self.table
        everywhere = every(table.acquired[table.depth == depth].T)
        return np.asarray(everywhere[self.data.column_group] | self.given)

    def _features(self, states: Ints) -> Features:
        table, data = self.table, self.data
        row, acquired = table.row[states], table.acquired[states]
        known = acquired[:, data.column_group] | self.given
        label = np.zeros((len(row), 0))
        if self.augment_label:
            true = data.labels[row]
            label = (true[:, None] == np.arange(1, len(data.classes))).astype(float)
            if len(states) and self._predicted[table.depth[states[0]]]:
                # whether stopping here would be right: known, and telling of what going on will give
                label = np.column_stack([label, table.predicted[states] == true])
        return Features(np.where(known, data.values[row], np.nan), acquired, label)

    def _actions(self, group: Ints | None, n: int) -> Bools:
        n_groups = self.data.problem.n_groups
        if group is None:
            return np.zeros((n, n_groups + 1), dtype=bool)
        return np.asarray(np.where(group == FREE, n_groups, group)[:, None] == np.arange(n_groups + 1))

    def _edge_values(self, k: Ints, edges: Ints, kind: str) -> Targets:
        """Targets after each edge: fixed, or by the models of folds ``k``; "costs", "parts" or "all"."""
        if self.fixed is None:
            return self._learned_values(k, edges, kind)
        out = self.known.ended(self.fixed, edges, kind)
        learned = ~self.fixed.edges[edges]
        out.put(learned, self._learned_values(k[learned], edges[learned], kind))
        return out

    def _learned_values(self, k: Ints, edges: Ints, kind: str) -> Targets:
        """Targets after each edge, by the models of folds ``k``.

        Predictions are not cut at what is possible: where errors are rare and dear most costs are 0, and cutting would move
        the mean.
        """
        table = self.table
        states, group = table.edge_state[edges], table.edge_group[edges]
        out = Targets.full(len(edges), self.known.widths(kind), np.nan)
        missing = self._ask(out, k, states, self._actions(group, len(edges)), kind, "edge", kind != "parts")
        if missing.any():  # nobody ever got there: as if the policy stopped where it is
            out.put(missing, self._stop_guess(k[missing], states[missing], kind))
        return out

    def _stop_guess(self, k: Ints, states: Ints, kind: str, count: bool = False) -> Targets:
        """Targets of stopping, also where the policy never does; right in half of the cases where nobody ever did."""
        if self.augment_label:
            out = self.known.stop(states, kind)
            unknown = self.table.predicted[states] < 0
        else:
            out = Targets.full(len(states), self.known.widths(kind, 1), np.nan)
            unknown = self._ask(out, k, states, self._actions(None, len(states)), kind, "stop", count)
        if unknown.any():
            out.put(unknown, self.known.middling(states[unknown], self.augment_label, kind))
        return out.after_stop()

    def _ask(self, out: Targets, k: Ints, states: Ints, actions: Bools, kind: str, model: str, count: bool) -> Bools:
        """Write what the models of folds ``k`` predict; returns lines about which none can say anything."""
        depth = self.table.depth[states]
        n_depths = self.table.n_depths
        codes, index = distinct(k * n_depths + depth, self.n_folds * n_depths)
        for code, lines in zip(codes.tolist(), lines_of(index, len(codes)), strict=True):
            asked = self._models[code // n_depths, code % n_depths, model]
            found, orphans = asked.predict(self._features(states[lines]), actions[lines], kind)
            out.put(lines, found)
            self.fallbacks += orphans if count else 0
        return np.asarray(np.isnan((out.parts if kind == "parts" else out.costs)[:, 0]))

    def _stop_values(self, k: Ints, states: Ints, kind: str) -> Targets:
        """Targets of stopping; 0 where the policy never stops."""
        out = Targets.full(len(states), self.known.widths(kind), 0.0)
        stops = np.flatnonzero(self.table.stop[states] > 0)
        if len(stops):
            out.put(stops, self._stop_guess(k[stops], states[stops], kind, count=kind != "parts"))
        return out

    def _state_values(self, k: Ints, states: Ints) -> Targets:
        """V(S) over all wanted actions, recorded or not: of costs, of costs at unit prices, of parts."""
        at_once = max(len(states), 1) if self.columns is None else _AT_ONCE
        pieces = range(0, max(len(states), 1), at_once)
        found = [self._values_of(k[i : i + at_once], states[i : i + at_once]) for i in pieces]
        return Targets(*(np.concatenate(blocks) for blocks in zip(*found, strict=True)))

    def _values_of(self, k: Ints, states: Ints) -> Targets:
        counts = self.first_edge[states + 1] - self.first_edge[states]
        owner = np.repeat(np.arange(len(states)), counts)
        offset = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        edges = self.first_edge[states][owner] + offset
        ahead, stop = self._edge_values(k[owner], edges, "all"), self._stop_values(k, states, "all")
        return self._assemble(states, owner, edges, ahead, stop)

    def _assemble(self, states: Ints, owner: Ints, edges: Ints, ahead: Targets, stop: Targets) -> Targets:
        """V(S): what the decision takes, what follows its edges, what a stop gives."""
        table, kind = self.table, "all" if ahead.unit.shape[1] + ahead.parts.shape[1] else "costs"
        shape = (len(states), len(edges))
        wanted = csr_array((table.edge_probability[edges], (owner, np.arange(len(edges)))), shape=shape)
        taken, stops = self.known.taken(states, owner, edges, kind), table.stop[states][:, None]
        return Targets(*(here + wanted @ on + stops * off for here, on, off in zip(taken, ahead, stop, strict=True)))

    def part_edges(self, edges: Ints) -> Floats:
        """Parts to go after these edges (m, P), each by the model that has not seen its row; 0 in rows not averaged."""
        assert self.columns is not None
        rows = self.table.row[self.table.edge_state[edges]]
        out = np.zeros((len(edges), self.columns.width))
        mine = np.flatnonzero(self.averaged[rows])
        out[mine] = self._edge_values(self.fold[rows[mine]], edges[mine], "parts").parts
        return out

    def part_stops(self, states: Ints) -> Floats | None:
        """Expected parts of stopping in these states (m, P); None where they are those of the stop itself."""
        if self.augment_label:
            return None
        assert self.columns is not None
        rows = self.table.row[states]
        out = np.zeros((len(states), self.columns.width))
        mine = np.flatnonzero(self.averaged[rows] & (self.table.stop[states] > 0))
        out[mine] = self._stop_guess(self.fold[rows[mine]], states[mine], "parts").parts
        return out

    def values(self, lines: int = 500_000) -> TableValues:
        """Values of every state and edge, each by the model that has not seen its row; in pieces of ``lines``."""
        table = self.table
        n_states, n_edges = len(table.row), len(table.edge_state)
        own = self.fold[table.row]
        widths = self.known.widths("costs")
        edge, stop = Targets.full(n_edges, widths, 0.0), Targets.full(n_states, widths, 0.0)
        states = np.flatnonzero(self.averaged[table.row])
        edges = np.flatnonzero(self.averaged[table.row[table.edge_state]])
        for i in range(0, len(edges), lines):
            part = edges[i : i + lines]
            edge.put(part, self._edge_values(own[table.edge_state[part]], part, "costs"))
        for i in range(0, len(states), lines):
            part = states[i : i + lines]
            stop.put(part, self._stop_values(own[part], part, "costs"))
        state = self._assemble(np.arange(n_states), table.edge_state, np.arange(n_edges), edge, stop)
        return TableValues(edge.costs, stop.costs[:, MISCLASSIFICATION], state.costs)
