"""More rows than memory: deal them to random blocks, evaluate each block, combine values and covariances."""

from .scanning import Scan, scan
from .sites import Sites, combine
from .summary import Summary

__all__ = ["Scan", "Sites", "Summary", "combine", "scan"]
