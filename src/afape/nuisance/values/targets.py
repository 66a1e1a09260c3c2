"""What action values are learned of: costs, the same at unit prices, and the parts that costs are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from ...arrays import Bools, Floats, Ints, tally
from ...data import Retrospective
from ...walk import FREE, PartColumns, WalkTable

__all__ = ["ACQUISITION", "MISCLASSIFICATION", "FixedEdges", "KnownTargets", "Targets"]

ACQUISITION, MISCLASSIFICATION = 0, 1


class Targets(NamedTuple):
    """Targets of the same lines, side by side. A block that is not asked for has no columns."""

    costs: Floats  # (m, 2) acquisition and misclassification; of a stop (m, 1), misclassification alone
    unit: Floats  # the same if every costly group and every error cost 1: penalties are chosen by these
    parts: Floats  # (m, P)

    @staticmethod
    def full(n: int, widths: tuple[int, int, int], value: float) -> Targets:
        """The same value everywhere."""
        return Targets(*(np.full((n, width), value) for width in widths))

    def put(self, lines: Ints | Bools, found: Targets) -> None:
        """Write into some of the lines."""
        for mine, theirs in zip(self, found, strict=True):
            mine[lines] = theirs

    def after_stop(self) -> Targets:
        """Targets of a stop as those of a state: no group is acquired any more."""
        nothing = np.zeros((len(self.costs), 1))
        costs, unit = (np.column_stack([nothing, b]) if b.shape[1] else b for b in (self.costs, self.unit))
        return Targets(costs, unit, self.parts)


class FixedEdges(NamedTuple):
    """Edges whose targets are not learned, because the sets that they lead to are not supported."""

    edges: Bools  # (e,)
    costs: Floats  # (e, 2) what they are taken to be, in all edges
    unit: Floats  # (e, 2)


@dataclass(frozen=True, eq=False)
class KnownTargets:
    """Targets of what needs no regression: decisions, stops, runs that end.

    Parameters
    ----------
    data : Retrospective
        Records.
    table : WalkTable
        The walk.
    columns : PartColumns or None
        The parts, where they are learned.
    unit : bool
        Whether there are costs at unit prices.
    """

    data: Retrospective
    table: WalkTable
    columns: PartColumns | None
    unit: bool

    def widths(self, kind: str, n_costs: int = 2) -> tuple[int, int, int]:
        """Columns of each block: of "costs" or "parts" alone, or of "all"."""
        costs = 0 if kind == "parts" else n_costs
        n_parts = 0 if kind == "costs" or self.columns is None else self.columns.width
        return costs, n_costs if kind == "all" and self.unit else 0, n_parts

    def taken(self, states: Ints, owner: Ints, edges: Ints, kind: str) -> Targets:
        """What the next decision takes; ``edges`` leave the states with numbers ``owner``."""
        table = self.table
        out = Targets.full(len(states), self.widths(kind), 0.0)
        probability, group = table.edge_probability[edges], table.edge_group[edges]
        if out.costs.shape[1]:
            out.costs[:, ACQUISITION] = table.price[states]
        if out.unit.shape[1]:
            costly = (group != FREE) & ~self.data.problem.free[group]
            out.unit[:, ACQUISITION] = tally(owner, probability * costly, len(states))
        if out.parts.shape[1]:
            assert self.columns is not None
            decided = csr_array((probability, (owner, np.arange(len(edges)))), shape=(len(states), len(edges)))
            out = out._replace(parts=(decided @ self.columns.taken(table, edges)).toarray())
        return out

    def stop(self, states: Ints, kind: str) -> Targets:
        """What stopping gives; costs are NaN where the classifier was not asked."""
        table, (costs, unit, parts) = self.table, self.widths(kind, 1)
        wrong = (table.predicted[states] != self.data.labels[table.row[states]]).astype(float)
        out = Targets.full(len(states), (0, 0, 0), 0.0)
        if costs:
            out = out._replace(costs=table.cost[states][:, None])
        if unit:
            out = out._replace(unit=wrong[:, None])
        if parts:
            assert self.columns is not None
            out = out._replace(parts=self.columns.stops(table, states).toarray())
        return out

    def middling(self, states: Ints, by_label: bool, kind: str) -> Targets:
        """What stopping is taken to give where nobody ever did: right in half of the cases, wrong in any way in the others."""
        out = Targets.full(len(states), self.widths(kind, 1), 0.0)
        cells = self._middling_cells(states, by_label)
        if out.costs.shape[1]:
            out.costs[:, 0] = cells @ self.data.costs.ravel()
        if out.unit.shape[1]:
            out.unit[:, 0] = cells @ (1.0 - np.eye(len(self.data.classes))).ravel()
        if out.parts.shape[1]:
            assert self.columns is not None
            columns, table = self.columns, self.table
            out.parts[:, columns.cells] = cells
            count = table.acquired[states][:, columns.costly].sum(axis=1)
            out.parts[np.arange(len(states)), columns.counts.start + count] = 1.0
            if columns.n_outcomes:
                known = ~np.isnan(table.outcomes).any(axis=1)
                out.parts[:, columns.own] = table.outcomes[known].mean(axis=0) if known.any() else 0.0
        return out

    def _middling_cells(self, states: Ints, by_label: bool) -> Floats:
        """Probability of each pair of true and predicted label, (m, K x K)."""
        n_classes = len(self.data.classes)
        same = np.eye(n_classes)
        share = (same + (1 - same) / max(n_classes - 1, 1)) / 2
        if not by_label:
            return np.tile(share.ravel() / share.sum(), (len(states), 1))
        label = self.data.labels[self.table.row[states]]
        true = label[:, None] == np.arange(n_classes)
        return np.asarray((true[:, :, None] * share / share.sum(axis=1, keepdims=True)).reshape(len(states), -1))

    def ended(self, fixed: FixedEdges, edges: Ints, kind: str) -> Targets:
        """What is taken to follow these edges, if runs ended there."""
        costs, unit, parts = self.widths(kind)
        ahead = np.zeros((len(edges), 0))
        if parts:
            assert self.columns is not None
            left, label = self.columns.lost(self.table, edges)
            ahead = (left + label).toarray()
        return Targets(fixed.costs[edges][:, :costs], fixed.unit[edges][:, :unit], ahead)
