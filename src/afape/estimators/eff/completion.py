"""Completed rows: some groups of a row are shown, the others are drawn from donors of other folds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..._arrays import Bools, Floats, Ints
from ...data.retrospective import Retrospective
from ...imputation.donors import Donors, DonorTree

__all__ = ["Completer", "KnownGroups"]

_TABLES = 3  # completed tables of the donors, and trees per set
_MIN_LEAF = 10


@dataclass(frozen=True, eq=False)
class KnownGroups:
    """Groups that are known in the used rows.

    Parameters
    ----------
    groups : ndarray of bool, shape (G,)
        Groups that are recorded in every used row.
    usable : ndarray of bool, shape (n,)
        Rows that are used.
    fold : ndarray of int, shape (n,)
        Fold of each row; donors of a row come from other folds.
    averaged : ndarray of bool, shape (n,)
        Rows that are averaged over.
    """

    groups: Bools
    usable: Bools
    fold: Ints
    averaged: Bools

    @property
    def wanted(self) -> Bools:
        """Rows that are used and averaged over."""
        return self.usable & self.averaged


@dataclass(frozen=True, eq=False)
class Completer:
    """Completes the rows of each fold with values of donors from other folds."""

    data: Retrospective
    known: KnownGroups
    donors: Donors

    def _tree(self, k: int, b: int, shown: Bools, number: list[int]) -> DonorTree | None:
        fold = self.known.fold
        others = self.known.usable & (fold != k) if fold.max() > 0 else self.known.usable
        if not others.any():  # no donors: hidden values stay 0; conditional means may be wrong without bias
            return None
        pool = self.donors.pool(self.data, others, _TABLES, k)
        return self.donors.tree(pool, k, b, shown, number, _MIN_LEAF)

    def draws(self, t: Bools, rows: Ints, n_draws: int) -> Iterator[Floats]:
        """Yield completed rows (m, d), once per draw: the groups t and the known groups are shown, the others drawn."""
        data, fold = self.data, self.known.fold[rows]
        shown = (t | self.known.groups)[data.column_group]
        values = np.where(shown, data.values[rows], 0.0)
        number = np.flatnonzero(t).tolist()
        trees = {
            (k, b): self._tree(int(k), b, shown, number) for k in np.unique(fold) for b in range(min(_TABLES, n_draws))
        }
        for m in range(n_draws):
            out = np.empty_like(values)
            for k in np.unique(fold):
                mine = fold == k
                tree = trees[k, m % _TABLES]
                out[mine] = values[mine] if tree is None else tree.complete(values[mine], data.labels[rows[mine]])
            yield out
