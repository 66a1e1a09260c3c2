"""Mechanisms that hide groups of complete data and know their own superset probability."""

from .graph_mechanism import GraphMechanism
from .mechanisms import IndependentMechanism, LogisticMechanism

__all__ = ["GraphMechanism", "IndependentMechanism", "LogisticMechanism"]
