"""Named warnings: input that is valid but that a careful user would want to know about."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

__all__ = [
    "AfapeWarning",
    "AssumptionWarning",
    "BalanceWarning",
    "BlankTextWarning",
    "ClippedWeightsWarning",
    "DroppedRowsWarning",
    "FarValuesWarning",
    "HeavyWeightsWarning",
    "InterruptedBootstrapWarning",
    "NormalizerWarning",
    "PartialGroupWarning",
    "PropensityFitWarning",
    "SeenRowsWarning",
    "StochasticMethodWarning",
    "SupportWarning",
    "UnrecordedColumnWarning",
    "ValueFallbackWarning",
    "warn",
]


class AfapeWarning(UserWarning):
    """Base of every warning that afape gives, so that one filter catches them all."""


class BlankTextWarning(AfapeWarning):
    """A text column holds texts that look like blanks, such as "NA"; they are levels like others."""


class PartialGroupWarning(AfapeWarning):
    """Some rows record only a part of a group; they count as not recorded for that group."""


class SeenRowsWarning(AfapeWarning):
    """The classifier was trained on rows that it is now judged on; its cost looks too low."""


class StochasticMethodWarning(AfapeWarning):
    """A method draws its actions without telling their probabilities; two calls disagree."""


class SupportWarning(AfapeWarning):
    """The policy wants sets of groups that hardly any row has recorded."""


class HeavyWeightsWarning(AfapeWarning):
    """A few rows with large weights carry an estimate."""


class BalanceWarning(AfapeWarning):
    """After weighting, rows that have a set still differ from all rows in what is always recorded."""


class AssumptionWarning(AfapeWarning):
    """The records contradict what was assumed about why values are missing."""


class ClippedWeightsWarning(AfapeWarning):
    """Learned propensities fell below ``min_propensity`` and were raised to it."""


class FarValuesWarning(AfapeWarning):
    """A column that missingness depends on has values so far off that they would decide a fit alone."""


class DroppedRowsWarning(AfapeWarning):
    """Rows were left out because they lack what missingness depends on."""


class NormalizerWarning(AfapeWarning):
    """A mean weight is far from 1, a sign of violated positivity or of a wrong propensity model."""


class PropensityFitWarning(AfapeWarning):
    """A propensity model did not converge."""


class ValueFallbackWarning(AfapeWarning):
    """Some action values had no row like them to learn from and fell back to a model of fewer groups."""


class InterruptedBootstrapWarning(AfapeWarning):
    """The bootstrap was stopped early; intervals rest on the replicates that were done."""


class UnrecordedColumnWarning(AfapeWarning):
    """A column has no recorded value at all, so there is no mean to impute."""


def warn(message: str, category: type[AfapeWarning]) -> None:
    """Warn at the line of the user's code that called into the package."""
    level, frame = 1, sys._getframe()
    package = __name__.partition(".")[0]
    caller: FrameType | None = frame
    while caller is not None and caller.f_globals.get("__name__", "").partition(".")[0] == package:
        level, caller = level + 1, caller.f_back
    warnings.warn(message, category, stacklevel=level)
