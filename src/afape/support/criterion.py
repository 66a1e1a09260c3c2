"""When the counts of a region contradict positivity: binomial tests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import bdtr, bdtrc

from .._arrays import Bools, Ints
from .thresholds import SupportThresholds

__all__ = ["Criterion", "rows_needed"]

_CONTRADICTED = 4e-3  # level at which the rows of one given region contradict a healthy probability
_COMPATIBLE = 1e-3  # level at which they contradict a probability below the threshold
_CERTAIN = 4.0  # a region is certainly unsupported if it contradicts this multiple of the threshold
_SEARCHED = 0.05  # level of the comparison with neighbouring rows, corrected for the number of regions searched


@dataclass(frozen=True, eq=False)
class Criterion:
    r"""Tests of a region with N rows, k of which have the set recorded.

    The region is *suspicious* if its rows contradict a healthy probability,
    :math:`P(Bin(N, p_{healthy}) \le k) \le 0.004`, and agree with one below the threshold,
    :math:`P(Bin(N, p_{threshold}) \ge k) \ge 0.001`. It *stands out* if k is also small compared with the lowest rate on any
    side of the region, by an exact binomial test that is corrected for the number of regions searched. If a set is
    recorded seldom but evenly, the neighbours of a suspicious region are like the region, and it does not stand out.

    If rows have clusters, the tests must hold for the numbers of clusters as well: the rows of a cluster may be
    recorded together. The score of a region is nearly the log-likelihood ratio of the probability below the threshold to
    the healthy one.
    """

    healthy: float  # the probability that a region must contradict
    small: float  # the threshold
    floor: float  # lowest rate that a region is compared with; 0 compares it with its neighbours alone
    need: Ints  # rows that make a region with 0, 1, ... recorded rows suspicious
    units: Ints | None  # (n,) clusters
    gain: float  # each row adds this to the score
    loss: float  # each recorded row subtracts this from the score

    @staticmethod
    def of(n_rows: int, thresholds: SupportThresholds, units: Ints | None, healthy: float | None) -> Criterion:
        """Criterion for at most ``n_rows`` rows; ``healthy`` replaces that of the thresholds and sets the floor to 0."""
        floor = thresholds.healthy if healthy is None else 0.0
        healthy = thresholds.healthy if healthy is None else healthy
        small = thresholds.propensity
        gain, loss = np.log((1 - small) / (1 - healthy)), np.log(healthy / max(small, 1e-12))
        return Criterion(healthy, small, floor, _needed(n_rows, small, healthy), units, float(gain), float(loss))

    def suspicious(self, n: int, k: int) -> bool:
        """True if k recorded of n rows contradict a healthy probability and agree with one below the threshold."""
        return k < len(self.need) and n >= self.need[k]

    def score(self, n: int, k: int) -> float:
        """Evidence that the set is unsupported in a region."""
        return self.gain * n - self.loss * k

    def stands_out(self, inside: Bools, recorded: Bools, rate: float, n_tries: float) -> bool:
        """True if a region with these rows has fewer recorded rows than its neighbours' ``rate`` explains.

        ``n_tries`` is the number of independent regions searched.
        """
        healthy = max(rate, self.floor)
        n, k = int(inside.sum()), int((inside & recorded).sum())
        return bool(bdtr(k, n, healthy) * n_tries <= _SEARCHED) and self.in_clusters(inside, recorded, healthy, n_tries)

    def surely_unsupported(self, inside: Bools, recorded: Bools, n_tries: float) -> bool:
        """True if a region with these rows contradicts four times the threshold, as one of ``n_tries`` regions."""
        n, k = int(inside.sum()), int((inside & recorded).sum())
        if self.units is not None:
            n, k = len(np.unique(self.units[inside])), len(np.unique(self.units[inside & recorded]))
        return bool(bdtr(k, n, _CERTAIN * self.small) * n_tries <= _SEARCHED)

    def in_clusters(self, inside: Bools, recorded: Bools, healthy: float, n_tries: float = 1.0) -> bool:
        """True if the number of clusters contradicts a healthy probability as well, or if rows have no clusters."""
        if self.units is None:
            return True
        n, k = len(np.unique(self.units[inside])), len(np.unique(self.units[inside & recorded]))
        contradicted = bdtr(k, n, self.healthy) <= _CONTRADICTED
        return bool(contradicted and bdtr(k, n, healthy) * n_tries <= _SEARCHED)


def _needed(n_rows: int, small: float, healthy: float) -> Ints:
    """Rows that a region with k = 0, 1, ... recorded ones needs to be suspicious, for each k that n_rows rows allow."""
    k = np.arange(int(n_rows * small + 6 * np.sqrt(n_rows * small)) + 20)
    low, high = k.copy(), np.full(len(k), n_rows + 1)
    while (high - low > 1).any():  # both tests are monotone in the number of rows
        middle = (low + high) // 2
        enough = bdtr(k, middle, healthy) <= _CONTRADICTED
        enough &= (k == 0) | (bdtrc(np.maximum(k - 1, 0), middle, small) >= _COMPATIBLE)
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.asarray(high[high <= n_rows])


def rows_needed(n_recorded: int, healthy: float) -> int:
    """Number of rows with which a region with ``n_recorded`` recorded ones contradicts a healthy probability."""
    n = n_recorded + 1
    while bdtr(n_recorded, n, healthy) > _CONTRADICTED:
        n += 1
    return n
