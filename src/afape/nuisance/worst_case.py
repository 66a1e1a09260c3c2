"""Runs that want an unsupported set end there, at a cost of which only bounds are known."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import Bools, Floats, Ints, tally
from ..data import Retrospective
from ..support import SupportMap
from ..walk import FREE, WalkTable
from .values.induction import TableValues
from .values.targets import ACQUISITION, MISCLASSIFICATION, FixedEdges
from .weights import View

__all__ = ["Endings", "Ends", "unsupported_edges"]


class Ends(NamedTuple):
    """By state: what ends here because the next set is unsupported."""

    flow: Floats  # (s,) r_S times the sum of pi(a | S) over a with S + a unsupported
    cost: Floats  # (s,) the same, times the misclassification cost
    price: Floats  # (s,) the same, times the prices that may follow after c_a
    paid: Floats  # (s,) the same, times c_a
    whole: Bools  # (s,) starts that are unsupported themselves, so that the whole row ends
    edges: Ints  # edges into unsupported sets, but for those of such starts
    edge_flow: Floats  # what would flow over each of them


class Endings:
    r"""Least or largest cost of what the records do not support.

    In a supported set S, the policy wants a with S + a unsupported. Whatever would follow costs at least 0 and at most the
    prices of the groups outside S + a, and a misclassification between the least and the largest entry in the row of
    the cost matrix that belongs to the label. With

    .. math:: m = \frac1n \sum_i \sum_{S\ supported} r_S w_S \sum_{a:\ S + a\ unsupported} \pi(a \mid S)

    over all edges, recorded or not, both bounds are estimates of a policy that stops there: the same formula, and the
    same influence values. Normalised, it divides by the normaliser plus m.

    Parameters
    ----------
    data : Retrospective
        Records.
    view : View
        Knows which sets are unsupported in which rows, and the groups added to every set.
    largest : bool
        Whether to give the largest cost, or the least.
    """

    def __init__(self, data: Retrospective, view: View, largest: bool) -> None:
        self.data, self.view, self.largest = data, view, largest
        by_label = data.costs.max(axis=1) if largest else data.costs.min(axis=1)
        self.cost = by_label[data.labels]  # (n,)

    def of(self, table: WalkTable) -> Ends:
        """What ends in each state of this table."""
        n_states, prices = len(table.row), self.data.problem.prices
        edges = np.flatnonzero(self._lost(table))
        state = table.edge_state[edges]
        flow = table.reach[state] * table.edge_probability[edges]
        after = self._ahead(table, prices, self.cost)[edges]
        group = table.edge_group[edges]
        whole = (table.depth == 0) & self.view.lacks(table)
        kept = ~whole[state]
        ends = Ends(
            tally(state, flow, n_states),
            tally(state, flow * after[:, MISCLASSIFICATION], n_states),
            tally(state, flow * after[:, ACQUISITION], n_states),
            tally(state, flow * np.where(group == FREE, 0.0, prices[group]), n_states),
            whole,
            edges[kept],
            flow[kept],
        )
        ends.flow[whole], ends.cost[whole], ends.paid[whole] = 1.0, self.cost[table.row[whole]], 0.0
        ends.price[whole] = prices.sum() if self.largest else 0.0
        return ends

    def _lost(self, table: WalkTable) -> Bools:
        return unsupported_edges(table, self.data, self.view.unsupported, self.view.adjust)

    def _ahead(self, table: WalkTable, prices: Floats, cost: Floats) -> Floats:
        """Cost to go after each edge, its own price not included, if it ended there; shape (e, 2)."""
        state = table.edge_state
        out = np.zeros((len(state), 2))
        out[:, MISCLASSIFICATION] = cost[table.row[state]]
        if self.largest:
            left = np.where(table.acquired[state], 0.0, prices).sum(axis=1)
            out[:, ACQUISITION] = left - np.where(table.edge_group == FREE, 0.0, prices[table.edge_group])
        return out

    def fixed(self, table: WalkTable) -> FixedEdges:
        """Edges whose value is not to be learned, their cost to go, and the same at unit prices: wrong at the most, or right."""
        problem = self.data.problem
        unit = self._ahead(table, (~problem.free).astype(float), np.full(len(self.data), float(self.largest)))
        return FixedEdges(self._lost(table), self._ahead(table, problem.prices, self.cost), unit)

    def bound(self, values: TableValues, table: WalkTable) -> TableValues:
        """Known values, with those of unsupported edges replaced."""
        fixed = self.fixed(table)
        edge = np.where(fixed.edges[:, None], fixed.costs, values.edge)
        change = table.edge_probability[:, None] * (edge - values.edge)
        state = values.state.copy()
        for target in (ACQUISITION, MISCLASSIFICATION):
            state[:, target] += tally(table.edge_state, change[:, target], len(state))
        return self.started(TableValues(edge, values.stop, state), table)

    def started(self, values: TableValues, table: WalkTable) -> TableValues:
        """The values with those of starts that are unsupported themselves put in."""
        ends, state = self.of(table), values.state.copy()
        state[ends.whole, ACQUISITION] = ends.price[ends.whole]
        state[ends.whole, MISCLASSIFICATION] = ends.cost[ends.whole]
        return TableValues(values.edge, values.stop, state)


def unsupported_edges(table: WalkTable, data: Retrospective, unsupported: SupportMap, adjust: Bools) -> Bools:
    """Edges that lead to an unsupported set, recorded or not."""
    sets, index = table.edge_sets(data.problem.free)
    return unsupported.lacks(table.row[table.edge_state], sets | adjust, index)
