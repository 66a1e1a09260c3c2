"""Nuisances: superset propensities, known and learned, and what learning does to standard errors."""

from .autoregressive import AutoregressivePropensity
from .chain import ChainPropensity
from .conditioning import Conditioning, OddsBlock, OddsTerm, OddsWeight
from .factor import NotLearnableError
from .folds import assign_folds, split_folds
from .known import KnownPropensity
from .known_values import KnownValues
from .learned import BoundPropensity, LearnedPropensity
from .regressors import ValueRegressor, as_regressor
from .stacked import StackedScores
from .values import ActionValues, TableValues

__all__ = [
    "ActionValues",
    "AutoregressivePropensity",
    "BoundPropensity",
    "ChainPropensity",
    "Conditioning",
    "KnownPropensity",
    "KnownValues",
    "LearnedPropensity",
    "NotLearnableError",
    "OddsBlock",
    "OddsTerm",
    "OddsWeight",
    "StackedScores",
    "TableValues",
    "ValueRegressor",
    "as_regressor",
    "assign_folds",
    "split_folds",
]
