"""The lattice engine: one table of states and edges, exact or sampled."""

from .columns import PartColumns
from .ground import Ground
from .runs import RunCosts, run_costs
from .table import FREE, Tables, TableStore, WalkTable
from .walker import WalkOptions, walk

__all__ = [
    "FREE",
    "Ground",
    "PartColumns",
    "RunCosts",
    "TableStore",
    "Tables",
    "WalkOptions",
    "WalkTable",
    "run_costs",
    "walk",
]
