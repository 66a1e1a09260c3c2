"""Multiple imputation: the policy run on completed tables, pooled by Rubin's rules."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from ..arrays import standard_error
from ..imputation import CompletedRuns
from ..nuisance.fitted import Evidence
from .estimate import Estimate, Outcome
from .imputed import ImputedEstimate
from .linear import ImputedParts
from .plain import RunAverage
from .reduction import nothing

__all__ = ["ImputationCheck", "MultipleImputation", "multiple_imputation"]


@dataclass(frozen=True)
class ImputationCheck:
    r"""Whether multiple imputation agrees with an estimate that does not need its model.

    The variance of the difference is that of the mean over tables of the rows' differences in influence, plus
    :math:`(1 + 1/M) B` for the draws of the tables.

    Attributes
    ----------
    estimator : str
        What `mi` is compared with.
    difference, std_error, p_value : float
        Estimate minus `mi`, its standard error, and the two-sided p-value.
    own_error : float
        Standard error of `mi`.
    """

    estimator: str
    difference: float
    std_error: float
    p_value: float
    own_error: float

    @staticmethod
    def of(name: str, estimate: Estimate, imputed: Estimate) -> ImputationCheck:
        """Compare an estimate with influence values to a pooled one on the same rows."""
        if estimate.influence is None or not isinstance(imputed, ImputedEstimate):
            raise ValueError(f"{name!r} has no influence values to compare with 'mi'.")
        within = standard_error(estimate.influence - imputed.influences.mean(axis=0), estimate.cluster)
        error = float(np.sqrt(within**2 + (1 + 1 / len(imputed.values)) * imputed.between))
        gap = estimate.value - imputed.value
        p = float(2 * ndtr(-abs(gap) / error)) if error > 0 else float(gap == 0)
        return ImputationCheck(name, gap, error, p, imputed.std_error)

    @property
    def telling(self) -> bool:
        """Whether the records can check the imputation model at all."""
        return self.std_error <= 2 * self.own_error

    def __str__(self) -> str:
        error = f"standard error {self.std_error:.3g}, p = {self.p_value:.2g}"
        words = f"{self.estimator} minus mi: {self.difference:+.4g} ({error})."
        if self.p_value < 0.05:
            return f"{words} The imputation model seems wrong: trust {self.estimator}."
        if not self.telling:
            return (
                f"{words} Its error is more than twice that of mi: the records can hardly check the imputation model."
            )
        return f"{words} No sign that the imputation model is wrong."


@dataclass(frozen=True, eq=False)
class MultipleImputation:
    """**MI (G-formula)**: run the policy on every completed table, average, pool by Rubin's rules.

    Consistent under MCAR and MAR where the imputer knows p(X_mis | X_obs, Y).

    Parameters
    ----------
    tables : list of RunAverage
        The policy's runs on each completed table.
    identity : str
        Which completed tables these are.
    reason : str
        Why there are none.
    """

    tables: list[RunAverage]
    identity: str
    reason: str = ""

    @property
    def values(self) -> dict[str, float]:
        """Mean over tables."""
        if self.reason:
            return nothing()
        found = [average.values for average in self.tables]
        return {target: float(np.mean([values[target] for values in found])) for target in found[0]}

    def parts(self, rows: str, confidence: float) -> ImputedParts:
        """The parts that the costs are made of, in every table."""
        return ImputedParts([average.parts(rows, confidence) for average in self.tables], self.identity)

    def outcome(self, rows: str, confidence: float) -> Outcome:
        """Pooled estimates; ``ess`` is the number of complete rows that would be as precise for the total."""
        if self.reason:
            return Outcome({}, reason=self.reason)
        runs = [average.outcome(rows, confidence) for average in self.tables]
        estimates = {
            target: ImputedEstimate.pooled([run.estimates[target] for run in runs], self.identity)
            for target in runs[0].estimates
        }
        total = estimates["total"]
        share = total.within / total.std_error**2 if total.std_error > 0 else 1.0
        ess = runs[0].ess * share
        return Outcome(dict(estimates), ess=ess, normalizer=1.0, largest_weight=1.0, error_method="rubin")


def multiple_imputation(evidence: Evidence) -> MultipleImputation:
    """MI from the runs on completed tables."""
    runs: CompletedRuns = evidence.fitted.runs["completed"]
    tables = [RunAverage(evidence.data, table, evidence.fitted.row_weight) for table in runs.tables]
    return MultipleImputation(tables, runs.identity, runs.reason)
