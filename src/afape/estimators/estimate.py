"""An estimated cost with one influence value per row, which gives its interval and its differences."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from scipy.special import stdtrit

from .._arguments import check_confidence
from .._arrays import Floats, Ints, cluster_sums, effective_size, standard_error
from ..walk.tariff import TARGETS

__all__ = ["TARGETS", "Bounds", "Estimate", "limits_of_sum"]


@dataclass(frozen=True, eq=False)
class Estimate:
    r"""Estimated expected cost of a policy.

    .. math:: \hat J - J \approx \frac1n \sum_i \phi_i, \qquad
       \widehat{se}^2 = \frac{1}{n^2} \frac{m}{m-1} \sum_{c=1}^{m} \Big(\sum_{i \in c} \phi_i\Big)^2

    with m clusters, or m = n rows if there are no clusters.

    Parameters
    ----------
    value : float
        The estimate.
    influence : ndarray of shape (n,), or None
        Mean-zero influence values phi, one per row; None if theory gives none.
    cluster : ndarray of int, optional
        Cluster of each row.
    rows : str
        Identity of the rows; only estimates on the same rows can be subtracted.
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
    draws: str = ""  # identity of the bootstrap draws; only replicates of the same draws are paired
    limits: tuple[float, float] = (-float("inf"), float("inf"))  # possible costs; intervals stay within

    @property
    def std_error(self) -> float:
        """Standard error, from the influence values, or from the replicates if there are no influence values."""
        if self.influence is None:
            return self.bootstrap_std_error
        return standard_error(self.influence, self.cluster)

    @property
    def degrees_of_freedom(self) -> float:
        r"""Effective number of rows (or clusters) behind the variance: :math:`(\sum \phi_c^2)^2 / \sum \phi_c^4`.

        If a few weights are large, the standard error is as uncertain as that of a sample of this size. Satterthwaite's
        degrees of freedom, which match the variance of the squared error, are about twice as many for heavy tails and three
        times as many for normal values. But estimate and standard error are correlated, so intervals need the smaller number
        above to reach their nominal coverage (``python -m studies mnar``). Infinite if there are no influence values.
        """
        if self.influence is None or not self.influence.any():
            return float("inf")
        return max(effective_size(cluster_sums(self.influence, self.cluster) ** 2, None), 1.0)

    @property
    def bootstrap_std_error(self) -> float:
        """Standard deviation of the bootstrap replicates; NaN without replicates."""
        good = self._replicates()
        return float(good.std(ddof=1)) if len(good) > 1 else float("nan")

    def _replicates(self) -> Floats:
        found = np.array([]) if self.replicates is None else self.replicates
        return np.asarray(found[np.isfinite(found)])

    def interval(self, confidence: float | None = None, kind: str = "normal") -> tuple[float, float]:
        """Return the lower and the upper limit of the confidence interval.

        Parameters
        ----------
        confidence : float, optional
            Level; default that of the estimate.
        kind : {"normal", "bootstrap-normal", "bootstrap-percentile"}
            "normal" uses `std_error` and Student's t with `degrees_of_freedom`, which is close to the normal distribution
            unless rows are few or a few weights are large. "bootstrap-normal" uses `bootstrap_std_error` and the normal
            distribution. "bootstrap-percentile" uses quantiles of the replicates.
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
        """Cut the interval to the possible costs."""
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

    def __sub__(self, other: Estimate) -> Estimate:
        """Return the paired difference of two estimates on the same rows."""
        return self._combine(other, -1.0)

    def __add__(self, other: Estimate) -> Estimate:
        """Return the sum of two costs on the same rows."""
        return self._combine(other, 1.0)

    def _combine(self, other: Estimate, sign: float) -> Estimate:
        if not isinstance(other, Estimate):
            return NotImplemented
        if self.rows != other.rows:
            raise ValueError(
                "Estimates can be combined only if they come from the same rows in the same order, but these come from "
                "different tables or splits. Evaluate both policies on one Retrospective."
            )
        influence = None
        if self.influence is not None and other.influence is not None:
            influence = self.influence + sign * other.influence
        replicates = None  # replicates are paired too: the same seed draws the same rows
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
    """Return the limits of a sum or difference."""
    far = b if sign > 0 else (-b[1], -b[0])
    return a[0] + far[0], a[1] + far[1]


_UNKNOWN = Estimate(float("nan"), None)


@dataclass(frozen=True, eq=False, repr=False)
class Bounds(Estimate):
    r"""Bounds of an expected cost that is not identified.

    A share of the policy's runs, `unsupported`, wants sets that are not recorded in similar rows. Only limits are known for
    the cost of these runs. ``value`` and ``std_error`` are NaN.

    `interval` covers the true cost with the given probability (Imbens and Manski 2004): from
    :math:`\hat J_{low} - c\, se_{low}` to :math:`\hat J_{up} + c\, se_{up}`. c lies between the one-sided quantile, for
    bounds that are wide compared with their errors, and the two-sided quantile, for bounds that are equal.

    Parameters
    ----------
    least, largest : Estimate
        Estimates of the bounds.
    unsupported : float
        Share of the policy's runs that want unsupported sets.
    """

    least: Estimate = _UNKNOWN
    largest: Estimate = _UNKNOWN
    unsupported: float = float("nan")

    @staticmethod
    def between(least: Estimate, largest: Estimate, unsupported: float) -> Bounds:
        """Return bounds from the estimates of the lower and of the upper bound."""
        return Bounds(
            float("nan"),
            None,
            least.cluster,
            least.rows,
            least.confidence,
            least=least,
            largest=largest,
            unsupported=unsupported,
            limits=(least.limits[0], largest.limits[1]),
        )

    @property
    def bound_lower(self) -> float:
        """Estimated lower bound."""
        return self.least.value

    @property
    def bound_upper(self) -> float:
        """Estimated upper bound."""
        return self.largest.value

    @property
    def std_error(self) -> float:
        """NaN, because there is no single estimate; see ``least`` and ``largest``."""
        return float("nan")

    def interval(self, confidence: float | None = None, kind: str = "normal") -> tuple[float, float]:
        """Return the confidence interval of the true cost; arguments as in `Estimate.interval`."""
        level = check_confidence(self.confidence if confidence is None else confidence)
        if kind == "bootstrap-percentile":
            return self._possible(self.least.interval(level, kind)[0], self.largest.interval(level, kind)[1])
        errors = [_half_width(e, kind) for e in (self.least, self.largest)]
        c = _critical(level, self.bound_upper - self.bound_lower, max(errors))
        return self._possible(self.bound_lower - c * errors[0], self.bound_upper + c * errors[1])

    def __sub__(self, other: Estimate) -> Bounds:
        """Return bounds of the difference: lower minus upper, and upper minus lower."""
        if not isinstance(other, Estimate):
            return NotImplemented
        far = (other.largest, other.least) if isinstance(other, Bounds) else (other, other)
        found = Bounds.between(self.least - far[0], self.largest - far[1], _either(self, other))
        return replace(found, limits=limits_of_sum(self.limits, other.limits, -1.0))

    def __rsub__(self, other: Estimate) -> Bounds:
        """Return bounds of the estimate ``other`` minus these bounds."""
        if not isinstance(other, Estimate):
            return NotImplemented
        found = Bounds.between(other - self.largest, other - self.least, self.unsupported)
        return replace(found, limits=limits_of_sum(other.limits, self.limits, -1.0))

    def __add__(self, other: Estimate) -> Bounds:
        """Return bounds of the sum."""
        if not isinstance(other, Estimate):
            return NotImplemented
        near = (other.least, other.largest) if isinstance(other, Bounds) else (other, other)
        found = Bounds.between(self.least + near[0], self.largest + near[1], _either(self, other))
        return replace(found, limits=limits_of_sum(self.limits, other.limits, 1.0))

    __radd__ = __add__

    def __repr__(self) -> str:
        low, high = self.interval()
        tail = (
            "no interval without bootstrap"
            if np.isnan(low)
            else f"{100 * self.confidence:g} % interval {low:.6g} to {high:.6g}"
        )
        return f"Bounds({self.bound_lower:.6g} to {self.bound_upper:.6g}, {tail}, {100 * self.unsupported:.2g} % unsupported)"


def _either(a: Estimate, b: Estimate) -> float:
    return max(x.unsupported for x in (a, b) if isinstance(x, Bounds))


def _half_width(estimate: Estimate, kind: str) -> float:
    # An interval that is cut at a limit does not give the standard error.
    unlimited = replace(estimate, limits=(-np.inf, np.inf))
    low, high = unlimited.interval(0.95, kind)
    return (high - low) / 2 / NormalDist().inv_cdf(0.975)


def _critical(level: float, width: float, error: float) -> float:
    """Solve Phi(c + width / error) - Phi(-c) = level for c (Imbens and Manski 2004)."""
    normal = NormalDist()
    if not error > 0:
        return normal.inv_cdf(level)
    low, high = normal.inv_cdf(level), normal.inv_cdf(0.5 + level / 2)
    for _ in range(60):
        c = (low + high) / 2
        if normal.cdf(c + max(width, 0.0) / error) - normal.cdf(-c) < level:
            low = c
        else:
            high = c
    return high
