"""DM-Semi and DM-Semi-Miss: the direct method, the mean value of where rows start."""

from __future__ import annotations

import numpy as np

from ..arrays import Floats
from ..data import Retrospective
from ..nuisance.values import ACQUISITION, MISCLASSIFICATION, TableValues
from ..walk import WalkTable
from .bounds import bounded
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
        weighted = view.weigh(self.roots)
        out = np.zeros(len(rows))
        out[weighted.lines] = weighted.weight * row_weight[rows[weighted.lines]]
        return out

    def replicate(self, values: TableValues, row_weight: Floats, view: View | None = None) -> dict[str, float]:
        """Values of the targets with these row weights."""
        weight = self._weights(view or self.view, row_weight)
        total = weight.sum() if self.normalize else row_weight.sum()
        if not np.isfinite(total) or total <= 0:
            return dict.fromkeys(("acquisition", "misclassification", "total"), float("nan"))
        mean = weight @ values.state[self.lines] / total
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
        if not self.view.adjust.any():
            estimates = self._estimates(found, rows, confidence)
            ess = float((self.row_weight > 0).sum())
            return Outcome(estimates, ess=ess, normalizer=1.0, error="none without bootstrap")
        if self.view.refusal:
            return Outcome({}, reason=self.view.refusal)
        weighted = self.view.weigh(self.roots)
        if not np.isfinite(weighted.weight).all():
            return Outcome({}, reason="a row has what is to adjust for at probability 0; raise 'min_propensity'")
        if np.isnan(found["total"]):
            return Outcome({}, reason="no row has everything to adjust for recorded")
        final = np.zeros(len(self.data))
        final[self.roots.row] = self._weights(self.view, self.row_weight)
        used = self.row_weight > 0
        cluster = None if self.data.cluster is None else self.data.cluster[used]
        return Outcome(
            self._estimates(found, rows, confidence),
            ess=effective_size(final[used], cluster),
            normalizer=float(final.sum() / self.row_weight.sum()),
            normalizer_error=Estimate(1.0, final[used] - final[used].mean(), cluster).std_error,
            clipped=int(weighted.clipped.sum()),
            largest_weight=float(weighted.weight.max()),
            error="none without bootstrap",
        )

    def _estimates(self, found: dict[str, float], rows: str, confidence: float) -> dict[str, Estimate]:
        return {t: Estimate(v, None, self.data.cluster, rows, confidence) for t, v in found.items()}
