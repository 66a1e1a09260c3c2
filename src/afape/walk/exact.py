"""The exact walk: every set that the policy reaches in a row, breadth first."""

from __future__ import annotations

import numpy as np

from ..arrays import Ints, tally
from .builder import TableBuilder
from .ground import Ground
from .sets import merge
from .table import WalkTable

__all__ = ["TooManyLinesError", "exact_walk"]


class TooManyLinesError(Exception):
    """The chunk grew past its budget of lines and has to be walked in parts."""


def exact_walk(ground: Ground, rows: Ints, max_states: int, max_lines: int) -> tuple[WalkTable, Ints]:
    r"""Walk these rows through the lattice of sets.

    .. math:: r_{S_0} = 1, \qquad r_{S'} = \sum_{S + a = S'} r_S \, \pi(a \mid x_S, S) \, 1(a \text{ available})

    Returns
    -------
    table : WalkTable
        Lines of the rows whose states stay within ``max_states``.
    overflow : ndarray of int
        The other rows.
    """
    builder = TableBuilder(ground)
    row, acquired = rows, ground.start[rows]
    reach = blocked_reach = np.ones(len(rows))
    states_of = np.ones(len(rows), dtype=np.intp)
    overflow: list[Ints] = []
    while len(row):
        step = builder.visit(row, acquired, reach)
        p, blocked = step.probability, step.blocked
        builder.stop(reach * p[:, -1], blocked_reach * blocked[:, -1])
        state, group = step.state, step.group
        flow = reach[state] * p[state, group] * step.edge_available
        blocked_flow = blocked_reach[state] * blocked[state, group]
        builder.flow(flow, blocked_flow)
        going = np.flatnonzero((flow > 0) | (blocked_flow > 0))
        child_row, child_set = row[state[going]], step.target(acquired, going)
        first, inverse = merge(child_row, child_set)
        builder.lead(going, inverse)
        row, acquired = child_row[first], child_set[first]
        reach = tally(inverse, flow[going], len(first))
        blocked_reach = tally(inverse, blocked_flow[going], len(first))
        if len(rows) > 1 and builder.n_lines + len(row) > max_lines:
            raise TooManyLinesError
        place = np.searchsorted(rows, row)
        states_of += np.bincount(place, minlength=len(rows))
        keep = states_of[place] <= max_states
        if not keep.all():
            overflow.append(np.unique(row[~keep]))
            builder.abandon(keep)
            row, acquired = row[keep], acquired[keep]
            reach, blocked_reach = reach[keep], blocked_reach[keep]
    lost = np.concatenate(overflow) if overflow else np.array([], dtype=np.intp)
    return builder.table().without(lost), lost
