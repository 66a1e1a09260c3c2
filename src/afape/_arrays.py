"""Types of arrays, sums over clusters, and operations on sets of groups, which are rows of booleans."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Bools",
    "Floats",
    "Ints",
    "Singles",
    "any_of",
    "cluster_sums",
    "concentration",
    "count_supersets",
    "distinct",
    "effective_size",
    "every",
    "in_own_units",
    "index_of",
    "lines_of",
    "mean_of",
    "merge",
    "own_units",
    "pack",
    "row_dot",
    "share_of_heaviest",
    "stable_order",
    "standard_error",
    "supersets_of",
    "tally",
    "unique_sets",
    "units_of",
]

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]

_COUNTED = 16  # largest number of groups for which distinct sets are found by counting


def every(mask: Bools) -> Bools:
    """True for rows in which all columns are True."""
    return np.asarray(np.logical_and.reduce(mask, axis=1))


def any_of(mask: Bools) -> Bools:
    """True for rows in which some column is True."""
    return np.asarray(np.logical_or.reduce(mask, axis=1))


def units_of(n_rows: int, cluster: Ints | None) -> Ints:
    """Unit of resampling, splitting and folding of each row, numbered from 0: its cluster, or the row itself."""
    return np.arange(n_rows) if cluster is None else np.unique(cluster, return_inverse=True)[1]


def mean_of(values: Floats | Bools, weight: Floats | None) -> Floats:
    """Mean over rows of (n,) or (n, k) values, weighted unless ``weight`` (n,) is None."""
    return np.asarray(values.mean(axis=0) if weight is None else weight @ values / weight.sum())


def row_dot(a: Floats, b: Floats) -> Floats:
    """Inner products of the rows of a with the rows of b. Unlike BLAS, rounding does not depend on the chunk."""
    return np.asarray(np.einsum("ij,ij->i", a, b))


def tally(index: Ints, weights: Floats, length: int) -> Floats:
    """Sum of the weights at each index, shape (length,). Summation in the given order, whatever the chunk."""
    return np.bincount(index, weights=weights, minlength=length).astype(np.float64, copy=False)


def cluster_sums(values: Floats, cluster: Ints | None) -> Floats:
    """Sum of the values in each cluster, or the values themselves without clusters."""
    if cluster is None:
        return values
    return tally(units_of(len(values), cluster), values, 0)


def effective_size(weight: Floats, cluster: Ints | None) -> float:
    """Kish's effective sample size of rows or clusters: squared sum over sum of squares."""
    sums = cluster_sums(weight, cluster)
    return float(sums.sum() ** 2 / (sums**2).sum())


def concentration(weight: Floats, cluster: Ints | None) -> float:
    r"""Share of the total weight in a typical row, or cluster, of those that carry the variance.

    .. math:: \kappa = \frac{\sum_i w_i^3}{\sum_i w_i^2 \sum_i w_i}

    1/n for n equal weights, at most the share of the heaviest row; 0 if all weights are 0.
    """
    sums = cluster_sums(weight, cluster)
    total = sums.sum() * (sums**2).sum()
    return float((sums**3).sum() / total) if total > 0 else 0.0


def share_of_heaviest(values: Floats, cluster: Ints | None, count: int = 10) -> float:
    """Share of the ``count`` largest squares, of rows or clusters, in the sum of squares; 0 if all are 0."""
    squares = cluster_sums(values, cluster) ** 2
    total = squares.sum()
    return float(np.sort(squares)[-count:].sum() / total) if total > 0 else 0.0


def standard_error(influence: Floats, cluster: Ints | None) -> float:
    """Standard error of an estimate with these influence values; NaN for a single row or cluster."""
    sums = cluster_sums(influence, cluster)
    m = len(sums)
    if m < 2:
        return float("nan")
    return float(np.sqrt((sums**2).sum() * m / (m - 1)) / len(influence))


def pack(sets: Bools) -> NDArray[np.uint64]:
    """Pack sets (m, G) into words of 64 groups, shape (m, ceil(G / 64))."""
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
        Index of the merged pair of each given pair.
    """
    if len(rows) < 2 or (rows[1:] > rows[:-1]).all():  # one state per row: deterministic policies
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
    """Return the distinct sets (u, G), and the index (m,) of each given set among them."""
    words = pack(sets)
    if sets.shape[1] <= _COUNTED:  # few possible sets: no sorting needed
        present, inverse = distinct(words[:, 0].astype(np.intp), 1 << sets.shape[1])
        return np.asarray((present[:, None] >> np.arange(sets.shape[1])) & 1 > 0), inverse
    if words.shape[1] == 1:
        _, first, inverse = np.unique(words[:, 0], return_index=True, return_inverse=True)
    else:
        _, first, inverse = np.unique(words, axis=0, return_index=True, return_inverse=True)
    return sets[first], inverse.reshape(-1)


def distinct(codes: Ints, n_codes: int) -> tuple[Ints, Ints]:
    """Return the distinct codes below ``n_codes``, ascending, and the index of each given code among them."""
    seen = np.zeros(n_codes, dtype=bool)
    seen[codes] = True
    return np.flatnonzero(seen), (np.cumsum(seen) - 1)[codes]


def count_supersets(rows: Bools, sets: Bools, weight: Floats | None = None, at_once: int = 2**22) -> Floats:
    """Number of rows that contain each set, or the sum of their weights, shape (u,), from rows (n, G) and sets (u, G)."""
    have, need = pack(rows), pack(sets)
    out = np.zeros(len(sets))
    step = max(at_once // max(len(rows), 1), 1)
    for i in range(0, len(sets), step):
        contained = np.ones((len(need[i : i + step]), len(have)), dtype=bool)
        for word in range(need.shape[1]):
            contained &= (need[i : i + step, None, word] & ~have[:, word]) == 0
        out[i : i + step] = contained.sum(axis=1) if weight is None else contained @ weight
    return out


def supersets_of(packed: NDArray[np.uint64], required: Bools) -> Bools:
    """True for the sets, packed by `pack`, that contain the set ``required`` (G,); (u,)."""
    need = pack(required[None])[0]
    out = np.ones(len(packed), dtype=bool)
    for word in np.flatnonzero(need):
        out &= (packed[:, word] & need[word]) == need[word]
    return out


def index_of(lines: list[Ints], n: int) -> Ints:
    """Set of each of n lines, shape (n,): the inverse of `lines_of`."""
    index = np.zeros(n, dtype=np.intp)
    for u, mine in enumerate(lines):
        index[mine] = u
    return index


def lines_of(index: Ints, n_sets: int) -> list[Ints]:
    """Lines of each set, from the set of each line."""
    if n_sets == 0:
        return []
    return np.split(stable_order(index, n_sets), np.cumsum(np.bincount(index, minlength=n_sets))[:-1])


def stable_order(codes: Ints, n_codes: int) -> Ints:
    """Order that sorts codes below ``n_codes``. Equal codes keep their order. Sorting small integers needs no comparisons."""
    return np.argsort(codes.astype(np.min_scalar_type(max(n_codes - 1, 0))), kind="stable")


def in_own_units(columns: Floats) -> Floats:
    """Divide columns by powers of two, which is exact, so that no value exceeds 1 and squares stay finite."""
    return np.asarray(np.ldexp(columns, -own_units(columns)))


def own_units(columns: Floats) -> Ints:
    """Exponents of the smallest powers of two above the largest absolute values of the columns."""
    return np.asarray(np.frexp(np.abs(columns).max(axis=0, initial=0.0))[1])
