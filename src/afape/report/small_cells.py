"""What a page does not show: numbers of rows, and levels, patterns and subgroups that few people have."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..data.retrospective import Retrospective
from ..results.comparison import Comparison
from ..results.evaluation import Evaluation

__all__ = ["shown_patterns", "without_small"]


def without_small(found: Comparison, data: Retrospective, min_cell: int) -> Comparison:
    """Return the results without numbers of rows, and without levels and subgroups of fewer than ``min_cell`` rows."""
    several = np.bincount(data.source_column)[data.source_column] > 1  # columns of 0 and 1, one per level
    few = several & (np.nansum(data.values, axis=0) < min_cell)
    rare = {data.columns[j] for j in np.flatnonzero(few)}
    kept = {name: _without(evaluation, rare, min_cell) for name, evaluation in found.evaluations.items()}
    return replace(found, evaluations=kept)


def _without(evaluation: Evaluation, rare: set[str], min_cell: int) -> Evaluation:
    support = evaluation.support
    balance = support.balance
    if "column" in balance:
        balance = balance[~balance["column"].isin(rare)]
    subgroups = {level: e for level, e in evaluation.subgroups.items() if e.support.n_rows >= min_cell}
    heaviest = support.heaviest.drop(columns="row", errors="ignore")
    return replace(evaluation, subgroups=subgroups, support=replace(support, balance=balance, heaviest=heaviest))


def shown_patterns(counts: np.ndarray, most: int, min_cell: int) -> int:
    """Return how many of the most frequent patterns are shown: at most ``most``, and only those with enough rows."""
    return min(most, int((counts >= max(min_cell, 1)).sum()))
