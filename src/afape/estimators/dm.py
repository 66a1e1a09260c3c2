"""DM-Semi and DM-Semi-Miss: the direct method, the mean value of where rows start."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..arrays import Floats, Ints, effective_size, standard_error
from ..nuisance.fitted import Evidence
from ..nuisance.values.induction import ACQUISITION, MISCLASSIFICATION
from ..nuisance.weights import View, WeightedStates
from ..walk import WalkTable
from .estimate import Estimate, Outcome
from .linear import Origin, ReplicatedParts
from .reduction import nothing
from .weighted import Flows

__all__ = ["DirectMethod", "direct_method"]

_NO_ERROR = "none without bootstrap"


def direct_method(evidence: Evidence) -> DirectMethod:
    """DM in whatever view the evidence is seen in."""
    table, view, values = evidence.fitted.table, evidence.view, evidence.values
    assert table is not None
    assert view is not None
    assert values is not None
    starts = np.flatnonzero(table.depth == 0)
    return DirectMethod(evidence, view, table.at_depth_zero(), values.state[starts], starts)


@dataclass(frozen=True, eq=False)
class DirectMethod:
    r"""Mean over all rows of V(root) (von Kleist et al. 2023, estimator DM-Semi).

    Where what is given has gaps, V is known only in rows that have it, and the mean is weighted:
    :math:`\frac1n \sum_i \frac{1(R_{adj} = 1)}{P(R_{adj} = 1 | X_{adj})} V_i(root)`, normalised by the mean weight. It
    then rests on the propensity of adj as well as on the values.

    Theory gives no influence values here: the error of the regressions does not average out, so standard errors
    and intervals come from the refitting bootstrap alone.

    Parameters
    ----------
    evidence : Evidence
        Records and row weights.
    view : View
        Weights of the starts, where there is something to adjust for.
    roots : WalkTable
        Where rows start.
    start_values : ndarray of shape (m, 2)
        Their values.
    starts : ndarray of int, shape (m,)
        Their lines in the table that has action values.
    """

    evidence: Evidence
    view: View
    roots: WalkTable
    start_values: Floats
    starts: Ints

    @property
    def _adjusted(self) -> bool:
        return bool(self.view.adjust.any())

    @cached_property
    def _weighted(self) -> WeightedStates:
        return self.view.weigh(self.roots)

    @cached_property
    def _weights(self) -> Floats:
        """Weight of each row's start, times that of the row."""
        row_weight, rows = self.evidence.fitted.row_weight, self.roots.row
        if not self._adjusted:
            return np.asarray(row_weight[rows])
        out = np.zeros(len(rows))
        lines = self._weighted.lines
        out[lines] = self._weighted.weight * row_weight[rows[lines]]
        return out

    @cached_property
    def values(self) -> dict[str, float]:
        """Mean value of the starts."""
        weight = self._weights
        total = weight.sum() if self.evidence.recipe.normalize else self.evidence.fitted.row_weight.sum()
        if not np.isfinite(total) or total <= 0:
            return nothing()
        mean = weight @ self.start_values / total
        paid, wrong = float(mean[ACQUISITION]), float(mean[MISCLASSIFICATION])
        return {"acquisition": paid, "misclassification": wrong, "total": paid + wrong}

    def parts(self, rows: str, confidence: float) -> ReplicatedParts | None:
        """Mean parts of the starts, without standard errors."""
        evidence, known = self.evidence, self.evidence.part_values
        if known is None:
            return None
        table, columns, weight = evidence.fitted.table, evidence.columns, self._weights
        assert table is not None
        ends = None if evidence.ends is None else evidence.ends.of(table)
        flows = Flows(table, evidence.data.problem.prices, ends)
        begun = np.zeros(len(table.row))
        begun[self.starts] = weight
        at_start = np.where(flows.decided > 0, begun, 0.0)
        edges = np.flatnonzero(at_start[table.edge_state])
        total = weight.sum() if evidence.recipe.normalize else evidence.fitted.row_weight.sum()
        found = at_start @ columns.decisions(table)
        found = found + (at_start[table.edge_state[edges]] * table.edge_probability[edges]) @ known.part_edges(edges)
        learned = known.part_stops(self.starts)
        stops = columns.stops(table, self.starts) if learned is None else learned
        found = found + (at_start * table.stop)[self.starts] @ stops
        for left, label, at, _ in flows.whole(columns):
            found = found + begun[at] @ (left + label)
        return ReplicatedParts(np.asarray(found) / total, Origin(evidence.data.cluster, rows, confidence))

    def outcome(self, rows: str, confidence: float) -> Outcome:
        """Estimates without standard errors; the bootstrap adds them."""
        data, row_weight = self.evidence.data, self.evidence.fitted.row_weight
        estimates = {t: Estimate(v, None, data.cluster, rows, confidence) for t, v in self.values.items()}
        used = row_weight > 0
        if not self._adjusted:
            return Outcome(estimates, ess=float(used.sum()), normalizer=1.0, error_method=_NO_ERROR)
        if self._reason:
            return Outcome({}, reason=self._reason)
        final = np.zeros(len(data))
        final[self.roots.row] = self._weights
        cluster = None if data.cluster is None else data.cluster[used]
        return Outcome(
            estimates,
            ess=effective_size(final[used], cluster),
            normalizer=float(final.sum() / row_weight.sum()),
            normalizer_error=standard_error(final[used] - final[used].mean(), cluster),
            clipped=int(self._weighted.clipped.sum()),
            largest_weight=float(self._weighted.weight.max()),
            error_method=_NO_ERROR,
        )

    @property
    def _reason(self) -> str:
        if self.view.refusal:
            return self.view.refusal
        if not np.isfinite(self._weighted.weight).all():
            return "a row has what is to adjust for at probability 0; raise 'min_propensity'"
        return "no row has everything to adjust for recorded" if np.isnan(self.values["total"]) else ""
