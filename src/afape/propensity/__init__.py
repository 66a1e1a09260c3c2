"""Propensities P(R >= S | given): learned or given by the user, and the weights that states get from them."""

from .learned import LearnedPropensity

__all__ = ["LearnedPropensity"]
