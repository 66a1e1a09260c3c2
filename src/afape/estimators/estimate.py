"""An estimated cost with one influence value per row, from which every interval follows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import stdtrit

from ..arguments import check_confidence
from ..arrays import Floats, Ints, cluster_sums, effective_size, standard_error

if TYPE_CHECKING:
    from ..walk import PartColumns
    from .linear import LinearParts

__all__ = ["TARGETS", "Estimate", "Outcome", "limits_of_sum"]

TARGETS = ("acquisition", "misclassification", "total")


@dataclass(frozen=True, eq=False)
class Estimate:
    r"""Estimated expected cost of a policy.

    .. math:: \hat J - J \approx \frac1n \sum_i \phi_i, \qquad
       \widehat{se}^2 = \frac{1}{n^2} \frac{m}{m-1} \sum_{c=1}^{m} \Big(\sum_{i \in c} \phi_i\Big)^2

    with m clusters, or rows where there are none.

    Parameters
    ----------
    value : float
        The estimate.
    influence : ndarray of shape (n,), or None
        Mean-zero influence values phi, one per row, where theory gives them.
    cluster : ndarray of int, optional
        Rows that belong together.
    rows : str
        Which rows these are; only estimates on the same rows can be subtracted.
    confidence : float
        Default level of `interval`.
    replicates : ndarray of shape (B,), optional
        Bootstrap replicates of the value, in the order of their seeds.
    """

    value: float
    influence: Floats | None
    cluster: Ints | None = None
    rows: str = ""
    confidence: float = 0.95
    replicates: Floats | None = None
    draws: str = ""  # which bootstrap draws these are; others are not paired with them
    limits: tuple[float, float] = (
        -float("inf"),
        float("inf"),
    )  # least and largest possible cost; intervals stay within

    @property
    def std_error(self) -> float:
        """Standard error: from the influence values, or from the replicates where there are none."""
        if self.influence is None:
            return self.bootstrap_std_error
        return standard_error(self.influence, self.cluster)

    @property
    def degrees_of_freedom(self) -> float:
        r"""How many rows (or clusters) the variance comes from: :math:`(\sum \phi_c^2)^2 / \sum \phi_c^4`.

        A few large weights leave the standard error as uncertain as that of a sample of so many rows. Matching the
        variance of the squared error alone (Satterthwaite) would give about twice as many where tails are heavy, and
        three times for normal values; but there error and estimate err together, and intervals with fewer degrees cover
        (``afape study mnar``). Infinite where there are no influence values.
        """
        if self.influence is None or not self.influence.any():
            return float("inf")
        return max(effective_size(cluster_sums(self.influence, self.cluster) ** 2, None), 1.0)

    @property
    def bootstrap_std_error(self) -> float:
        """Standard deviation of the bootstrap replicates; NaN without any."""
        good = self._replicates()
        return float(good.std(ddof=1)) if len(good) > 1 else float("nan")

    def _replicates(self) -> Floats:
        found = np.array([]) if self.replicates is None else self.replicates
        return np.asarray(found[np.isfinite(found)])

    def interval(self, confidence: float | None = None, kind: str = "normal") -> tuple[float, float]:
        """Confidence interval.

        Parameters
        ----------
        confidence : float, optional
            Level; default that of the estimate.
        kind : {"normal", "bootstrap-normal", "bootstrap-percentile"}
            From `std_error` and Student's t with `degrees_of_freedom`, which is close to the normal law unless rows are
            few or a few weigh a lot; from `bootstrap_std_error` and the normal law; or between quantiles of the replicates.
        """
        level = check_confidence(self.confidence if confidence is None else confidence)
        if kind not in ("normal", "bootstrap-normal", "bootstrap-percentile"):
            raise ValueError(f"'kind' must be 'normal', 'bootstrap-normal' or 'bootstrap-percentile', but is {kind!r}.")
        if kind == "bootstrap-percentile":
            good = self._replicates()
            if len(good) < 2:
                return float("nan"), float("nan")
            low, high = np.quantile(good, [0.5 - level / 2, 0.5 + level / 2])
            return self._possible(float(low), float(high))
        plain = kind == "normal"
        error, freedom = (
            (self.std_error, self.degrees_of_freedom) if plain else (self.bootstrap_std_error, float("inf"))
        )
        half = float(stdtrit(freedom, 0.5 + level / 2)) * error
        return self._possible(self.value - half, self.value + half)

    def _possible(self, low: float, high: float) -> tuple[float, float]:
        """An interval without what no policy can cost."""
        least, largest = self.limits
        return float(np.clip(low, least, largest)), float(np.clip(high, least, largest))

    @property
    def lower(self) -> float:
        """Lower end of the interval at the default level."""
        return self.interval()[0]

    @property
    def upper(self) -> float:
        """Upper end of the interval at the default level."""
        return self.interval()[1]

    def with_replicates(self, of: Callable[[str], Floats], target: str, draws: str) -> Estimate:
        """The same, with the bootstrap replicates of its target."""
        return replace(self, replicates=of(target), draws=draws)

    def without_influence(self) -> Estimate:
        """The same, its errors from replicates."""
        return replace(self, influence=None)

    def __sub__(self, other: Estimate) -> Estimate:
        """Paired difference: rows that both were estimated on count once."""
        return self._combine(other, -1.0)

    def __add__(self, other: Estimate) -> Estimate:
        """Sum of two costs on the same rows."""
        return self._combine(other, 1.0)

    def _combine(self, other: Estimate, sign: float) -> Estimate:
        if not isinstance(other, Estimate):
            return NotImplemented
        if self.rows != other.rows:
            raise ValueError(
                "Estimates can be combined only where they come from the same rows in the same order, but these come from "
                "different tables or splits. Evaluate both policies on one Retrospective."
            )
        influence = None
        if self.influence is not None and other.influence is not None:
            influence = self.influence + sign * other.influence
        replicates = None  # paired as well: the same seed draws the same rows
        if self.replicates is not None and other.replicates is not None and self.draws == other.draws:
            m = min(len(self.replicates), len(other.replicates))
            replicates = self.replicates[:m] + sign * other.replicates[:m]
        value = self.value + sign * other.value
        limits = limits_of_sum(self.limits, other.limits, sign)
        return Estimate(value, influence, self.cluster, self.rows, self.confidence, replicates, self.draws, limits)

    def __repr__(self) -> str:
        low, high = self.interval()
        if np.isnan(low):
            return f"Estimate({self.value:.6g}, no interval without bootstrap)"
        return f"Estimate({self.value:.6g}, {100 * self.confidence:g} % interval {low:.6g} to {high:.6g})"


def limits_of_sum(a: tuple[float, float], b: tuple[float, float], sign: float) -> tuple[float, float]:
    """Limits of a sum or difference."""
    far = b if sign > 0 else (-b[1], -b[0])
    return a[0] + far[0], a[1] + far[1]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What an estimator has to say: estimates by target, or the reason why there are none."""

    estimates: dict[str, Estimate]
    ess: float = float("nan")
    normalizer: float = float("nan")  # mean final weight; 1 where positivity and propensity are right
    normalizer_error: float = 0.0  # its standard error, learned propensities included
    normalizers: tuple[float, ...] = ()  # mean weight before each decision
    clipped: int = 0
    largest_weight: float = float("nan")
    error_method: str = "influence"  # how the standard error came about
    reason: str = ""  # why there is no estimate
    caveat: str = ""  # what the estimate rests on beyond the assumption
    replicates: int = 0  # bootstrap replicates drawn
    lost: int = 0  # of these, replicates that lost a set or a class that the estimate needs
    unsupported: float = 0.0  # share of the policy's runs behind bounds
    parts: LinearParts | None = None  # what the costs are made of
    columns: PartColumns | None = None  # what the parts are
