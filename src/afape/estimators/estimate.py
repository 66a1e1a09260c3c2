"""An estimated cost with one influence value per row, which gives its interval and its differences."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist

import numpy as np
from scipy.special import ndtri, stdtr

from .._arguments import check_choice, check_confidence, check_number
from .._arrays import Floats, Ints, cluster_sums, effective_size, standard_error
from .._copies import HandsOutCopies
from ..walk.tariff import TARGETS
from .unseen import Reach, combined_excess, reach

__all__ = ["TARGETS", "Bounds", "Estimate", "certain", "limits_of_sum"]

_ROUNDING = 1e-12  # standard errors below this, relative to the estimate, are rounding errors

_KINDS = ("normal", "bootstrap-normal", "bootstrap-percentile")


@dataclass(frozen=True, eq=False)
class Estimate(HandsOutCopies):
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
    draws : str
        Identity of the bootstrap draws; only replicates of the same draws are paired.
    limits : tuple of float
        Possible costs; intervals stay within.
    concentration : float
        Share of the total weight in a typical row that carries the variance. Intervals allow for costs that such rows did not
        show. 0 means that nothing was left unseen.
    pair : tuple, optional
        For a sum or difference: both estimates, and the sign of the second.
    """

    value: float
    influence: Floats | None
    cluster: Ints | None = None
    rows: str = ""
    confidence: float = 0.95
    replicates: Floats | None = None
    draws: str = ""
    limits: tuple[float, float] = (-float("inf"), float("inf"))
    concentration: float = 0.0
    pair: tuple[Estimate, Estimate, float] | None = None

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
        sums = cluster_sums(self.influence, self.cluster)
        largest = float(np.abs(sums).max())
        return max(effective_size((sums / largest) ** 2, None), 1.0) if largest > 0 else float("inf")

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
            unless rows are few or a few weights are large. If a few rows carry the estimate, or if no cost varied, it is
            longer, because of costs that were not seen. "bootstrap-normal" uses `bootstrap_std_error` and the normal
            distribution. "bootstrap-percentile" uses quantiles of the replicates.
        """
        level = check_confidence(self.confidence if confidence is None else confidence)
        check_choice("kind", kind, _KINDS)
        if kind == "bootstrap-percentile":
            good = self._replicates()
            if len(good) < 2:
                return float("nan"), float("nan")
            low, high = np.quantile(good, [0.5 - level / 2, 0.5 + level / 2])
            return self._possible(float(low), float(high))
        if kind == "bootstrap-normal":
            half = -float(ndtri(0.5 - level / 2)) * self.bootstrap_std_error
            return self._possible(self.value - half, self.value + half)
        below, above = self.reach(0.5 - level / 2)
        return self._possible(self.value - below, self.value + above)

    @cached_property
    def _error(self) -> tuple[float, float]:
        """Standard error, 0 if it is a rounding error, and degrees of freedom."""
        error = self.std_error
        sizes = [abs(e.value) for e in (self, *(self.pair or ())[:2])]
        return (0.0 if error <= _ROUNDING * max(1.0, *sizes) else error), self.degrees_of_freedom

    def reach(self, tail: float) -> Reach:
        """Return the distances to both ends of the interval whose ends have error probability ``tail`` each."""
        error, freedom = self._error
        room = (self.value - self.limits[0], self.limits[1] - self.value)
        if self.pair is None or not error > 0:
            return reach(tail, error, freedom, room, self.concentration)
        plain = reach(tail, error, freedom, room, 0.0)
        excess = self._excess(tail)
        return float(np.hypot(plain[0], excess[0])), float(np.hypot(plain[1], excess[1]))

    def _excess(self, tail: float) -> Reach:
        r"""Return how much longer than Student's both sides are, :math:`\sqrt{x^2 - t^2 se^2}`."""
        error, freedom = self._error
        if self.pair is None or not error > 0:
            plain = reach(tail, error, freedom, (0.0, 0.0), 0.0)[0]
            below, above = (float(np.sqrt(max(x * x - plain * plain, 0.0))) for x in self.reach(tail))
            return below, above
        a, b, sign = self.pair
        first, second = a._excess(tail), b._excess(tail)
        both = 2 * a._error[0] * b._error[0]
        correlation = (error**2 - a._error[0] ** 2 - b._error[0] ** 2) / both if both > 0 else 0.0
        return combined_excess(first, second if sign > 0 else second[::-1], correlation)

    def p_value(self, at: float = 0.0) -> float:
        """Return the two-sided p-value of the value ``at``: the smallest 1 - confidence whose interval excludes it."""
        at = check_number("at", at, "be a finite number", np.isfinite)
        gap, (error, freedom) = at - self.value, self._error
        if np.isnan(gap) or np.isnan(error):
            return float("nan")
        if abs(gap) <= _ROUNDING * max(1.0, abs(at), abs(self.value)):
            return 1.0
        side = int(gap > 0)
        low, high = -320.0, np.log10(0.5)  # common logarithm of the tail
        if error > 0 and not any(self._excess(0.5e-6)):
            return float(2 * stdtr(freedom, -abs(gap) / error))
        if not self.limits[0] <= at <= self.limits[1]:
            return 0.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if self.reach(10.0**middle)[side] >= abs(gap) else (low, middle)
        return float(2 * 10.0**high)

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

    def pairs_with(self, other: Estimate) -> bool:
        """True if the covariance of both estimates is known from influence values."""
        return self.influence is not None and other.influence is not None

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
        return Estimate(
            value,
            influence,
            self.cluster,
            self.rows,
            self.confidence,
            replicates,
            self.draws,
            limits_of_sum(self.limits, other.limits, sign),
            max(self.concentration, other.concentration),
            (self, other, sign),
        )

    def __repr__(self) -> str:
        low, high = self.interval()
        if np.isnan(low):
            return f"Estimate({self.value:.6g}, no interval without bootstrap)"
        return f"Estimate({self.value:.6g}, {100 * self.confidence:g} % interval {low:.6g} to {high:.6g})"


def certain(estimate: Estimate) -> Estimate:
    """Return an amount that is known by construction: if it does not vary, no other value is possible."""
    if isinstance(estimate, Bounds) or estimate._error[0] != 0:
        return estimate
    return replace(estimate, limits=(estimate.value, estimate.value))


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
    extrapolated : Estimate or None
        Estimate that holds if the models may be extrapolated into the regions without support: the estimate of the same
        method if no region were unsupported. None if there is nothing to extrapolate from, as for a set that no row has.
    """

    least: Estimate = _UNKNOWN
    largest: Estimate = _UNKNOWN
    unsupported: float = float("nan")
    extrapolated: Estimate | None = None

    @staticmethod
    def between(least: Estimate, largest: Estimate, unsupported: float, extrapolated: Estimate | None = None) -> Bounds:
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
            extrapolated=extrapolated,
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
        check_choice("kind", kind, _KINDS)
        if kind == "bootstrap-percentile":
            return self._possible(self.least.interval(level, kind)[0], self.largest.interval(level, kind)[1])
        errors = [_half_width(e, kind, side) for side, e in enumerate((self.least, self.largest))]
        c = _critical(level, self.bound_upper - self.bound_lower, max(errors))
        return self._possible(self.bound_lower - c * errors[0], self.bound_upper + c * errors[1])

    def __sub__(self, other: Estimate) -> Bounds:
        """Return bounds of the difference: lower minus upper, and upper minus lower."""
        if not isinstance(other, Estimate):
            return NotImplemented
        far = (other.largest, other.least) if isinstance(other, Bounds) else (other, other)
        points = _extrapolated(self), _extrapolated(other)
        point = None if points[0] is None or points[1] is None else points[0] - points[1]
        found = Bounds.between(self.least - far[0], self.largest - far[1], _either(self, other), point)
        return replace(found, limits=limits_of_sum(self.limits, other.limits, -1.0))

    def __rsub__(self, other: Estimate) -> Bounds:
        """Return bounds of the estimate ``other`` minus these bounds."""
        if not isinstance(other, Estimate):
            return NotImplemented
        point = None if self.extrapolated is None else other - self.extrapolated
        found = Bounds.between(other - self.largest, other - self.least, self.unsupported, point)
        return replace(found, limits=limits_of_sum(other.limits, self.limits, -1.0))

    def __add__(self, other: Estimate) -> Bounds:
        """Return bounds of the sum."""
        if not isinstance(other, Estimate):
            return NotImplemented
        near = (other.least, other.largest) if isinstance(other, Bounds) else (other, other)
        points = _extrapolated(self), _extrapolated(other)
        point = None if points[0] is None or points[1] is None else points[0] + points[1]
        found = Bounds.between(self.least + near[0], self.largest + near[1], _either(self, other), point)
        return replace(found, limits=limits_of_sum(self.limits, other.limits, 1.0))

    __radd__ = __add__

    def __repr__(self) -> str:
        low, high = self.interval()
        tail = (
            "no interval without bootstrap"
            if np.isnan(low)
            else f"{100 * self.confidence:g} % interval {low:.6g} to {high:.6g}"
        )
        if self.extrapolated is not None:
            tail += f", extrapolated {self.extrapolated.value:.6g}"
        return f"Bounds({self.bound_lower:.6g} to {self.bound_upper:.6g}, {tail}, {100 * self.unsupported:.2g} % unsupported)"


def _either(a: Estimate, b: Estimate) -> float:
    return max(x.unsupported for x in (a, b) if isinstance(x, Bounds))


def _extrapolated(estimate: Estimate) -> Estimate | None:
    return estimate.extrapolated if isinstance(estimate, Bounds) else estimate


def _half_width(estimate: Estimate, kind: str, side: int) -> float:
    """Return the distance to one end of the 95 % interval, in units of the normal quantile."""
    if kind == "normal":
        return estimate.reach(0.025)[side] / NormalDist().inv_cdf(0.975)
    return estimate.bootstrap_std_error


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
