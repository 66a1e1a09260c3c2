"""IPW-Semi and IPW-Miss: inverse probability weighting, one formula for both views."""

from __future__ import annotations

import numpy as np

from ..arrays import Floats
from ..nuisance.fitted import Evidence
from ..walk import WalkTable
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
