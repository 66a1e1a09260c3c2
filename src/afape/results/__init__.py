"""Results of evaluations: estimates by method, parts of the costs, metrics, prices, frontier."""

from .budget_curve import BudgetCurve
from .comparison import Comparison
from .evaluation import Evaluation, NotEstimableError
from .frontier import Frontier
from .parts import Parts
from .price_plane import PricePlane
from .provenance import Provenance

__all__ = [
    "BudgetCurve",
    "Comparison",
    "Evaluation",
    "Frontier",
    "NotEstimableError",
    "Parts",
    "PricePlane",
    "Provenance",
]
