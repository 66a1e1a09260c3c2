"""What a propensity answers: probabilities, and what they are made of where standard errors can use it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...arrays import Bools, Floats, Ints
from .factor import Factor

__all__ = ["Answer", "FactorParts", "Part", "PatternParts"]


class Part(NamedTuple):
    """The states of one set: their probability, and its factors with d log probability / d log-odds."""

    lines: Ints
    probability: Floats
    factors: list[tuple[Factor, Floats]]


class FactorParts(tuple[Part, ...]):
    """Products of factors, one part per set."""

    __slots__ = ()

    def only(self, keep: Bools) -> FactorParts:
        """The same of some of the lines."""
        place = np.cumsum(keep) - 1
        parts = []
        for part in self:
            mine = keep[part.lines]
            factors = [(factor, slack[mine]) for factor, slack in part.factors]
            parts.append(Part(place[part.lines[mine]], part.probability[mine], factors))
        return FactorParts(parts)


class PatternParts(NamedTuple):
    """Sums over recording patterns: the row and the set of every line, from which their gradient can be computed."""

    rows: Ints  # (m,)
    sets: Bools  # (u, q), of the groups that are modelled, in their order
    set_of: Ints  # (m,)

    def only(self, keep: Bools | Ints) -> PatternParts:
        """The same of some of the lines."""
        return PatternParts(self.rows[keep], self.sets, self.set_of[keep])


class Answer(NamedTuple):
    """Probabilities, and the parts that they are made of where standard errors can use them."""

    probability: Floats
    parts: FactorParts | PatternParts = FactorParts()
