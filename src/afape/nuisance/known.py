"""A propensity that the user knows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Bools, Floats, Ints, any_of
from ..data import Retrospective

__all__ = ["BoundKnownPropensity", "KnownPropensity"]


class KnownPropensity:
    """P(R >= required | given), known and not learned.

    Parameters
    ----------
    function : callable
        ``function(values, required)`` with values of shape (m, d) and required groups of shape (m, G), bool;
        returns m probabilities in (0, 1]. Groups that are always recorded are never required: their
        probability is 1.
    """

    def __init__(self, function: Callable[[Floats, Bools], ArrayLike]) -> None:
        if not callable(function):
            raise TypeError(f"'function' must be callable, but is {type(function).__name__}.")
        self.function = function

    def bind(self, data: Retrospective) -> BoundKnownPropensity:
        """Bind to these records."""
        return BoundKnownPropensity(self, data)

    def __repr__(self) -> str:
        return f"KnownPropensity({getattr(self.function, '__name__', type(self.function).__name__)})"


class BoundKnownPropensity:
    """A known propensity together with the records it speaks of."""

    min_propensity = 0.0
    learned = False

    def __init__(self, propensity: KnownPropensity, data: Retrospective) -> None:
        self.function, self.name = propensity.function, repr(propensity)
        self.data, self.sometimes = data, ~data.always_recorded

    def refit(self, row_weight: Floats) -> BoundKnownPropensity:
        """What is known stays as it is."""
        return self

    def probability(self, rows: Ints, sets: Bools, index: Ints) -> Floats:
        """P(R >= sets[index] | given) in these rows."""
        out = np.ones(len(rows))
        required = sets & self.sometimes
        ask = np.flatnonzero(any_of(required)[index])
        if len(ask) == 0:
            return out
        answer = self.function(self.data.values[rows[ask]], required[index[ask]])
        try:
            p = np.asarray(answer, dtype=float)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"{self.name} must return {len(ask)} numbers, but returned {type(answer).__name__}."
            ) from error
        if p.shape != (len(ask),):
            raise ValueError(f"{self.name} must return shape ({len(ask)},), but returned {p.shape}.")
        bad = ~((p > 0) & (p <= 1))
        if bad.any():
            first = int(np.flatnonzero(bad)[0])
            raise ValueError(
                f"{self.name} must lie in (0, 1], but {int(bad.sum())} of {len(p)} values do not, the first "
                f"{p[first]} for row {int(rows[ask[first]])}. These rows have the groups recorded, so their "
                "probability cannot be 0."
            )
        out[ask] = p
        return out
