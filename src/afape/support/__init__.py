"""What the records support: regions without support, found without a model, and what follows from them."""

from .regions import Region, RegionScan, Slant, Term
from .thresholds import SupportThresholds
from .violations import SupportMap, SupportSearch, Violation, find_violations

__all__ = [
    "Region",
    "RegionScan",
    "Slant",
    "SupportMap",
    "SupportSearch",
    "SupportThresholds",
    "Term",
    "Violation",
    "find_violations",
]
