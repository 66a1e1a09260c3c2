"""Canonical order of rows and clusters, by their content: random draws are made in it, not in the order of the table."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from .._arrays import Floats, Ints

__all__ = ["mixed_bits", "row_order"]


def row_order(columns: Iterable[Floats], labels: Ints, cluster: Ints | None) -> tuple[Ints, Ints]:
    """Number rows, and rows or clusters, by their content.

    Rows are compared by label, then column by column; a gap is larger than every value. Only comparisons within a column
    are used, so units do not matter. Clusters are compared by the rows in them. Rows (or clusters) of equal content
    keep the order of the table: nobody can tell which of them got which number.

    Parameters
    ----------
    columns : iterable of ndarray of shape (n,)
        Columns in an order that does not depend on the table.
    labels, cluster : ndarray of int, shape (n,)
        Labels, and clusters if there are any.

    Returns
    -------
    place : ndarray of int, shape (n,)
        Place of each row among the rows: a permutation. Rows of one cluster are neighbours.
    unit : ndarray of int, shape (n,)
        Place of each row's cluster among the clusters; ``place`` without clusters.
    """
    code = _content(columns, labels)
    if cluster is None:
        place = _ranks(np.argsort(code, kind="stable"))
        return place, place
    n_clusters = int(cluster.max()) + 1 if len(cluster) else 0
    sums = np.zeros(n_clusters, dtype=np.uint64)
    with np.errstate(over="ignore"):
        np.add.at(sums, cluster, mixed_bits(code.astype(np.uint64)))  # a sum does not depend on the order of its terms
    first, least = (np.full(n_clusters, len(code)) for _ in range(2))
    np.minimum.at(first, cluster, np.arange(len(code)))
    np.minimum.at(least, cluster, code)  # so that clusters of one row are in the order of the rows
    present = np.flatnonzero(first < len(code))
    number = np.zeros(n_clusters, dtype=np.intp)
    number[present[np.lexsort((first[present], sums[present], least[present]))]] = np.arange(len(present))
    unit = number[cluster]
    return _ranks(np.lexsort((code, unit))), unit


def _content(columns: Iterable[Floats], labels: Ints) -> Ints:
    """Rank of each row by its content, (n,), equal for equal rows; stops when all rows differ."""
    label, count = np.unique(labels, return_inverse=True, return_counts=True)[1:]
    code = (np.cumsum(count) - count)[label]  # the number of rows before it, so tied rows can be refined on their own
    tied = np.arange(len(code))  # rows that share their code with others
    for column in columns:
        if not len(tied):
            break
        value = np.unique(column[tied], return_inverse=True)[1].reshape(-1)  # NaN are equal and last
        order = np.lexsort((value, code[tied]))
        new = np.ones(len(tied), dtype=bool)
        new[1:] = (np.diff(value[order]) != 0) | (np.diff(code[tied][order]) != 0)
        start = np.flatnonzero(new)
        size = np.diff(np.append(start, len(tied)))
        tied = tied[order]
        old = code[tied]
        code[tied] = old + np.repeat(start, size) - np.searchsorted(old, old)
        tied = tied[np.repeat(size, size) > 1]
    return code


def _ranks(order: Ints) -> Ints:
    """The place of each entry in an order: the inverse permutation."""
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order))
    return place


def mixed_bits(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix the bits of each number (SplitMix64), so that sums of mixed numbers collide by chance only."""
    with np.errstate(over="ignore"):
        z = (numbers + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(z ^ (z >> np.uint64(31)))
