"""Tipping points: up to which strength one policy is certainly cheaper than another, or than a limit."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .._arrays import Floats
from .marginal import WeightSet, largest_ratio
from .stops import Ratio

__all__ = ["certainly_below", "certainly_cheaper", "tipping_strength"]

_MIXES = np.linspace(0.0, 1.0, 33)[:, None]
_ANGLES = 40  # values of theta tried per interval
_NARROW = 1e-4  # fraction of the range of costs; an undecided interval that is narrower counts as not certain


def certainly_below(ratio: Ratio, limit: float, weights: WeightSet, strength: float) -> bool:
    """True if the cost is below the limit for all possible weights: one linear programme."""
    gain = ratio.amount - limit * ratio.flow
    return bool(float(gain @ weights.maximise(gain, strength)) < 0)


def certainly_cheaper(a: Ratio, b: Ratio, weights: WeightSet, strength: float) -> bool:
    r"""True if J_a < J_b for all possible weights, the same weights for both.

    The difference of two ratios is no linear-fractional programme, but its sign is one with a parameter: some weights
    have :math:`J_a \ge J_b` if and only if for some v

    .. math:: N_a - v D_a \ge 0 \quad\text{and}\quad v D_b - N_b \ge 0,

    with numerators N and normalisers D, which are linear in the weights. Either some weights satisfy both, or by linear
    duality there is a theta in [0, 1] with

    .. math:: G(v, \theta) = \max_w \; \theta (N_a - v D_a) + (1 - \theta)(v D_b - N_b) < 0 .

    G is convex in v, so a theta that makes it negative at both ends of an interval rules out the whole interval.
    v runs from the least J_b to the largest J_a; intervals that no theta rules out are halved. If the normalisers are
    similar, one theta most often suffices for the whole range.
    """
    pair = _Pair(a, b, weights, strength)
    high, highest = largest_ratio(a, weights, strength)
    low, lowest = largest_ratio(Ratio(-b.amount, b.flow), weights, strength)
    low = -low
    if _reversed(pair.totals(highest)) or _reversed(pair.totals(lowest)):
        return False
    if high < low:
        return True
    narrow = _NARROW * max(high - low, 1e-9 * max(abs(high), abs(low)))
    undecided = [(low, high)]
    while undecided:
        left, right = undecided.pop()
        ruled_out = _ruled_out(pair, left, right)
        if ruled_out is None and right - left > narrow:
            middle = (left + right) / 2
            undecided += [(left, middle), (middle, right)]
        elif not ruled_out:
            return False
    return True


class _Pair(NamedTuple):
    a: Ratio
    b: Ratio
    weights: WeightSet
    strength: float

    def totals(self, w: Floats) -> Floats:
        """N_a, D_a, N_b, D_b."""
        return np.array([self.a.amount @ w, self.a.flow @ w, self.b.amount @ w, self.b.flow @ w])

    def largest(self, v: float, theta: float) -> tuple[float, float, Floats]:
        """G(v, theta), its slope in theta, and the totals of the weights that give it."""
        gain = theta * (self.a.amount - v * self.a.flow) + (1 - theta) * (v * self.b.flow - self.b.amount)
        totals = self.totals(self.weights.maximise(gain, self.strength))
        first, second = totals[0] - v * totals[1], v * totals[3] - totals[2]
        return float(theta * first + (1 - theta) * second), float(first - second), totals


def _reversed(totals: Floats) -> bool:
    """True if J_a >= J_b for some line (N_a, D_a, N_b, D_b)."""
    n_a, d_a, n_b, d_b = np.atleast_2d(totals).T
    return bool((n_a * d_b >= n_b * d_a).any())


def _ruled_out(pair: _Pair, left: float, right: float) -> bool | None:
    """True if some theta makes G negative at both ends, False if weights with J_a >= J_b were found, None if undecided.

    Cutting planes minimise the larger of the two values of G over theta.
    """
    theta, least, most = 0.5, 0.0, 1.0
    cuts: dict[bool, tuple[float, float, float, Floats]] = {}  # last theta, value, slope, totals, by sign of the slope
    for _ in range(_ANGLES):
        ends = [pair.largest(v, theta) for v in (left, right)]
        if any(_reversed(totals) for _, _, totals in ends):
            return False
        value, slope, totals = max(ends, key=lambda end: end[0])
        if value < 0:
            return True
        cuts[slope > 0] = theta, value, slope, totals
        least, most = (least, theta) if slope > 0 else (theta, most)
        if len(cuts) == 2:
            (t, f, d, up), (u, g, e, down) = cuts[True], cuts[False]
            if _reversed(_MIXES * up + (1 - _MIXES) * down):
                return False
            theta = (g - f + d * t - e * u) / (d - e)
            floor = f + d * (theta - t)
        else:
            floor = value + slope * ((least if slope > 0 else most) - theta)
            theta = (least + most) / 2
        if floor >= 0 or not least < theta < most:
            return None
    return None


def tipping_strength(certain: Callable[[float], bool], largest: float, tolerance: float = 1e-3) -> float:
    """Largest strength, up to the tolerance, at which a conclusion is certain.

    1 if it is not certain even at 1, infinity if it is still certain at ``largest``.
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
