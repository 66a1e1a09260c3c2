"""The lattice engine: one table of states and edges, exact or sampled."""

from .ground import Ground
from .table import FREE, WalkTable
from .walker import WalkOptions, walk

__all__ = ["FREE", "Ground", "WalkOptions", "WalkTable", "walk"]
