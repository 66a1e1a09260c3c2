"""Missingness: assumptions, graphs, identification, and mechanisms that hide values of complete data."""

from .assumptions import MAR, MCAR, MNAR
from .graph import MGraph
from .graph_mechanism import GraphMechanism
from .identification import Identification
from .known_propensity import KnownPropensity
from .mechanisms import BlockMechanism, IndependentMechanism, LogisticMechanism

__all__ = [
    "MAR",
    "MCAR",
    "MNAR",
    "BlockMechanism",
    "GraphMechanism",
    "Identification",
    "IndependentMechanism",
    "KnownPropensity",
    "LogisticMechanism",
    "MGraph",
]
