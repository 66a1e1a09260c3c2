"""Names for the arrays that everything here is made of, and typed shorthands."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bools", "Floats", "Ints", "any_of", "every", "row_dot", "tally", "units_of"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]


def every(mask: Bools) -> Bools:
    """Rows in which all columns are true."""
    return np.asarray(np.logical_and.reduce(mask, axis=1))


def any_of(mask: Bools) -> Bools:
    """Rows in which some column is true."""
    return np.asarray(np.logical_or.reduce(mask, axis=1))


def units_of(n_rows: int, cluster: Ints | None) -> Ints:
    """What each row is drawn, split and folded with: its cluster, numbered from 0, or itself."""
    return np.arange(n_rows) if cluster is None else np.unique(cluster, return_inverse=True)[1]


def row_dot(a: Floats, b: Floats) -> Floats:
    """Inner product of each row of a with the same row of b; rounds the same whatever the chunk, as BLAS does not."""
    return np.asarray(np.einsum("ij,ij->i", a, b))


def tally(index: Ints, weights: Floats, length: int) -> Floats:
    """Sum of the weights at each index, in the order given: the same whatever the chunk."""
    return np.bincount(index, weights=weights, minlength=length).astype(np.float64, copy=False)
