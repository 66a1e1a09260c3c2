"""Plain averages of walks: the truth on complete data, and the baselines that the field reports today."""

from __future__ import annotations

import numpy as np

from ..arrays import Bools, Floats, tally
from ..data import Retrospective
from ..walk import FREE, WalkTable
from .estimate import Estimate, Outcome

__all__ = ["RunCosts"]


class RunCosts:
    r"""Expected cost of running a policy in each row, given what is available.

    Per row, :math:`\sum_S r_S \sum_a \pi(a|S) c_a` and :math:`\sum_S r_S \pi(stop|S) C_S`. Averaged over rows this is

    - the truth J on complete data,
    - **Imp-Mean** on data completed with unconditional means,
    - **Blocking** with the flow of the blocked policy (``blocked=True``),
    - **CC** over complete rows (``only``).

    All but the first are biased unless nothing is missing, CC unless data are missing completely at random.
    """

    def __init__(
        self,
        data: Retrospective,
        *,
        blocked: bool = False,
        only: Bools | None = None,
        row_weight: Floats | None = None,
    ) -> None:
        self.data, self.blocked = data, blocked
        self.used = np.ones(len(data)) if row_weight is None else row_weight
        if only is not None:
            self.used = self.used * only
        self.acquisition = np.zeros(len(data))
        self.misclassification = np.zeros(len(data))

    def add(self, table: WalkTable) -> None:
        """Add the states of a chunk."""
        n = len(self.data)
        flow = table.blocked_stop_flow if self.blocked else table.stop_flow
        paid = np.where(flow > 0, flow * table.cost, 0.0)  # C_S is NaN where nobody stops
        self.misclassification += tally(table.row, paid, n)
        if self.blocked:
            price = np.where(table.edge_group == FREE, 0.0, self.data.problem.prices[table.edge_group])
            price *= table.edge_blocked_flow
            self.acquisition += tally(table.row[table.edge_state], price, n)
        else:
            self.acquisition += tally(table.row, table.reach * table.price, n)

    def _costs(self) -> dict[str, Floats]:
        return {
            "acquisition": self.acquisition,
            "misclassification": self.misclassification,
            "total": self.acquisition + self.misclassification,
        }

    def replicate(self, row_weight: Floats) -> dict[str, float]:
        """Averages with these row weights; NaN where no row is left."""
        used = self.used * row_weight
        total = used.sum()
        return {t: float(used @ cost / total) if total > 0 else float("nan") for t, cost in self._costs().items()}

    def outcome(self, rows: str, confidence: float) -> Outcome:
        """Averages over all rows, or over those in ``only``."""
        used = self.used
        share = used.mean()
        if share == 0:
            return Outcome({}, reason="no row has every group recorded")
        estimates = {}
        for target, cost in self._costs().items():
            value = float((used * cost).mean() / share)
            influence = used * (cost - value) / share
            estimates[target] = Estimate(value, influence, self.data.cluster, rows, confidence)
        return Outcome(estimates, ess=float(used.sum()), normalizer=1.0, largest_weight=1.0)
