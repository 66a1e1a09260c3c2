"""Paths of the runs of a policy: how many runs reach each set, stop there, or acquire which group next."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from .._arrays import Bools, Floats, tally
from .._copies import HandsOutCopies
from ..data.problem import Problem
from ..data.retrospective import Retrospective
from ..propensity.weights import View
from ..walk.table import FREE, WalkTable

__all__ = ["NO_PATHS", "Paths", "paths_of"]

_STOPS = ["set", "groups", "share", "stops", "price", "misclassification"]
_MOST_SETS = 256  # sets of one size
_STEPS = ["set", "group", "to", "share"]


@dataclass(frozen=True, eq=False)
class Paths(HandsOutCopies):
    """Estimated flow of runs over the sets of groups that a policy acquires.

    Attributes
    ----------
    sets : DataFrame
        One line per set, in the order of acquisition: number of groups with a price, ``share`` of runs that reach it, share
        of runs that stop there (``stops``; NaN if no row represents the set), price of the set, and mean misclassification
        cost of the runs that stop there.
    steps : DataFrame
        One line per set and next group: the set that this leads ``to``, and the share of runs that go there.

    Of the sets of one size, only the 256 that most runs reach are listed and followed.
    """

    sets: pd.DataFrame
    steps: pd.DataFrame


NO_PATHS = Paths(pd.DataFrame(columns=_STOPS), pd.DataFrame(columns=_STEPS))


def paths_of(data: Retrospective, tables: Iterable[WalkTable], view: View) -> Paths:
    r"""Shares of runs by set, from the walk over recorded groups and the weights of the view.

    With :math:`w_S` the weight of a row in S, times its row weight, and :math:`r_S` its reach, a run in S acquires a with
    probability

    .. math:: P(a \mid S) = \frac{\sum_i w_S r_S \pi(a \mid S)}{\sum_i w_S r_S}.

    These probabilities are multiplied along the sets from the start. So the shares of runs that stop sum to 1, except for
    runs into sets that no row has.
    """
    if view.refusal:
        return NO_PATHS
    flows: dict[bytes, Floats] = {}
    for table in tables:
        for acquired, out in zip(table.sets, _flow_out(table, view, data), strict=True):
            flows[acquired.tobytes()] = flows.get(acquired.tobytes(), 0.0) + out
    return _paths(data.problem, flows)


def _flow_out(table: WalkTable, view: View, data: Retrospective) -> Floats:
    """Weighted flow out of each set of the table, (u, G + 2): to each group, to a stop, and cost of the stops."""
    weighted, n, n_groups = view.weigh(table), len(table.sets), data.problem.n_groups
    weight = np.zeros(len(table.row))
    weight[weighted.lines] = np.where(np.isfinite(weighted.weight), weighted.weight, 0.0)
    if data.weight is not None:
        weight *= data.weight[table.row]
    stop = weight * table.stop_flow
    cost = stop * np.where(np.isnan(table.cost), 0.0, table.cost)
    along = (weight * table.reach)[table.edge_state] * table.edge_probability
    costly = table.edge_group != FREE
    cell = table.set_index[table.edge_state[costly]] * n_groups + table.edge_group[costly]
    onward = tally(cell, along[costly], n * n_groups).reshape(n, n_groups)
    return np.column_stack([onward, tally(table.set_index, stop, n), tally(table.set_index, cost, n)])


def _paths(problem: Problem, flows: dict[bytes, Floats]) -> Paths:
    """Multiply the probabilities along the sets, from the free groups on; ``flows`` are (G + 2,) by set."""
    sets: list[tuple[object, ...]] = []
    steps: list[tuple[object, ...]] = []
    # A step adds one group, so the sets of one size come after every set that leads to them.
    reached: dict[bytes, float] = {problem.free.tobytes(): 1.0}
    while reached:
        new: dict[bytes, float] = {}
        found: list[tuple[str, str, bytes, float]] = []
        for key, mine in reached.items():
            here, flow = np.frombuffer(key, dtype=bool), flows.get(key, np.zeros(problem.n_groups + 2))
            onward, stop, cost = flow[:-2].copy(), float(flow[-2]), float(flow[-1])
            for g in np.flatnonzero(~problem.free & ~problem.costly):  # the label: a run stops with it
                ended = flows.get((here | (np.arange(len(here)) == g)).tobytes(), np.zeros(problem.n_groups + 2))
                cost += float(onward[g] * ended[-1] / ended[-2]) if ended[-2] > 0 else 0.0
                stop, onward[g] = stop + float(onward[g]), 0.0
            total, name = stop + float(onward.sum()), _name(problem, here)
            stops = mine * stop / total if total > 0 else np.nan
            price, wrong = float(problem.prices[here].sum()), cost / stop if stop > 0 else np.nan
            sets.append((name, int((here & ~problem.free).sum()), mine, stops, price, wrong))
            for g in np.flatnonzero(onward > 0):
                there = here.copy()
                there[g] = True
                moved = mine * float(onward[g]) / total
                new[there.tobytes()] = new.get(there.tobytes(), 0.0) + moved
                found.append((name, problem.group_names[g], there.tobytes(), moved))
        kept = set(sorted(new, key=lambda key: -new[key])[:_MOST_SETS])
        reached = {key: share for key, share in new.items() if key in kept}
        names = {key: _name(problem, np.frombuffer(key, dtype=bool)) for key in kept}
        steps += [(name, group, names[key], moved) for name, group, key, moved in found if key in kept]
    return Paths(pd.DataFrame(sets, columns=_STOPS), pd.DataFrame(steps, columns=_STEPS))


def _name(problem: Problem, acquired: Bools) -> str:
    return " + ".join(np.array(problem.group_names, dtype=object)[acquired & ~problem.free]) or "(free groups)"
