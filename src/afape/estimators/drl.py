"""DRL-Semi: doubly robust, consistent if either the propensity or the action values are right."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..arrays import Floats, Ints, tally
from ..nuisance.fitted import Evidence
from ..nuisance.values.induction import ACQUISITION, MISCLASSIFICATION, PartValues, TableValues
from ..walk import PartColumns, WalkTable
from .booking import Block, Term
from .weighted import REACH, STOP, Flows, WeightedSums, mean_weight_before, weighted_sums

__all__ = ["DoublyRobust", "doubly_robust"]

_AT_ONCE = 2**16
_VALUE, _ARRIVE, _WRONG = (2, 3), (4, 5), 6  # V of both targets, corrections on arrival, correction of a stop


def doubly_robust(evidence: Evidence, scored: bool | None = None) -> WeightedSums:
    """DRL in whatever view the evidence is seen in."""
    assert evidence.values is not None
    formula = DoublyRobust(evidence.values, evidence.part_values, evidence.recipe.normalize)
    return weighted_sums(evidence, formula, scored=scored)


def _pieces(length: int) -> list[slice]:
    """Lines that are taken together, so that memory stays bounded."""
    return [slice(i, i + _AT_ONCE) for i in range(0, length, _AT_ONCE)]


class DoublyRobust:
    r"""Double reinforcement learning in the semi-offline view (von Kleist et al. 2023, estimator DRL-Semi).

    Per row,

    .. math::
       \sum_S r_S \Big\{ w_S V_S + \pi(stop|S) \, w_S (C_S - Q_{S,stop})
       + \sum_{a \text{ recorded}} \pi(a|S) \, w_{S+a} (c_a - Q_{S,a}) \Big\}

    Normalised: terms of a decision are divided by the mean weight after it, V by the mean weight before.

    Parameters
    ----------
    values : TableValues
        Q and V of the walk's table.
    part_values : PartValues, optional
        The same of the parts of the costs.
    normalize : bool
        Whether to divide.
    """

    n_quantities = 7

    def __init__(self, values: TableValues, part_values: PartValues | None = None, normalize: bool = True) -> None:
        self.values, self.normalize = values, normalize
        self._part_values = part_values

    @property
    def part_values(self) -> PartValues:
        """Action values of the parts."""
        assert self._part_values is not None
        return self._part_values

    def quantities(self, table: WalkTable, flows: Flows) -> Floats:
        """Flows, V and corrections in every state; what an edge corrects is booked where it leads.

        V of a state holds the cost of runs that end there because the next set is unsupported, so that nothing is left
        to correct for them.
        """
        values, n = self.values, len(table.row)
        out = np.zeros((n, 7))
        out[:, REACH], out[:, STOP] = flows.reach, flows.stop
        arrived = np.flatnonzero(table.edge_child >= 0)
        child, flow = table.edge_child[arrived], table.edge_flow[arrived]
        for target in (ACQUISITION, MISCLASSIFICATION):
            out[:, _VALUE[target]] = flows.reach * values.state[:, target]
            # c_a - Q_{S,a}: the price cancels, what is left is the cost to go after the edge
            out[:, _ARRIVE[target]] = tally(child, -flow * values.edge[arrived, target], n)
        out[:, _WRONG] = np.where(flows.own > 0, flows.own * (table.cost - values.stop), 0.0)
        return out

    def blocks(self, table: WalkTable, flows: Flows, columns: PartColumns, n_depths: int) -> Iterator[Block]:
        """What decisions take and stops give, and the action values of the rest, edge by edge, with their corrections."""
        states, depth = np.arange(len(table.row)), table.depth
        decided = Term(flows.decided, states, depth)
        yield Block(columns.decisions(table), table.row, (decided,))
        for part in _pieces(len(states)):
            yield from self._stops(table, flows, columns, states[part])
        for part in _pieces(len(table.edge_state)):
            edges = np.arange(len(table.edge_state))[part]
            state, child = table.edge_state[edges], table.edge_child[edges]
            leads = child >= 0
            wanted = Term(flows.decided[state] * table.edge_probability[edges], state, depth[state])
            arrived = Term(np.where(leads, -table.edge_flow[edges], 0.0), child, np.where(leads, depth[child], 0))
            yield Block(self.part_values.part_edges(edges), table.row[state], (wanted, arrived))
        for left, label, at, flow in flows.whole(columns):
            yield Block(left + label, table.row[at], (Term(flow, at, depth[at]),))

    def _stops(self, table: WalkTable, flows: Flows, columns: PartColumns, states: Ints) -> Iterator[Block]:
        depth, row = table.depth[states], table.row[states]
        expected = Term(flows.decided[states] * table.stop[states], states, depth)
        given, learned = columns.stops(table, states), self.part_values.part_stops(states)
        if learned is None:
            yield Block(given, row, (expected,))
            return
        correction = Term(flows.own[states], states, depth + 1)
        yield Block(given, row, (correction,))
        yield Block(learned, row, (expected, correction._replace(amount=-correction.amount)))

    def linearise(self, mean: Floats) -> tuple[dict[str, float], dict[str, Floats]]:
        """Value of each target, and its derivative in the means."""
        n_depths = len(mean)
        before = mean_weight_before(mean) if self.normalize else np.ones(n_depths + 1)
        values, directions = {}, {}
        for name, target in (("acquisition", ACQUISITION), ("misclassification", MISCLASSIFICATION)):
            # numerators with the normaliser of step t, t = 0..T
            step = np.zeros(n_depths + 1)
            step[:-1] += mean[:, _VALUE[target]] + mean[:, _ARRIVE[target]]
            direction = np.zeros_like(mean)
            direction[:, _VALUE[target]] = direction[:, _ARRIVE[target]] = 1 / before[:-1]
            if target == MISCLASSIFICATION:
                step[1:] += mean[:, _WRONG]
                direction[:, _WRONG] = 1 / before[1:]
            if self.normalize:
                pull = -step / before**2
                direction[:, REACH] += pull[:-1]
                direction[:, STOP] += np.cumsum(pull[::-1])[::-1][1:]  # a stop counts in every later normaliser
            values[name] = float((step / before).sum())
            directions[name] = direction
        values["total"] = values["acquisition"] + values["misclassification"]
        directions["total"] = directions["acquisition"] + directions["misclassification"]
        return values, directions
