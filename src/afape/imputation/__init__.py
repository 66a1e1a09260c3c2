"""Multiple imputation: completed tables drawn from p(X_mis | X_obs, Y)."""

from .adapters import Imputer, SklearnImputer
from .chained import ChainedImputer
from .components import (
    Components,
    Known,
    ShownParts,
    StateCosts,
    TooManySetsError,
    component_steps,
    components_of,
)
from .donors import Donors
from .imputations import Imputations
from .runs import CompletedRuns, completed_runs, completed_steps

__all__ = [
    "ChainedImputer",
    "CompletedRuns",
    "Components",
    "Donors",
    "Imputations",
    "Imputer",
    "Known",
    "ShownParts",
    "SklearnImputer",
    "StateCosts",
    "TooManySetsError",
    "completed_runs",
    "completed_steps",
    "component_steps",
    "components_of",
]
