"""Action values and state values, by exact backward induction over the depth of the walk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from scipy.sparse import csr_array

from ...arrays import Bools, Floats, Ints, every, tally
from ...data import Retrospective
from ...walk import FREE, PartColumns, WalkTable
from .models import DEFAULT_VALUES, DepthModel, Features, LearnedValues

__all__ = ["ACQUISITION", "MISCLASSIFICATION", "ActionValues", "Lessons", "PartValues", "TableValues"]

ACQUISITION, MISCLASSIFICATION = 0, 1


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
    fixed : pair of ndarrays, optional
        Edges whose cost to go is not learned (e,), and what it is taken to be (e, 2).
    columns : PartColumns, optional
        Parts of the costs whose values are learned beside them, in the same regressions.
    """

    def __init__(
        self,
        data: Retrospective,
        table: WalkTable,
        lessons: Lessons,
        fixed: tuple[Bools, Floats] | None = None,
        columns: PartColumns | None = None,
    ) -> None:
        self.data, self.table, self.fixed, self.columns = data, table, fixed, columns
        self.kind = "costs" if columns is None else "both"
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
        self._bounds = self._stop_bounds()
        blank = tally(table.depth, np.isnan(table.cost).astype(float), table.n_depths)
        self._predicted = blank == 0  # depths at which the classifier was asked in every state
        for k in self._used_folds():
            for depth in range(table.n_depths - 1, -1, -1):
                self._fit(k, depth)

    def _used_folds(self) -> list[int]:
        """Folds whose rows are averaged over; in a split, rows that are only learned from need no values."""
        return [k for k in range(self.n_folds) if self.averaged[self.fold == k].any()]

    def _stop_bounds(self) -> tuple[Floats, Floats]:
        """Least and largest misclassification cost of each row, by its label where that is conditioned on."""
        costs = self.data.costs
        if self.augment_label:
            return costs.min(axis=1)[self.data.labels], costs.max(axis=1)[self.data.labels]
        return np.full(len(self.data), costs.min()), np.full(len(self.data), costs.max())

    def _fit(self, k: int, depth: int) -> None:
        table = self.table
        allowed = self.train & (self.fold != k) if self.n_folds > 1 else self.train
        learnable = allowed[table.row] & (table.depth == depth)
        if not self.augment_label:
            lines = self._thin(np.flatnonzero(learnable & ~np.isnan(table.cost)))
            target = table.cost[lines][:, None]
            also = None if self.columns is None else self.columns.stops(table, lines).toarray()
            self._models[k, depth, "stop"] = self._learn(depth, lines, None, target, also)
        leads = table.edge_child >= 0
        if self.fixed is not None:
            leads &= ~self.fixed[0]
        edges = self._thin(np.flatnonzero(leads & learnable[table.edge_state]))
        target = self._state_values(np.full(len(edges), k), table.edge_child[edges])
        also = None if self.columns is None else target[:, 2:]
        states, group = table.edge_state[edges], table.edge_group[edges]
        self._models[k, depth, "edge"] = self._learn(depth, states, group, target[:, :2], also)

    def _thin(self, lines: Ints) -> Ints:
        if len(lines) <= self.max_lines:
            return lines
        return lines[np.linspace(0, len(lines) - 1, self.max_lines).astype(np.intp)]

    def _learn(self, depth: int, states: Ints, group: Ints | None, target: Floats, also: Floats | None) -> DepthModel:
        rows = self.table.row[states]
        weight = None if self.row_weight is None else self.row_weight[rows]
        features, actions = self._features(states), self._actions(group, len(states))
        return DepthModel(self.regressor, features, actions, target, weight, self._shared(depth), also)

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
            label = (data.labels[row][:, None] == np.arange(1, len(data.classes))).astype(float)
            stop = table.cost[states]  # what stopping here would cost: known, and telling of what going on will
            if len(stop) and self._predicted[table.depth[states[0]]]:
                label = np.column_stack([label, stop])
        return Features(np.where(known, data.values[row], np.nan), acquired, label)

    def _actions(self, group: Ints | None, n: int) -> Bools:
        n_groups = self.data.problem.n_groups
        if group is None:
            return np.zeros((n, n_groups + 1), dtype=bool)
        return np.asarray(np.where(group == FREE, n_groups, group)[:, None] == np.arange(n_groups + 1))

    def _edge_values(self, k: Ints, edges: Ints, kind: str = "costs") -> Floats:
        """Expected cost to go after each edge: fixed, or by the models of folds ``k``; the same of parts."""
        if self.fixed is None:
            return self._learned_values(k, edges, kind)
        fixed, ahead = self.fixed
        out = ahead[edges]
        if kind != "costs":
            assert self.columns is not None
            left, label = self.columns.lost(self.table, edges)
            ended: Floats = (left + label).toarray()
            out = ended if kind == "parts" else np.column_stack([out, ended])
        learned = ~fixed[edges]
        out[learned] = self._learned_values(k[learned], edges[learned], kind)
        return out

    def _learned_values(self, k: Ints, edges: Ints, kind: str) -> Floats:
        """Expected cost to go after each edge, by the models of folds ``k``.

        Predictions are not cut at what is possible: where errors are rare and dear most costs are 0, and cutting would move
        the mean.
        """
        table = self.table
        states, group = table.edge_state[edges], table.edge_group[edges]
        width = 0 if self.columns is None else self.columns.width
        out = np.empty((len(edges), {"costs": 2, "parts": width, "both": 2 + width}[kind]))
        depth = table.depth[states]
        for key in np.unique(np.column_stack([k, depth]), axis=0):
            lines = np.flatnonzero((k == key[0]) & (depth == key[1]))
            model = self._models[int(key[0]), int(key[1]), "edge"]
            features, actions = self._features(states[lines]), self._actions(group[lines], len(lines))
            out[lines], orphans = model.predict(features, actions, kind)
            self.fallbacks += 0 if kind == "parts" else orphans
        missing = np.isnan(out[:, 0])
        if missing.any():  # nobody ever got there: as if the policy stopped where it is
            if kind != "parts":
                out[missing, ACQUISITION] = 0.0
                out[missing, MISCLASSIFICATION] = self._stop_guess(k[missing], states[missing])
            if kind != "costs":
                out[missing, out.shape[1] - width :] = self._stop_parts(k[missing], states[missing])
        return out

    def _stop_values(self, k: Ints, states: Ints) -> Floats:
        """Q(S, stop); 0 where the policy never stops."""
        table = self.table
        stops = table.stop[states] > 0
        if self.augment_label:
            return np.where(stops, table.cost[states], 0.0)
        out = np.zeros(len(states))
        out[stops] = self._stop_guess(k[stops], states[stops], count=True)
        return out

    def _stop_guess(self, k: Ints, states: Ints, count: bool = False) -> Floats:
        """Expected cost of stopping, also where the policy never does; the middle of the bounds where nobody ever did."""
        table = self.table
        row, depth = table.row[states], table.depth[states]
        if self.augment_label:
            out = table.cost[states]
        else:
            out = np.empty(len(states))
            for key in np.unique(np.column_stack([k, depth]), axis=0):
                lines = np.flatnonzero((k == key[0]) & (depth == key[1]))
                model = self._models[int(key[0]), int(key[1]), "stop"]
                answer, orphans = model.predict(self._features(states[lines]), self._actions(None, len(lines)))
                self.fallbacks += orphans if count else 0
                out[lines] = answer[:, 0]
        low, high = self._bounds
        return np.where(np.isnan(out), (low + high)[row] / 2, out)

    def _stop_parts(self, k: Ints, states: Ints) -> Floats:
        """Expected parts of stopping, of which `_stop_guess` is the cost."""
        table, columns = self.table, self.columns
        assert columns is not None
        if self.augment_label:
            out = columns.stops(table, states).toarray()
            unknown = table.predicted[states] < 0
        else:
            out = np.full((len(states), columns.width), np.nan)
            depth = table.depth[states]
            for key in np.unique(np.column_stack([k, depth]), axis=0):
                lines = np.flatnonzero((k == key[0]) & (depth == key[1]))
                model = self._models[int(key[0]), int(key[1]), "stop"]
                out[lines] = model.predict(self._features(states[lines]), self._actions(None, len(lines)), "parts")[0]
            unknown = np.isnan(out[:, 0])
        if unknown.any():  # nobody ever stopped there: the middle of the bounds
            out[unknown] = self._middle(states[unknown])
        return np.asarray(out)

    def _middle(self, states: Ints) -> Floats:
        """Half the cheapest and half the dearest prediction."""
        columns, costs, table = self.columns, self.data.costs, self.table
        assert columns is not None
        out = np.zeros((len(states), columns.width))
        every_line = np.arange(len(states))
        if self.augment_label:
            label = self.data.labels[table.row[states]]
            cells = [label * columns.n_classes + pick(costs, axis=1)[label] for pick in (np.argmin, np.argmax)]
        else:
            cells = [np.full(len(states), int(pick(costs))) for pick in (np.argmin, np.argmax)]
        for cell in cells:
            np.add.at(out, (every_line, columns.cells.start + cell), 0.5)
        out[every_line, columns.counts.start + table.acquired[states][:, columns.costly].sum(axis=1)] = 1.0
        if columns.n_outcomes:
            known = ~np.isnan(table.outcomes).any(axis=1)
            out[:, columns.own] = table.outcomes[known].mean(axis=0) if known.any() else 0.0
        return out

    def _state_values(self, k: Ints, states: Ints) -> Floats:
        """V(S) over all wanted actions, recorded or not; beside the costs their parts, where they are learned."""
        if self.columns is None or len(states) <= _AT_ONCE:
            return self._values_of(k, states)
        pieces = range(0, len(states), _AT_ONCE)
        return np.concatenate([self._values_of(k[i : i + _AT_ONCE], states[i : i + _AT_ONCE]) for i in pieces])

    def _values_of(self, k: Ints, states: Ints) -> Floats:
        counts = self.first_edge[states + 1] - self.first_edge[states]
        owner = np.repeat(np.arange(len(states)), counts)
        offset = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        edges = self.first_edge[states][owner] + offset
        ahead = self._edge_values(k[owner], edges, self.kind)
        costs = self._assemble(states, owner, edges, ahead[:, :2], self._stop_values(k, states))
        if self.columns is None:
            return costs
        return np.column_stack([costs, self._assemble_parts(k, states, owner, edges, ahead[:, 2:])])

    def _assemble_parts(self, k: Ints, states: Ints, owner: Ints, edges: Ints, ahead: Floats) -> Floats:
        table, columns, n = self.table, self.columns, len(states)
        assert columns is not None
        p = table.edge_probability[edges]
        shape = (n, len(edges))
        out = np.asarray(csr_array((p, (owner, np.arange(len(edges)))), shape=shape) @ ahead)
        place = columns.taken(table, edges)
        out += (csr_array((p, (owner, np.arange(len(edges)))), shape=shape) @ place).toarray()
        stops = np.flatnonzero(table.stop[states] > 0)
        if len(stops):
            out[stops] += table.stop[states[stops]][:, None] * self._stop_parts(k[stops], states[stops])
        return out

    def _assemble(self, states: Ints, owner: Ints, edges: Ints, ahead: Floats, stop: Floats) -> Floats:
        table = self.table
        p = table.edge_probability[edges]
        out = np.empty((len(states), 2))
        out[:, ACQUISITION] = table.price[states] + tally(owner, p * ahead[:, ACQUISITION], len(states))
        out[:, MISCLASSIFICATION] = tally(owner, p * ahead[:, MISCLASSIFICATION], len(states))
        out[:, MISCLASSIFICATION] += table.stop[states] * stop
        return out

    def part_edges(self, edges: Ints) -> Floats:
        """Parts to go after these edges (m, P), each by the model that has not seen its row; 0 in rows not averaged."""
        assert self.columns is not None
        rows = self.table.row[self.table.edge_state[edges]]
        out = np.zeros((len(edges), self.columns.width))
        mine = np.flatnonzero(self.averaged[rows])
        out[mine] = self._edge_values(self.fold[rows[mine]], edges[mine], "parts")
        return out

    def part_stops(self, states: Ints) -> Floats | None:
        """Expected parts of stopping in these states (m, P); None where they are those of the stop itself."""
        if self.augment_label:
            return None
        assert self.columns is not None
        rows = self.table.row[states]
        out = np.zeros((len(states), self.columns.width))
        mine = np.flatnonzero(self.averaged[rows] & (self.table.stop[states] > 0))
        out[mine] = self._stop_parts(self.fold[rows[mine]], states[mine])
        return out

    def values(self, lines: int = 500_000) -> TableValues:
        """Values of every state and edge, each by the model that has not seen its row; in pieces of ``lines``."""
        table = self.table
        n_states, n_edges = len(table.row), len(table.edge_state)
        own = self.fold[table.row]
        edge, stop = np.zeros((n_edges, 2)), np.zeros(n_states)
        states = np.flatnonzero(self.averaged[table.row])
        edges = np.flatnonzero(self.averaged[table.row[table.edge_state]])
        for i in range(0, len(edges), lines):
            part = edges[i : i + lines]
            edge[part] = self._edge_values(own[table.edge_state[part]], part)
        for i in range(0, len(states), lines):
            part = states[i : i + lines]
            stop[part] = self._stop_values(own[part], part)
        everything = np.arange(n_states)
        state = self._assemble(everything, table.edge_state, np.arange(n_edges), edge, stop)
        return TableValues(edge, stop, state)
