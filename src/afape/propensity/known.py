"""A known propensity bound to the records."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arguments import in_order_of_rows, real_array
from .._arrays import Bools, Floats, Ints, any_of, index_of
from ..data.retrospective import Retrospective
from ..missingness.known_propensity import KnownPropensity
from .probabilities import Probabilities
from .unsupported import SupportMap

__all__ = ["BoundKnownPropensity"]


class BoundKnownPropensity:
    """A known propensity bound to the records."""

    min_propensity = 0.0
    learned = False
    converged = True

    def __init__(self, propensity: KnownPropensity, data: Retrospective) -> None:
        self.name = repr(propensity)
        self.sometimes = ~data.always_recorded
        self.ask, self.covered = propensity.lookup(data)

    def covers(self, required: Bools) -> bool:
        """True if it knows the probability of this set."""
        needed = required & self.sometimes
        return self.covered is None or not needed.any() or needed.tobytes() in self.covered

    def scores(self, row_weight: Floats) -> None:
        """Return None: nothing was learned."""
        return

    def refit(self, drawn: Floats) -> BoundKnownPropensity:
        """Return the propensity itself: nothing was learned."""
        return self

    def excluding(self, unsupported: SupportMap) -> BoundKnownPropensity:
        """Return the propensity itself: nothing was learned."""
        return self

    def impossible(self, rows: Ints, sets: Bools, index: Ints, least: float) -> Bools:
        """True where the probability of sets[index], recorded or not, is known to be below ``least``; (m,)."""
        out = np.zeros(len(rows), dtype=bool)
        required = sets & self.sometimes
        asked = any_of(required)
        if self.covered is not None:
            asked &= [s.tobytes() in self.covered for s in required]
        ask = np.flatnonzero(asked[index])
        if len(ask):
            p = self._numbers(self.ask(rows[ask], required[index[ask]]), len(ask))
            if (bad := ~((p >= 0) & (p <= 1)) & ~np.isnan(p)).any():
                raise ValueError(f"{self.name} must lie in [0, 1], but {int(bad.sum())} of {len(p)} values do not.")
            out[ask] = p < least
        return out

    def probabilities(self, rows: Ints, sets: Bools, lines: list[Ints]) -> Probabilities:
        """Probabilities of these rows (m,), where ``lines`` lists the rows of each set."""
        return Probabilities(self.probability(rows, sets, index_of(lines, len(rows))))

    def probability(self, rows: Ints, sets: Bools, index: Ints) -> Floats:
        """P(R >= sets[index] | given) in these rows, (m,)."""
        out = np.ones(len(rows))
        required = sets & self.sometimes
        ask = np.flatnonzero(any_of(required)[index])
        if len(ask) == 0:
            return out
        p = self._numbers(self.ask(rows[ask], required[index[ask]]), len(ask))
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

    def _numbers(self, found: Any, n: int) -> Floats:
        try:
            p = real_array(in_order_of_rows(found))
        except (TypeError, ValueError) as error:
            raise ValueError(f"{self.name} must return {n} numbers, but returned {type(found).__name__}.") from error
        if p.shape != (n,):
            raise ValueError(f"{self.name} must return shape ({n},), but returned {p.shape}.")
        return p
