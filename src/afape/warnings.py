"""Warnings of afape: the input is valid, but the result may be unreliable."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

__all__ = [
    "AfapeWarning",
    "AssumedOrderWarning",
    "AssumptionWarning",
    "BalanceWarning",
    "BlankTextWarning",
    "BlockWarning",
    "ChangingAnswersWarning",
    "ClippedWeightsWarning",
    "CodeValuesWarning",
    "DroppedRowsWarning",
    "FarValuesWarning",
    "HeavyWeightsWarning",
    "InterruptedBootstrapWarning",
    "KnownValuesWarning",
    "LongRunWarning",
    "LookalikeLevelsWarning",
    "ManyLevelsWarning",
    "NormalizerWarning",
    "PartialGroupWarning",
    "PropensityFitWarning",
    "ResumedWarning",
    "SeenRowsWarning",
    "StochasticMethodWarning",
    "SupportWarning",
    "UnrecordedColumnWarning",
    "UselessClassifierWarning",
    "ValueFallbackWarning",
    "warn",
]


class AfapeWarning(UserWarning):
    """Base class of all warnings of afape."""


class BlankTextWarning(AfapeWarning):
    """A column has texts that look like blanks, such as "NA"; they count as levels."""


class BlockWarning(AfapeWarning):
    """Some blocks of rows could not be evaluated and are left out."""


class CodeValuesWarning(AfapeWarning):
    """A column has numbers such as -999 that look like codes for a missing value; they count as values."""


class LookalikeLevelsWarning(AfapeWarning):
    """Levels or labels differ only in capitals or blanks; they count as different."""


class ManyLevelsWarning(AfapeWarning):
    """A category has very many levels, each of which becomes a column."""


class PartialGroupWarning(AfapeWarning):
    """Some rows record only some columns of a group; the group counts as not recorded there."""


class ResumedWarning(AfapeWarning):
    """A run continues: some of its blocks were finished before."""


class SeenRowsWarning(AfapeWarning):
    """The classifier or a policy was trained on rows that it is evaluated on; its cost looks too low."""


class UselessClassifierWarning(AfapeWarning):
    """The errors of the classifier cost more than predicting one label for every case."""


class AssumedOrderWarning(AfapeWarning):
    """Columns, groups or labels of another library's object have no names, so an order is assumed."""


class StochasticMethodWarning(AfapeWarning):
    """A method draws its actions without reporting their probabilities; two calls disagree."""


class ChangingAnswersWarning(AfapeWarning):
    """A policy, a classifier or an outcome answered a state otherwise when it was asked again."""


class SupportWarning(AfapeWarning):
    """The policy wants sets of groups that hardly any row has recorded."""


class HeavyWeightsWarning(AfapeWarning):
    """An estimate depends mostly on a few rows with large weights."""


class BalanceWarning(AfapeWarning):
    """After weighting, rows that have a set still differ from all rows in groups that are always recorded."""


class AssumptionWarning(AfapeWarning):
    """The records contradict the assumption about why values are missing."""


class ClippedWeightsWarning(AfapeWarning):
    """Learned propensities below ``min_propensity`` were raised to it."""


class FarValuesWarning(AfapeWarning):
    """A column has extreme values that would dominate a fit, so the models get them moved to a limit."""


class DroppedRowsWarning(AfapeWarning):
    """Rows were dropped because they lack a group that missingness depends on."""


class NormalizerWarning(AfapeWarning):
    """A mean weight is far from 1: positivity is violated or the propensity model is wrong."""


class PropensityFitWarning(AfapeWarning):
    """A propensity model did not converge."""


class ValueFallbackWarning(AfapeWarning):
    """Some action values had no similar rows to learn from; a model with fewer groups was used instead."""


class KnownValuesWarning(AfapeWarning):
    """Known action values lie outside the possible costs: their sign or their unit may be wrong."""


class InterruptedBootstrapWarning(AfapeWarning):
    """The bootstrap was stopped early; intervals use the replicates that were finished."""


class LongRunWarning(AfapeWarning):
    """The rest of the evaluation may take several minutes; the message says which estimators take the time."""


class UnrecordedColumnWarning(AfapeWarning):
    """A column has no recorded value, so there is no mean to impute."""


def warn(message: str, category: type[AfapeWarning]) -> None:
    """Give a warning that points at the line of the user's code that called the package."""
    level, frame = 1, sys._getframe()
    package = __name__.partition(".")[0]
    caller: FrameType | None = frame
    while caller is not None and caller.f_globals.get("__name__", "").partition(".")[0] == package:
        level, caller = level + 1, caller.f_back
    warnings.warn(message, category, stacklevel=level)
