"""Folds for cross-fitting."""

from __future__ import annotations

from numbers import Real

import numpy as np

from ..arrays import Ints, units_of

__all__ = ["assign_folds", "split_folds"]


def assign_folds(n_rows: int, n_folds: int, cluster: Ints | None, rng: np.random.Generator) -> Ints:
    """Fold of each row, in near-equal folds at random; rows of one cluster share a fold.

    With one fold, nuisances are fitted and used on the same rows.
    """
    if not isinstance(n_folds, int | np.integer) or n_folds < 1:
        raise ValueError(f"'n_folds' must be a whole number of at least 1, but is {n_folds!r}.")
    units = units_of(n_rows, cluster)
    n_units = int(units.max()) + 1
    if n_units < n_folds:
        raise ValueError(
            f"'n_folds' must not exceed the number of {'rows' if cluster is None else 'clusters'}, but is {n_folds} "
            f"for {n_units}. Lower it, or use n_folds=1."
        )
    fold = np.empty(n_units, dtype=np.intp)
    fold[rng.permutation(n_units)] = np.arange(n_units) % n_folds
    return fold[units]


def split_folds(n_rows: int, split: float, cluster: Ints | None, rng: np.random.Generator) -> Ints:
    """Fold 1 learns, fold 0 is averaged over: what is used in fold 0 is fitted on fold 1."""
    if not isinstance(split, Real) or not 0 < split < 1:
        raise ValueError(f"'split' must lie strictly between 0 and 1, but is {split!r}.")
    units = units_of(n_rows, cluster)
    n_units = int(units.max()) + 1
    n_learn = round(split * n_units)
    if not 0 < n_learn < n_units:
        raise ValueError(f"'split' {split!r} leaves no row to learn from or to average over.")
    learns = np.zeros(n_units, dtype=np.intp)
    learns[rng.permutation(n_units)[:n_learn]] = 1
    return learns[units]
