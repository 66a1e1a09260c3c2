"""Policies: the protocol, and those that come with the package."""

from .builtin import AcquireAll, AcquireNone, DecisionRule, FixedOrder, RandomSubset
from .policy import Policy

__all__ = ["AcquireAll", "AcquireNone", "DecisionRule", "FixedOrder", "Policy", "RandomSubset"]
