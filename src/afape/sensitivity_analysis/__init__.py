"""How far unmeasured reasons for recording could move a cost."""

from .analysis import Sensitivity, Tipping, sensitivity

__all__ = ["Sensitivity", "Tipping", "sensitivity"]
