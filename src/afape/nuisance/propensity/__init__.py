"""Superset propensities P(R >= S | given): known, learned along the chain rule, or from one model of all indicators."""

from .autoregressive import AutoregressivePropensity
from .chain import ChainPropensity, StackedScores
from .known import KnownPropensity
from .learned import BoundPropensity, LearnedPropensity

__all__ = [
    "AutoregressivePropensity",
    "BoundPropensity",
    "ChainPropensity",
    "KnownPropensity",
    "LearnedPropensity",
    "StackedScores",
]
