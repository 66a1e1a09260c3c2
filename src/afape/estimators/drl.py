"""DRL-Semi and DRL-Semi-Miss: doubly robust, consistent if either the propensity or the action values are right."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .._arrays import Ints
from ..walk.columns import Columns, added
from ..walk.table import WalkTable
from .booking import Booking, Lines, Valued
from .evidence import Evidence
from .flows import Flows
from .weighted import Weighted

__all__ = ["DoublyRobust", "doubly_robust"]

_AT_ONCE = 2**16  # lines per piece, to limit memory


def doubly_robust(evidence: Evidence, scored: bool = False) -> Weighted:
    """Apply DRL in the view of the evidence; ``scored`` asks for influence values in bootstrap replicates too."""
    return Weighted(evidence, DoublyRobust(evidence), evidence.recipe.normalize, scored)


def _pieces(length: int) -> Iterator[Ints]:
    for start in range(0, length, _AT_ONCE):
        yield np.arange(start, min(start + _AT_ONCE, length))


@dataclass(frozen=True, eq=False)
class DoublyRobust:
    r"""Double reinforcement learning in the semi-offline view (von Kleist et al. 2023, estimator DRL-Semi).

    Per row,

    .. math::
       \sum_S r_S \Big\{ w_S V_S + \pi(stop|S) \, w_S (C_S - Q_{S,stop})
       + \sum_{a \text{ recorded}} \pi(a|S) \, w_{S+a} (c_a - Q_{S,a}) \Big\}

    If normalised, V is divided by the mean weight before the decision, and the corrections by the mean weight after it. V of
    a state includes the cost of runs that end there because the next set is unsupported, so these runs need no correction.

    The estimate is consistent if the propensity or the action values are right. Its interval needs more: with a wrong
    propensity the error of the action values is of first order. It is included if they are learned by ridge regression.

    Parameters
    ----------
    evidence : Evidence
        Evidence with action values.
    """

    evidence: Evidence

    def lines(self, table: WalkTable, flows: Flows, columns: Columns) -> Iterator[Lines]:
        """Yield decisions and stops, then the action values of every edge with their corrections."""
        values, depth = self.evidence.action_values(columns), table.depth
        states = np.arange(len(table.row))
        yield Lines(columns.decisions(table), (Booking(flows.decided, states, depth),))
        for at in _pieces(len(states)):
            expected = Booking(flows.decided[at] * table.stop[at], at, depth[at])
            given, learned = columns.stops(table, at), values.stops(at)
            if learned is None:  # Q_{S,stop} is C_S itself
                yield Lines(given, (expected,))
            else:
                correction = Booking(flows.own[at], at, depth[at] + 1)
                yield Lines(given, (correction,))
                yield Lines(learned, (expected, correction._replace(flow=-correction.flow)), Valued(stops=at))
        for edges in _pieces(len(table.edge_state)):
            state, child = table.edge_state[edges], table.edge_child[edges]
            # In c_a - Q_{S,a} the price cancels. What remains is minus the expected cost after the edge.
            arrived = np.flatnonzero(child >= 0)
            wanted = Booking(flows.decided[state] * table.edge_probability[edges], state, depth[state])
            corrected = Booking(-table.edge_flow[edges[arrived]], child[arrived], depth[child[arrived]], line=arrived)
            yield Lines(values.edges(edges), (wanted, corrected), Valued(edges=edges))
        for left, stop, at, flow in flows.whole(columns):
            yield Lines(added(left, stop), (Booking(flow, at, depth[at]),))
