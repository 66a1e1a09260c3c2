"""Multiple imputation: the policy run on completed tables, pooled by Rubin's rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.special import stdtrit

from ..agents.policy import Policy
from ..arrays import Floats
from ..classifiers import Classifier
from ..data import Retrospective
from ..imputation import Imputations
from ..walk import Ground, WalkOptions, WalkTable, walk
from .estimate import Estimate, Outcome, check_confidence, cluster_sums
from .plain import RunCosts

__all__ = ["ImputedEstimate", "MultipleImputation", "rubin_covariance"]


@dataclass(frozen=True, eq=False, repr=False)
class ImputedEstimate(Estimate):
    r"""Estimate pooled over M completed tables (Rubin 1987).

    .. math:: \bar Q = \frac1M \sum_m \hat Q_m, \qquad
       T = \bar U + \Big(1 + \frac1M\Big) B, \qquad \lambda = \Big(1 + \frac1M\Big) \frac BT

    with U the variance within a table, B the variance of the estimates between tables, and a t interval with the
    degrees of freedom of Barnard and Rubin (1999). Sums and differences are taken table by table.

    Parameters
    ----------
    values : ndarray of shape (M,)
        Estimate of each table.
    influences : ndarray of shape (M, n)
        Influence values in each table.
    """

    values: Floats = field(default_factory=lambda: np.zeros(0))
    influences: Floats = field(default_factory=lambda: np.zeros((0, 0)))

    @staticmethod
    def pooled(estimates: Sequence[Estimate], tables: str) -> ImputedEstimate:
        """Estimates of one cost on each of the completed tables, which ``tables`` identifies."""
        first = estimates[0]
        values = np.array([e.value for e in estimates])
        influences = np.array([e.influence for e in estimates])
        return ImputedEstimate(
            value=float(values.mean()),
            influence=None,
            cluster=first.cluster,
            rows=first.rows,
            confidence=first.confidence,
            draws=tables,
            values=values,
            influences=influences,
        )

    @property
    def within(self) -> float:
        """Mean variance within a table."""
        return float(_within([self])[0, 0])

    @property
    def between(self) -> float:
        """Variance of the estimates between tables."""
        same = bool((self.values == self.values[0]).all())  # their mean may be off by rounding
        return 0.0 if same else float(self.values.var(ddof=1))

    @property
    def std_error(self) -> float:
        """Square root of the total variance T."""
        return float(np.sqrt(rubin_covariance([self])[0, 0]))

    @property
    def degrees_of_freedom(self) -> float:
        r"""Barnard and Rubin's :math:`\nu`, never more than complete data would have."""
        complete = len(cluster_sums(self.influences[0], self.cluster)) - 1
        share = self._between_share
        observed = (complete + 1) / (complete + 3) * complete * (1 - share)
        if share == 0:
            return observed
        imputed = (len(self.values) - 1) / share**2
        return observed * imputed / (observed + imputed)

    @property
    def missing_information(self) -> float:
        r"""Fraction of the information that is missing: :math:`(r + 2/(\nu + 3)) / (r + 1)`, r = (1 + 1/M) B / U."""
        share = self._between_share
        return 0.0 if share == 0 else share + (1 - share) * 2 / (self.degrees_of_freedom + 3)

    @property
    def _between_share(self) -> float:
        part = (1 + 1 / len(self.values)) * self.between
        return part / (part + self.within) if part > 0 else 0.0

    def interval(self, confidence: float | None = None, kind: str = "normal") -> tuple[float, float]:
        """Confidence interval from Student's t; the kinds that need bootstrap replicates are NaN."""
        if kind != "normal":
            return super().interval(confidence, kind)
        level = check_confidence(self.confidence if confidence is None else confidence)
        half = float(stdtrit(self.degrees_of_freedom, 0.5 + level / 2)) * self.std_error
        return self.value - half, self.value + half

    def _combine(self, other: Estimate, sign: float) -> Estimate:
        if not isinstance(other, ImputedEstimate):
            return super()._combine(other, sign)
        value = super()._combine(other, sign).value
        if self.draws != other.draws:
            raise ValueError(
                "Estimates by multiple imputation can be combined only where they come from the same completed tables, but "
                "these do not. Evaluate both policies with the same 'imputer', 'n_imputations' and 'random_state'."
            )
        return ImputedEstimate(
            value=value,
            influence=None,
            cluster=self.cluster,
            rows=self.rows,
            confidence=self.confidence,
            draws=self.draws,
            values=self.values + sign * other.values,
            influences=self.influences + sign * other.influences,
        )


def rubin_covariance(estimates: Sequence[ImputedEstimate]) -> Floats:
    """Joint covariance of estimates on the same completed tables: within plus (1 + 1/M) between."""
    values = np.array([e.values for e in estimates])
    return np.asarray(_within(estimates) + (1 + 1 / values.shape[1]) * np.atleast_2d(np.cov(values)))


def _within(estimates: Sequence[ImputedEstimate]) -> Floats:
    """Covariance within a table, averaged over tables."""
    total = np.zeros((len(estimates), len(estimates)))
    n_tables, n_rows = estimates[0].influences.shape
    for m in range(n_tables):
        sums = np.array([cluster_sums(e.influences[m], e.cluster) for e in estimates])
        units = sums.shape[1]
        total += sums @ sums.T * (units / (units - 1) if units > 1 else np.nan)
    return np.asarray(total / n_tables / n_rows**2)


class MultipleImputation:
    """**MI (G-formula)**: run the policy on every completed table, average, pool by Rubin's rules.

    Consistent under MCAR and MAR where the imputer knows p(X_mis | X_obs, Y). Rows that lack nothing are the same
    in every table and walked once.

    Parameters
    ----------
    data : Retrospective
        Records with gaps.
    imputations : Imputations
        Their completed tables.
    row_weight : ndarray of shape (n,), optional
        0 for rows that are not averaged over.
    """

    def __init__(self, data: Retrospective, imputations: Imputations, row_weight: Floats | None = None) -> None:
        self.data, self.imputations, self.row_weight = data, imputations, row_weight
        used = np.ones(len(data), dtype=bool) if row_weight is None else row_weight > 0
        self._whole, self._torn = np.flatnonzero(data.complete & used), np.flatnonzero(~data.complete & used)
        self._costs: list[RunCosts] = []
        if not imputations.reason:
            imputations.draw()  # an imputer that fails should do so before the walk

    @property
    def steps(self) -> int:
        """Rows to walk."""
        return 0 if self.imputations.reason else len(self._whole) + len(self.imputations) * len(self._torn)

    def walk(
        self,
        policy: Policy,
        classifier: Classifier,
        options: WalkOptions,
        seed: int,
        n_jobs: int | None,
        told: Callable[[WalkTable], None],
    ) -> None:
        """Walk the complete rows once, and the others in every completed table."""
        if self.imputations.reason:
            return
        data, whole = self.data, RunCosts(self.data, row_weight=self.row_weight)
        for table in walk(Ground.everything(data, data.values, policy, classifier), self._whole, options, seed, n_jobs):
            whole.add(table)
            told(table)
        for values in self.imputations.tables():
            costs = RunCosts(data, row_weight=self.row_weight)
            costs.acquisition, costs.misclassification = whole.acquisition.copy(), whole.misclassification.copy()
            for table in walk(Ground.everything(data, values, policy, classifier), self._torn, options, seed, n_jobs):
                costs.add(table)
                told(table)
            self._costs.append(costs)

    def outcome(self, rows: str, confidence: float) -> Outcome:
        """Pooled estimates; ``ess`` is the number of complete rows that would be as precise for the total."""
        if self.imputations.reason:
            return Outcome({}, reason=self.imputations.reason)
        runs = [costs.outcome(rows, confidence) for costs in self._costs]
        estimates: dict[str, Estimate] = {
            target: ImputedEstimate.pooled([run.estimates[target] for run in runs], self.imputations.identity)
            for target in runs[0].estimates
        }
        total = estimates["total"]
        assert isinstance(total, ImputedEstimate)
        share = total.within / total.std_error**2 if total.std_error > 0 else 1.0
        return Outcome(estimates, ess=runs[0].ess * share, normalizer=1.0, largest_weight=1.0, error="rubin")
