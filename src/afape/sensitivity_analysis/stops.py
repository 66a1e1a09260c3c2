"""Where policies stop: pairs of a row and a set, with the flow that stops there and its cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from .._arrays import Bools, Floats, Ints, every, merge, tally, unique_sets
from ..propensity.weights import View
from ..walk.table import WalkTable

__all__ = ["Ratio", "StopStates", "Stops", "stops_of"]


class Stops(NamedTuple):
    """Stops of one policy."""

    row: Ints  # (m,)
    acquired: Bools  # (m, G)
    flow: Floats  # (m,)
    amount: Floats  # (m,) flow times cost

    def dearer(self, constant: float) -> Stops:
        """Return the stops with a constant added to every cost."""
        return self._replace(amount=self.amount + constant * self.flow)


def stops_of(tables: Iterable[WalkTable], prices: Floats, target: str, row_weight: Floats | None = None) -> Stops:
    """States of a walk in which the policy stops; ``target`` says which cost counts, flows are multiplied by row weights."""
    found = []
    for table in tables:
        lines = np.flatnonzero(table.stop_flow > 0)
        acquired, flow = table.acquired[lines], table.stop_flow[lines]
        flow = flow if row_weight is None else flow * row_weight[table.row[lines]]
        paid, wrong = (acquired * prices).sum(axis=1), table.cost[lines]
        cost = paid if target == "acquisition" else wrong if target == "misclassification" else paid + wrong
        found.append(Stops(table.row[lines], acquired, flow, flow * cost))
    return _joined(found)


def _joined(parts: Sequence[Stops]) -> Stops:
    return Stops(*(np.concatenate(column) for column in zip(*parts, strict=True)))


class Ratio(NamedTuple):
    """A normalised cost: sum of amount times weight over sum of flow times weight."""

    amount: Floats  # (s,)
    flow: Floats  # (s,)

    def at(self, weight: Floats) -> float:
        """Its value; NaN if nothing flows, or if a weight is infinite."""
        if not np.isfinite(weight).all():
            return float("nan")
        total = float(self.flow @ weight)
        return float(self.amount @ weight) / total if total > 0 else float("nan")


@dataclass(frozen=True, eq=False)
class StopStates:
    """Pairs of a row and a set S + adj that have a weight, and the stops of some policies in them.

    Each pair occurs once. Pairs are sorted by row and set, so the order of the walk has no influence.
    """

    table: WalkTable  # one line per pair, to ask a view for its weight
    flows: list[Floats]  # (s,) per policy
    amounts: list[Floats]  # (s,) per policy

    @staticmethod
    def of(policies: Sequence[Stops], view: View, extra: Stops | None = None) -> StopStates:
        """Pairs of several policies; ``extra`` are pairs without flow that need a weight too."""
        listed = [*policies, *([] if extra is None else [extra])]
        stops = _joined(listed)
        policy = np.repeat(np.arange(len(listed)), [len(part.row) for part in listed])
        usable = np.flatnonzero(every(view.recorded | ~view.adjust)[stops.row])
        row, sets = stops.row[usable], stops.acquired[usable] | view.adjust
        first, inverse = _merge(row, sets)
        masks = [policy[usable] == k for k in range(len(policies))]
        flows = [tally(inverse[mine], stops.flow[usable[mine]], len(first)) for mine in masks]
        amounts = [tally(inverse[mine], stops.amount[usable[mine]], len(first)) for mine in masks]
        return StopStates(WalkTable.of_states(row[first], sets[first], np.zeros(len(first), np.intp)), flows, amounts)

    def dearer(self, constant: float) -> StopStates:
        """Return the pairs with a constant added to every cost."""
        amounts = [a + constant * f for a, f in zip(self.amounts, self.flows, strict=True)]
        return replace(self, amounts=amounts)

    @property
    def row(self) -> Ints:
        """Row of each pair, ascending."""
        return self.table.row

    @property
    def sets(self) -> Bools:
        """Set S + adj of each pair, (s, G)."""
        return self.table.acquired

    def ratio(self, policy: int = 0, row_weight: Floats | None = None) -> Ratio:
        """Cost of a policy as a function of the weights."""
        amount, flow = self.amounts[policy], self.flows[policy]
        if row_weight is None:
            return Ratio(amount, flow)
        return Ratio(amount * row_weight[self.row], flow * row_weight[self.row])


def _merge(row: Ints, sets: Bools) -> tuple[Ints, Ints]:
    """Index of one representative per distinct pair, sorted by row and set, and the distinct pair of each given one."""
    order = np.lexsort((unique_sets(sets)[1], row)) if len(row) else np.zeros(0, np.intp)
    first, inverse = merge(row[order], sets[order])
    back = np.empty(len(row), dtype=np.intp)
    back[order] = inverse
    return order[first], back
