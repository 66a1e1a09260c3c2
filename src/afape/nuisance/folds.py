"""Folds for cross-fitting."""

from __future__ import annotations

import numpy as np

from ..arrays import Ints

__all__ = ["assign_folds"]


def assign_folds(n_rows: int, n_folds: int, cluster: Ints | None, rng: np.random.Generator) -> Ints:
    """Fold of each row, in near-equal folds at random; rows of one cluster share a fold.

    With one fold, nuisances are fitted and used on the same rows.
    """
    if not isinstance(n_folds, int | np.integer) or n_folds < 1:
        raise ValueError(f"'n_folds' must be a whole number of at least 1, but is {n_folds!r}.")
    units = np.arange(n_rows) if cluster is None else np.unique(cluster, return_inverse=True)[1]
    n_units = int(units.max()) + 1
    if n_units < n_folds:
        raise ValueError(
            f"'n_folds' must not exceed the number of {'rows' if cluster is None else 'clusters'}, but is {n_folds} "
            f"for {n_units}. Lower it, or use n_folds=1."
        )
    fold = np.empty(n_units, dtype=np.intp)
    fold[rng.permutation(n_units)] = np.arange(n_units) % n_folds
    return fold[units]
