"""Action values, learned by backward induction over the depth of the walk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.sparse import csr_array

from .._arrays import Bools, Floats, Ints, distinct, every, lines_of, tally
from ..data.extreme_values import limit_extreme_values
from ..data.retrospective import Retrospective
from ..walk.columns import Columns, CostColumns, Matrix, added, dense
from ..walk.table import FREE, WalkTable
from ..walk.tariff import Tariff
from .depth_model import DepthModel, Features
from .learning_errors import Lesson, ValueSlopes, learning_errors
from .models import DEFAULT_VALUES, LearnedValues

__all__ = ["ActionValues", "InducedValues", "Lessons"]

_AT_ONCE = 50_000  # states per piece
_CELLS = 2**20  # predicted numbers per piece


class ActionValues(Protocol):
    """Expected amounts to go, in some columns."""

    @property
    def learned(self) -> bool:
        """False if the values are known."""
        ...

    def edges(self, edges: Ints) -> Floats:
        """Return the expected amounts after these edges, (m, P), without the amounts of the edges."""
        ...

    def stops(self, states: Ints) -> Floats | None:
        """Return the expected amounts of stopping in these states, (m, P); None if they are the actual amounts."""
        ...

    def errors(self, slopes: ValueSlopes) -> Floats | None:
        """Return what the learning of the values adds to the derivatives of estimates in row weights, (n, P).

        The estimate of each column has derivatives ``slopes`` in its values. None if the error of the learning is not known.
        """
        ...


@dataclass(frozen=True, eq=False)
class Lessons:
    """Regressor, folds and rows that action values are learned from.

    Parameters
    ----------
    given_columns : ndarray of int
        Columns of X_o.
    fold : ndarray of int, shape (n,)
        Fold of each row; a row's values come from models fitted on the other folds.
    learned : LearnedValues
        The regressor, and its use of the label. With the label, Q(S, stop) equals C_S.
    drawn : ndarray of shape (n,), optional
        How often each row was drawn in a bootstrap replicate.
    averaged : ndarray of bool, shape (n,), optional
        Rows whose values are needed; the values of other rows are 0.
    usable : ndarray of bool, shape (n,), optional
        Rows that have all given groups recorded. Only these are learned from, and only these have values.
    max_lines : int
        Largest number of lines in one fit; more lines are thinned evenly.
    keep : bool
        True if what `learning_errors` needs is kept.
    """

    given_columns: Ints
    fold: Ints
    learned: LearnedValues = DEFAULT_VALUES
    drawn: Floats | None = None
    averaged: Bools | None = None
    usable: Bools | None = None
    max_lines: int = 200_000
    keep: bool = True


class InducedValues:
    r"""Q and V under the policy, learned from blocked records (von Kleist et al. 2023, Theorem "Bellman equation").

    .. math::
       Q(x_S, S, stop, X_o) &= E[C_S \mid x_S, X_o] \\
       Q(x_S, S, a, X_o) &= c_a + E[V(S + a) \mid x_S, X_o] \\
       V(S) &= \sum_a \pi(a \mid x_S, S) \, Q(S, a)

    Sets only grow, so the regressions are fitted depth by depth, the deepest first, and each depth needs a single fit.
    E[V(S + a) | .] is fitted on rows that have S + a recorded. Under MAR given X_o these rows need no weights if X_o is among
    the inputs, acquired or not.

    Parameters
    ----------
    data : Retrospective
        Records.
    table : WalkTable
        The walk over the recorded values, all rows.
    lessons : Lessons
        Regressor, folds and rows.
    columns : sequence of Columns
        Columns of the amounts whose values are learned; `within` returns the values of each.
    tariff : Tariff
        Its groups and classes define the unit costs, see Notes.
    lost : ndarray of bool, shape (e,), optional
        Edges into unsupported sets. Their values are not learned: runs end there with ``columns.lost``.
    largest : bool, optional
        True for the largest unit costs of such runs, False for the least.

    Notes
    -----
    With ridge regression no choice depends on prices. Penalties are chosen by two additional targets, the unit costs: the
    number of groups still to be acquired and the probability of a wrong prediction. So the action values of a cost are a fixed
    linear combination of the action values of its parts, for all prices.
    """

    def __init__(
        self,
        data: Retrospective,
        table: WalkTable,
        lessons: Lessons,
        columns: Sequence[Columns],
        tariff: Tariff,
        lost: Bools | None = None,
        largest: bool | None = None,
    ) -> None:
        self.data, self.table, self.lost = data, table, lost
        self.fold, self.row_weight, self.max_lines = lessons.fold, lessons.drawn, lessons.max_lines
        self.regressor, augment = lessons.learned.regressor, lessons.learned.augment_label
        # If the label is a group, no other model uses it, and stops happen only where it is known.
        self.augment_label, self.known_stops = augment and data.original is None, augment or data.original is not None
        if data.weight is not None:
            self.regressor = self.regressor.of_cases
            self.row_weight = data.weight if self.row_weight is None else self.row_weight * data.weight
        # One mistyped value must not decide a ridge regression, nor be extrapolated to.
        self.values = limit_extreme_values(data.values)[0] if self.regressor.linear else data.values
        self.kept = lessons.keep and self.regressor.linear
        unit = (CostColumns(tariff.unit, data.labels, largest),) if self.regressor.linear else ()
        self.targets: tuple[Columns, ...] = (*columns, *unit)
        self.ends = np.cumsum([0, *(target.width for target in self.targets)])
        self._all = np.arange(self.ends[-1])
        self._unit = self._all >= self.ends[len(columns)]
        everyone = np.ones(len(data), dtype=bool)
        self.train = everyone if self.row_weight is None else self.row_weight > 0
        self.averaged = everyone if lessons.averaged is None else lessons.averaged
        if lessons.usable is not None:
            self.train, self.averaged = self.train & lessons.usable, self.averaged & lessons.usable
        self.n_folds = int(self.fold.max()) + 1
        self.given = np.isin(np.arange(len(data.columns)), lessons.given_columns)
        self.first_edge = np.searchsorted(table.edge_state, np.arange(len(table.row) + 1))
        blank = tally(table.depth, (table.predicted < 0).astype(float), table.n_depths)
        self._predicted = blank == 0  # depths with a prediction in every state
        self._at_stop = np.concatenate([target.at_stop for target in self.targets])
        self._edge_models: dict[tuple[int, int], DepthModel] = {}  # by fold and depth
        self._stop_models: dict[tuple[int, int], DepthModel] = {}
        self._edge_lines: dict[tuple[int, int], Ints] = {}  # edges that were learned from
        self._stop_lines: dict[tuple[int, int], Ints] = {}  # states that were learned from
        for k in self.used_folds:
            for depth in range(table.n_depths - 1, -1, -1):
                self._fit(k, depth)

    def within(self, place: int) -> ActionValues:
        """Return the values of one of the ``columns``, by its index."""
        return _Within(self, self._all[self.ends[place] : self.ends[place + 1]])

    def edges(self, edges: Ints, take: Ints) -> Floats:
        """Return the targets ``take`` after these edges, (m, len(take)).

        Each row uses a model of the other folds. Rows that are not averaged over have 0.
        """
        rows = self.table.row[self.table.edge_state[edges]]
        out = np.zeros((len(edges), len(take)))
        mine = np.flatnonzero(self.averaged[rows])
        out[mine] = self._edge_values(self.fold[rows[mine]], edges[mine], take)
        return out

    def stops(self, states: Ints, take: Ints) -> Floats | None:
        """Return the expected amounts of stopping, in the columns ``take`` of all targets; None if the label is used.

        Shape (m, len(take)). States in which the policy never stops have 0; so have rows that are not averaged over.
        """
        if self.known_stops:
            return None
        rows = self.table.row[states]
        out = np.zeros((len(states), len(take)))
        mine = np.flatnonzero(self.averaged[rows] & (self.table.stop[states] > 0))
        out[mine] = self._stop_guess(self.fold[rows[mine]], states[mine], take)
        return out

    @property
    def fallbacks(self) -> int:
        """Number of needed edges and stops for which no row of the other folds has the same set and action."""
        table, total = self.table, 0
        edges = np.flatnonzero(self.averaged[table.row[table.edge_state]])
        if self.lost is not None:
            edges = edges[~self.lost[edges]]
        states = np.flatnonzero(self.averaged[table.row] & (table.stop > 0))
        asked = [(self._edge_models, table.edge_state[edges], table.edge_group[edges])]
        if not self.known_stops:
            asked.append((self._stop_models, states, None))  # type: ignore[arg-type]
        for models, at, group in asked:
            actions = self._actions(group, len(at))
            for (k, depth), lines in self._by_model(self.fold[table.row[at]], at):
                total += models[k, depth].count_unknown(table.acquired[at[lines]], actions[lines])
        return total

    @property
    def used_folds(self) -> list[int]:
        """Return the folds with rows to average over. With ``split``, rows that are only learned from need no values."""
        return [k for k in range(self.n_folds) if self.averaged[self.fold == k].any()]

    def edge_lesson(self, k: int, depth: int) -> Lesson:
        """Return the model of edges of a fold and a depth, with the edges that it was learned from."""
        return Lesson(self._edge_models[k, depth], self._edge_lines[k, depth])

    def stop_lesson(self, k: int, depth: int) -> Lesson:
        """Return the model of stops of a fold and a depth, with the states that it was learned from."""
        return Lesson(self._stop_models[k, depth], self._stop_lines[k, depth])

    def stop_columns(self, take: Ints) -> tuple[Bools, Ints]:
        """Return which of the targets ``take`` a stop can have, and the columns of these in models of stops."""
        used = self._at_stop[take]
        return used, (np.cumsum(self._at_stop) - 1)[take[used]]

    def inputs(self, states: Ints, group: Ints | None) -> tuple[Features, Bools]:
        """Return the inputs of the regressions for states and groups of edges; None for stops."""
        return self._features(states), self._actions(group, len(states))

    def _fit(self, k: int, depth: int) -> None:
        """Learn the values of stops and edges of this depth from the other folds."""
        table = self.table
        allowed = self.train & (self.fold != k) if self.n_folds > 1 else self.train
        learnable = allowed[table.row] & (table.depth == depth)
        if not self.known_stops:
            lines = self._thin(np.flatnonzero(learnable & (table.predicted >= 0)))
            target = self._stacked([c.stops(table, lines) for c in self.targets])
            self._stop_lines[k, depth] = lines
            self._stop_models[k, depth] = self._learn(depth, lines, None, target, self._at_stop)
        leads = table.edge_child >= 0
        if self.lost is not None:
            leads &= ~self.lost
        edges = self._thin(np.flatnonzero(leads & learnable[table.edge_state]))
        target = self._state_values(np.full(len(edges), k), table.edge_child[edges])
        everything = np.ones(target.shape[1], dtype=bool)
        self._edge_lines[k, depth] = edges
        states, group = table.edge_state[edges], table.edge_group[edges]
        self._edge_models[k, depth] = self._learn(depth, states, group, target, everything)

    def _thin(self, lines: Ints) -> Ints:
        if len(lines) <= self.max_lines:
            return lines
        return lines[np.linspace(0, len(lines) - 1, self.max_lines).astype(np.intp)]

    def _learn(self, depth: int, states: Ints, group: Ints | None, target: Floats, used: Bools) -> DepthModel:
        """Fit a model of the ``used`` columns of the target; unit costs, if there are any, choose the penalty."""
        rows = self.table.row[states]
        weight = None if self.row_weight is None else self.row_weight[rows]
        features, actions = self.inputs(states, group)
        shared, unit = self._shared(depth), self._unit[used]
        return DepthModel(self.regressor, features, actions, target[:, used], weight, shared, unit, self.kept)

    def _shared(self, depth: int) -> Bools:
        """Return True for columns that are known in all states of this depth, (d,), including states not learned from."""
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
                # It is known if a stop here would be right, and this predicts the cost to go.
                label = np.column_stack([label, table.predicted[states] == true])
        return Features(np.where(known, self.values[row], np.nan), acquired, label)

    def _actions(self, group: Ints | None, n: int) -> Bools:
        n_groups = self.data.problem.n_groups
        if group is None:
            return np.zeros((n, n_groups + 1), dtype=bool)
        return np.asarray(np.where(group == FREE, n_groups, group)[:, None] == np.arange(n_groups + 1))

    def _stacked(self, found: list[Matrix]) -> Floats:
        """Return the amounts of all targets in one matrix."""
        return np.column_stack([dense(amounts) for amounts in found])

    def _edge_values(self, k: Ints, edges: Ints, take: Ints) -> Floats:
        """Return the targets ``take`` after each edge: predicted by the models of folds ``k``, or known if runs end."""
        if self.lost is None:
            return self._learned_values(k, edges, take)
        lost = self.lost[edges]
        out = np.empty((len(edges), len(take)))
        ended = edges[lost]
        amounts = [added(left, stop) for left, stop in (c.lost(self.table, ended) for c in self.targets)]
        out[lost] = self._stacked(amounts)[:, take]
        out[~lost] = self._learned_values(k[~lost], edges[~lost], take)
        return out

    def _learned_values(self, k: Ints, edges: Ints, take: Ints) -> Floats:
        """Predict the targets ``take`` after each edge with the models of folds ``k``, (m, len(take)).

        Predictions are not clipped to the possible range. If errors are rare and expensive, most costs are 0, and clipping
        would change the mean.
        """
        states, actions = self.table.edge_state[edges], self._actions(self.table.edge_group[edges], len(edges))
        out = self._ask(self._edge_models, k, states, actions, take)
        missing = np.isnan(out[:, 0])
        if missing.any():  # no row of the other folds to learn from: use the cost of stopping here
            out[missing] = self._stop_guess(k[missing], states[missing], take)
        return out

    def _stop_guess(self, k: Ints, states: Ints, take: Ints) -> Floats:
        """Return the targets ``take`` of stopping in any state, (m, len(take)); a fixed guess if no row was classified."""
        if self.known_stops:
            out = self._stacked([c.stops(self.table, states) for c in self.targets])[:, take]
            unknown = self.table.predicted[states] < 0
            if self.data.original is not None:
                unknown |= self.table.stop[states] == 0
        else:
            out = np.zeros((len(states), len(take)))
            used, columns = self.stop_columns(take)
            found = self._ask(self._stop_models, k, states, self._actions(None, len(states)), columns)
            out[:, used] = found
            unknown = np.isnan(found[:, 0])
        if unknown.any():
            at = states[unknown]
            cells = self._guessed_cells(at)
            out[unknown] = self._stacked([c.expected_stops(self.table, at, cells) for c in self.targets])[:, take]
        return out

    def _guessed_cells(self, states: Ints) -> Floats:
        """Return a guess of the probability of each pair of true and predicted label, (m, K x K).

        It is used if no row was classified: right with probability one half, the other half spread over the wrong labels.
        """
        if self.data.original is not None:
            return np.full((len(states), self.data.costs.size), 1 / self.data.costs.size)
        n_classes = len(self.data.classes)
        same = np.eye(n_classes)
        share = (same + (1 - same) / max(n_classes - 1, 1)) / 2
        if not self.augment_label:
            return np.tile(share.ravel() / share.sum(), (len(states), 1))
        label = self.data.labels[self.table.row[states]]
        true = label[:, None] == np.arange(n_classes)
        return np.asarray((true[:, :, None] * share / share.sum(axis=1, keepdims=True)).reshape(len(states), -1))

    def _by_model(self, k: Ints, states: Ints) -> list[tuple[tuple[int, int], Ints]]:
        """Group lines by model: returns fold and depth, with the lines that their model predicts."""
        n_depths = self.table.n_depths
        codes, index = distinct(k * n_depths + self.table.depth[states], self.n_folds * n_depths)
        keys = [divmod(code, n_depths) for code in codes.tolist()]
        return list(zip(keys, lines_of(index, len(codes)), strict=True))

    def _ask(
        self, models: dict[tuple[int, int], DepthModel], k: Ints, states: Ints, actions: Bools, columns: Ints
    ) -> Floats:
        """Predict with the models of folds ``k``, (m, len(columns)); NaN if there is no model."""
        out = np.full((len(states), len(columns)), np.nan)
        step = max(_CELLS // max(len(columns), 1), 1)
        for key, lines in self._by_model(k, states):
            for piece in (lines[i : i + step] for i in range(0, len(lines), step)):
                out[piece] = models[key].predict(self._features(states[piece]), actions[piece], columns)
        return out

    def _state_values(self, k: Ints, states: Ints) -> Floats:
        """Compute V(S) of all targets, over all wanted actions, recorded or not."""
        pieces = range(0, max(len(states), 1), _AT_ONCE)
        return np.concatenate([self._values_of(k[i : i + _AT_ONCE], states[i : i + _AT_ONCE]) for i in pieces])

    def _values_of(self, k: Ints, states: Ints) -> Floats:
        table = self.table
        counts = self.first_edge[states + 1] - self.first_edge[states]
        owner = np.repeat(np.arange(len(states)), counts)
        offset = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        edges = self.first_edge[states][owner] + offset
        wanted = csr_array(
            (table.edge_probability[edges], (owner, np.arange(len(edges)))), shape=(len(states), len(edges))
        )
        ahead = self._edge_values(k[owner], edges, self._all)
        taken = self._stacked([c.taken(table, edges) for c in self.targets])
        out = np.asarray(wanted @ (taken + ahead))
        stops = np.flatnonzero(table.stop[states] > 0)
        if len(stops):
            at = states[stops]
            out[stops] += table.stop[at][:, None] * self._stop_guess(k[stops], at, self._all)
        return out


@dataclass(frozen=True, eq=False)
class _Within:
    """Induced values of some of the targets."""

    values: InducedValues
    take: Ints

    def edges(self, edges: Ints) -> Floats:
        """Return the expected amounts after these edges, (m, P)."""
        return self.values.edges(edges, self.take)

    def stops(self, states: Ints) -> Floats | None:
        """Return the expected amounts of stopping in these states, (m, P); None if they are the actual amounts."""
        return self.values.stops(states, self.take)

    @property
    def learned(self) -> bool:
        """True."""
        return True

    def errors(self, slopes: ValueSlopes) -> Floats | None:
        """Return what the learning adds to the derivatives in row weights, (n, P); None if it was not a ridge regression."""
        return learning_errors(self.values, slopes, self.take) if self.values.kept else None
