"""Multiple imputation: completed tables drawn from p(X_mis | X_obs, Y)."""

from .adapters import Imputer, SklearnImputer
from .chained import ChainedImputer
from .imputations import Imputations
from .runs import CompletedRuns, completed_runs, completed_steps

__all__ = [
    "ChainedImputer",
    "CompletedRuns",
    "Imputations",
    "Imputer",
    "SklearnImputer",
    "completed_runs",
    "completed_steps",
]
