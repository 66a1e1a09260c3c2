"""KnownPropensity: a propensity that the user knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._arguments import check_arrays, check_flag, check_takes, numbers_per_row
from .._arrays import Bools, Floats, Ints, lines_of, unique_sets
from ..data.retrospective import Retrospective

__all__ = ["KnownPropensity", "Lookup"]


class Lookup(NamedTuple):
    """A known propensity for the rows of some records."""

    ask: Callable[[Ints, Bools], ArrayLike]  # rows (m,) and required groups (m, G) -> m probabilities
    covered: frozenset[bytes] | None  # sets with known probabilities; None for all


class KnownPropensity:
    """P(R >= required | given), known and not learned.

    Parameters
    ----------
    function : callable
        ``function(values, required)`` with values of shape (m, d) and required groups of shape (m, G), bool;
        returns m probabilities in (0, 1]. Groups that are always recorded are never required: their
        probability is 1. If recording depends on groups with gaps, the function is only called for sets that contain
        these, in rows that have them.
    labels : bool
        True if recording also depends on the label. The function then gets the label codes (m,) as a third argument. If
        labels have gaps, this needs a graph; rows without a label have code -1 there.
    """

    def __init__(self, function: Callable[..., ArrayLike], labels: bool = False) -> None:
        if not callable(function):
            raise TypeError(f"'function' must be callable, but is {type(function).__name__}.")
        self.function, self.labels = function, check_flag("labels", labels)
        check_takes("function", function, "values, required, labels" if labels else "values, required")

    @property
    def asks_for_labels(self) -> bool:
        """True if the function gets the label codes."""
        return self.labels

    @staticmethod
    def from_arrays(arrays: Mapping[str | tuple[str, ...], ArrayLike]) -> KnownPropensity:
        """Make a known propensity from arrays of probabilities.

        Parameters
        ----------
        arrays : mapping from groups to ndarray of shape (n,)
            For each set of groups that the policy reaches, given by a name or a tuple of names, the probability in each row
            of the data that all of them are recorded. Groups that are always recorded can be left out of the key.
        """
        return _PropensityArrays(arrays)

    def lookup(self, data: Retrospective) -> Lookup:
        """Return the probabilities of sets for the rows of these records."""
        records = data.original or data

        def ask(rows: Ints, required: Bools) -> ArrayLike:
            label = (records.labels[rows],) if self.labels else ()
            return self.function(records.values[rows], required, *label)

        return Lookup(ask, None)

    def __repr__(self) -> str:
        return f"KnownPropensity({getattr(self.function, '__name__', type(self.function).__name__)})"


class _PropensityArrays(KnownPropensity):
    def __init__(self, arrays: Mapping[str | tuple[str, ...], ArrayLike]) -> None:
        self.arrays = check_arrays("arrays", arrays, "from groups to arrays")
        self.labels = True  # one value per row may depend on the label of this row

    @property
    def asks_for_labels(self) -> bool:
        """False: there is no function."""
        return False

    def lookup(self, data: Retrospective) -> Lookup:
        """Check names and lengths; return the probabilities of sets for the rows of these records."""
        by_set: dict[bytes, Floats] = {}
        for names, values in self.arrays.items():
            required = np.zeros(data.problem.n_groups, dtype=bool)
            required[data.problem.group_index(names, "arrays")] = True
            column = numbers_per_row(values, len(data), f"'arrays' must have for {names}")
            kind = (required & ~data.always_recorded).tobytes()
            if kind in by_set and not np.array_equal(by_set[kind], column):
                raise ValueError(
                    f"'arrays' must have one array per set of groups, but {names} is a set that another key has too, with other "
                    "numbers. Groups that are always recorded, and the order of groups, do not matter."
                )
            by_set[kind] = column

        def ask(rows: Ints, required: Bools) -> Floats:
            out = np.empty(len(rows))
            for lines, kind in _by_kind(required):
                if kind.tobytes() not in by_set:
                    names = [data.problem.group_names[g] for g in np.flatnonzero(kind)]
                    raise ValueError(f"'arrays' must cover every set that the policy reaches, but lack {names}.")
                out[lines] = by_set[kind.tobytes()][rows[lines]]
            return out

        return Lookup(ask, frozenset(by_set))

    def __repr__(self) -> str:
        return "KnownPropensity.from_arrays(...)"


def _by_kind(required: Bools) -> list[tuple[Ints, Bools]]:
    kinds, index = unique_sets(required)
    return list(zip(lines_of(index, len(kinds)), kinds, strict=True))
