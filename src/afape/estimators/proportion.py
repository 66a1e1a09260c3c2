"""Estimates between 0 and 1, with intervals between 0 and 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit, stdtrit

from .._arguments import check_confidence
from .estimate import Estimate

__all__ = ["Proportion", "logit_interval"]


def logit_interval(estimate: Estimate, confidence: float) -> tuple[float, float]:
    r"""Return the interval :math:`\mathrm{logit}(m) \pm t \, se / (m (1 - m))` on the scale of m; NaN if m is 0 or 1."""
    value, error = estimate.value, estimate.std_error
    if not 0 < value < 1:
        return float("nan"), float("nan")
    half = float(stdtrit(estimate.degrees_of_freedom, 0.5 + confidence / 2)) * error / (value * (1 - value))
    centre = float(logit(value))
    return float(expit(centre - half)), float(expit(centre + half))


@dataclass(frozen=True, eq=False, repr=False)
class Proportion(Estimate):
    """A proportion, whose interval is symmetric on the logit scale. Differences are plain estimates."""

    def interval(self, confidence: float | None = None, kind: str = "normal") -> tuple[float, float]:
        """Return the confidence interval; arguments as in `Estimate.interval`."""
        level = check_confidence(self.confidence if confidence is None else confidence)
        if kind != "normal":
            return super().interval(level, kind)
        low, high = logit_interval(self, level)
        return (low, high) if np.isfinite(low) else super().interval(level)
