"""Mixtures of estimators of the same thing: shares of least variance, and what choosing them hides."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from ..arrays import Floats

__all__ = ["Mixture", "least_variance_shares"]

_CAUTION = 8.0  # how far the gain of a mixture must be beyond chance, as a squared t
_PARTS = 5  # parts of the rows, each judged with shares that were chosen on the others


@dataclass(frozen=True, eq=False)
class Mixture:
    """Candidates that are mixed with shares of least variance, as far as the gain is beyond chance.

    Parameters
    ----------
    influence : ndarray of shape (C, m)
        Influence values of the candidates, summed by cluster.
    start : int
        The candidate to start from.
    """

    influence: Floats
    start: int

    @cached_property
    def shares(self) -> Floats:
        """Share of every candidate."""
        return least_variance_shares(self.influence, self.start)

    @cached_property
    def correction(self) -> float:
        r"""By how much the choice of the shares makes their standard error too small, at least 1.

        Rows are in five parts k. With :math:`\lambda` the shares chosen on all rows and :math:`\lambda_{-k}` those chosen
        without part k,

        .. math:: \kappa^2 = \sum_k \sum_{i \in k} (\lambda_{-k} \cdot \phi_i)^2 \Big/ \sum_i (\lambda \cdot \phi_i)^2 .
        """
        part = np.arange(self.influence.shape[1]) % _PARTS
        chosen = float(((self.shares @ self.influence) ** 2).sum())
        if chosen <= 0 or len(part) < 2 * _PARTS:
            return 1.0
        honest = 0.0
        for k in range(_PARTS):
            shares = least_variance_shares(self.influence[:, part != k], self.start)
            honest += float(((shares @ self.influence[:, part == k]) ** 2).sum())
        return max(1.0, float(np.sqrt(honest / chosen)))


def least_variance_shares(influence: Floats, start: int) -> Floats:
    """Shares on the simplex of least variance, approached from one candidate as far as the gain is beyond chance."""
    n = len(influence)
    begin = np.eye(n)[start]
    moments: Floats = influence @ influence.T
    best, least = np.asarray(begin), float(moments[start, start])
    for size in range(1, n + 1):
        for part in combinations(range(n), size):
            inverse = np.linalg.pinv(moments[np.ix_(part, part)], hermitian=True).sum(axis=1)
            if inverse.sum() <= 0 or (inverse < 0).any():
                continue
            shares: Floats = np.zeros(n)
            shares[list(part)] = inverse / inverse.sum()
            variance = float(shares @ moments @ shares)
            if variance < least * (1 - 1e-12):
                best, least = shares, variance
    leading, difference = influence[start], influence[start] - best @ influence
    squares = float(difference @ difference)
    if squares <= 1e-24 * max(float(moments[start, start]), 1e-300):
        return np.asarray(begin)
    slope = float(leading @ difference) / squares
    error = float(np.sqrt((difference**2) @ ((leading - slope * difference) ** 2))) / squares
    share = 1.0 if error == 0 else max(0.0, 1 - _CAUTION / (slope / error) ** 2)
    return np.asarray(begin + share * (best - begin))
