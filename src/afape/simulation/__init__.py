"""Mechanisms that hide groups of complete data and know their own superset probability."""

from .block_mechanism import BlockMechanism
from .graph_mechanism import GraphMechanism
from .mechanisms import IndependentMechanism, LogisticMechanism

__all__ = ["BlockMechanism", "GraphMechanism", "IndependentMechanism", "LogisticMechanism"]
