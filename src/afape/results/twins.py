"""Names of estimators that adjust for groups with gaps, and names of their twins that do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .evaluation import Evaluation

__all__ = ["own_name", "twin"]


def twin(estimator: str) -> str:
    """Return the name with ``-miss`` added or removed: the estimator with, or without, groups with gaps to adjust for."""
    name, known = estimator.removesuffix("-gt"), "-gt" if estimator.endswith("-gt") else ""
    return (name.removesuffix("-miss") if name.endswith("-miss") else f"{name}-miss") + known


def own_name(evaluation: Evaluation, estimator: str) -> str:
    """Return the name of the estimator for this policy: with or without ``-miss``."""
    other = twin(estimator)
    return other if estimator not in evaluation.answers and other in evaluation.answers else estimator
