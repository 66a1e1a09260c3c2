"""Plain averages of runs: the truth on complete data, and the baselines of common practice."""

from __future__ import annotations

from dataclasses import dataclass

from .._arrays import Bools, Floats, effective_size
from ..walk.run_parts import RunParts
from ..walk.tariff import Tariff
from .amounts import RunAmounts, Sample
from .answer import Answer, PartAmounts
from .evidence import Evidence

__all__ = ["RunAverage", "blocking", "complete_cases", "mean_imputed"]


@dataclass(frozen=True, eq=False)
class RunAverage:
    """Average cost of a run over rows. On complete data this is the true cost J.

    Parameters
    ----------
    runs : RunParts
        Expected parts of the cost of a run in each row.
    used : ndarray of shape (n,)
        Weight of each row.
    tariff : Tariff
        Prices and costs.
    sample : Sample
        The rows.
    """

    runs: RunParts
    used: Floats
    tariff: Tariff
    sample: Sample

    def answer(self) -> Answer:
        """Return the averages with their influence values."""
        if not self.used.any():
            return Answer(reason="no row has every group recorded")
        costs = self.parts().priced(self.tariff)
        ess = effective_size(self.used, None)
        return Answer(costs, ess=ess, normalizer=1.0, largest_weight=1.0, reduction=self)

    def parts(self) -> PartAmounts:
        """Return the averages of the parts of the costs."""
        return PartAmounts(RunAmounts(self.runs.parts, self.used, self.sample.weighted(self.used)), self.runs.columns)


def mean_imputed(evidence: Evidence) -> RunAverage:
    """**Imp-Mean**: run the policy on data completed with unconditional means; biased unless nothing is missing."""
    return _average(evidence, "mean-imputed")


def blocking(evidence: Evidence) -> RunAverage:
    """**Blocking**: the policy gets only recorded values; biased unless nothing is missing."""
    return _average(evidence, "blocked")


def complete_cases(evidence: Evidence) -> RunAverage:
    """**CC**: average over complete rows; biased unless data are missing completely at random."""
    return _average(evidence, "recorded", evidence.data.complete)


def _average(evidence: Evidence, walk: str, kept: Floats | Bools | float = 1.0) -> RunAverage:
    used = evidence.fitted.row_weight * kept
    if evidence.data.original is not None:
        used = used * evidence.data.labelled
    return RunAverage(evidence.fitted.runs[walk], used, evidence.recipe.tariff, evidence.sample)
