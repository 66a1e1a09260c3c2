"""Estimates pooled over completed tables by Rubin's rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from .._arrays import Floats, cluster_sums
from .estimate import Estimate

__all__ = ["ANY_TABLES", "ImputedEstimate", "rubin_covariance"]


ANY_TABLES = "any"  # identity of tables for a policy that wants no imputed values: its costs are equal in all tables


@dataclass(frozen=True, eq=False, repr=False)
class ImputedEstimate(Estimate):
    r"""Estimate pooled over M completed tables (Rubin 1987).

    .. math:: \bar Q = \frac1M \sum_m \hat Q_m, \qquad
       T = \bar U + \Big(1 + \frac1M\Big) B, \qquad \lambda = \Big(1 + \frac1M\Big) \frac BT

    with U the variance within a table and B the variance of the estimates between tables. The interval uses Student's t with
    the degrees of freedom of Barnard and Rubin (1999). Sums and differences are computed table by table.

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
        """Pool the estimates of one cost over completed tables; ``tables`` is the identity of the tables."""
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
            concentration=first.concentration,
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
        same = bool((self.values == self.values[0]).all())  # rounding of the mean would give a small variance
        return 0.0 if same else float(self.values.var(ddof=1))

    @property
    def std_error(self) -> float:
        """Square root of the total variance T."""
        return float(np.sqrt(rubin_covariance([self])[0, 0]))

    @property
    def degrees_of_freedom(self) -> float:
        r"""Barnard and Rubin's :math:`\nu`, at most the degrees of freedom of complete data."""
        complete = len(cluster_sums(self.influences[0], self.cluster)) - 1
        share = self._between_share
        observed = (complete + 1) / (complete + 3) * complete * (1 - share)
        if share == 0:
            return observed
        imputed = (len(self.values) - 1) / share**2
        return observed * imputed / (observed + imputed)

    @property
    def _between_share(self) -> float:
        part = (1 + 1 / len(self.values)) * self.between
        return part / (part + self.within) if part > 0 else 0.0

    def _combine(self, other: Estimate, sign: float) -> Estimate:
        if not isinstance(other, ImputedEstimate):
            return super()._combine(other, sign)
        plain = super()._combine(other, sign)
        if len(self.values) != len(other.values) or len({self.draws, other.draws} - {ANY_TABLES}) > 1:
            raise ValueError(
                "Estimates by multiple imputation can be combined only if they come from the same completed tables, but "
                "these do not. Evaluate both policies with the same 'imputer', 'n_imputations' and 'random_state'."
            )
        return ImputedEstimate(
            value=plain.value,
            influence=None,
            limits=plain.limits,
            concentration=plain.concentration,
            pair=plain.pair,
            cluster=self.cluster,
            rows=self.rows,
            confidence=self.confidence,
            draws=other.draws if self.draws == ANY_TABLES else self.draws,
            values=self.values + sign * other.values,
            influences=self.influences + sign * other.influences,
        )


def rubin_covariance(estimates: Sequence[ImputedEstimate]) -> Floats:
    """Compute the joint covariance (E, E) of estimates on the same completed tables: within plus (1 + 1/M) between."""
    values = np.array([e.values for e in estimates])
    return np.asarray(_within(estimates) + (1 + 1 / values.shape[1]) * np.atleast_2d(np.cov(values)))


def _within(estimates: Sequence[ImputedEstimate]) -> Floats:
    """Compute the covariance within a table (E, E), averaged over tables."""
    total = np.zeros((len(estimates), len(estimates)))
    n_tables, n_rows = estimates[0].influences.shape
    for m in range(n_tables):
        sums = np.array([cluster_sums(e.influences[m], e.cluster) for e in estimates])
        units = sums.shape[1]
        total += sums @ sums.T * (units / (units - 1) if units > 1 else np.nan)
    return np.asarray(total / n_tables / n_rows**2)
