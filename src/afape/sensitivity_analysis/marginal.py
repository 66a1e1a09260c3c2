"""The marginal sensitivity model: costs over all weights that an unmeasured reason of bounded strength allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .._arrays import Floats
from .order import OrderedWeights
from .stops import Ratio

__all__ = ["ValidWeights", "WeightSet", "bounds", "largest_ratio", "odds_box"]

_ROUNDS = 60


def odds_box(nominal: Floats, strength: float) -> tuple[Floats, Floats]:
    r"""Bounds :math:`1 + (w^0 - 1) / \Lambda` and :math:`1 + \Lambda (w^0 - 1)` of the true weights, (s,) each."""
    return 1.0 + (nominal - 1.0) / strength, 1.0 + strength * (nominal - 1.0)


class WeightSet(Protocol):
    """The true weights that are possible at each strength."""

    @property
    def nominal(self) -> Floats:
        """The weights at strength 1, (s,)."""
        ...

    @property
    def tolerance(self) -> float:
        """Relative tolerance of the maximum."""
        ...

    def maximise(self, gain: Floats, strength: float) -> Floats:
        """Weights (s,) with the largest sum of gain times weight."""
        ...


@dataclass(frozen=True, eq=False)
class ValidWeights:
    r"""All weights within the marginal sensitivity model (Tan 2006; Zhao, Small and Bhattacharya 2019).

    The true odds of :math:`R \ge S` differ from the nominal ones by a factor of at most :math:`\Lambda`, so
    :math:`1 + (w^0 - 1)/\Lambda \le w \le 1 + \Lambda (w^0 - 1)`, and a larger set is recorded no more often:
    :math:`w_{iS} \le w_{iT}` for S inside T.
    """

    nominal: Floats
    ordered: OrderedWeights
    tolerance: float = 1e-13

    def maximise(self, gain: Floats, strength: float) -> Floats:
        """Weights with the largest sum of gain times weight; exact, row by row."""
        lower, upper = odds_box(self.nominal, strength)
        return self.ordered.maximise(gain, lower, upper)


def largest_ratio(
    ratio: Ratio, weights: WeightSet, strength: float, start: Floats | None = None
) -> tuple[float, Floats]:
    r"""Largest value of a ratio over the possible weights, and the weights that give it (Dinkelbach 1967).

    For a value v, weights that maximise :math:`\sum (amount - v \cdot flow) w` give a ratio of at least v; it equals v
    only if v is the largest. The values rise and end after finitely many rounds, most often three.
    """
    if strength == 1 or not np.isfinite(weights.nominal).all():
        return ratio.at(weights.nominal), weights.nominal
    best = weights.nominal if start is None else start
    value = ratio.at(best)
    if np.isnan(value):
        return value, best
    for _ in range(_ROUNDS):
        w = weights.maximise(ratio.amount - value * ratio.flow, strength)
        found = ratio.at(w)
        if not found > value + weights.tolerance * max(1.0, abs(value)):
            break
        value, best = found, w
    return value, best


def bounds(ratio: Ratio, weights: WeightSet, strengths: Sequence[float]) -> tuple[Floats, Floats]:
    """Least and largest value of a ratio at each strength. Strengths ascend; each search starts from the one before."""
    ends = []
    for sign in (-1.0, 1.0):
        turned, start, found = Ratio(sign * ratio.amount, ratio.flow), weights.nominal, []
        for strength in strengths:
            value, start = largest_ratio(turned, weights, strength, start)
            found.append(sign * value)
        ends.append(np.array(found))
    return ends[0], ends[1]
