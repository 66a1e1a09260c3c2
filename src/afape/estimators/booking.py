"""Parts of the costs booked row by row: what `WeightedSums` does for the costs, in one further pass for all parts at once."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from ..arrays import Floats, Ints
from ..nuisance.propensity.chain import ChainPropensity
from ..nuisance.propensity.factor import Factor
from ..nuisance.weights import WeightedStates

__all__ = ["Block", "Bookings", "StateWeights", "Term", "normalizer_pulls"]


class Term(NamedTuple):
    """How much of a line counts: a flow, the state whose weight it has, and the decision whose normaliser it has."""

    amount: Floats  # (l,)
    state: Ints  # (l,)
    step: Ints  # (l,)


class Block(NamedTuple):
    """Lines of parts, the row of each, and the terms that they enter with."""

    matrix: csr_array | Floats  # (l, P)
    row: Ints  # (l,)
    terms: tuple[Term, ...]


class StateWeights:
    """Weights of all states of a table, 0 where a state is not used, and how they move with every learned factor."""

    def __init__(self, n_states: int, weighted: WeightedStates, scored: bool) -> None:
        self.n_states, self.weighted, self.scored = n_states, weighted, scored
        self.weight = np.zeros(n_states)
        self.weight[weighted.lines] = weighted.weight

    @cached_property
    def _parts(self) -> dict[Factor, list[tuple[Ints, Floats]]]:
        found: dict[Factor, list[tuple[Ints, Floats]]] = {}
        for lines, _, factors in self.weighted.parts if self.scored else ():
            for factor, slack in factors:
                if factor.of.estimator is None and len(lines):
                    found.setdefault(factor, []).append((lines, slack))
        return found

    def moves(self) -> Iterator[tuple[Factor, Floats]]:
        """Every factor with the weights times the derivative of their logarithm in minus its log-odds; 0 where clipped.

        One by one: all factors together would take many times the memory of the weights.
        """
        weighted = self.weighted
        moving = weighted.weight * ~weighted.clipped
        for factor, parts in self._parts.items():
            out = np.zeros(self.n_states)
            for lines, slack in parts:
                out[weighted.lines[lines]] += moving[lines] * slack
            yield factor, out


class Bookings:
    r"""Sums of parts, linear in the weights and divided by the normalisers that the costs have.

    Attributes
    ----------
    rows : ndarray of shape (n, P)
        Sum over the lines of a row of :math:`w \, q / b_t`, with b_t the mean weight before decision t.
    steps : ndarray of shape (T + 1, P)
        Mean over rows of :math:`w \, q` by decision, from which the pull of the normalisers follows.
    slopes : dict
        Derivative of the sums of every fold in the parameters of each factor, (K, P, p).
    """

    def __init__(self, before: Floats, row_weight: Floats, n_parts: int, chain: ChainPropensity | None) -> None:
        self.before, self.row_weight, self.chain = before, row_weight, chain
        self.rows = np.zeros((len(row_weight), n_parts))
        self.steps = np.zeros((len(before), n_parts))
        self.slopes: dict[Factor, Floats] = {}

    def add(self, block: Block, weights: StateWeights) -> None:
        """Book a block of lines."""
        matrix, row, terms = block
        booked = np.zeros(len(row))
        for term in terms:
            coefficient = term.amount * weights.weight[term.state]
            self._step(matrix, row, term.step, coefficient)
            booked += coefficient / self.before[term.step]
        self._row(matrix, row, booked)
        for factor, move in weights.moves():
            moved = sum(term.amount * move[term.state] / self.before[term.step] for term in terms)
            self.move(factor, matrix, row, np.asarray(moved))

    def book(self, matrix: csr_array | Floats, row: Ints, coefficient: Floats) -> None:
        """Book lines with these coefficients, weights included, at the first normaliser."""
        self._step(matrix, row, np.zeros(len(row), dtype=np.intp), coefficient)
        self._row(matrix, row, coefficient / self.before[0])

    def _step(self, matrix: csr_array | Floats, row: Ints, step: Ints, coefficient: Floats) -> None:
        weight, lines = coefficient * self.row_weight[row], np.arange(len(row))
        self.steps += _dense(csr_array((weight, (step, lines)), shape=(len(self.steps), len(row))) @ matrix)

    def _row(self, matrix: csr_array | Floats, row: Ints, coefficient: Floats) -> None:
        used = np.flatnonzero(coefficient)
        if len(used) == 0:
            return
        low, high = int(row[used].min()), int(row[used].max()) + 1  # a chunk is a range of rows
        place = csr_array((coefficient[used], (row[used] - low, used)), shape=(high - low, len(row)))
        self.rows[low:high] += _dense(place @ matrix)

    def move(self, factor: Factor, matrix: csr_array | Floats, row: Ints, coefficient: Floats) -> None:
        """Lines whose weights move with a factor, by these coefficients."""
        assert self.chain is not None
        used = np.flatnonzero(coefficient * self.row_weight[row])
        if len(used) == 0:
            return
        fold, part = self.chain.fold[row[used]], matrix[used]
        moved = factor.design[row[used]] * (coefficient * self.row_weight[row])[used, None]
        if factor not in self.slopes:
            self.slopes[factor] = np.zeros((self.chain.n_folds, self.rows.shape[1], moved.shape[1]))
        for k in np.unique(fold):
            mine = np.flatnonzero(fold == k)
            self.slopes[factor][k] -= _dense(part[mine].T @ moved[mine])

    @property
    def values(self) -> Floats:
        """Value of every part."""
        return np.asarray(((self.steps / self.row_weight.sum()) / self.before[:, None]).sum(axis=0))

    def pulls(self, shape: tuple[int, int], normalize: bool) -> Floats:
        """Derivative of every part in the mean flows that the normalisers are made of, (P, T, Q)."""
        out = np.zeros((self.rows.shape[1], *shape))
        if normalize:
            for p, step in enumerate((self.steps / self.row_weight.sum()).T):
                out[p, :, :2] = normalizer_pulls(step, self.before)
        return out


def normalizer_pulls(step: Floats, before: Floats) -> Floats:
    r"""Derivative of :math:`\sum_t m_t / b_t` in the incoming and stopping flow of each depth, (T, 2).

    A stop counts in every later normaliser, because a trajectory that has stopped keeps its last weight.
    """
    pull = -step / before**2
    return np.column_stack([pull[:-1], np.cumsum(pull[::-1])[::-1][1:]])


def _dense(found: Any) -> Floats:
    return np.asarray(found.toarray() if hasattr(found, "toarray") else found)
