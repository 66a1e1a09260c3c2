"""Bounds in place of an estimate, where the records do not support all of the policy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from ..arguments import check_confidence
from ..arrays import Floats
from ..nuisance.fitted import Evidence
from ..nuisance.weights import View
from .estimate import Estimate, Outcome, limits_of_sum
from .linear import LinearParts, joined
from .reduction import Reduced
from .weighted import Flows, why_nothing

__all__ = ["BoundedReduction", "Bounds"]


_UNKNOWN = Estimate(float("nan"), None)


@dataclass(frozen=True, eq=False, repr=False)
class Bounds(Estimate):
    r"""An expected cost of which the records give only bounds.

    A part of the policy's runs, `unsupported`, wants sets that are not recorded for rows like these. The cost of
    these runs is known within limits alone. ``value`` and ``std_error`` are NaN.

    `interval` covers the true cost with the given probability (Imbens and Manski 2004): from
    :math:`\hat J_{low} - c\, se_{low}` to :math:`\hat J_{up} + c\, se_{up}` with c between the one-sided quantile, where
    the bounds are wide against their errors, and the two-sided one, where they meet.

    Parameters
    ----------
    least, largest : Estimate
        Estimates of the bounds.
    unsupported : float
        Share of the policy's runs behind the gap between them.
    """

    least: Estimate = _UNKNOWN
    largest: Estimate = _UNKNOWN
    unsupported: float = float("nan")

    @staticmethod
    def between(least: Estimate, largest: Estimate, unsupported: float) -> Bounds:
        """Bounds from estimates of both."""
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
        """There is no estimate, and so no error of one; see ``least`` and ``largest``."""
        return float("nan")

    def interval(self, confidence: float | None = None, kind: str = "normal") -> tuple[float, float]:
        """Confidence interval of the true cost, around the bounds; arguments as of `Estimate.interval`."""
        level = check_confidence(self.confidence if confidence is None else confidence)
        if kind == "bootstrap-percentile":
            return self._possible(self.least.interval(level, kind)[0], self.largest.interval(level, kind)[1])
        errors = [_half_width(e, kind) for e in (self.least, self.largest)]
        c = _critical(level, self.bound_upper - self.bound_lower, max(errors))
        return self._possible(self.bound_lower - c * errors[0], self.bound_upper + c * errors[1])

    def with_replicates(self, of: Callable[[str], Floats], target: str, draws: str) -> Bounds:
        """The same, with bootstrap replicates of both bounds."""
        return replace(
            self,
            least=self.least.with_replicates(of, f"{target} least", draws),
            largest=self.largest.with_replicates(of, f"{target} largest", draws),
        )

    def without_influence(self) -> Bounds:
        """The same, its errors from replicates."""
        return replace(self, least=self.least.without_influence(), largest=self.largest.without_influence())

    def __sub__(self, other: Estimate) -> Bounds:
        """Bounds of the difference: each bound meets the other's far one."""
        if not isinstance(other, Estimate):
            return NotImplemented
        far = (other.largest, other.least) if isinstance(other, Bounds) else (other, other)
        found = Bounds.between(self.least - far[0], self.largest - far[1], _either(self, other))
        return replace(found, limits=limits_of_sum(self.limits, other.limits, -1.0))

    def __rsub__(self, other: Estimate) -> Bounds:
        """Estimate minus bounds."""
        if not isinstance(other, Estimate):
            return NotImplemented
        found = Bounds.between(other - self.largest, other - self.least, self.unsupported)
        return replace(found, limits=limits_of_sum(other.limits, self.limits, -1.0))

    def __add__(self, other: Estimate) -> Bounds:
        """Bounds of the sum."""
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
    unlimited = replace(
        estimate, limits=(-np.inf, np.inf)
    )  # an interval that is cut at a limit says nothing of its error
    low, high = unlimited.interval(0.95, kind)
    return (high - low) / 2 / NormalDist().inv_cdf(0.975)


def _critical(level: float, width: float, error: float) -> float:
    """Imbens and Manski's c: Phi(c + width / error) - Phi(-c) = level."""
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


@dataclass(frozen=True, eq=False)
class BoundedReduction:
    """The least and the largest answer of any method, where runs want sets that the records do not support.

    Parameters
    ----------
    least, largest : Reduced
        Answers of the method with the runs into unsupported sets at their least and at their largest cost.
    evidence : Evidence
        What either of them read.
    """

    least: Reduced
    largest: Reduced
    evidence: Evidence

    @property
    def values(self) -> dict[str, float]:
        """Values of both bounds; the middle stands for the target, so that a lost replicate shows."""
        least, largest = self.least.values, self.largest.values
        out = {t: (least[t] + largest[t]) / 2 for t in least}
        for t in least:
            out |= {f"{t} least": least[t], f"{t} largest": largest[t]}
        return out

    def outcome(self, rows: str, confidence: float) -> Outcome:
        """Bounds of every target; no answer where no row at all can be used."""
        data, view = self.evidence.data, self.evidence.view
        assert view is not None
        stopped, unsupported = self._shares(view)
        if stopped <= 0 and view.adjust.all():  # bounds that know nothing but labels and prices
            few = f"too few rows have every group recorded ({int(data.complete.sum())} of {len(data)})"
            reason = few if data.complete.any() else why_nothing(view)
            return Outcome({}, reason=reason, unsupported=unsupported)
        least, largest = (part.outcome(rows, confidence) for part in (self.least, self.largest))
        if least.reason or largest.reason:
            return replace(least, estimates={}, reason=least.reason or largest.reason)
        estimates: dict[str, Estimate] = {
            t: Bounds.between(least.estimates[t], largest.estimates[t], unsupported) for t in least.estimates
        }
        return replace(least, estimates=estimates, unsupported=unsupported)

    def parts(self, rows: str, confidence: float) -> LinearParts | None:
        """Parts of both: what is supported, and what runs into unsupported sets might still come to."""
        return joined(self.least.parts(rows, confidence), self.largest.parts(rows, confidence))

    def _shares(self, view: View) -> tuple[float, float]:
        """Share of the runs that stop by themselves, and that end because the next set is unsupported."""
        evidence, row_weight = self.evidence, self.evidence.fitted.row_weight
        assert evidence.ends is not None
        stopped = ended = 0.0
        for table in evidence.fitted.tables:
            weighted = view.weigh(table)
            flows = Flows(table, evidence.data.problem.prices, evidence.ends.of(table))
            weight = np.zeros(len(table.row))
            weight[weighted.lines] = weighted.weight * row_weight[table.row[weighted.lines]]
            stopped += float(weight @ flows.own)
            ended += float(weight @ flows.ended)
        return stopped / row_weight.sum(), ended / row_weight.sum()
