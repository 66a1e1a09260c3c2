"""Drawings of results. Each function draws on ``ax``, or on a new figure, and returns the matplotlib axes.

Colours are those of Okabe and Ito, which colour-blind readers can distinguish.
"""

from .bands import sensitivity
from .convergence import convergence
from .costs import costs, differences
from .flow import paths
from .records import graph, missingness
from .reliance import balance, support, weights

__all__ = [
    "balance",
    "convergence",
    "costs",
    "differences",
    "graph",
    "missingness",
    "paths",
    "sensitivity",
    "support",
    "weights",
]
