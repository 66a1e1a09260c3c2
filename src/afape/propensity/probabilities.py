"""Probabilities of recorded sets, and the factors or patterns that they are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .._arrays import Bools, Floats, Ints
from .factor import Factor

__all__ = ["FactorLines", "PatternLines", "Probabilities", "SetFactors", "Slope"]


Slope = Callable[[Ints], Floats]  # gives d log probability / d log-odds of a factor in these rows, (m,)


class SetFactors(NamedTuple):
    """The lines of one set, and the factors of its probability with their slopes."""

    lines: Ints  # (m,)
    factors: list[tuple[Factor, Slope]]


class FactorLines(tuple[SetFactors, ...]):
    """Probabilities that are products of factors: one entry per set."""

    __slots__ = ()

    def only(self, keep: Bools) -> FactorLines:
        """Return the kept lines, renumbered."""
        place = np.cumsum(keep) - 1
        return FactorLines(SetFactors(place[lines[keep[lines]]], factors) for lines, factors in self)


class PatternLines(NamedTuple):
    """Probabilities that are sums over recording patterns: row and set of every line."""

    rows: Ints  # (m,)
    sets: Bools  # (u, q), of the modelled groups in their order
    set_of: Ints  # (m,)

    def only(self, keep: Bools | Ints) -> PatternLines:
        """Return the kept lines."""
        return PatternLines(self.rows[keep], self.sets, self.set_of[keep])


class Probabilities(NamedTuple):
    """Probabilities of lines, before clipping, and the factors or patterns that they are made of; none if known."""

    probability: Floats  # (m,)
    made_of: FactorLines | PatternLines = FactorLines()
