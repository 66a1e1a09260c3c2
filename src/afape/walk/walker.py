"""Walks many rows in chunks of bounded memory, exactly where it can and by sampling where it must."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed

from ..agents.policy import Policy
from ..arrays import Ints, merge, tally
from .ground import Ground, TableBuilder
from .sampled import sampled_walk
from .table import WalkTable

__all__ = ["WalkOptions", "exact_walk", "walk"]


_FIRST_CHUNK = 1024  # rows; how many lines these make decides the size of the chunks that follow


@dataclass(frozen=True)
class WalkOptions:
    """How rows are walked.

    Parameters
    ----------
    max_states : int
        A row that reaches more sets than this is sampled instead; 0 samples every row.
    n_trajectories : int
        Trajectories drawn for a sampled row.
    simulation : policy, optional
        Policy to draw them from; default the policy itself. It is blocked where a group is not available.
    chunk_lines : int
        States held at a time; bounds the memory. Results do not depend on it.
    """

    max_states: int = 4096
    n_trajectories: int = 64
    simulation: Policy | None = None
    chunk_lines: int = 2**17

    def __post_init__(self) -> None:
        for name, least in (("max_states", 0), ("n_trajectories", 1), ("chunk_lines", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
                raise ValueError(f"{name!r} must be a whole number of at least {least}, but is {value!r}.")


def walk(
    ground: Ground,
    rows: Ints | None = None,
    options: WalkOptions | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
) -> Iterator[WalkTable]:
    """Tables of successive chunks of rows.

    Processes share the chunks when ``n_jobs`` asks for them; the tables come in the order of the rows and are the
    same whatever the chunks.
    """
    options = options or WalkOptions()
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
    # Processes, not threads: scikit-learn's forests swap the global warning filters while they predict, and two
    # threads at it leave them in disorder. joblib.parallel_config changes the backend for those who know better.
    pool = Parallel(n_jobs=n_jobs, return_as="generator", pre_dispatch="n_jobs")
    for tables in pool(delayed(_listed)(ground, chunk, options, seed) for chunk in chunks):
        yield from tables


def _walk_chunk(ground: Ground, rows: Ints, options: WalkOptions, seed: int) -> Iterator[WalkTable]:
    overflow = rows
    if options.max_states > 0 and len(rows):
        try:
            # Some slack: a chunk a little larger than the first one promised is no reason to start over.
            table, overflow = exact_walk(ground, rows, options.max_states, 4 * options.chunk_lines)
        except TooManyLinesError:
            for part in np.array_split(rows, 2):
                yield from _walk_chunk(ground, part, options, seed)
            return
        if len(table.row):
            yield table
        del table
    step = max(options.chunk_lines // options.n_trajectories, 1)
    for i in range(0, len(overflow), step):
        part = overflow[i : i + step]
        yield sampled_walk(ground, part, options.n_trajectories, seed, options.simulation)


def _listed(ground: Ground, rows: Ints, options: WalkOptions, seed: int) -> list[WalkTable]:
    return list(_walk_chunk(ground, rows, options, seed))


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
