"""Bounds on costs if recording has unmeasured reasons."""

from .analysis import Sensitivity, Tipping
from .entry import sensitivity

__all__ = ["Sensitivity", "Tipping", "sensitivity"]
