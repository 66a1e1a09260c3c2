"""Why values are missing: assumptions to analyse under, graphs to draw them in, mechanisms to generate from."""

from .assumptions import MAR, MCAR, MNAR
from .graph import MGraph
from .graph_mechanism import GraphMechanism
from .identification import Identification
from .mechanisms import IndependentMechanism, LogisticMechanism

__all__ = [
    "MAR",
    "MCAR",
    "MNAR",
    "GraphMechanism",
    "Identification",
    "IndependentMechanism",
    "LogisticMechanism",
    "MGraph",
]
