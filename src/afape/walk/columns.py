"""Columns that amounts are booked in: the costs of a policy, or the parts that the costs are made of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy.sparse import csr_array

from .._arrays import Bools, Floats, Ints
from ..data.retrospective import Retrospective
from .table import FREE, WalkTable
from .tariff import Tariff

__all__ = ["Columns", "CostColumns", "Matrix", "PartColumns", "added", "dense"]

Matrix = csr_array | Floats  # lines of amounts, (m, P)


class Columns(Protocol):
    """Amounts of decisions, stops and runs that end in an unsupported set, as matrices with one column per amount."""

    @property
    def width(self) -> int:
        """Number of columns, P."""
        ...

    @property
    def at_stop(self) -> Bools:
        """Columns in which a stop can book something, (P,)."""
        ...

    def decisions(self, table: WalkTable) -> Matrix:
        """Expected amounts of the next decision in every state, over all wanted groups, recorded or not: (s, P)."""
        ...

    def taken(self, table: WalkTable, edges: Ints) -> Matrix:
        """Amounts of acquiring the group of each edge: (m, P)."""
        ...

    def stops(self, table: WalkTable, states: Ints) -> Matrix:
        """Amounts of stopping in these states: (m, P); 0 where the classifier was not asked."""
        ...

    def expected_stops(self, table: WalkTable, states: Ints, cells: Floats) -> Floats:
        """Amounts of stopping where the pair of true and predicted label has probabilities ``cells`` (m, K x K): (m, P)."""
        ...

    def lost(self, table: WalkTable, edges: Ints) -> tuple[Matrix, Matrix]:
        """Amounts of runs that end with these edges into unsupported sets, (m, P) each: acquisitions, and the stop."""
        ...

    def whole(self, rows: Ints) -> tuple[Matrix, Matrix]:
        """Amounts of rows that start in an unsupported set, (m, P) each: acquisitions, and the stop."""
        ...


@dataclass(frozen=True, eq=False)
class CostColumns:
    """Acquisition cost, misclassification cost, and the user's outcomes.

    Parameters
    ----------
    tariff : Tariff
        Prices, costs of errors, outcomes.
    labels : ndarray of int, shape (n,)
        Label code of every row.
    largest : bool or None
        True if runs that end in unsupported sets count at their largest cost, False at their least; None if there are
        no such runs.
    """

    tariff: Tariff
    labels: Ints
    largest: bool | None = None

    @property
    def width(self) -> int:
        """Number of columns."""
        return 2 + len(self.tariff.own)

    @property
    def at_stop(self) -> Bools:
        """All columns but the acquisition cost."""
        return np.arange(self.width) > 0

    @cached_property
    def _price(self) -> Floats:
        """Price of every group; the last entry, 0, serves the edge that reveals the free groups."""
        problem = self.tariff.problem
        out = np.zeros(problem.n_groups + 1)
        out[np.flatnonzero(problem.costly)] = self.tariff.prices
        return out

    def decisions(self, table: WalkTable) -> Floats:
        """Expected price of the next decision in every state, (s, P)."""
        out = np.zeros((len(table.row), self.width))
        paid = table.edge_probability * self._price[table.edge_group]
        out[:, 0] = np.bincount(table.edge_state, weights=paid, minlength=len(table.row))
        return out

    def taken(self, table: WalkTable, edges: Ints) -> Floats:
        """Price of the group of each edge, (m, P)."""
        out = np.zeros((len(edges), self.width))
        out[:, 0] = self._price[table.edge_group[edges]]
        return out

    def stops(self, table: WalkTable, states: Ints) -> Floats:
        """Cost of the prediction and the user's outcomes, (m, P); 0 where the classifier was not asked."""
        out = np.zeros((len(states), self.width))
        predicted = table.predicted[states]
        cost = self.tariff.stop_costs[self.labels[table.row[states]], predicted]
        out[:, 1] = np.where(predicted >= 0, cost, 0.0)
        if len(self.tariff.own):
            out[:, 2:] = np.where((predicted >= 0)[:, None], np.nan_to_num(table.outcomes[states]), 0.0)
        return out

    def expected_stops(self, table: WalkTable, states: Ints, cells: Floats) -> Floats:
        """Expected cost of stopping, and the mean of the user's outcomes over all stops, (m, P)."""
        out = np.zeros((len(states), self.width))
        out[:, 1] = cells @ self.tariff.costs.ravel()
        out[:, 2:] = _mean_outcomes(table, len(self.tariff.own))
        return out

    def lost(self, table: WalkTable, edges: Ints) -> tuple[Floats, Floats]:
        """Prices of groups still to be acquired, and cost of the stop, at their least or largest, (m, P) each."""
        state, group = table.edge_state[edges], table.edge_group[edges]
        left = np.where(table.acquired[state], 0.0, self._price[:-1]).sum(axis=1) - self._price[group]
        if self.tariff.paired:  # with the label, the run stops
            left[group == self.tariff.problem.n_groups - 1] = 0.0
        return self._ended(left, table.row[state])

    def whole(self, rows: Ints) -> tuple[Floats, Floats]:
        """Amounts of rows that start in an unsupported set, at their least or largest, (m, P) each."""
        return self._ended(np.full(len(rows), self._price.sum()), rows)

    def _ended(self, left: Floats, rows: Ints) -> tuple[Floats, Floats]:
        acquired, stopped = np.zeros((len(rows), self.width)), np.zeros((len(rows), self.width))
        acquired[:, 0] = left if self.largest else 0.0
        costs = self.tariff.stop_costs
        extreme = costs.max(axis=1) if self.largest else costs.min(axis=1)
        stopped[:, 1] = extreme[self.labels[rows]]
        stopped[:, 2:] = self.own_limits
        return acquired, stopped

    @property
    def own_limits(self) -> Floats:
        """Least or largest value of each outcome of the user; 0 where it is unlimited (the estimate then has no bounds)."""
        own = self.tariff.own
        found = np.array([own.limits(name)[int(bool(self.largest))] for name in own.names])
        return np.where(np.isfinite(found), found, 0.0) if len(found) else found


@dataclass(frozen=True, eq=False)
class PartColumns:
    r"""Parts that every cost is a linear combination of, one column each.

    In this order: groups that are acquired (one column per costly group), pairs of true and predicted label (K x K, row by
    row), the number of costly groups with which a run stops (0, 1, ...), outcomes of the user. With
    ``open``, further columns follow for runs that end in unsupported sets: the groups that such a run might still
    acquire, and its label. With prices c and costs C,

    .. math:: J_a = \sum_g c_g \, P(\text{acquires } g), \qquad J_{mc} = \sum_{y, k} C_{yk} \, P(Y = y, Y^* = k) .

    Parameters
    ----------
    costly : ndarray of int, shape (Gc,)
        Groups that have a price.
    n_groups, n_classes, n_outcomes : int
        Number of groups, of classes, and of outcomes of the user.
    labels : ndarray of int, shape (n,)
        Label code of every row.
    open : bool
        True if runs may end in sets that are not supported.
    paired : bool
        True if what a stop predicts is the pair of true and predicted label, because the label is a group. Runs into unsupported
        sets then share one column, for any label.
    """

    costly: Ints
    n_groups: int
    n_classes: int
    n_outcomes: int
    labels: Ints
    open: bool = False
    paired: bool = False

    @staticmethod
    def of(data: Retrospective, n_outcomes: int = 0, open: bool = False) -> PartColumns:
        """Columns for these records."""
        costly, paired = np.flatnonzero(data.problem.costly), data.original is not None
        n_classes = len((data.original or data).classes)
        return PartColumns(costly, data.problem.n_groups, n_classes, n_outcomes, data.labels, open, paired)

    @property
    def n_labels(self) -> int:
        """Number of labels that rows can have where runs end: 1 if the label is a group."""
        return 1 if self.paired else self.n_classes

    @property
    def cells(self) -> slice:
        """Pairs of true and predicted label."""
        return slice(len(self.costly), len(self.costly) + self.n_classes**2)

    @property
    def counts(self) -> slice:
        """Numbers of acquisitions, 0 to all."""
        return slice(self.cells.stop, self.cells.stop + len(self.costly) + 1)

    @property
    def own(self) -> slice:
        """Outcomes of the user."""
        return slice(self.counts.stop, self.counts.stop + self.n_outcomes)

    @property
    def left(self) -> slice:
        """Groups that runs into unsupported sets might still acquire."""
        return slice(self.own.stop, self.own.stop + (len(self.costly) if self.open else 0))

    @property
    def ended(self) -> slice:
        """Labels of runs into unsupported sets."""
        return slice(self.left.stop, self.left.stop + (self.n_labels if self.open else 0))

    @property
    def width(self) -> int:
        """Number of columns."""
        return int(self.ended.stop)

    @property
    def at_stop(self) -> Bools:
        """Pairs of labels, numbers of acquisitions, outcomes of the user."""
        place = np.arange(self.width)
        return np.asarray((place >= self.cells.start) & (place < self.own.stop))

    def priced(self, tariff: Tariff, largest: bool = False) -> Floats:
        """Coefficients (P, 2 + O) of the columns of `CostColumns`, with unsupported runs at their least or largest."""
        out = np.zeros((self.width, 2 + self.n_outcomes))
        out[: len(self.costly), 0] = tariff.prices
        out[self.cells, 1] = tariff.costs.ravel()
        out[self.own, 2:] = np.eye(self.n_outcomes)
        if self.open:
            out[self.left, 0] = tariff.prices if largest else 0.0
            costs = tariff.stop_costs
            out[self.ended, 1] = costs.max(axis=1) if largest else costs.min(axis=1)
            out[self.ended, 2:] = CostColumns(tariff, self.labels, largest).own_limits
        return out

    @cached_property
    def _place(self) -> Ints:
        """Column of every group, -1 for free ones; the last entry serves the edge that reveals the free groups."""
        place = np.full(self.n_groups + 1, -1, dtype=np.intp)
        place[self.costly] = np.arange(len(self.costly))
        return place

    def decisions(self, table: WalkTable) -> csr_array:
        """Probability of wanting each group in every state, recorded or not: (s, P)."""
        column = self._place[table.edge_group]
        kept = np.flatnonzero(column >= 0)
        return self._matrix(table.edge_state[kept], column[kept], table.edge_probability[kept], len(table.row))

    def taken(self, table: WalkTable, edges: Ints) -> csr_array:
        """The group that each of these edges acquires: (m, P)."""
        column = self._place[table.edge_group[edges]]
        kept = np.flatnonzero(column >= 0)
        return self._matrix(kept, column[kept], np.ones(len(kept)), len(edges))

    def stops(self, table: WalkTable, states: Ints) -> csr_array:
        """Pair of labels, number of acquisitions and outcomes of a stop in these states: (m, P)."""
        asked = np.flatnonzero(table.predicted[states] >= 0)
        at = states[asked]
        cell = self.labels[table.row[at]] * (self.n_classes**2 // self.n_labels) + table.predicted[at]
        count = table.acquired[at][:, self.costly].sum(axis=1)
        lines, columns = [asked, asked], [self.cells.start + cell, self.counts.start + count]
        values: list[Floats] = [np.ones(len(at)), np.ones(len(at))]
        for j in range(self.n_outcomes):
            lines.append(asked)
            columns.append(np.full(len(at), self.own.start + j))
            values.append(np.nan_to_num(table.outcomes[at, j]))
        return self._matrix(np.concatenate(lines), np.concatenate(columns), np.concatenate(values), len(states))

    def expected_stops(self, table: WalkTable, states: Ints, cells: Floats) -> Floats:
        """Probabilities of the pairs, number of acquisitions, mean of the user's outcomes over all stops: (m, P)."""
        out = np.zeros((len(states), self.width))
        out[:, self.cells] = cells
        count = table.acquired[states][:, self.costly].sum(axis=1)
        out[np.arange(len(states)), self.counts.start + count] = 1.0
        out[:, self.own] = _mean_outcomes(table, self.n_outcomes)
        return out

    def lost(self, table: WalkTable, edges: Ints) -> tuple[csr_array, csr_array]:
        """Groups that may still be acquired after these edges, and the label of the row: (m, P) each."""
        acquired = table.acquired[table.edge_state[edges]].copy()
        group = table.edge_group[edges]
        plain = group != FREE
        acquired[np.flatnonzero(plain), group[plain]] = True
        if self.paired:  # with the label, the run stops
            acquired[group == self.n_groups - 1] = True
        return self._ended(~acquired[:, self.costly], table.row[table.edge_state[edges]])

    def whole(self, rows: Ints) -> tuple[csr_array, csr_array]:
        """All costly groups, and the label, of rows that start in an unsupported set: (m, P) each."""
        return self._ended(np.ones((len(rows), len(self.costly)), dtype=bool), rows)

    def _ended(self, left: Bools, rows: Ints) -> tuple[csr_array, csr_array]:
        line, column = np.nonzero(left)
        ahead = self._matrix(line, self.left.start + column, np.ones(len(line)), len(rows))
        every_row = np.arange(len(rows))
        return ahead, self._matrix(every_row, self.ended.start + self.labels[rows], np.ones(len(rows)), len(rows))

    def _matrix(self, line: Ints, column: Ints, value: Floats, n_lines: int) -> csr_array:
        return csr_array((value, (line, column)), shape=(n_lines, self.width))


def _mean_outcomes(table: WalkTable, n_outcomes: int) -> Floats:
    """Mean of each outcome of the user over the states that have one; 0 where none has."""
    known = ~np.isnan(table.outcomes).any(axis=1)
    return np.asarray(table.outcomes[known].mean(axis=0)) if n_outcomes and known.any() else np.zeros(n_outcomes)


def dense(matrix: Any) -> Floats:
    """A matrix, or a product of matrices, as a plain array."""
    return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix)


def added(one: Matrix, other: Matrix) -> Matrix:
    """Sum of two matrices of one kind."""
    return one + other
