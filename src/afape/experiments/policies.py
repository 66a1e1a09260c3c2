"""Policies that the experiments judge."""

from __future__ import annotations

import numpy as np

from ..agents import DecisionRule, Policy, RandomSubset
from ..arrays import Bools, Floats, Ints

__all__ = ["synthetic_policies"]


def _look_closer(values: Floats, acquired: Bools) -> Ints:
    """Acquire x1 where X0 leaves the sum open, then x2 where X0 + X1 still does."""
    x0, x1 = values[:, 0], values[:, 1]
    has_x1, has_x2 = acquired[:, 1], acquired[:, 2]
    unclear = np.where(has_x1, np.abs(x0 + x1) < 1.5, np.abs(x0) < 1.0)
    return np.where(has_x2 | ~unclear, 3, np.where(has_x1, 2, 1))


def synthetic_policies() -> dict[str, Policy]:
    """Random policies of the paper, and one that looks closer where it is in doubt."""
    return {
        "Random 10 %": RandomSubset(0.1),
        "Random 50 %": RandomSubset(0.5),
        "Random 90 %": RandomSubset(0.9),
        "Adaptive": DecisionRule(_look_closer),
    }
