"""Walks of policies within budgets: the walk of the largest budget gives those of the smaller ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from .._arrays import Bools, Floats, tally
from ..agents.budgets import BoundBudget, within
from ..agents.policy import Policy
from .ground import Ground
from .table import FREE, Tables, TableStore, WalkTable

__all__ = ["SharedWalks", "limited"]


@dataclass(eq=False)
class SharedWalks:
    """Walks of several policies, in which budgets of one policy share one walk.

    Parameters
    ----------
    policies : sequence of Policy
        The bound policies.
    ground : callable
        ``ground(policy, everywhere)`` returns the `Ground` of a walk.
    walk : callable
        ``walk(ground)`` yields its tables.
    store : TableStore
        Keeps the walks of the largest budgets.
    predicts : bool
        True if the classifier is asked in every state.
    """

    policies: Sequence[Policy]
    ground: Callable[[Policy, bool], Ground]
    walk: Callable[[Ground], Iterable[WalkTable]]
    store: TableStore
    predicts: bool = False
    widest: list[tuple[BoundBudget, Tables]] = field(default_factory=list)

    def tables(self, policy: Policy) -> Iterable[WalkTable]:
        """Return the tables of one of the policies.

        Budgets of sampled walks have walks of their own, because trajectories are drawn from each budget.
        """
        alike = [p for p in self.policies if isinstance(p, BoundBudget) and p.alike(policy)]
        if not isinstance(policy, BoundBudget) or len(alike) < 2:
            return self.walk(self.ground(policy, False))
        tables = next((t for p, t in self.widest if p.alike(policy)), None)
        if tables is None:
            largest = max(alike, key=lambda p: p.limit)
            tables = self.store.keep(self.walk(self.ground(largest, True)))
            self.widest.append((largest, tables))
        if any(len(table.sampled) for table in tables):
            return self.walk(self.ground(policy, False))
        prices = self.ground(policy, False).data.problem.prices
        return (limited(table, policy.amounts, policy.limit, prices, self.predicts) for table in tables)


def limited(table: WalkTable, amounts: Floats, limit: float, prices: Floats, predicts: bool) -> WalkTable:
    r"""Return the table that a walk within a smaller budget gives.

    A set S within the budget was reached through sets within the budget, because no amount is negative. So its reach is
    unchanged, and only decisions change:

    .. math:: \pi_B(stop \mid S) = \pi(stop \mid S) + \sum_{a: S + a \text{ exceeds } B} \pi(a \mid S)

    Parameters
    ----------
    table : WalkTable
        An exact walk within the larger budget, with the classifier and the outcomes asked in every state.
    amounts : ndarray of shape (G,)
        What each group takes of the budget.
    limit : float
        The smaller budget.
    prices : ndarray of shape (G,)
        Prices of the groups.
    predicts : bool
        True if the table must keep predictions in states where no run stops.
    """
    spent = (table.acquired * amounts).sum(axis=1)
    states = within(spent, limit)
    start = table.edge_state
    edges = states[start] & within(spent[start] + np.append(amounts, 0.0)[table.edge_group], limit)
    cut = states[start] & ~edges
    stop = table.stop + tally(start[cut], table.edge_probability[cut], len(table.row))
    price = tally(
        start[edges], (table.edge_probability * np.append(prices, 0.0)[table.edge_group])[edges], len(table.row)
    )
    smaller = replace(table, stop=stop, stop_flow=table.reach * stop, price=price).restricted(states, edges)
    return _asked_where_runs_stop(_with_blocked_flow(smaller), predicts)


def _with_blocked_flow(table: WalkTable) -> WalkTable:
    """Return the table with the flow of the policy that is renormalised over the available groups, see `block`."""
    n, start = len(table.row), table.edge_state
    probability = table.edge_probability * table.edge_available
    forced = np.zeros(n, dtype=bool)
    forced[start[table.edge_group == FREE]] = True
    mass = table.stop + tally(start, probability, n)
    nothing = (mass == 0) & ~forced
    divisor = np.where(forced | nothing, 1.0, mass)
    reach = (table.depth == 0).astype(float)
    flow = np.zeros(len(start))
    depth = table.depth[start]
    for d in range(table.n_depths):
        here = np.flatnonzero(depth == d)
        flow[here] = reach[start[here]] * probability[here] / divisor[start[here]]
        on = here[table.edge_child[here] >= 0]
        reach += tally(table.edge_child[on], flow[on], n)
    stop = np.where(nothing, 1.0, table.stop / divisor)
    return replace(table, blocked_stop_flow=reach * stop, edge_blocked_flow=flow)


def _asked_where_runs_stop(table: WalkTable, predicts: bool) -> WalkTable:
    """Return the table without outcomes, and without predictions unless ``predicts``, where no run stops."""
    stops: Bools = (table.stop > 0) | (table.blocked_stop_flow > 0)
    outcomes = np.where(stops[:, None], table.outcomes, np.nan)
    if predicts:
        return replace(table, outcomes=outcomes)
    cost, predicted = np.where(stops, table.cost, np.nan), np.where(stops, table.predicted, -1)
    return replace(table, outcomes=outcomes, cost=cost, predicted=predicted)
