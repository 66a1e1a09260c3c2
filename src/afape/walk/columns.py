"""The parts of a cost as columns: what a decision takes and what a stop gives, state by state."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from ..arrays import Bools, Floats, Ints
from ..data import Retrospective
from .table import FREE, WalkTable

__all__ = ["PartColumns"]


@dataclass(frozen=True, eq=False)
class PartColumns:
    r"""Parts of which every cost is a linear combination, one column each.

    In this order: groups that are acquired (one column per costly group), pairs of true and predicted label (K x K, row by
    row), the number of costly groups with which a run stops (0, 1, ...), outcomes of the user's own. Where runs
    may end in sets that the records do not support (``open``), there follow the groups that such a run might still
    acquire, and its label. With prices c and costs C,

    .. math:: J_a = \sum_g c_g \, P(\text{acquires } g), \qquad J_{mc} = \sum_{y, k} C_{yk} \, P(Y = y, Y^* = k) .

    Parameters
    ----------
    costly : ndarray of int, shape (Gc,)
        Groups that have a price.
    n_groups, n_classes, n_outcomes : int
        How many groups, classes and own outcomes there are.
    labels : ndarray of int, shape (n,)
        Label code of every row.
    open : bool
        Whether runs may end in sets that are not supported.
    """

    costly: Ints
    n_groups: int
    n_classes: int
    n_outcomes: int
    labels: Ints
    open: bool = False

    @staticmethod
    def of(data: Retrospective, n_outcomes: int = 0, open: bool = False) -> PartColumns:
        """Columns for these records."""
        costly = np.flatnonzero(~data.problem.free)
        return PartColumns(costly, data.problem.n_groups, len(data.classes), n_outcomes, data.labels, open)

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
        """Outcomes of the user's own."""
        return slice(self.counts.stop, self.counts.stop + self.n_outcomes)

    @property
    def left(self) -> slice:
        """Groups that runs into unsupported sets might still acquire."""
        return slice(self.own.stop, self.own.stop + (len(self.costly) if self.open else 0))

    @property
    def ended(self) -> slice:
        """Labels of runs into unsupported sets."""
        return slice(self.left.stop, self.left.stop + (self.n_classes if self.open else 0))

    @property
    def width(self) -> int:
        """Number of columns."""
        return int(self.ended.stop)

    def priced(self, prices: Floats, largest: bool = False) -> Floats:
        """Coefficients of the acquisition cost (P,), with runs into unsupported sets at their least or largest."""
        out = np.zeros(self.width)
        out[: len(self.costly)] = prices
        if self.open and largest:
            out[self.left] = prices
        return out

    def judged(self, costs: Floats, largest: bool = False) -> Floats:
        """Coefficients of the misclassification cost (P,), with runs into unsupported sets at their least or largest."""
        out = np.zeros(self.width)
        out[self.cells] = costs.ravel()
        if self.open:
            out[self.ended] = costs.max(axis=1) if largest else costs.min(axis=1)
        return out

    @cached_property
    def _place(self) -> Ints:
        """Column of every group, -1 for free ones; the last entry serves the edge that reveals the free groups."""
        place = np.full(self.n_groups + 1, -1, dtype=np.intp)
        place[self.costly] = np.arange(len(self.costly))
        return place

    def decisions(self, table: WalkTable, flow: Floats | None = None) -> csr_array:
        """Probability of wanting each group in every state, recorded or not, times a flow where one is given: (s, P)."""
        column = self._place[table.edge_group]
        kept = np.flatnonzero(column >= 0)
        state, wanted = table.edge_state[kept], table.edge_probability[kept]
        return self._matrix(state, column[kept], wanted if flow is None else wanted * flow[state], len(table.row))

    def taken(self, table: WalkTable, edges: Ints) -> csr_array:
        """The group that each of these edges acquires: (len(edges), P)."""
        column = self._place[table.edge_group[edges]]
        kept = np.flatnonzero(column >= 0)
        return self._matrix(kept, column[kept], np.ones(len(kept)), len(edges))

    def stops(self, table: WalkTable, states: Ints | None = None) -> csr_array:
        """What a stop gives in these states, or in all: (m, P); nothing where the classifier was not asked."""
        states = np.arange(len(table.row)) if states is None else states
        asked = np.flatnonzero(table.predicted[states] >= 0)
        at = states[asked]
        cell = self.labels[table.row[at]] * self.n_classes + table.predicted[at]
        count = table.acquired[at][:, self.costly].sum(axis=1)
        lines, columns = [asked, asked], [self.cells.start + cell, self.counts.start + count]
        values: list[Floats] = [np.ones(len(at)), np.ones(len(at))]
        for j in range(self.n_outcomes):
            lines.append(asked)
            columns.append(np.full(len(at), self.own.start + j))
            values.append(np.nan_to_num(table.outcomes[at, j]))
        return self._matrix(np.concatenate(lines), np.concatenate(columns), np.concatenate(values), len(states))

    def lost(self, table: WalkTable, edges: Ints) -> tuple[csr_array, csr_array]:
        """What may follow these edges into unsupported sets: groups that are left, and the label; (len(edges), P) each."""
        acquired = table.acquired[table.edge_state[edges]].copy()
        group = table.edge_group[edges]
        plain = group != FREE
        acquired[np.flatnonzero(plain), group[plain]] = True
        return self._ending(~acquired[:, self.costly], table.row[table.edge_state[edges]])

    def whole(self, rows: Ints) -> tuple[csr_array, csr_array]:
        """The same for rows that start in an unsupported set."""
        return self._ending(np.ones((len(rows), len(self.costly)), dtype=bool), rows)

    def _ending(self, left: Bools, rows: Ints) -> tuple[csr_array, csr_array]:
        line, column = np.nonzero(left)
        ahead = self._matrix(line, self.left.start + column, np.ones(len(line)), len(rows))
        every_row = np.arange(len(rows))
        return ahead, self._matrix(every_row, self.ended.start + self.labels[rows], np.ones(len(rows)), len(rows))

    def _matrix(self, line: Ints, column: Ints, value: Floats, n_lines: int) -> csr_array:
        return csr_array((value, (line, column)), shape=(n_lines, self.width))
