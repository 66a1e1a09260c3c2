"""Bounds in place of an estimate, where the records cannot carry all of the policy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from ..arrays import Floats
from ..walk import WalkTable
from .endings import Endings
from .estimate import TARGETS, Estimate, Outcome, check_confidence
from .weighted import Formula, WeightedEstimator
from .weights import View, WeightedStates

__all__ = ["BoundedEstimator", "Bounds", "bounded", "bounded_values"]


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
        )

    @property
    def lower(self) -> float:
        """Estimated lower bound."""
        return self.least.value

    @property
    def upper(self) -> float:
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
            return self.least.interval(level, kind)[0], self.largest.interval(level, kind)[1]
        errors = [_half_width(e, kind) for e in (self.least, self.largest)]
        c = _critical(level, self.upper - self.lower, max(errors))
        return self.lower - c * errors[0], self.upper + c * errors[1]

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
        return Bounds.between(self.least - far[0], self.largest - far[1], _either(self, other))

    def __rsub__(self, other: Estimate) -> Bounds:
        """Estimate minus bounds."""
        if not isinstance(other, Estimate):
            return NotImplemented
        return Bounds.between(other - self.largest, other - self.least, self.unsupported)

    def __add__(self, other: Estimate) -> Bounds:
        """Bounds of the sum."""
        if not isinstance(other, Estimate):
            return NotImplemented
        near = (other.least, other.largest) if isinstance(other, Bounds) else (other, other)
        return Bounds.between(self.least + near[0], self.largest + near[1], _either(self, other))

    __radd__ = __add__

    def __repr__(self) -> str:
        low, high = self.interval()
        tail = (
            "no interval without bootstrap"
            if np.isnan(low)
            else f"{100 * self.confidence:g} % interval {low:.6g} to {high:.6g}"
        )
        return f"Bounds({self.lower:.6g} to {self.upper:.6g}, {tail}, {100 * self.unsupported:.2g} % unsupported)"


def _either(a: Estimate, b: Estimate) -> float:
    return max(x.unsupported for x in (a, b) if isinstance(x, Bounds))


def _half_width(estimate: Estimate, kind: str) -> float:
    low, high = estimate.interval(0.95, kind)
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


def bounded(least: Outcome, largest: Outcome, unsupported: float) -> Outcome:
    """Put the outcomes of both bounds together."""
    if least.reason or largest.reason:
        return replace(least, estimates={}, reason=least.reason or largest.reason)
    estimates: dict[str, Estimate] = {
        t: Bounds.between(least.estimates[t], largest.estimates[t], unsupported) for t in least.estimates
    }
    return replace(least, estimates=estimates, unsupported=unsupported)


def bounded_values(least: dict[str, float], largest: dict[str, float]) -> dict[str, float]:
    """Values of a replicate; the middle stands for the target, so that a lost replicate shows."""
    out = {t: (least[t] + largest[t]) / 2 for t in TARGETS}
    for t in TARGETS:
        out |= {f"{t} least": least[t], f"{t} largest": largest[t]}
    return out


class BoundedEstimator:
    """A weighted estimator that answers with bounds: one formula with the least, one with the largest cost.

    Parameters
    ----------
    least, largest : WeightedEstimator
        In the same view, which leaves out unsupported states; their formulas have `Endings`.
    endings : Endings
        Of either.
    """

    def __init__(self, least: WeightedEstimator, largest: WeightedEstimator, endings: Endings) -> None:
        self.least, self.largest, self.endings = least, largest, endings
        self.stopped = self.lost = 0.0

    @property
    def view(self) -> View:
        """The view of both."""
        return self.least.view

    @property
    def parts(self) -> tuple[WeightedEstimator, ...]:
        """Both bounds."""
        return self.least, self.largest

    def add(self, table: WalkTable, weighted: WeightedStates) -> None:
        """Add the states of a chunk."""
        self.least.add(table, weighted)
        self.largest.add(table, weighted)
        ends, lines = self.endings.of(table), weighted.lines
        weight = weighted.weight * self.least.row_weight[table.row[lines]]
        stops = np.where(ends.whole, 0.0, table.stop_flow)[lines]
        self.stopped += float(weight @ stops)
        self.lost += float(weight @ ends.flow[lines])

    def replicate(self, table: WalkTable, view: View, row_weight: Floats, *formulas: Formula) -> dict[str, float]:
        """Values of both bounds with other weights of rows and states."""
        least, largest = (
            part.replicate(table, view, row_weight, formula) for part, formula in zip(self.parts, formulas, strict=True)
        )
        return bounded_values(least, largest)

    def outcome(self, rows: str, confidence: float) -> Outcome:
        """Bounds for the three targets; no answer where no row at all has a say."""
        outcome = self.least.outcome(rows, confidence)
        unsupported = self.lost / self.least.row_weight.sum()
        if self.stopped <= 0 and self.view.adjust.all():  # bounds that know nothing but labels and prices
            return Outcome({}, reason=self._why_nothing(), unsupported=unsupported)
        return bounded(outcome, self.largest.outcome(rows, confidence), unsupported)

    def _why_nothing(self) -> str:
        data = self.least.data
        if data.complete.any():
            return f"too few rows have every group recorded ({int(data.complete.sum())} of {len(data)})"
        return self.least.why_nothing()
