"""The experiments of the paper, as data."""

from .synthetic import Experiment, synthetic_mar

__all__ = ["Experiment", "synthetic_mar"]
