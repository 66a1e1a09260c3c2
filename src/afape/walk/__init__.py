"""The walk through sets of groups: a table of states and edges per chunk of rows, exact or sampled."""

from .walker import WalkOptions

__all__ = ["WalkOptions"]
