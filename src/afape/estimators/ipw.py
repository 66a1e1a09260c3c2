"""IPW-Semi, IPW-Miss and IPW-Semi-Miss: inverse probability weighting, one formula for all views."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..walk.columns import Columns
from ..walk.table import WalkTable
from .booking import FINAL, Booking, Lines
from .evidence import Evidence
from .flows import Flows
from .weighted import Weighted

__all__ = ["InverseProbability", "inverse_probability"]


def inverse_probability(evidence: Evidence) -> Weighted:
    """Apply IPW in the view of the evidence."""
    recipe = evidence.recipe
    return Weighted(evidence, InverseProbability(recipe.acquisition_weight), recipe.normalize)


@dataclass(frozen=True)
class InverseProbability:
    r"""Inverse probability weighting (von Kleist et al. 2023, estimators IPW-Semi and IPW-Miss).

    Misclassification is :math:`\frac1n\sum_i\sum_S r_S \pi(stop|S) w_S C_S`, acquisition per decision
    :math:`\frac1n\sum_i\sum_S r_S w_S \sum_a \pi(a|S) c_a` over *all* wanted a, recorded or not: the price is known
    at the decision, so the weight before the decision is enough. ``acquisition_weight="after"`` uses
    :math:`w_{S+a}` over recorded edges, as in the paper.

    Normalised (Hajek): misclassification is divided by the mean final weight
    :math:`\sum_S r_S \pi(stop|S) w_S`, acquisition of step t by the mean weight before it.

    Parameters
    ----------
    acquisition_weight : {"before", "after"}
        Weight of a price.
    """

    acquisition_weight: str = "before"

    def lines(self, table: WalkTable, flows: Flows, columns: Columns) -> Iterator[Lines]:
        """Yield prices with the weight and normaliser before or after the decision, and stops with the final normaliser."""
        states, depth = np.arange(len(table.row)), table.depth
        final = np.full(len(states), FINAL)
        if self.acquisition_weight == "before":
            yield Lines(columns.decisions(table), (Booking(flows.decided, states, depth),))
        else:  # the price has the weight of the set that the edge leads to
            arrived = np.flatnonzero(table.edge_child >= 0)
            child = table.edge_child[arrived]
            yield Lines(columns.taken(table, arrived), (Booking(table.edge_flow[arrived], child, depth[child]),))
        yield Lines(columns.stops(table, states), (Booking(flows.own, states, final),))
        for left, stop, at, flow in (*flows.lost(columns), *flows.whole(columns)):
            yield Lines(left, (Booking(flow, at, depth[at]),))
            yield Lines(stop, (Booking(flow, at, final[at]),))
        if flows.ends is not None and self.acquisition_weight == "after":
            # The price of the group that leads into an unsupported set.
            at = table.edge_state[flows.ends.edges]
            booking = Booking(flows.ends.edge_flow, at, depth[at])
            yield Lines(columns.taken(table, flows.ends.edges), (booking,))
