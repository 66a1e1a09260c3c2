"""Positivity: which sets the records support, balance after weighting, and implications of an assumption."""

from .implications import MissingnessCheck
from .support import Support
from .thresholds import SupportThresholds

__all__ = ["MissingnessCheck", "Support", "SupportThresholds"]
