"""Sets of groups as machine words, and the merging of equal ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..arrays import Bools, Ints, any_of

__all__ = ["lines_of", "merge", "pack", "unique_sets"]


def pack(sets: Bools) -> NDArray[np.uint64]:
    """Sets (m, G) as words of 64 groups, shape (m, ceil(G / 64))."""
    m, n_groups = sets.shape
    n_words = -(-n_groups // 64)
    octets = np.zeros((m, 8 * n_words), dtype=np.uint8)
    packed = np.packbits(sets, axis=1, bitorder="little")
    octets[:, : packed.shape[1]] = packed
    return octets.view(np.uint64)


def merge(rows: Ints, sets: Bools) -> tuple[Ints, Ints]:
    """Merge equal (row, set) pairs.

    Returns
    -------
    first : ndarray
        Index of one representative of each merged pair, sorted by row.
    inverse : ndarray
        For each given pair, the merged one it belongs to.
    """
    if len(rows) < 2 or (rows[1:] > rows[:-1]).all():  # one state a row: deterministic policies
        everything = np.arange(len(rows))
        return everything, everything
    words = pack(sets)
    order = np.lexsort((*words.T, rows))
    new = np.ones(len(rows), dtype=bool)
    new[1:] = (np.diff(rows[order]) != 0) | any_of(words[order][1:] != words[order][:-1])
    inverse = np.empty(len(rows), dtype=np.intp)
    inverse[order] = np.cumsum(new) - 1
    return order[new], inverse


def unique_sets(sets: Bools) -> tuple[Bools, Ints]:
    """Return the distinct sets (u, G), and for each given one its place among them."""
    words = pack(sets)
    if words.shape[1] == 1:
        _, first, inverse = np.unique(words[:, 0], return_index=True, return_inverse=True)
    else:
        _, first, inverse = np.unique(words, axis=0, return_index=True, return_inverse=True)
    return sets[first], inverse.reshape(-1)


def lines_of(index: Ints, n_sets: int) -> list[Ints]:
    """Lines of each set, in one sort."""
    if n_sets == 0:
        return []
    order = np.argsort(index, kind="stable")
    return np.split(order, np.cumsum(np.bincount(index, minlength=n_sets))[:-1])
