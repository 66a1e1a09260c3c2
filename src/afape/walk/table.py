"""The table that every estimator reduces: one line a state, one line an edge."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from ..arrays import Bools, Floats, Ints
from .sets import unique_sets

__all__ = ["FREE", "WalkTable"]

FREE = -1  # the group of the forced edge that reveals all free groups at once


@dataclass(frozen=True, eq=False)
class WalkTable:
    """States and edges that a policy reaches in a chunk of rows.

    States are (row, set) pairs. *Flow* is probability under the policy, over what is available in the row;
    *blocked* flow is probability under the policy renormalised over what is available. In a sampled walk both
    are means over trajectories of the likelihood ratio, this step's ratio included.
    """

    row: Ints  # (s,) the row of the data
    acquired: Bools  # (s, G)
    depth: Ints  # (s,) decisions taken so far
    reach: Floats  # (s,) r_S, the incoming flow
    stop: Floats  # (s,) pi(stop | S)
    stop_flow: Floats  # (s,) r_S pi(stop | S)
    blocked_stop_flow: Floats  # (s,)
    price: Floats  # (s,) expected price of the next decision, sum over all wanted a of pi(a | S) c_a
    cost: Floats  # (s,) C_S, NaN where nobody stops
    edge_state: Ints  # (e,) the state that the edge leaves
    edge_group: Ints  # (e,) the group it acquires, or FREE
    edge_probability: Floats  # (e,) pi(a | S), recorded or not
    edge_available: Bools  # (e,)
    edge_flow: Floats  # (e,) 0 where not available
    edge_blocked_flow: Floats  # (e,)
    edge_child: Ints  # (e,) the state it leads to, -1 where there is no flow
    sampled: Ints  # rows whose states were sampled, not enumerated

    @cached_property
    def _unique(self) -> tuple[Bools, Ints]:
        return unique_sets(self.acquired)

    @property
    def sets(self) -> Bools:
        """Distinct sets of the states, (u, G)."""
        return self._unique[0]

    @property
    def set_index(self) -> Ints:
        """Place of each state's set in ``sets``."""
        return self._unique[1]

    @property
    def n_depths(self) -> int:
        """One more than the greatest depth."""
        return int(self.depth.max()) + 1 if len(self.depth) else 0

    def edge_sets(self, free: Bools) -> tuple[Bools, Ints]:
        """Distinct sets that edges lead to (u, G), and the place of each edge's among them.

        By way of the few pairs of set and group that occur, not edge by edge.
        """
        n_groups = self.acquired.shape[1]
        code = self.set_index[self.edge_state] * (n_groups + 1) + self.edge_group + 1
        present = np.flatnonzero(np.bincount(code, minlength=len(self.sets) * (n_groups + 1)))
        target, group = self.sets[present // (n_groups + 1)].copy(), present % (n_groups + 1) - 1
        plain = np.flatnonzero(group != FREE)
        target[plain, group[plain]] = True
        target[group == FREE] |= free
        sets, index = unique_sets(target)
        place = np.zeros(len(self.sets) * (n_groups + 1), dtype=np.intp)
        place[present] = index
        return sets, place[code]

    def without(self, rows: Ints) -> WalkTable:
        """Drop the lines of these rows."""
        return self if len(rows) == 0 else self._states(~np.isin(self.row, rows))

    def at_depth_zero(self) -> WalkTable:
        """Only where rows start, with the edges that leave from there, leading nowhere."""
        return self._states(self.depth == 0)

    def _states(self, keep: Bools) -> WalkTable:
        """Some states with their edges; an edge to a state that is not kept leads nowhere."""
        place = np.cumsum(keep) - 1
        edges = keep[self.edge_state]
        parts = {}
        for field in fields(self):
            values = getattr(self, field.name)
            if field.name == "sampled":
                parts[field.name] = values
            else:
                parts[field.name] = values[edges if field.name.startswith("edge_") else keep]
        parts["edge_state"] = place[parts["edge_state"]]
        child = parts["edge_child"]
        parts["edge_child"] = np.where((child >= 0) & keep[child], place[child], -1)
        return WalkTable(**parts)

    @staticmethod
    def concatenate(tables: list[WalkTable]) -> WalkTable:
        """One table of all, for estimators that learn from every row."""
        if len(tables) == 1:
            return tables[0]
        shift = np.cumsum([0] + [len(t.row) for t in tables[:-1]])
        parts = {}
        for field in fields(WalkTable):
            columns = [getattr(t, field.name) for t in tables]
            if field.name == "edge_state":
                columns = [c + s for c, s in zip(columns, shift, strict=True)]
            elif field.name == "edge_child":
                columns = [np.where(c >= 0, c + s, -1) for c, s in zip(columns, shift, strict=True)]
            parts[field.name] = np.concatenate(columns)
        return WalkTable(**parts)
