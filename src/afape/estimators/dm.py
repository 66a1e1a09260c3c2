"""DM-Semi: the direct method, the mean value of where every row starts."""

from __future__ import annotations

import numpy as np

from ..arrays import Floats
from ..data import Retrospective
from ..nuisance.values import ACQUISITION, MISCLASSIFICATION, TableValues
from ..walk import WalkTable
from .bounds import bounded
from .estimate import Estimate, Outcome

__all__ = ["DirectMethod"]


class DirectMethod:
    """Mean over all rows of V(root) (von Kleist et al. 2023, estimator DM-Semi).

    Theory gives no influence values here: the error of the regressions does not average out, so standard errors
    and intervals come from the refitting bootstrap alone.
    """

    def __init__(self, data: Retrospective, table: WalkTable, row_weight: Floats | None = None) -> None:
        self.data, self.roots = data, np.flatnonzero(table.depth == 0)
        self.rows = table.row[self.roots]
        self.row_weight = np.ones(len(data)) if row_weight is None else row_weight

    def replicate(self, values: TableValues, row_weight: Floats) -> dict[str, float]:
        """Values of the targets with these row weights."""
        mean = row_weight[self.rows] @ values.state[self.roots] / row_weight.sum()
        paid, wrong = float(mean[ACQUISITION]), float(mean[MISCLASSIFICATION])
        return {"acquisition": paid, "misclassification": wrong, "total": paid + wrong}

    def bounds(
        self, least: TableValues, largest: TableValues, unsupported: float, rows: str, confidence: float
    ) -> Outcome:
        """Bounds, from action values in which runs into unsupported sets cost the least and the most."""
        low, high = (self.outcome(values, rows, confidence) for values in (least, largest))
        return bounded(low, high, unsupported)

    def outcome(self, values: TableValues, rows: str, confidence: float) -> Outcome:
        """Estimates without standard errors; the bootstrap adds them."""
        found = self.replicate(values, self.row_weight)
        estimates = {t: Estimate(v, None, self.data.cluster, rows, confidence) for t, v in found.items()}
        return Outcome(
            estimates, ess=float((self.row_weight > 0).sum()), normalizer=1.0, error="none without bootstrap"
        )
