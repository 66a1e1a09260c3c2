"""The decision problem and the records, checked once."""

from .merging import merge_columns
from .population import population_weights
from .problem import Problem
from .retrospective import Retrospective

__all__ = ["Problem", "Retrospective", "merge_columns", "population_weights"]
