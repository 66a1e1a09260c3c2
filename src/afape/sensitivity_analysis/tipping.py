"""Whether one policy is cheaper than another under every possible weight, and up to which strength."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arrays import Floats
from .marginal import Ratio, WeightSet, largest_ratio

__all__ = ["certainly_below", "certainly_cheaper", "tipping_strength"]

_MIXES = np.linspace(0.0, 1.0, 33)
_ANGLES = 40  # tries for theta
_NARROW = 1e-4  # of the range of costs; what is still open in so narrow an interval counts as not certain


def certainly_below(ratio: Ratio, limit: float, weights: WeightSet, strength: float) -> bool:
    """Whether the cost stays below the limit whatever the weights: one linear programme."""
    gain = ratio.amount - limit * ratio.flow
    return bool(float(gain @ weights.maximise(gain, strength)) < 0)


def certainly_cheaper(a: Ratio, b: Ratio, weights: WeightSet, strength: float) -> bool:
    r"""Whether J_a < J_b under every weight that is possible, the same weights for both.

    The difference of two ratios is no linear-fractional programme, but its sign is one with a parameter: some weights
    have :math:`J_a \ge J_b` if and only if for some v in between

    .. math:: N_a - v D_a \ge 0 \quad\text{and}\quad v D_b - N_b \ge 0,

    with N and D the numerators and normalisers, which are linear in the weights. Weights that obey both are found, or by
    linear duality there is a theta in [0, 1] with

    .. math:: G(v, \theta) = \max_w \; \theta (N_a - v D_a) + (1 - \theta)(v D_b - N_b) < 0 .

    G is convex in v, so one theta that makes it negative at both ends of an interval rules the whole interval out.
    v runs from the least J_b to the largest J_a; intervals that no theta rules out are halved. With normalisers
    near each other one theta most often does for all.
    """
    return _Duel(a, b, weights, strength).decided()


class _Duel:
    """The search for weights with J_a >= J_b, or for a proof that there are none."""

    def __init__(self, a: Ratio, b: Ratio, weights: WeightSet, strength: float) -> None:
        self.a, self.b, self.weights, self.strength = a, b, weights, strength
        self.reversed = False  # whether weights with J_a >= J_b were found

    def decided(self) -> bool:
        """Whether a is certainly cheaper."""
        high, w = largest_ratio(self.a, self.weights, self.strength)
        self._see(self._totals(w))
        low, w = largest_ratio(Ratio(-self.b.amount, self.b.flow), self.weights, self.strength)
        low = -low
        self._see(self._totals(w))
        if self.reversed or high < low:
            return not self.reversed
        narrow = _NARROW * max(high - low, 1e-9 * max(abs(high), abs(low)))
        open_intervals = [(low, high)]
        while open_intervals and not self.reversed:
            left, right = open_intervals.pop()
            if self._ruled_out(left, right):
                continue
            if self.reversed or right - left <= narrow:
                return False
            middle = (left + right) / 2
            open_intervals += [(left, middle), (middle, right)]
        return not self.reversed

    def _totals(self, w: Floats) -> Floats:
        """N_a, D_a, N_b, D_b."""
        return np.array([self.a.amount @ w, self.a.flow @ w, self.b.amount @ w, self.b.flow @ w])

    def _see(self, *totals: Floats) -> None:
        """Check weights, or the mixtures of two, for J_a >= J_b."""
        mixed = totals[0] if len(totals) == 1 else _MIXES[:, None] * totals[0] + (1 - _MIXES[:, None]) * totals[1]
        n_a, d_a, n_b, d_b = np.atleast_2d(mixed).T
        self.reversed |= bool((n_a * d_b >= n_b * d_a).any())

    def _ruled_out(self, left: float, right: float) -> bool:
        """Whether some theta makes G negative at both ends: cutting planes for the least of their maximum."""
        theta, least, most = 0.5, 0.0, 1.0
        cuts: dict[
            bool, tuple[float, float, float, Floats]
        ] = {}  # last theta, value, slope, totals by sign of the slope
        for _ in range(_ANGLES):
            ends = [self._largest(v, theta) for v in (left, right)]
            for _, _, totals in ends:
                self._see(totals)
            value, slope, totals = max(ends, key=lambda end: end[0])
            if value < 0:
                return True
            cuts[slope > 0] = theta, value, slope, totals
            least, most = (least, theta) if slope > 0 else (theta, most)
            if len(cuts) == 2:
                (t, f, d, up), (u, g, e, down) = cuts[True], cuts[False]
                self._see(up, down)
                theta = (g - f + d * t - e * u) / (d - e)
                floor = f + d * (theta - t)
            else:
                floor = value + slope * ((least if slope > 0 else most) - theta)
                theta = (least + most) / 2
            if self.reversed or floor >= 0 or not least < theta < most:
                return False
        return False

    def _largest(self, v: float, theta: float) -> tuple[float, float, Floats]:
        """G(v, theta), its slope in theta, and the totals of the weights that give it."""
        gain = theta * (self.a.amount - v * self.a.flow) + (1 - theta) * (v * self.b.flow - self.b.amount)
        totals = self._totals(self.weights.maximise(gain, self.strength))
        first, second = totals[0] - v * totals[1], v * totals[3] - totals[2]
        return float(theta * first + (1 - theta) * second), float(first - second), totals


def tipping_strength(certain: Callable[[float], bool], largest: float, tolerance: float = 1e-3) -> float:
    """Largest strength, up to the tolerance, at which a conclusion is certain.

    1 where it is not certain even at 1, infinity where it still is at ``largest``.
    """
    if not certain(1.0):
        return 1.0
    low = 1.0
    high = min(1.25, largest)
    while certain(high):
        if high >= largest:
            return float("inf")
        low, high = high, min(high * high, largest)
    while high > low * (1 + tolerance):
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if certain(middle) else (low, middle)
    return low
