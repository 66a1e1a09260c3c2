"""Completed rows: some groups of a row are shown, the others are drawn from donors of the other half of the rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..._arrays import Bools, Floats, Ints
from ...data.retrospective import Retrospective
from ...imputation.donors import Donors, DonorTree

__all__ = ["Completer", "KnownGroups", "counts_of_draws"]

_TABLES = 12  # completed tables of the donors, and trees per set
_MIN_LEAF = 20
_FEWEST, _MOST = 2, 8.0  # least number of draws per row; largest number, relative to the mean
_STEP = (5**0.5 - 1) / 2  # multiples of the golden ratio, modulo 1, are evenly spaced, however many there are
_AT_ONCE = 2**18  # completed rows in memory


@dataclass(frozen=True, eq=False)
class KnownGroups:
    """Groups that are known in the used rows.

    Parameters
    ----------
    groups : ndarray of bool, shape (G,)
        Groups that are recorded in every used row.
    usable : ndarray of bool, shape (n,)
        Rows that are used.
    averaged : ndarray of bool, shape (n,)
        Rows that are averaged over. If these are not all rows, the others are their donors.
    """

    groups: Bools
    usable: Bools
    averaged: Bools

    @property
    def wanted(self) -> Bools:
        """Rows that are used and averaged over."""
        return self.usable & self.averaged


def counts_of_draws(weight: Floats, n_sets: Ints, mean: int) -> Ints:
    r"""Compute the number of draws of each row, (n,): proportional to its largest weight, within limits.

    An error of a conditional mean is multiplied by the weights of its row. With :math:`m_i` draws, the variance that draws
    add is about :math:`\sum_i w_i^2 / m_i`, and for a given total it is least if :math:`m_i` is proportional to :math:`w_i`.
    The counts may depend on what a row has recorded: whatever they are, the mean of draws has the same expectation.

    Parameters
    ----------
    weight : ndarray of shape (n,)
        Largest weight of a set that the row has.
    n_sets : ndarray of int, shape (n,)
        Number of shown sets that the row is completed for.
    mean : int
        Mean number of draws, over pairs of row and set.
    """
    fewest, most = min(_FEWEST, mean), _MOST * mean
    low, high = 0.0, most
    for _ in range(50):
        factor = (low + high) / 2
        total = n_sets @ np.clip(factor * weight, fewest, most)
        low, high = (low, factor) if total > mean * n_sets.sum() else (factor, high)
    return np.asarray(np.clip(high * weight, fewest, most).round().astype(np.intp))


@dataclass(frozen=True, eq=False)
class Completer:
    """Completes rows with values of donors from the other half of the rows. Every table has its own halves."""

    data: Retrospective
    known: KnownGroups
    donors: Donors

    def halves(self, table: int) -> Ints:
        """Half of each row in a table, (n,)."""
        half = self.donors.halves(self.data, table)
        return half if self.known.averaged.all() else np.where(self.known.averaged, 0, half)

    def _tree(self, table: int, half: int, own: Ints, shown: Bools, number: list[int]) -> DonorTree | None:
        others = self.known.usable & (own != half)
        if not others.any():  # no donors: hidden values stay 0; conditional means may be wrong without bias
            return None
        pool = self.donors.pool(self.data, others, table, half)
        return self.donors.tree(pool, table, half, shown, number, _MIN_LEAF)

    def draws(self, t: Bools, rows: Ints, count: Ints) -> Iterator[tuple[Ints, Floats, Ints]]:
        """Yield row numbers (m,), completed rows (m, d) and the rows of their donors (m,), -1 without a donor.

        The groups t and the known groups are shown, the others drawn.

        Row i occurs ``count[i]`` times. Its draws take turns among the tables, and are evenly spaced in the ordered donors.
        """
        start, first = self.donors.positions(self.data, self._number(t))
        rows = rows[np.argsort(self.data.place[rows])]
        piece = np.cumsum(count[rows]) // _AT_ONCE
        for mine in np.split(rows, np.flatnonzero(np.diff(piece)) + 1):
            row = np.repeat(mine, count[mine])
            draw = np.arange(len(row)) - np.repeat(np.cumsum(count[mine]) - count[mine], count[mine])
            table = (draw + (first[row] * _TABLES).astype(np.intp)) % _TABLES
            yield row, *self._completed(t, row, table, (start[row] + draw * _STEP) % 1)

    def _number(self, t: Bools) -> list[int]:
        """The groups of a set, numbered by name: one of its seeds."""
        return [int(g) for g in np.flatnonzero(t[self.data.problem.groups_by_name])]

    def _completed(self, t: Bools, row: Ints, table: Ints, position: Floats) -> tuple[Floats, Ints]:
        """Complete rows from these tables, (m, d); also returns the rows of the donors, (m,)."""
        data, number = self.data, self._number(t)
        shown = (t | self.known.groups)[data.column_group]
        out, donor = np.where(shown, data.values[row], 0.0), np.full(len(row), -1)
        for b in range(_TABLES):
            own = self.halves(b)
            for half in (0, 1):
                lines = np.flatnonzero((table == b) & (own[row] == half))
                tree = self._tree(b, half, own, shown, number) if len(lines) else None
                if tree is not None:
                    out[lines], donor[lines] = tree.complete(out[lines], data.labels[row[lines]], position[lines])
        return out, donor
