"""The sampled walk: trajectories through available groups, weighted by likelihood ratios of the policy."""

from __future__ import annotations

import numpy as np

from .._arrays import Bools, Floats, Ints, any_of, merge, tally
from ..agents.policy import Policy, ask_policy
from .ground import Ground, Step, TableBuilder, block
from .table import WalkTable

__all__ = ["sampled_walk"]


def sampled_walk(
    ground: Ground, rows: Ints, n_trajectories: int, seed: int, simulation: Policy | None = None
) -> WalkTable:
    r"""Draw ``n_trajectories`` trajectories per row from the simulation policy, renormalised over the available groups.

    The flow of each taken edge and each stop is

    .. math:: \frac1M \sum_{m=1}^M 1(\text{taken}) \prod_{\tau \le t} \frac{\pi(a_\tau)}{\pi'_{sim}(a_\tau)}

    including the ratio of this step. The draws of a row depend only on the seed and its place in the canonical order of rows,
    and actions are drawn in the order of their names; so chunks, jobs, and the order of rows and groups do not matter.
    """
    builder, place, by_name = TableBuilder(ground), ground.data.place, ground.data.problem.groups_by_name
    row, acquired = rows, ground.start[rows]
    # Trajectories: their state in this depth, and their two likelihood ratios divided by M.
    at = np.repeat(np.arange(len(rows)), n_trajectories)
    number = np.tile(np.arange(n_trajectories), len(rows))
    weight = blocked_weight = np.full(len(at), 1.0 / n_trajectories)
    reach = np.ones(len(rows))
    while len(row):
        step = builder.visit(row, acquired, reach)
        m, width = step.probability.shape
        q = step.blocked if step.forced else _simulated(ground, simulation, step, row, acquired)
        order = np.arange(width) if step.forced else np.append(by_name, width - 1)
        draw = _uniform(seed, place[row[at]] * n_trajectories + number, builder.depth, width + 1)
        action = order[_draw(q[np.ix_(at, order)], draw)]
        if step.forced:  # a row without its free groups ends at the root
            alive = step.edge_available[at]
            at, action, number = at[alive], action[alive], number[alive]
            weight, blocked_weight = weight[alive], blocked_weight[alive]
        taken = q[at, action]
        weight = weight * step.probability[at, action] / taken
        blocked_weight = blocked_weight * step.blocked[at, action] / taken
        # A simulation policy may take actions that the policy never takes; such a trajectory has no flow and ends here.
        alive = (weight > 0) | (blocked_weight > 0)
        at, action, number = at[alive], action[alive], number[alive]
        weight, blocked_weight = weight[alive], blocked_weight[alive]
        cell = at * width + action
        flow = tally(cell, weight, m * width).reshape(m, width)
        blocked_flow = tally(cell, blocked_weight, m * width).reshape(m, width)
        builder.stop(flow[:, -1], blocked_flow[:, -1])
        builder.flow(flow[step.state, step.group], blocked_flow[step.state, step.group])
        going = action < width - 1
        at, action, number = at[going], action[going], number[going]
        weight, blocked_weight = weight[going], blocked_weight[going]
        # Only edges that a trajectory takes lead to a state; edge_of gives the line of (state, action).
        edge_of = np.full((m, width), -1, dtype=np.intp)
        edge_of[step.state, step.group] = np.arange(len(step.state))
        edge = edge_of[at, action]
        used, edge_index = np.unique(edge, return_inverse=True)
        child_row, child_set = row[step.state[used]], step.target(acquired, used)
        first, inverse = merge(child_row, child_set)
        builder.lead(used, inverse)
        at = inverse[edge_index]
        row, acquired = child_row[first], child_set[first]
        reach = tally(at, weight, len(first))
    return builder.table(sampled=rows)


def _simulated(ground: Ground, simulation: Policy | None, step: Step, row: Ints, acquired: Bools) -> Floats:
    """Probabilities of the blocked simulation policy; must be positive for available actions that the policy may take."""
    if simulation is None:
        return step.blocked
    seen = np.where(acquired[:, ground.data.column_group], ground.values[row], np.nan)
    available = ground.available[row]
    q = block(ask_policy(simulation, seen, acquired, row), available)
    possible = step.probability > 0
    possible[:, :-1] &= available
    bad = any_of(possible & (q <= 0))
    if bad.any():
        first = int(np.flatnonzero(bad)[0])
        raise ValueError(
            f"'simulation' must give positive probability to every action that the policy may take, but "
            f"{type(simulation).__name__} gives 0 in {int(bad.sum())} of {len(bad)} states, first in row "
            f"{int(row[first])} with groups {np.flatnonzero(acquired[first]).tolist()} acquired."
        )
    # If no group that the policy wants is available, its trajectory ends, whatever the simulation policy does.
    return np.where(any_of(possible)[:, None], q, step.blocked)


def _draw(q: Floats, u: Floats) -> Ints:
    """Draw actions by inversion of the distribution functions; rounding never gives an action of probability 0."""
    cumulative = np.cumsum(q, axis=1)
    action = (u[:, None] * cumulative[:, -1:] >= cumulative).sum(axis=1)
    last = q.shape[1] - 1 - (q[:, ::-1] > 0).argmax(axis=1)
    return np.asarray(np.minimum(action, last), dtype=np.intp)


def _uniform(seed: int, trajectory: Ints, depth: int, n_depths: int) -> Floats:
    """Uniform numbers by SplitMix64, from a counter of trajectory and depth, so that chunks do not matter."""
    with np.errstate(over="ignore"):
        counter = trajectory.astype(np.uint64) * np.uint64(n_depths) + np.uint64(depth)
        z = np.uint64(seed) + (counter + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return np.asarray((z >> np.uint64(11)).astype(np.float64) * 2.0**-53)
