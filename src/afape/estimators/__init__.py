"""Estimators: each reduces the fitted object to estimates with influence values; the catalogue lists them."""

from .bounds import BoundedReduction, Bounds
from .catalogue import METHODS, Choice, Method
from .estimate import TARGETS, Estimate, Outcome
from .imputed import ImputedEstimate, rubin_covariance
from .linear import LinearParts
from .plain import RunAverage
from .reduction import Reduced

__all__ = [
    "METHODS",
    "TARGETS",
    "BoundedReduction",
    "Bounds",
    "Choice",
    "Estimate",
    "ImputedEstimate",
    "LinearParts",
    "Method",
    "Outcome",
    "Reduced",
    "RunAverage",
    "rubin_covariance",
]
