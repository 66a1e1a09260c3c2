"""DM-Semi and DM-Semi-Miss: the direct method, the mean value of where rows start."""

from __future__ import annotations

import numpy as np

from ..arrays import Floats
from ..data import Retrospective
from ..nuisance.values import ACQUISITION, MISCLASSIFICATION, TableValues
from ..walk import WalkTable
from .estimate import Estimate, Outcome, effective_size
from .weights import View

__all__ = ["DirectMethod"]


class DirectMethod:
    r"""Mean over all rows of V(root) (von Kleist et al. 2023, estimator DM-Semi).

    Where what is given has gaps, V is known only in rows that have it, and the mean is weighted:
    :math:`\frac1n \sum_i \frac{1(R_{adj} = 1)}{P(R_{adj} = 1 | X_{adj})} V_i(root)`, normalised by the mean weight. It
    then rests on the propensity of adj as well as on the values.

    Theory gives no influence values here: the error of the regressions does not average out, so standard errors
    and intervals come from the refitting bootstrap alone.
    """

    def __init__(
        self,
        data: Retrospective,
        table: WalkTable,
        view: View,
        normalize: bool = True,
        row_weight: Floats | None = None,
    ) -> None:
        self.data, self.view, self.normalize = data, view, normalize
        self.roots = table.at_depth_zero()
        self.lines = np.flatnonzero(table.depth == 0)
        self.row_weight = np.ones(len(data)) if row_weight is None else row_weight

    def _weights(self, view: View, row_weight: Floats) -> Floats:
        """Weight of each row's start, times that of the row."""
        rows = self.roots.row
        if not view.adjust.any():
            return row_weight[rows]
        return np.asarray(view.weigh(self.roots).weight * row_weight[rows])

    def replicate(self, values: TableValues, row_weight: Floats, view: View | None = None) -> dict[str, float]:
        """Values of the targets with these row weights."""
        weight = self._weights(view or self.view, row_weight)
        total = weight.sum() if self.normalize else row_weight.sum()
        if not np.isfinite(total) or total <= 0:
            return dict.fromkeys(("acquisition", "misclassification", "total"), float("nan"))
        mean = weight @ values.state[self.lines] / total
        paid, wrong = float(mean[ACQUISITION]), float(mean[MISCLASSIFICATION])
        return {"acquisition": paid, "misclassification": wrong, "total": paid + wrong}

    def outcome(self, values: TableValues, rows: str, confidence: float) -> Outcome:
        """Estimates without standard errors; the bootstrap adds them."""
        found = self.replicate(values, self.row_weight)
        if np.isnan(found["total"]):
            return Outcome({}, reason="no row has everything to adjust for recorded")
        estimates = {t: Estimate(v, None, self.data.cluster, rows, confidence) for t, v in found.items()}
        weight = self._weights(self.view, self.row_weight)
        used = np.zeros(len(self.data))
        used[self.roots.row] = weight
        ess = effective_size(used, None) if self.view.adjust.any() else float((self.row_weight > 0).sum())
        mean = float(weight.sum() / self.row_weight.sum())
        return Outcome(estimates, ess=ess, normalizer=mean, error="none without bootstrap")
