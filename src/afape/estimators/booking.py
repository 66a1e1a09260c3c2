"""Parts of the costs booked row by row: what `WeightedSums` does for the costs, in one further pass for all parts at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from ..arrays import Floats, Ints
from ..nuisance.propensity import StackedScores
from .slopes import Lines, StateWeights, dense, slopes_of

__all__ = ["Block", "Bookings", "Term", "normalizer_pulls"]


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

    def forward(self, by_state: Floats, before: Floats) -> Iterator[tuple[csr_array | Floats, Ints, Floats]]:
        """The lines with their coefficients where states weigh this much."""
        moved = sum(term.amount * by_state[term.state] / before[term.step] for term in self.terms)
        yield self.matrix, self.row, np.asarray(moved)

    def backward(self, out: Floats, before: Floats) -> None:
        """Add to ``out`` (s, P) what a state's weight books."""
        for term in self.terms:
            used = np.flatnonzero(term.amount)  # an edge that leads nowhere has no state to go to
            states, place = np.unique(term.state[used], return_inverse=True)
            share = term.amount[used] / before[term.step[used]]
            onto = csr_array((share, (place, used)), shape=(len(states), len(term.amount)))
            out[states] += dense(onto @ self.matrix)


class Bookings:
    r"""Sums of parts, linear in the weights and divided by the normalisers that the costs have.

    Attributes
    ----------
    rows : ndarray of shape (n, P)
        Sum over the lines of a row of :math:`w \, q / b_t`, with b_t the mean weight before decision t.
    steps : ndarray of shape (T + 1, P)
        Mean over rows of :math:`w \, q` by decision, from which the pull of the normalisers follows.
    slopes : Slopes or None
        Derivative of the sums in the parameters of the propensity, where these have scores.
    """

    def __init__(self, before: Floats, row_weight: Floats, n_parts: int, scores: StackedScores | None) -> None:
        self.before, self.row_weight = before, row_weight
        self.slopes = slopes_of(scores, row_weight, n_parts)
        self.rows = np.zeros((len(row_weight), n_parts))
        self.steps = np.zeros((len(before), n_parts))

    def add(self, block: Block, weights: StateWeights) -> None:
        """Book a block of lines."""
        matrix, row, terms = block
        booked = np.zeros(len(row))
        for term in terms:
            coefficient = term.amount * weights.weight[term.state]
            self._step(matrix, row, term.step, coefficient)
            booked += coefficient / self.before[term.step]
        self._row(matrix, row, booked)
        self.follow(block, weights)

    def follow(self, lines: Lines, weights: StateWeights) -> None:
        """How what is booked moves with the propensity."""
        if self.slopes is not None:
            self.slopes.add(lines, weights, self.before)

    def close(self, weights: StateWeights) -> None:
        """After the last lines of a table."""
        if self.slopes is not None:
            self.slopes.close(weights)

    def book(self, matrix: csr_array | Floats, row: Ints, coefficient: Floats) -> None:
        """Book lines with these coefficients, weights included, at the first normaliser."""
        self._step(matrix, row, np.zeros(len(row), dtype=np.intp), coefficient)
        self._row(matrix, row, coefficient / self.before[0])

    def _step(self, matrix: csr_array | Floats, row: Ints, step: Ints, coefficient: Floats) -> None:
        weight, lines = coefficient * self.row_weight[row], np.arange(len(row))
        self.steps += dense(csr_array((weight, (step, lines)), shape=(len(self.steps), len(row))) @ matrix)

    def _row(self, matrix: csr_array | Floats, row: Ints, coefficient: Floats) -> None:
        used = np.flatnonzero(coefficient)
        if len(used) == 0:
            return
        low, high = int(row[used].min()), int(row[used].max()) + 1  # a chunk is a range of rows
        place = csr_array((coefficient[used], (row[used] - low, used)), shape=(high - low, len(row)))
        self.rows[low:high] += dense(place @ matrix)

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
