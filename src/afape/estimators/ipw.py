"""IPW-Semi and IPW-Miss: inverse probability weighting, one formula for both views."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..arrays import Floats
from ..nuisance.fitted import Evidence
from ..walk import PartColumns, WalkTable
from .booking import Block, Term
from .weighted import REACH, STOP, Flows, WeightedSums, mean_weight_before, weighted_sums

__all__ = ["InverseProbability", "inverse_probability"]

_PRICE, _COST = 2, 3


def inverse_probability(evidence: Evidence) -> WeightedSums:
    """IPW in whatever view the evidence is seen in."""
    recipe = evidence.recipe
    return weighted_sums(evidence, InverseProbability(recipe.normalize, recipe.acquisition_weight))


class InverseProbability:
    r"""Inverse probability weighting (von Kleist et al. 2023, estimators IPW-Semi and IPW-Miss).

    Misclassification is :math:`\frac1n\sum_i\sum_S r_S \pi(stop|S) w_S C_S`, acquisition per decision
    :math:`\frac1n\sum_i\sum_S r_S w_S \sum_a \pi(a|S) c_a` over *all* wanted a, recorded or not: the price is known
    when the decision falls, so the weight before the step suffices. ``acquisition_weight="after"`` gives the
    paper's :math:`w_{S+a}` over recorded edges.

    Normalised (Hajek): misclassification is divided by the mean final weight
    :math:`\sum_S r_S \pi(stop|S) w_S`, acquisition of step t by the mean weight before it.

    Parameters
    ----------
    normalize : bool
        Whether to divide.
    acquisition_weight : {"before", "after"}
        Weight of a price.
    """

    n_quantities = 4

    def __init__(self, normalize: bool = True, acquisition_weight: str = "before") -> None:
        self.normalize, self.acquisition_weight = normalize, acquisition_weight

    def quantities(self, table: WalkTable, flows: Flows) -> Floats:
        """Flows, price of the decision and cost of stopping in every state."""
        return np.column_stack([flows.reach, flows.stop, flows.price(self.acquisition_weight), flows.cost])

    def blocks(self, table: WalkTable, flows: Flows, columns: PartColumns, n_depths: int) -> Iterator[Block]:
        """Groups that a decision takes, at the weight and normaliser of its price; stops at those of their cost."""
        states = np.arange(len(table.row))
        final = np.full(len(states), n_depths)
        before = self.acquisition_weight == "before"
        if before:
            yield Block(columns.decisions(table), table.row, (Term(flows.decided, states, table.depth),))
        else:
            arrived = np.flatnonzero(table.edge_child >= 0)
            child = table.edge_child[arrived]
            term = Term(table.edge_flow[arrived], child, table.depth[child])
            yield Block(columns.taken(table, arrived), table.row[child], (term,))
        yield Block(columns.stops(table), table.row, (Term(flows.own, states, final),))
        for left, label, at, flow in (*flows.lost(columns), *flows.whole(columns)):
            yield Block(left, table.row[at], (Term(flow, at, table.depth[at]),))
            yield Block(label, table.row[at], (Term(flow, at, final[at]),))
        if flows.ends is not None and not before:  # the group that leads into an unsupported set
            at = table.edge_state[flows.ends.edges]
            term = Term(flows.ends.edge_flow, at, table.depth[at])
            yield Block(columns.taken(table, flows.ends.edges), table.row[at], (term,))

    def linearise(self, mean: Floats) -> tuple[dict[str, float], dict[str, Floats]]:
        """Value of each target, and its derivative in the means."""
        acquisition, misclassification = np.zeros_like(mean), np.zeros_like(mean)
        if not self.normalize:
            acquisition[:, _PRICE] = misclassification[:, _COST] = 1.0
            paid, wrong = float(mean[:, _PRICE].sum()), float(mean[:, _COST].sum())
        else:
            final = mean[:, STOP].sum()
            wrong = float(mean[:, _COST].sum() / final)
            misclassification[:, _COST] = 1 / final
            misclassification[:, STOP] = -wrong / final
            before = mean_weight_before(mean)[:-1]
            step = mean[:, _PRICE] / before
            paid = float(step.sum())
            acquisition[:, _PRICE] = 1 / before
            acquisition[:, REACH] = -step / before
            # weight that stopped earlier still counts in every later normaliser
            later = np.cumsum((step / before)[::-1])[::-1]
            acquisition[:-1, STOP] = -later[1:]
        values = {"acquisition": paid, "misclassification": wrong, "total": paid + wrong}
        directions = {
            "acquisition": acquisition,
            "misclassification": misclassification,
            "total": acquisition + misclassification,
        }
        return values, directions
