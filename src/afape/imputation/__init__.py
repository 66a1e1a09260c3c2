"""Imputation: tables completed by draws from p(X_mis | X_obs, Y), and rows completed from donors."""

from .chained import ChainedImputer
from .imputers import Imputer

__all__ = ["ChainedImputer", "Imputer"]
