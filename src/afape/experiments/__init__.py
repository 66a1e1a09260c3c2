"""The experiments of the paper, as data."""

from .policies import synthetic_policies
from .synthetic import Experiment, synthetic_mar, synthetic_mnar

__all__ = ["Experiment", "synthetic_mar", "synthetic_mnar", "synthetic_policies"]
