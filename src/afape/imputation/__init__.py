"""Multiple imputation: completed tables drawn from p(X_mis | X_obs, Y)."""

from .adapters import Imputer, SklearnImputer
from .chained import ChainedImputer
from .imputations import Imputations

__all__ = ["ChainedImputer", "Imputations", "Imputer", "SklearnImputer"]
