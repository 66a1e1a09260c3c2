"""Estimators: each reduces the walk's tables to estimates with influence values."""

from .estimate import TARGETS, Estimate, Outcome
from .ipw import InverseProbability
from .plain import RunCosts
from .support import Support, SupportReduction
from .weights import View, WeightedStates

__all__ = [
    "TARGETS",
    "Estimate",
    "InverseProbability",
    "Outcome",
    "RunCosts",
    "Support",
    "SupportReduction",
    "View",
    "WeightedStates",
]
