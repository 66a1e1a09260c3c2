"""Estimates between 0 and 1, with intervals between 0 and 1."""

from __future__ import annotations

from dataclasses import dataclass

from scipy.special import expit, logit, stdtrit

from .._arguments import check_confidence
from .estimate import Estimate

__all__ = ["Proportion", "logit_interval"]


def logit_interval(estimate: Estimate, confidence: float) -> tuple[float, float]:
    r"""Return the interval :math:`\mathrm{logit}(m) \pm t \, se / (m (1 - m))` on the scale of m.

    An estimate of 0 or 1 has no logit, and if a few rows carry the estimate the logit does not know of what they did not
    show. So the interval contains that of `Estimate` in these cases.
    """
    value, tail = estimate.value, 0.5 - confidence / 2
    if not 0 < value < 1 or not estimate.std_error > 0:
        return Estimate.interval(estimate, confidence)
    half = -float(stdtrit(estimate.degrees_of_freedom, tail)) * estimate.std_error / (value * (1 - value))
    centre = float(logit(value))
    low, high = float(expit(centre - half)), float(expit(centre + half))
    if any(estimate._excess(tail)):
        below, above = Estimate.interval(estimate, confidence)
        return min(low, below), max(high, above)
    return low, high


@dataclass(frozen=True, eq=False, repr=False)
class Proportion(Estimate):
    """A proportion, whose interval is symmetric on the logit scale. Differences are plain estimates."""

    def interval(self, confidence: float | None = None, kind: str = "normal") -> tuple[float, float]:
        """Return the confidence interval; arguments as in `Estimate.interval`."""
        level = check_confidence(self.confidence if confidence is None else confidence)
        return super().interval(level, kind) if kind != "normal" else logit_interval(self, level)
