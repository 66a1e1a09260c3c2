"""What a policy does, set by set: how many runs come by, stop there, or go on with which group."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pandas as pd

from ..arrays import Bools, tally
from ..data import Retrospective
from ..nuisance.weights import View
from ..walk import FREE, WalkTable

__all__ = ["NO_PATHS", "Paths", "paths_of"]

_STOPS = ["set", "groups", "share", "stops", "price", "misclassification"]
_STEPS = ["set", "group", "to", "share"]


class Paths(NamedTuple):
    """Estimated flow of runs over the sets of groups that a policy acquires.

    Attributes
    ----------
    sets : DataFrame
        One line per set, in the order of acquisition: costly groups in it, ``share`` of runs that come by, share of runs that
        ``stops`` there (NaN where no row that has the set tells), price of the set, and mean misclassification cost of runs that
        stop there.
    steps : DataFrame
        One line per set and group acquired next: where it leads and the share of runs that go there.
    """

    sets: pd.DataFrame
    steps: pd.DataFrame


NO_PATHS = Paths(pd.DataFrame(columns=_STOPS), pd.DataFrame(columns=_STEPS))


class _Flows:
    """Weighted flow out of one set."""

    def __init__(self, n_groups: int) -> None:
        self.stop, self.cost = 0.0, 0.0
        self.next = np.zeros(n_groups)

    @property
    def total(self) -> float:
        return self.stop + float(self.next.sum())


def paths_of(data: Retrospective, tables: Iterable[WalkTable], view: View) -> Paths:
    r"""Shares of runs by set, from the walk over what is recorded and the weights of the view.

    With :math:`w_S` the weight of a row in S and :math:`r_S` its reach, a run in S acquires a with probability

    .. math:: P(a \mid S) = \frac{\sum_i w_S r_S \pi(a \mid S)}{\sum_i w_S r_S},

    and these probabilities are multiplied along the sets from the start. So shares of runs that stop sum to 1, but for runs
    into sets that no row has.
    """
    if view.refusal:
        return NO_PATHS
    flows: dict[bytes, _Flows] = {}
    for table in tables:
        _add(flows, table, view, data)
    return _shares(data, flows)


def _add(flows: dict[bytes, _Flows], table: WalkTable, view: View, data: Retrospective) -> None:
    weighted, n_groups = view.weigh(table), data.problem.n_groups
    weight = np.zeros(len(table.row))
    weight[weighted.lines] = np.where(np.isfinite(weighted.weight), weighted.weight, 0.0)
    n = len(table.sets)
    stop = weight * table.stop_flow
    cost = stop * np.where(np.isnan(table.cost), 0.0, table.cost)
    along = (weight * table.reach)[table.edge_state] * table.edge_probability
    costly = table.edge_group != FREE
    cell = table.set_index[table.edge_state[costly]] * n_groups + table.edge_group[costly]
    onward = tally(cell, along[costly], n * n_groups).reshape(n, n_groups)
    stops, costs = tally(table.set_index, stop, n), tally(table.set_index, cost, n)
    for u in range(n):
        mine = flows.setdefault(table.sets[u].tobytes(), _Flows(n_groups))
        mine.stop += float(stops[u])
        mine.cost += float(costs[u])
        mine.next += onward[u]


def _shares(data: Retrospective, flows: dict[bytes, _Flows]) -> Paths:
    """Multiply the probabilities of going on along the sets, from the free groups up."""
    problem = data.problem
    start = problem.free.copy()
    share: dict[bytes, float] = {start.tobytes(): 1.0}
    sets: list[tuple[object, ...]] = []
    steps: list[tuple[object, ...]] = []
    names = {start.tobytes(): _name(problem.group_names, start & ~problem.free)}
    # A step adds one group, so that first in, first out is in order of size: a set comes after every set that leads to it.
    waiting = deque([start])
    while waiting:
        here = waiting.popleft()
        found, mine = flows.get(here.tobytes()), share[here.tobytes()]
        name, total = names[here.tobytes()], 0.0 if found is None else found.total
        stops = np.nan if found is None or total <= 0 else mine * found.stop / total
        wrong = np.nan if found is None or found.stop <= 0 else found.cost / found.stop
        size, price = int((here & ~problem.free).sum()), float(problem.prices[here].sum())
        sets.append((name, size, mine, stops, price, wrong))
        if found is None or total <= 0:
            continue
        for g in np.flatnonzero(found.next > 0):
            onward, there = mine * float(found.next[g]) / total, _with(here, int(g))
            key = there.tobytes()
            if key not in share:
                share[key], names[key] = 0.0, _name(problem.group_names, there & ~problem.free)
                waiting.append(there)
            share[key] += onward
            steps.append((name, problem.group_names[g], names[key], onward))
    return Paths(pd.DataFrame(sets, columns=_STOPS), pd.DataFrame(steps, columns=_STEPS))


def _with(groups: Bools, g: int) -> Bools:
    more = groups.copy()
    more[g] = True
    return more


def _name(names: tuple[str, ...], groups: Bools) -> str:
    return " + ".join(np.array(names, dtype=object)[groups]) or "(free groups)"
