"""More rows than memory: deal them to random blocks, evaluate each block, combine values and covariances."""

from .scan import Scan, scan
from .summary import Summary

__all__ = ["Scan", "Summary", "scan"]
