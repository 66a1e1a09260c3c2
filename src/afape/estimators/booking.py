"""Parts of the costs booked row by row: what `WeightedSums` does for the costs, in one further pass for all parts at once."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.sparse import csr_array

from ..arrays import Floats, Ints, lines_of
from ..nuisance.propensity import StackedScores
from ..nuisance.propensity.answer import FactorParts, PatternParts
from ..nuisance.propensity.factor import Factor
from ..nuisance.propensity.pattern_scores import PatternScores
from ..nuisance.weights import WeightedStates

__all__ = ["Block", "Bookings", "Lines", "StateWeights", "Term", "dense", "normalizer_pulls"]


class Lines(Protocol):
    """Lines of parts whose coefficients are linear in the weights of states: the map, and its transpose."""

    def forward(self, by_state: Floats, before: Floats) -> Iterator[tuple[csr_array | Floats, Ints, Floats]]:
        """Parts (l, P), row and coefficient of lines where states weigh this much; ``before`` are the normalisers."""
        ...

    def backward(self, out: Floats, before: Floats) -> None:
        """Add to ``out`` (s, P) what a state's weight books."""
        ...


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


def _slopes_of(scores: StackedScores | None, row_weight: Floats, n_parts: int) -> Slopes | None:
    """Slopes by what the propensity is made of; None where standard errors cannot use them."""
    if scores is None or not scores.whole:
        return None
    if isinstance(scores, PatternScores):
        return _PatternSlopes(scores, row_weight, n_parts)
    return _FactorSlopes(scores, row_weight, n_parts)


class _FactorSlopes:
    """Factors one by one: the lines are booked again with the weights that move with a factor."""

    def __init__(self, scores: StackedScores, row_weight: Floats, n_parts: int) -> None:
        self.propensity, self.row_weight = scores.propensity, row_weight
        self.found: dict[Any, Floats] = {}
        self._booked = np.zeros((len(row_weight), n_parts))

    def add(self, lines: Lines, weights: StateWeights, before: Floats) -> None:
        """Lines of a table."""
        for factor, move in weights.moves():
            spans = [_book_rows(self._booked, *line) for line in lines.forward(move, before)]
            spans = [span for span in spans if span.stop > 0]
            if spans:
                self._move(factor, slice(min(s.start for s in spans), max(s.stop for s in spans)))

    def close(self, weights: StateWeights) -> None:
        """Nothing is left to do."""

    def _move(self, factor: Factor, span: slice) -> None:
        """Multiply what was booked of these rows by the columns of the factor, fold by fold, and book anew from 0."""
        booked, design = self._booked[span] * self.row_weight[span, None], factor.design[span]
        if factor not in self.found:
            self.found[factor] = np.zeros((self.propensity.n_folds, booked.shape[1], design.shape[1]))
        by_fold = lines_of(self.propensity.fold[span], self.propensity.n_folds)
        for mine, slopes in zip(by_fold, self.found[factor], strict=True):
            slopes -= booked[mine].T @ design[mine]
        self._booked[span] = 0.0


class _PatternSlopes:
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
        self.slopes = _slopes_of(scores, row_weight, n_parts)
        self.rows = np.zeros((len(row_weight), n_parts))
        self.steps = np.zeros((len(before), n_parts))

    def add(self, block: Block, weights: StateWeights) -> None:
        """Book a block of lines; states beyond the deepest that is used weigh nothing, and need no normaliser."""
        last = len(self.before) - 1
        block = block._replace(terms=tuple(t._replace(step=np.minimum(t.step, last)) for t in block.terms))
        matrix, row, terms = block
        booked = np.zeros(len(row))
        for term in terms:
            coefficient = term.amount * weights.weight[term.state]
            self._step(matrix, row, term.step, coefficient)
            booked += coefficient / self.before[term.step]
        _book_rows(self.rows, matrix, row, booked)
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
        _book_rows(self.rows, matrix, row, coefficient / self.before[0])

    def _step(self, matrix: csr_array | Floats, row: Ints, step: Ints, coefficient: Floats) -> None:
        weight, lines = coefficient * self.row_weight[row], np.arange(len(row))
        self.steps += dense(csr_array((weight, (step, lines)), shape=(len(self.steps), len(row))) @ matrix)

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


def _book_rows(out: Floats, matrix: csr_array | Floats, row: Ints, coefficient: Floats) -> slice:
    """Add lines times coefficients to the rows of ``out`` (n, P); the range of rows that this changes."""
    used = np.flatnonzero(coefficient)
    if len(used) == 0:
        return slice(0, 0)
    low, high = int(row[used].min()), int(row[used].max()) + 1  # a chunk is a range of rows
    place = csr_array((coefficient[used], (row[used] - low, used)), shape=(high - low, len(row)))
    out[low:high] += dense(place @ matrix)
    return slice(low, high)


def dense(found: Any) -> Floats:
    """A product as a plain array."""
    return np.asarray(found.toarray() if hasattr(found, "toarray") else found)
