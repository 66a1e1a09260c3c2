"""What the error of learned action values adds to the influence values of an estimate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from .._arrays import Bools, Floats, Ints, lines_of, tally
from ..walk.columns import dense
from .depth_model import DepthModel, Slopes

if TYPE_CHECKING:
    from .induction import InducedValues

__all__ = ["Lesson", "ValueSlopes", "learning_errors"]

_AT_ONCE = 2**16  # predicted lines per piece


class ValueSlopes(NamedTuple):
    """Derivatives of an estimate in the action value of each edge and each stop; they are equal for all columns."""

    edges: Floats  # (e,)
    stops: Floats  # (s,)


class Lesson(NamedTuple):
    """A model, and the edges or states that it was learned from."""

    model: DepthModel
    lines: Ints


def learning_errors(values: InducedValues, slopes: ValueSlopes, take: Ints) -> Floats:
    r"""Return the derivatives of estimates in the logarithms of row weights, through the learned values only: (n, len(take)).

    The estimate depends on predictions :math:`\hat Q_e` with derivatives :math:`\kappa_e`. Each regression turns these into
    derivatives :math:`v_j` in its targets, see `QuadraticRidge`. Row weights change the regression itself by
    :math:`v_j (y_j - \hat y_j)`, and its targets :math:`y_j = V(S_j) = \sum_a \pi(a | S_j) Q(S_j, a)` are made of the next
    depth's predictions, which so gain the derivatives :math:`v_j \pi(a | S_j)`. The depths are visited from the start, in the
    reverse order of the learning, for the models of each fold. Centre, scale and penalty of the regressions are held fixed,
    and so is the sum of the row weights.

    Parameters
    ----------
    values : InducedValues
        Values that were learned by ridge regression.
    slopes : ValueSlopes
        Derivatives :math:`\kappa_e`.
    take : ndarray of int
        Columns of the targets.
    """
    table, out = values.table, np.zeros((len(values.data), len(take)))
    places = lines_of(table.depth[table.edge_state], table.n_depths), lines_of(table.depth, table.n_depths)
    for k in values.used_folds:
        mine = (values.fold[table.row] == k) & values.averaged[table.row]
        stops = slopes.stops * (mine & (table.stop > 0))
        own = _FoldErrors(values, k, take, slopes.edges * mine[table.edge_state], stops, out, *places)
        for depth in range(table.n_depths):
            own.pass_edges(depth)
            if not values.known_stops:
                own.pass_stops(depth)
    weight = values.train * (1.0 if values.row_weight is None else values.row_weight)
    return np.asarray(out - np.outer(weight / weight.sum(), out.sum(axis=0)))


@dataclass(eq=False)
class _FoldErrors:
    """Passes derivatives through the models of one fold, from the start of the walk to its end; adds to ``out``."""

    values: InducedValues
    k: int
    take: Ints
    edges: Floats  # (e,) derivatives in the values of edges
    stops: Floats  # (s,) derivatives in the values of stops
    out: Floats  # (n, P)
    edges_at: list[Ints]  # edges by depth
    states_at: list[Ints]  # states by depth

    def pass_edges(self, depth: int) -> None:
        """Pass the derivatives in the values of edges on to rows, and to the values of the next depth."""
        values, table = self.values, self.values.table
        edges = self.edges_at[depth]
        edges = edges[self.edges[edges] != 0]
        if values.lost is not None:  # values of runs that end are known
            edges = edges[~values.lost[edges]]
        lesson, states = values.edge_lesson(self.k, depth), table.edge_state[edges]
        slopes, unknown = self._slopes(lesson, states, table.edge_group[edges], self.edges[edges])
        # Without a model, the value of stopping is used.
        self.stops += tally(states[unknown], self.edges[edges[unknown]], len(table.row))
        if not slopes:
            return
        learned = lesson.lines
        share = self._add(
            lesson, table.edge_state[learned], table.edge_group[learned], slopes, np.arange(len(self.take))
        )
        owed = tally(table.edge_child[learned], share, len(table.row))
        self.stops += owed * table.stop
        if depth + 1 < len(self.edges_at):
            ahead = self.edges_at[depth + 1]
            self.edges[ahead] += owed[table.edge_state[ahead]] * table.edge_probability[ahead]

    def pass_stops(self, depth: int) -> None:
        """Pass the derivatives in the values of stops on to rows. Their targets are actual amounts."""
        states = self.states_at[depth]
        states = states[self.stops[states] != 0]
        lesson = self.values.stop_lesson(self.k, depth)
        slopes, _ = self._slopes(
            lesson, states, None, self.stops[states]
        )  # without a model, the value is a fixed guess
        if slopes:
            self._add(lesson, lesson.lines, None, slopes, np.flatnonzero(self.values.stop_columns(self.take)[0]))

    def _slopes(self, lesson: Lesson, states: Ints, group: Ints | None, amount: Floats) -> tuple[Slopes, Bools]:
        """Return the derivatives in the coefficients, and the lines that no model predicts."""
        slopes: Slopes = {}
        unknown = np.zeros(len(states), dtype=bool)
        for start in range(0, len(states), _AT_ONCE):
            piece = slice(start, start + _AT_ONCE)
            inputs = self.values.inputs(states[piece], None if group is None else group[piece])
            found, unknown[piece] = lesson.model.slopes(*inputs, amount[piece])
            for key, slope in found.items():
                slopes[key] = slopes[key] + slope if key in slopes else slope
        return slopes, unknown

    def _add(self, lesson: Lesson, states: Ints, group: Ints | None, slopes: Slopes, places: Ints) -> Floats:
        """Add the errors of a model to its rows, at these places of ``take``; returns the derivatives in its targets, (m,)."""
        values, rows = self.values, self.values.table.row[states]
        columns = self.take if group is not None else values.stop_columns(self.take)[1]
        weight = np.ones(len(rows)) if values.row_weight is None else values.row_weight[rows]
        share, errors = lesson.model.errors(*values.inputs(states, group), weight, slopes, columns)
        by_row = csr_array((np.ones(len(rows)), (rows, np.arange(len(rows)))), shape=(len(self.out), len(rows)))
        self.out[:, places] += dense(by_row @ errors)
        return share
