"""What the records can carry: regions without support, found without a model, and what follows from them."""

from .regions import Region, RegionScan, Term
from .thresholds import SupportThresholds
from .violations import SupportMap, Violation, find_violations

__all__ = ["Region", "RegionScan", "SupportMap", "SupportThresholds", "Term", "Violation", "find_violations"]
