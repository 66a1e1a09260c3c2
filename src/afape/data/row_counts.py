"""What is said about records when their rows are elsewhere: numbers of rows by pattern and label, no values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._arrays import Bools, Floats, Ints, effective_size, mean_of, tally, unique_sets
from .problem import Problem
from .retrospective import Retrospective

__all__ = ["Records", "RowCounts"]


@dataclass(frozen=True, eq=False)
class RowCounts:
    """Numbers of rows by pattern of recorded groups, and by label.

    Attributes
    ----------
    problem : Problem
        The problem.
    classes : tuple
        Labels, in the order of their codes.
    costs : ndarray of shape (K, K)
        Misclassification cost indexed ``[true, predicted]``.
    n_rows : int
        Number of rows.
    cases : float
        Cases that the rows stand for: the sum of their weights.
    gaps : ndarray of int, shape (G,)
        Rows without each group.
    recorded_share : ndarray of shape (G,)
        Share of the cases in which each group is recorded.
    complete_share : float
        Share of the cases with every group.
    label_counts, label_cases : ndarray of shape (K,)
        Rows of each label, and the cases that they stand for.
    patterns : ndarray of bool, shape (u, G)
        Patterns of recorded groups; perhaps not those that few rows have.
    pattern_counts, pattern_cases : ndarray of shape (u,)
        Rows of each pattern, and the cases that they stand for.
    unlabelled : int
        Rows without a label.
    effective_rows : float or None
        Effective number of rows of a weighted mean; None without weights.
    n_clusters : int or None
        Number of clusters; None without clusters.
    partial : dict from group to int
        Rows that record only some columns of the group.
    levels : dict from column to int
        Rows of each level of the categorical columns.
    weighs_labels, shares_known : bool
        True if labels may be missing; True if the shares of the labels in the population are known.
    """

    problem: Problem
    classes: tuple[Any, ...]
    costs: Floats
    n_rows: int
    cases: float
    gaps: Ints
    recorded_share: Floats
    complete_share: float
    label_counts: Ints
    label_cases: Floats
    patterns: Bools
    pattern_counts: Ints
    pattern_cases: Floats
    unlabelled: int = 0
    effective_rows: float | None = None
    n_clusters: int | None = None
    partial: dict[str, int] = field(default_factory=dict)
    levels: dict[str, int] = field(default_factory=dict)
    weighs_labels: bool = False
    shares_known: bool = False
    original: None = None  # the label is no group here

    @staticmethod
    def of(data: Records) -> RowCounts:
        """Count the rows of records; counts are returned as they are."""
        if isinstance(data, RowCounts):
            return data
        patterns, index = unique_sets(data.recorded)
        known = data.labelled
        n_classes, several = len(data.classes), np.bincount(data.source_column)[data.source_column] > 1
        rows_of_level = np.nansum(data.values, axis=0)
        return RowCounts(
            data.problem,
            tuple(data.classes.tolist()),
            data.costs,
            len(data),
            float(data.row_weight.sum()),
            data.gaps,
            data.recorded_share,
            float(mean_of(data.complete, data.weight)),
            np.bincount(data.labels[known], minlength=n_classes),
            tally(data.labels[known], data.row_weight[known], n_classes),
            patterns,
            np.bincount(index, minlength=len(patterns)),
            tally(index, data.row_weight, len(patterns)),
            int((~known).sum()),
            None if data.weight is None else effective_size(data.weight, data.cluster),
            None if data.cluster is None else len(np.unique(data.cluster)),
            dict(data.partial),
            {data.columns[j]: int(rows_of_level[j]) for j in np.flatnonzero(several)},
            data.weighs_labels,
            data.label_shares is not None,
        )

    def __len__(self) -> int:
        return self.n_rows

    @property
    def weighted(self) -> bool:
        """True if rows have weights."""
        return self.effective_rows is not None

    @property
    def always_recorded(self) -> Bools:
        """True for groups that every row records, shape (G,)."""
        return np.asarray(self.gaps == 0)

    def without(self, groups: Sequence[int]) -> int:
        """Number of rows that lack one of these groups, as far as patterns are known."""
        return int(self.pattern_counts[~self.patterns[:, list(groups)].all(axis=1)].sum())


Records = Retrospective | RowCounts
