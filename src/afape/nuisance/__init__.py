"""Nuisances: superset propensities, known and learned, and what learning does to standard errors."""

from .autoregressive import AutoregressivePropensity
from .chain import ChainPropensity
from .folds import assign_folds
from .known import KnownPropensity
from .learned import BoundPropensity, LearnedPropensity
from .stacked import StackedScores

__all__ = [
    "AutoregressivePropensity",
    "BoundPropensity",
    "ChainPropensity",
    "KnownPropensity",
    "LearnedPropensity",
    "StackedScores",
    "assign_folds",
]
