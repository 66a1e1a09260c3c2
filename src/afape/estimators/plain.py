"""Plain averages of runs: the truth on complete data, and the baselines that the field reports today."""

from __future__ import annotations

from dataclasses import dataclass

from ..arrays import Floats
from ..data import Retrospective
from ..nuisance.fitted import Evidence
from ..walk import RunCosts
from .estimate import Estimate, Outcome
from .linear import Origin, RunParts
from .reduction import nothing

__all__ = ["RunAverage", "blocking", "complete_cases", "mean_imputed"]


@dataclass(frozen=True, eq=False)
class RunAverage:
    """Average over rows of what a run costs: the truth J on complete data.

    Parameters
    ----------
    data : Retrospective
        Records.
    runs : RunCosts
        Expected cost of each row.
    used : ndarray of shape (n,)
        Weight of each row.
    """

    data: Retrospective
    runs: RunCosts
    used: Floats

    @property
    def values(self) -> dict[str, float]:
        """Average of each target; NaN where no row is left."""
        share = self.used.mean()
        if share == 0:
            return nothing()
        return {t: float((self.used * cost).mean() / share) for t, cost in self.runs.by_target.items()}

    def parts(self, rows: str, confidence: float) -> RunParts:
        """Averages of the parts that the costs are made of."""
        return RunParts(self.runs.parts, self.used, Origin(self.data.cluster, rows, confidence))

    def outcome(self, rows: str, confidence: float) -> Outcome:
        """Averages with their influence values."""
        used, share = self.used, self.used.mean()
        if share == 0:
            return Outcome({}, reason="no row has every group recorded")
        estimates, costs = {}, self.runs.by_target
        for target, value in self.values.items():
            influence = used * (costs[target] - value) / share
            estimates[target] = Estimate(value, influence, self.data.cluster, rows, confidence)
        return Outcome(estimates, ess=float(used.sum()), normalizer=1.0, largest_weight=1.0)


def mean_imputed(evidence: Evidence) -> RunAverage:
    """**Imp-Mean**: run the policy on data completed with unconditional means; biased unless nothing is missing."""
    return _average(evidence, "mean-imputed")


def blocking(evidence: Evidence) -> RunAverage:
    """**Blocking**: the policy gets only what was recorded; biased unless nothing is missing."""
    return _average(evidence, "blocked")


def complete_cases(evidence: Evidence) -> RunAverage:
    """**CC**: average over complete rows; biased unless data are missing completely at random."""
    average = _average(evidence, "recorded")
    return RunAverage(average.data, average.runs, average.used * average.data.complete)


def _average(evidence: Evidence, walk: str) -> RunAverage:
    return RunAverage(evidence.data, evidence.fitted.runs[walk], evidence.fitted.row_weight)
