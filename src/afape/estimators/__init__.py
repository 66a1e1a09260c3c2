"""Estimators: each reduces the walk's tables to estimates with influence values."""

from .bounds import BoundedEstimator, Bounds, bounded_values
from .dm import DirectMethod
from .drl import DoublyRobust
from .endings import Endings
from .estimate import TARGETS, Estimate, Outcome
from .ipw import InverseProbability
from .mi import ImputedEstimate, MultipleImputation, rubin_covariance
from .plain import RunCosts
from .support import Support, SupportReduction
from .weighted import WeightedEstimator
from .weights import View, WeightedStates

__all__ = [
    "TARGETS",
    "BoundedEstimator",
    "Bounds",
    "DirectMethod",
    "DoublyRobust",
    "Endings",
    "Estimate",
    "ImputedEstimate",
    "InverseProbability",
    "MultipleImputation",
    "Outcome",
    "RunCosts",
    "Support",
    "SupportReduction",
    "View",
    "WeightedEstimator",
    "WeightedStates",
    "bounded_values",
    "rubin_covariance",
]
