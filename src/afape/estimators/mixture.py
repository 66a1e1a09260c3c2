"""Mixtures of estimators of the same things: shares of least variance, and errors that know that these were chosen."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from ..arrays import Floats, Ints, tally, units_of

__all__ = ["Alike", "Mixed", "Mixture", "least_variance_shares"]

_CAUTION = 8.0  # how far the gain of a mixture must be beyond chance, as a squared t
_PARTS = 5  # parts of the rows, each with shares that were chosen on the others
_ROUNDING = 1e-20  # squares below this share of a squared value are rounding errors


@dataclass(frozen=True, eq=False)
class Mixture:
    """Candidates that are mixed with shares of least variance, as far as the gain is beyond chance.

    Parameters
    ----------
    influence : ndarray of shape (C, J, m)
        Influence values of the candidates, summed by cluster, for each of J estimates that the shares are chosen by.
    start : int
        The candidate to start from.
    """

    influence: Floats
    start: int

    @cached_property
    def shares(self) -> Floats:
        """Share of every candidate, (C,)."""
        return least_variance_shares(self.influence, self.start)

    @cached_property
    def part(self) -> Ints:
        """Part of each row, or cluster, (m,)."""
        m = self.influence.shape[2]
        return np.random.default_rng(0).permutation(m) % _PARTS  # rows may be in an order that means something

    @cached_property
    def left_out(self) -> Floats:
        r"""Shares :math:`\lambda_{-k}` that are chosen without part k of the rows, (5, C).

        Shares of least variance make that variance look smaller than it is. With shares that were chosen on other rows,
        :math:`\lambda_{-k(i)} \cdot \phi_i`, influence values have the spread that they have in new rows.
        """
        if self.influence.shape[2] < 2 * _PARTS:  # too few to set some apart
            return np.tile(self.shares, (_PARTS, 1))
        return np.array(
            [least_variance_shares(self.influence[:, :, self.part != k], self.start) for k in range(_PARTS)]
        )


@dataclass(frozen=True, eq=False)
class Alike:
    """Parts of the costs that are mixed with the same shares.

    Parameters
    ----------
    name : str
        What they are.
    columns : ndarray of int
        Which parts.
    yardsticks : ndarray of shape (P, J)
        Combinations of all parts; the shares are those of the least sum of their variances. They have no prices in them, so
        that shares do not depend on prices.
    """

    name: str
    columns: Ints
    yardsticks: Floats


@dataclass(frozen=True, eq=False)
class Mixed:
    """Candidates' estimates of several parts, each part mixed with the shares of its kind.

    Parameters
    ----------
    candidates : list of (values, influence)
        Values (P,) and influence values (n, P) of every candidate.
    kinds : list of Alike
        Every part is in one of them.
    start : int
        The candidate to start from.
    cluster : ndarray of int, optional
        Rows that belong together.
    drawn : ndarray of shape (n,), optional
        How often each row was drawn in a bootstrap replicate.
    """

    candidates: list[tuple[Floats, Floats]]
    kinds: list[Alike]
    start: int
    cluster: Ints | None
    drawn: Floats | None

    @cached_property
    def _units(self) -> Ints:
        return units_of(len(self.candidates[0][1]), self.cluster)

    @cached_property
    def mixtures(self) -> list[Mixture]:
        """The mixture of every kind."""
        return [self._mixture(kind) for kind in self.kinds]

    def _mixture(self, kind: Alike) -> Mixture:
        n_units = int(self._units.max()) + 1
        phi = np.array([(influence @ kind.yardsticks).T for _, influence in self.candidates])  # (C, J, n)
        if self.drawn is not None:  # a row that was drawn twice counts as two rows in every sum of squares, not as four
            phi = np.divide(phi, np.sqrt(self.drawn), out=np.zeros_like(phi), where=self.drawn > 0)
        sums = np.array([[tally(self._units, row, n_units) for row in one] for one in phi])
        squared_value = float(((self.candidates[self.start][0] @ kind.yardsticks) ** 2).max(initial=0.0))
        certain = (sums[self.start] ** 2).sum() <= _ROUNDING * n_units * squared_value
        return Mixture(np.zeros_like(sums) if certain else sums, self.start)

    @cached_property
    def values(self) -> Floats:
        """Values (P,)."""
        values = np.array([value for value, _ in self.candidates])
        out = np.zeros(values.shape[1])
        for kind, mixture in zip(self.kinds, self.mixtures, strict=True):
            out[kind.columns] = mixture.shares @ values[:, kind.columns]
        return out

    @cached_property
    def influence(self) -> Floats:
        """Influence values (n, P), each with the shares that were chosen without its part of the rows; their mean is 0."""
        out = np.zeros_like(self.candidates[0][1])
        for kind, mixture in zip(self.kinds, self.mixtures, strict=True):
            shares = mixture.left_out[mixture.part[self._units]]  # (n, C)
            for c, (_, influence) in enumerate(self.candidates):
                out[:, kind.columns] += shares[:, [c]] * influence[:, kind.columns]
        used = np.any([influence.any(axis=1) for _, influence in self.candidates], axis=0)
        return np.asarray(out - used[:, None] * (out.sum(axis=0) / max(int(used.sum()), 1)))


def least_variance_shares(influence: Floats, start: int) -> Floats:
    """Shares on the simplex of least variance, approached from one candidate as far as the gain is beyond chance.

    ``influence`` (C, J, m) are the influence values of J estimates by C candidates; their variances are added.
    """
    n = len(influence)
    begin = np.eye(n)[start]
    flat = influence.reshape(n, -1)
    moments: Floats = flat @ flat.T
    best, least = np.asarray(begin), float(moments[start, start])
    for size in range(1, n + 1):
        parts = np.array(list(combinations(range(n), size)))
        inverse = np.linalg.pinv(moments[parts[:, :, None], parts[:, None, :]], hermitian=True).sum(axis=2)
        for part, amount in zip(parts, inverse, strict=True):
            if amount.sum() <= 0 or (amount < 0).any():
                continue
            shares: Floats = np.zeros(n)
            shares[part] = amount / amount.sum()
            variance = float(shares @ moments @ shares)
            if variance < least * (1 - 1e-12):
                best, least = shares, variance
    leading, difference = influence[start], influence[start] - np.tensordot(best, influence, 1)
    squares = float((difference**2).sum())
    if squares <= 1e-24 * max(float(moments[start, start]), 1e-300):
        return np.asarray(begin)
    slope = float((leading * difference).sum()) / squares
    rows = (difference * (leading - slope * difference)).sum(axis=0)  # all estimates of a row together
    error = float(np.sqrt((rows**2).sum())) / squares
    share = 1.0 if error == 0 else max(0.0, 1 - _CAUTION / (slope / error) ** 2)
    return np.asarray(begin + share * (best - begin))
