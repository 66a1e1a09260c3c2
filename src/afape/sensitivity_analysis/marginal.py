"""The marginal sensitivity model: costs over all weights that an unmeasured reason of bounded strength allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from ..arrays import Bools, Floats, Ints, every, merge, tally, unique_sets
from ..nuisance.weights import View
from ..walk import WalkTable
from .order import OrderedWeights, RowOrders

__all__ = ["Ratio", "StopStates", "ValidWeights", "WeightSet", "bounds", "largest_ratio", "odds_box", "stop_lines"]

_ROUNDS = 60


def stop_lines(table: WalkTable) -> WalkTable:
    """The states in which the policy stops, without edges."""
    return _lines(table, np.flatnonzero(table.stop_flow > 0))


def _lines(table: WalkTable, lines: Ints) -> WalkTable:
    none = np.zeros(0, np.intp)
    edges = {
        "edge_state": none,
        "edge_group": none,
        "edge_probability": np.zeros(0),
        "edge_available": np.zeros(0, bool),
        "edge_flow": np.zeros(0),
        "edge_blocked_flow": np.zeros(0),
        "edge_child": none,
    }
    names = [f.name for f in fields(table) if f.name not in edges and f.name != "sampled"]
    return WalkTable(**{name: getattr(table, name)[lines] for name in names}, **edges, sampled=none)


class Ratio(NamedTuple):
    """A normalised cost: sum of amount times weight over sum of flow times weight."""

    amount: Floats  # (s,)
    flow: Floats  # (s,)

    def at(self, weight: Floats) -> float:
        """Its value; NaN where nothing flows, or some weight has no bound."""
        if not np.isfinite(weight).all():
            return float("nan")
        total = float(self.flow @ weight)
        return float(self.amount @ weight) / total if total > 0 else float("nan")


@dataclass(frozen=True, eq=False)
class StopStates:
    """(row, set) pairs that have a weight, and what stops in them.

    Equal sets S + adj of a row are one pair. Pairs are sorted by row and set, so that nothing depends on how the walk
    came by them.
    """

    table: WalkTable  # one line per pair, to ask a view for its weight
    sets: Bools  # (s, G) S + adj
    flows: list[Floats]  # of each policy
    amounts: list[Floats]

    @staticmethod
    def of(
        tables: Sequence[WalkTable], view: View, prices: Floats, target: str, extra: WalkTable | None = None
    ) -> StopStates:
        """Pairs of several policies' stop lines; ``extra`` are lines that only need a weight."""
        listed = [*tables, *([] if extra is None else [extra])]
        table = WalkTable.concatenate(list(listed))
        policy = np.repeat(np.arange(len(listed)), [len(t.row) for t in listed])
        usable = np.flatnonzero(every(view.recorded | ~view.adjust)[table.row])
        table, policy = _lines(table, usable), policy[usable]
        sets = table.acquired | view.adjust
        first, inverse = _merge(table.row, sets)
        flow = np.where(policy < len(tables), table.stop_flow, 0.0)
        amount = flow * _costs(table, prices, target)
        flows, amounts = [], []
        for k in range(len(tables)):
            mine = policy == k
            flows.append(tally(inverse[mine], flow[mine], len(first)))
            amounts.append(tally(inverse[mine], amount[mine], len(first)))
        return StopStates(_lines(table, first), sets[first], flows, amounts)

    @property
    def row(self) -> Ints:
        """Row of each pair, ascending."""
        return self.table.row

    @cached_property
    def orders(self) -> RowOrders:
        """Order constraints within each row."""
        return RowOrders(self.row, self.sets)

    def ratio(self, policy: int = 0, row_weight: Floats | None = None) -> Ratio:
        """Cost of a policy as a function of the weights."""
        amount, flow = self.amounts[policy], self.flows[policy]
        if row_weight is None:
            return Ratio(amount, flow)
        return Ratio(amount * row_weight[self.row], flow * row_weight[self.row])

    def valid(self, view: View) -> ValidWeights:
        """Weights around those of this view."""
        nominal = view.weigh(self.table).weight
        return ValidWeights(nominal, self.orders.under(nominal))


def _merge(row: Ints, sets: Bools) -> tuple[Ints, Ints]:
    order = np.lexsort((unique_sets(sets)[1], row)) if len(row) else np.zeros(0, np.intp)
    first, inverse = merge(row[order], sets[order])
    back = np.empty(len(row), dtype=np.intp)
    back[order] = inverse
    return order[first], back


def _costs(table: WalkTable, prices: Floats, target: str) -> Floats:
    paid = (table.acquired * prices).sum(axis=1)
    wrong = np.where(table.stop_flow > 0, table.cost, 0.0)
    return paid if target == "acquisition" else wrong if target == "misclassification" else paid + wrong


def odds_box(nominal: Floats, strength: float) -> tuple[Floats, Floats]:
    r"""Bounds :math:`1 + (w - 1) / \Lambda` and :math:`1 + \Lambda (w - 1)` of the true weights."""
    return 1.0 + (nominal - 1.0) / strength, 1.0 + strength * (nominal - 1.0)


class WeightSet(Protocol):
    """Weights that are possible at each strength."""

    @property
    def nominal(self) -> Floats:
        """The weights at strength 1."""
        ...

    @property
    def tolerance(self) -> float:
        """How exact the maximum is, relative to it."""
        ...

    def maximise(self, gain: Floats, strength: float) -> Floats:
        """Weights with the largest sum of gain times weight."""
        ...


@dataclass(frozen=True, eq=False)
class ValidWeights:
    r"""All weights within the marginal sensitivity model (Tan 2006; Zhao, Small and Bhattacharya 2019).

    The true odds of :math:`R \ge S` differ from the nominal ones by a factor of at most :math:`\Lambda`, so that
    :math:`1 + (w^0 - 1)/\Lambda \le w \le 1 + \Lambda (w^0 - 1)`, and a larger set is recorded no more often:
    :math:`w_{iS} \le w_{iT}` for S inside T.
    """

    nominal: Floats
    ordered: OrderedWeights
    tolerance: float = 1e-13

    def maximise(self, gain: Floats, strength: float) -> Floats:
        """Weights with the largest sum of gain times weight; row by row, exact."""
        lower, upper = odds_box(self.nominal, strength)
        return self.ordered.maximise(gain, lower, upper)


def largest_ratio(
    ratio: Ratio, weights: WeightSet, strength: float, start: Floats | None = None
) -> tuple[float, Floats]:
    r"""Largest value of a ratio over the weights, and the weights that give it (Dinkelbach 1967).

    For a guess v, weights that maximise :math:`\sum (amount - v \cdot flow) w` give a ratio of at least v, and equal to v
    only where v is the largest. The guesses rise and end after finitely many rounds, most often three.
    """
    if strength == 1 or not np.isfinite(weights.nominal).all():
        return ratio.at(weights.nominal), weights.nominal
    best = weights.nominal if start is None else start
    value = ratio.at(best)
    if np.isnan(value):
        return value, best
    for _ in range(_ROUNDS):
        w = weights.maximise(ratio.amount - value * ratio.flow, strength)
        found = ratio.at(w)
        if not found > value + weights.tolerance * max(1.0, abs(value)):
            break
        value, best = found, w
    return value, best


def bounds(ratio: Ratio, weights: WeightSet, strengths: Sequence[float]) -> tuple[Floats, Floats]:
    """Least and largest value of a ratio at each strength, which rise; each starts from the one before."""
    ends = []
    for sign in (-1.0, 1.0):
        turned, start, found = Ratio(sign * ratio.amount, ratio.flow), weights.nominal, []
        for strength in strengths:
            value, start = largest_ratio(turned, weights, strength, start)
            found.append(sign * value)
        ends.append(np.array(found))
    return ends[0], ends[1]
