"""Bookings: amounts that are multiplied by the weight of a state and divided by a normaliser."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from .._arrays import Floats, Ints, tally
from ..action_values.learning_errors import ValueSlopes
from ..walk.columns import Matrix, dense

__all__ = ["FINAL", "PLAIN", "Booking", "Lines", "Valued", "add_slopes", "book", "summed"]

FINAL, PLAIN = -2, -1  # steps that mean: divide by the mean final weight, do not divide
_FEW = 4  # up to this many columns are summed one by one


class Booking(NamedTuple):
    """The weight and the normaliser of each booked line of amounts."""

    flow: Floats  # (b,) factor of the amount
    state: Ints  # (b,) state whose weight is used
    step: Ints  # (b,) decision whose normaliser is used: 0, 1, ..., or FINAL, or PLAIN
    line: Ints | None = None  # (b,) index of the line of amounts; None for one booking per line


class Valued(NamedTuple):
    """Edges or stops whose action values are booked."""

    edges: Ints | None = None  # (l,)
    stops: Ints | None = None  # (l,) states


class Lines(NamedTuple):
    """Lines of amounts, each booked once or several times."""

    amounts: Matrix  # (l, P)
    bookings: tuple[Booking, ...]
    valued: Valued | None = None  # the edges or stops, if the amounts are action values


def book(lines: Lines, before: Floats, weight: Floats, by_state: Floats | None, by_step: Floats) -> None:
    """Add lines to the amounts per state, ``by_state``, and to the weighted sums per normaliser, ``by_step``, in place.

    Parameters
    ----------
    lines : Lines
        Amounts and bookings.
    before : ndarray of shape (T + 2,)
        Normalisers: mean weight before each decision, mean final weight, 1.
    weight : ndarray of shape (s,)
        Weight of each state times the weight of its row.
    by_state : ndarray of shape (s, P), or None if it is not needed
        Amounts per unit of the state's weight, divided by normalisers.
    by_step : ndarray of shape (T + 2, P)
        Weighted sums of amounts per normaliser, not divided by it.
    """
    for flow, state, step, line in lines.bookings:
        step = _step(step, len(before))
        line = np.arange(len(flow)) if line is None else line
        by_step += summed(step, flow * weight[state], lines.amounts, line, len(before))
        if by_state is not None:
            by_state += summed(state, flow / before[step], lines.amounts, line, len(by_state))


def add_slopes(lines: Lines, before: Floats, weight: Floats, slopes: ValueSlopes) -> None:
    """Add the derivatives of the weighted sum, divided by normalisers, in the action values of the lines, in place.

    ``before`` and ``weight`` are those of `book`. A booked amount has one coefficient for all columns.
    """
    for index, out in zip(lines.valued or (), slopes, strict=lines.valued is not None):
        if index is None:
            continue
        for flow, state, step, line in lines.bookings:
            coefficient = flow * weight[state] / before[_step(step, len(before))]
            out[index] += coefficient if line is None else tally(line, coefficient, len(index))


def _step(step: Ints, n: int) -> Ints:
    """Return the index of each normaliser, (b,). States beyond the last used depth have weight 0, so any index is right."""
    return np.where(step < 0, n + step, np.minimum(step, n - 2))


def summed(index: Ints, factor: Floats, amounts: Matrix, line: Ints, n: int) -> Floats:
    """Sum factors times lines of amounts by index, (n, P)."""
    if isinstance(amounts, np.ndarray) and amounts.shape[1] <= _FEW:
        return np.column_stack([tally(index, factor * amounts[line, j], n) for j in range(amounts.shape[1])])
    return dense(csr_array((factor, (index, line)), shape=(n, amounts.shape[0])) @ amounts)
