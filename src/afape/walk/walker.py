"""Walks rows in chunks of bounded memory: exactly if possible, by sampling if a row has too many states."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from .._arguments import check_count
from .._arrays import Ints, merge, tally
from .._processes import in_processes
from ..agents.policy import Policy, check_policy
from .ground import Ground, TableBuilder
from .sampled import sampled_walk
from .table import WalkTable

__all__ = ["WalkOptions", "exact_walk", "walk"]


_FIRST_CHUNK = 1024  # rows; their number of states determines the size of the later chunks
_NARROW = 8  # groups up to which a chunk has the full number of states; wider states have more edges
_MAX_STATES, _TRAJECTORIES = 4096, 64  # limits of a row if there are few rows
_FEWEST_STATES, _FEWEST_TRAJECTORIES = 128, 8  # if there are many; seven groups are always walked exactly
_EXACT, _SAMPLED = 2**19, 2**18  # states of all rows together, walked exactly or by sampling


@dataclass(frozen=True)
class WalkOptions:
    """Options of the walk.

    Parameters
    ----------
    max_states : int, optional
        Rows that reach more sets than this are sampled; 0 samples every row. Default: 4096, fewer if all rows together may
        reach more than half a million sets, but at least 128.
    n_trajectories : int, optional
        Trajectories per sampled row. Default: 64, fewer if there are many rows and groups, but at least 8. A note of the
        result says how much they add to the standard error.
    simulation : policy, optional
        Policy from which trajectories are drawn, renormalised over the available groups. Default: the policy itself.
    chunk_lines : int
        States in memory at a time. Results do not depend on it.
    """

    max_states: int | None = None
    n_trajectories: int | None = None
    simulation: Policy | None = None
    chunk_lines: int = 2**17

    def __post_init__(self) -> None:
        for name, least in (("max_states", 0), ("n_trajectories", 1), ("chunk_lines", 1)):
            if name == "chunk_lines" or getattr(self, name) is not None:
                check_count(name, getattr(self, name), least)
        if self.simulation is not None:
            check_policy(self.simulation, "simulation")

    def within(self, n_rows: int, n_groups: int) -> WalkOptions:
        """Return the options with limits for so many rows, copies included, where the user gave none."""
        n_rows = max(n_rows, 1)
        states = int(np.clip(_EXACT // n_rows, _FEWEST_STATES, _MAX_STATES))
        trajectories = int(np.clip(_SAMPLED // (n_rows * (n_groups + 1)), _FEWEST_TRAJECTORIES, _TRAJECTORIES))
        return replace(
            self,
            max_states=states if self.max_states is None else self.max_states,
            n_trajectories=trajectories if self.n_trajectories is None else self.n_trajectories,
        )


def walk(
    ground: Ground,
    rows: Ints | None = None,
    options: WalkOptions | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
) -> Iterator[WalkTable]:
    """Yield the tables of successive chunks of rows, in the order of the rows.

    With ``n_jobs``, several processes walk the chunks. Results do not depend on chunks or processes.
    """
    options = (options or WalkOptions()).within(1, 0)  # limits of few rows, unless the caller set others
    rows = np.arange(len(ground.available)) if rows is None else rows
    first, rest = np.split(rows, [min(_FIRST_CHUNK, options.chunk_lines)])
    lines = 0
    for table in _walk_chunk(ground, first, options, seed):
        lines += len(table.row)
        yield table
    size = max(options.chunk_lines * len(first) // max(lines, 1), 1)
    chunks = [rest[i : i + size] for i in range(0, len(rest), size)]
    if n_jobs in (None, 1):
        for chunk in chunks:
            yield from _walk_chunk(ground, chunk, options, seed)
        return
    # Processes, not threads: scikit-learn's forests change the global warning filters while they predict, which is not
    # safe in threads. joblib.parallel_config can change the backend.
    tasks = [(ground, chunk, options, seed) for chunk in chunks]
    for tables in in_processes(_listed, tasks, n_jobs, pre_dispatch="n_jobs"):
        yield from tables


def _walk_chunk(ground: Ground, rows: Ints, options: WalkOptions, seed: int) -> Iterator[WalkTable]:
    overflow = rows
    assert options.max_states is not None
    assert options.n_trajectories is not None
    if options.max_states > 0 and len(rows):
        try:
            # A factor of 4, so that a chunk with somewhat more states than expected need not start again.
            n_lines = 4 * options.chunk_lines * _NARROW // max(ground.data.problem.n_groups, _NARROW)
            table, overflow = exact_walk(ground, rows, options.max_states, n_lines)
        except TooManyLinesError:
            for half in np.array_split(rows, 2):
                yield from _walk_chunk(ground, half, options, seed)
            return
        if len(table.row):
            yield table
        del table
    step = max(options.chunk_lines // options.n_trajectories, 1)
    for i in range(0, len(overflow), step):
        yield sampled_walk(ground, overflow[i : i + step], options.n_trajectories, seed, options.simulation)


def _listed(ground: Ground, rows: Ints, options: WalkOptions, seed: int) -> list[WalkTable]:
    return list(_walk_chunk(ground, rows, options, seed))


class TooManyLinesError(Exception):
    """The chunk has too many states and must be divided."""


def exact_walk(ground: Ground, rows: Ints, max_states: int, max_lines: int) -> tuple[WalkTable, Ints]:
    r"""Walk these rows exactly through all sets that the policy reaches.

    The reach r of a set is the probability that a run enters it using only available groups:

    .. math:: r_{S_0} = 1, \qquad r_{S'} = \sum_{S + a = S'} r_S \, \pi(a \mid x_S, S) \, 1(a \text{ available})

    Parameters
    ----------
    ground : Ground
        Rows, available groups, policy and classifier.
    rows : ndarray of int
        Rows to walk.
    max_states : int
        Largest number of states of a row; rows with more are returned as ``overflow``.
    max_lines : int
        Largest number of states of all rows; `TooManyLinesError` if there are more.

    Returns
    -------
    table : WalkTable
        States and edges of the rows with at most ``max_states`` states.
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
        if len(going) > max_states:  # a set is reached along at most as many edges as its depth
            of_edge = np.searchsorted(rows, row[state[going]])
            many = states_of + np.bincount(of_edge, minlength=len(rows)) / builder.depth > max_states
            overflow.append(rows[many])
            going = going[~many[of_edge]]
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
    lost = np.unique(np.concatenate(overflow)) if overflow else np.array([], dtype=np.intp)
    return builder.table().without(lost), lost
