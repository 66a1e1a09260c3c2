"""Pictures: functions that take what afape returns and give matplotlib axes. Reports and papers use the same ones.

Every function takes ``ax`` to draw on, or makes a new figure. Colours are Okabe and Ito's, which colour-blind eyes tell apart.
"""

from .convergence import convergence
from .costs import costs, differences
from .flow import paths
from .records import graph, missingness
from .reliance import balance, sensitivity, support, weights

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
