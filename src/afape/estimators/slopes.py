"""How booked parts move with the parameters of a learned propensity."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy.sparse import csr_array

from ..arrays import Floats, Ints
from ..nuisance.propensity import StackedScores
from ..nuisance.propensity.answer import FactorParts, PatternParts
from ..nuisance.propensity.factor import Factor
from ..nuisance.propensity.scores import PatternScores
from ..nuisance.weights import WeightedStates

__all__ = ["FactorSlopes", "Lines", "PatternSlopes", "Slopes", "StateWeights", "dense", "slopes_of"]


class Lines(Protocol):
    """Lines of parts whose coefficients are linear in the weights of states: the map, and its transpose."""

    def forward(self, by_state: Floats, before: Floats) -> Iterator[tuple[csr_array | Floats, Ints, Floats]]:
        """Parts (l, P), row and coefficient of lines where states weigh this much; ``before`` are the normalisers."""
        ...

    def backward(self, out: Floats, before: Floats) -> None:
        """Add to ``out`` (s, P) what a state's weight books."""
        ...


class StateWeights:
    """Weights of all states of a table, 0 where a state is not used, and how they move with every learned factor."""

    def __init__(self, n_states: int, weighted: WeightedStates) -> None:
        self.n_states, self.weighted = n_states, weighted
        self.weight = np.zeros(n_states)
        self.weight[weighted.lines] = weighted.weight

    @property
    def moving(self) -> Floats:
        """Weights of the states that are used; 0 where they are clipped, so that nothing moves them."""
        return np.asarray(self.weighted.weight * ~self.weighted.clipped)

    @cached_property
    def _parts(self) -> dict[Factor, list[tuple[Ints, Floats]]]:
        found: dict[Factor, list[tuple[Ints, Floats]]] = {}
        assert isinstance(self.weighted.parts, FactorParts)
        for lines, _, factors in self.weighted.parts:
            for factor, slack in factors:
                if factor.of.estimator is None and len(lines):
                    found.setdefault(factor, []).append((lines, slack))
        return found

    def moves(self) -> Iterator[tuple[Factor, Floats]]:
        """Every factor with the weights times the derivative of their logarithm in minus its log-odds.

        One by one: all factors together would take many times the memory of the weights.
        """
        moving = self.moving
        for factor, parts in self._parts.items():
            out = np.zeros(self.n_states)
            for lines, slack in parts:
                out[self.weighted.lines[lines]] += moving[lines] * slack
            yield factor, out


class Slopes(Protocol):
    """Derivative of sums of P parts, by model: (K, P, p)."""

    found: dict[Any, Floats]

    def add(self, lines: Lines, weights: StateWeights, before: Floats) -> None:
        """Lines of a table."""
        ...

    def close(self, weights: StateWeights) -> None:
        """After the last lines of a table."""
        ...


def slopes_of(scores: StackedScores | None, row_weight: Floats, n_parts: int) -> Slopes | None:
    """Slopes by what the propensity is made of; None where standard errors cannot use them."""
    if scores is None or not scores.whole:
        return None
    if isinstance(scores, PatternScores):
        return PatternSlopes(scores, row_weight, n_parts)
    return FactorSlopes(scores, row_weight, n_parts)


class FactorSlopes:
    """Factors one by one: the lines are booked again with the weights that move with a factor."""

    def __init__(self, scores: StackedScores, row_weight: Floats, n_parts: int) -> None:
        self.propensity, self.row_weight, self.n_parts = scores.propensity, row_weight, n_parts
        self.found: dict[Any, Floats] = {}

    def add(self, lines: Lines, weights: StateWeights, before: Floats) -> None:
        """Lines of a table."""
        for factor, move in weights.moves():
            for matrix, row, coefficient in lines.forward(move, before):
                self._move(factor, matrix, row, coefficient)

    def close(self, weights: StateWeights) -> None:
        """Nothing is left to do."""

    def _move(self, factor: Factor, matrix: csr_array | Floats, row: Ints, coefficient: Floats) -> None:
        used = np.flatnonzero(coefficient * self.row_weight[row])
        if len(used) == 0:
            return
        fold, part = self.propensity.fold[row[used]], matrix[used]
        moved = factor.design[row[used]] * (coefficient * self.row_weight[row])[used, None]
        if factor not in self.found:
            self.found[factor] = np.zeros((self.propensity.n_folds, self.n_parts, moved.shape[1]))
        for k in np.unique(fold):
            mine = np.flatnonzero(fold == k)
            self.found[factor][k] -= dense(part[mine].T @ moved[mine])


class PatternSlopes:
    """All parameters at once: what the weight of every state books is collected, (s, P), and then moved."""

    def __init__(self, scores: PatternScores, row_weight: Floats, n_parts: int) -> None:
        self.scores, self.row_weight, self.n_parts = scores, row_weight, n_parts
        self.found: dict[Any, Floats] = {}
        self._booked: Floats | None = None

    def add(self, lines: Lines, weights: StateWeights, before: Floats) -> None:
        """Lines of a table."""
        if self._booked is None:
            self._booked = np.zeros((weights.n_states, self.n_parts))
        lines.backward(self._booked, before)

    def close(self, weights: StateWeights) -> None:
        """Move what was booked of this table."""
        if self._booked is not None:
            parts = weights.weighted.parts
            assert isinstance(parts, PatternParts)
            moving = weights.moving * self.row_weight[parts.rows]
            self.scores.pull(parts, self._booked[weights.weighted.lines] * moving[:, None], self.found)
        self._booked = None


def dense(found: Any) -> Floats:
    """A product as a plain array."""
    return np.asarray(found.toarray() if hasattr(found, "toarray") else found)
