"""Positivity: which sets the records support, balance after weighting, and implications of an assumption."""

from .missingness_check import MissingnessCheck
from .support import Support
from .thresholds import SupportThresholds

__all__ = ["MissingnessCheck", "Support", "SupportThresholds"]
