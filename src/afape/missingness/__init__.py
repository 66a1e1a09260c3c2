"""Why values are missing: assumptions to analyse under, and graphs to draw them in."""

from .assumptions import MAR, MCAR, MNAR, Conditioning
from .graph import MGraph
from .identification import Identification

__all__ = ["MAR", "MCAR", "MNAR", "Conditioning", "Identification", "MGraph"]
