"""Flow of a policy's runs through the states of a table, and the amounts of the runs in every state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from .._arrays import Floats, Ints
from ..walk.columns import Columns, Matrix, added
from ..walk.table import WalkTable
from .endings import Endings

__all__ = ["Flows", "state_amounts"]


class Ended(NamedTuple):
    """Amounts of runs that end because the next set is unsupported."""

    left: Matrix  # (l, P) amounts of the acquisitions that may still follow
    stop: Matrix  # (l, P) amounts of the stop
    state: Ints  # (l,) state in which they end
    flow: Floats  # (l,) flow that ends


@dataclass(frozen=True, eq=False)
class Flows:
    """Flow through the states of a table. Runs that want an unsupported set end in their present set.

    Attributes
    ----------
    reach : ndarray of shape (s,)
        r_S, incoming flow.
    decided : ndarray of shape (s,)
        Flow that makes a decision in each state.
    own : ndarray of shape (s,)
        Flow that stops because the policy wants to.
    stop : ndarray of shape (s,)
        Flow that stops, because the policy wants to or because the next set is unsupported.
    """

    table: WalkTable
    reach: Floats
    decided: Floats
    own: Floats
    stop: Floats
    ends: Endings | None = None

    @staticmethod
    def of(table: WalkTable, ends: Endings | None = None) -> Flows:
        """Compute the flow of the policy's runs."""
        if ends is None:
            return Flows(table, table.reach, table.reach, table.stop_flow, table.stop_flow)
        reach, decided = np.where(ends.whole, 1.0, table.reach), np.where(ends.whole, 0.0, table.reach)
        own = np.where(ends.whole, 0.0, table.stop_flow)
        return Flows(table, reach, decided, own, own + ends.flow, ends)

    def lost(self, columns: Columns) -> Iterator[Ended]:
        """Yield the runs that end because the next set is unsupported."""
        if self.ends is not None and len(self.ends.edges):
            edges = self.ends.edges
            left, stop = columns.lost(self.table, edges)
            yield Ended(left, stop, self.table.edge_state[edges], self.ends.edge_flow)

    def whole(self, columns: Columns) -> Iterator[Ended]:
        """Yield the rows that start in an unsupported set."""
        if self.ends is not None and self.ends.whole.any():
            states = np.flatnonzero(self.ends.whole)
            left, stop = columns.whole(self.table.row[states])
            yield Ended(left, stop, states, np.ones(len(states)))


def state_amounts(flows: Flows, columns: Columns) -> Matrix:
    """Return the amounts of the runs in every state, (s, P): the next decision, stops, and runs that end there."""
    table, n_states = flows.table, len(flows.reach)

    def placed(flow: Floats, state: Ints) -> csr_array:
        return csr_array((flow, (state, np.arange(len(state)))), shape=(n_states, len(state)))

    states, stops = np.arange(n_states), np.flatnonzero(flows.own)
    out: Any = placed(flows.decided, states) @ columns.decisions(table)
    out = out + placed(flows.own[stops], stops) @ columns.stops(table, stops)
    for left, stop, state, flow in (*flows.lost(columns), *flows.whole(columns)):
        out = out + placed(flow, state) @ added(left, stop)
    return out  # type: ignore[no-any-return]
