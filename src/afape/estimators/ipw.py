"""IPW-Semi and IPW-Miss: inverse probability weighting, one formula for both views."""

from __future__ import annotations

import numpy as np

from ..arrays import Floats, tally
from ..walk import FREE, WalkTable
from .endings import Endings
from .weighted import REACH, STOP, mean_weight_before

__all__ = ["InverseProbability"]

_PRICE, _COST = 2, 3


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
    prices : ndarray of shape (G,)
        Price of each group.
    normalize : bool
        Whether to divide.
    acquisition_weight : {"before", "after"}
        Weight of a price.
    endings : Endings, optional
        What runs cost, at the least or at the most, that want an unsupported set; they count as stopped there.
    """

    n_quantities = 4

    def __init__(
        self,
        prices: Floats,
        normalize: bool = True,
        acquisition_weight: str = "before",
        endings: Endings | None = None,
    ) -> None:
        self.endings = endings
        self.prices, self.normalize, self.acquisition_weight = prices, normalize, acquisition_weight
        self._last: tuple[WalkTable, Floats] | None = None

    def quantities(self, table: WalkTable) -> Floats:
        """Flows, price of the decision and cost of stopping in every state."""
        if self._last is None or self._last[0] is not table:  # replicates ask about the same table again
            self._last = table, self._quantities(table)
        return self._last[1]

    def _quantities(self, table: WalkTable) -> Floats:
        out = np.empty((len(table.row), 4))
        out[:, REACH], out[:, STOP] = table.reach, table.stop_flow
        out[:, _COST] = np.where(table.stop_flow > 0, table.stop_flow * table.cost, 0.0)
        if self.acquisition_weight == "before":
            out[:, _PRICE] = table.reach * table.price
        else:  # paid on arrival, at the weight of the set that the edge leads to
            arrived = table.edge_child >= 0
            price = np.where(table.edge_group == FREE, 0.0, self.prices[table.edge_group])
            paid = (table.edge_flow * price)[arrived]
            out[:, _PRICE] = tally(table.edge_child[arrived], paid, len(table.row))
        if self.endings is not None:
            ends = self.endings.of(table)
            out[ends.whole] = 0.0
            out[ends.whole, REACH] = 1.0
            out[:, STOP] += ends.flow
            out[:, _COST] += ends.cost
            out[:, _PRICE] += ends.price if self.acquisition_weight == "before" else ends.price + ends.paid
        return out

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
