"""Parts of the rows that are alike: folds of cross-fitting, and halves of donors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._arrays import Ints, unique_sets

if TYPE_CHECKING:
    from .retrospective import Retrospective

__all__ = ["alike_parts"]


def alike_parts(data: Retrospective, n_parts: int, rng: np.random.Generator) -> Ints:
    """Deal rows at random into parts of nearly equal size that are alike, (n,); rows of one cluster share a part.

    Rows (or clusters, by their first row) are sorted by what they have recorded, by label, and by the sum of the ranks of the
    columns that are always recorded. Each run of ``n_parts`` neighbours is dealt into all parts, in random order. Models that
    leave out one part then learn from rows like those of the others, so estimates change little with the seed. Only
    comparisons within columns are used, so neither units nor the order of rows and groups matter.
    """
    row = _first_rows(data)
    pattern = unique_sets(data.recorded[np.ix_(row, data.problem.groups_by_name)])[1]
    ranks = np.zeros(len(row), dtype=np.intp)
    for column in np.flatnonzero(data.always_recorded[data.column_group]):
        ranks += np.unique(data.values[row, column], return_inverse=True)[1].reshape(-1)
    order = np.lexsort((ranks, data.labels[row], pattern))
    n_runs = -(-len(row) // n_parts)
    part = np.empty(len(row), dtype=np.intp)
    part[order] = np.argsort(rng.random((n_runs, n_parts)), axis=1).reshape(-1)[: len(row)]
    return part[data.unit]


def _first_rows(data: Retrospective) -> Ints:
    """The first row of every unit (row or cluster), in the order of their numbers."""
    by_place = np.argsort(data.place)
    return np.asarray(by_place[np.unique(data.unit[by_place], return_index=True)[1]])
