"""A propensity that the user knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import check_flag, numbers_per_row
from ...arrays import Bools, Floats, Ints, any_of, index_of, lines_of, unique_sets
from ...data import Retrospective
from ...support import SupportMap
from .answer import Answer

__all__ = ["BoundKnownPropensity", "KnownPropensity"]


class KnownPropensity:
    """P(R >= required | given), known and not learned.

    Parameters
    ----------
    function : callable
        ``function(values, required)`` with values of shape (m, d) and required groups of shape (m, G), bool;
        returns m probabilities in (0, 1]. Groups that are always recorded are never required: their
        probability is 1. Where recording depends on groups with gaps, it is asked about sets that contain
        these, in rows that have them.
    labels : bool
        Whether recording depends on the label too: the function is then called with the label codes (m,) as a third
        argument.
    """

    def __init__(self, function: Callable[..., ArrayLike], labels: bool = False) -> None:
        if not callable(function):
            raise TypeError(f"'function' must be callable, but is {type(function).__name__}.")
        self.function, self.labels = function, check_flag("labels", labels)

    @staticmethod
    def from_arrays(arrays: Mapping[str | tuple[str, ...], ArrayLike]) -> KnownPropensity:
        """Probabilities fitted elsewhere, as arrays.

        Parameters
        ----------
        arrays : mapping from groups to ndarray of shape (n,)
            For each set of groups that the policy reaches, by a name or a tuple of names, the probability in each row
            of the data that all of them are recorded. Groups that are always recorded may be left out of the key.
        """
        return _PropensityArrays(arrays)

    def bind(self, data: Retrospective) -> BoundKnownPropensity:
        """Bind to these records."""
        return BoundKnownPropensity(self, data)

    def __repr__(self) -> str:
        return f"KnownPropensity({getattr(self.function, '__name__', type(self.function).__name__)})"


class _PropensityArrays(KnownPropensity):
    def __init__(self, arrays: Mapping[str | tuple[str, ...], ArrayLike]) -> None:
        if not isinstance(arrays, Mapping):
            raise TypeError(f"'arrays' must be a mapping from groups to arrays, not {type(arrays).__name__}.")
        copies = {key: np.array(values) for key, values in arrays.items()}  # the user's arrays stay the user's
        self.arrays: Mapping[str | tuple[str, ...], ArrayLike] = copies
        self.labels = True  # one value per row knows that row's label

    def bind(self, data: Retrospective) -> BoundKnownPropensity:
        """Check names and lengths against these records."""
        by_set: dict[bytes, Floats] = {}
        for key, values in self.arrays.items():
            names = (key,) if isinstance(key, str) else tuple(key)
            required = np.zeros(data.problem.n_groups, dtype=bool)
            required[data.problem.group_index(names, "arrays")] = True
            column = numbers_per_row(values, len(data), f"'arrays' must have for {names}")
            by_set[(required & ~data.always_recorded).tobytes()] = column

        def lookup(rows: Ints, required: Bools) -> Floats:
            out = np.empty(len(rows))
            for lines, kind in _by_kind(required):
                if kind.tobytes() not in by_set:
                    names = [data.problem.group_names[g] for g in np.flatnonzero(kind)]
                    raise ValueError(f"'arrays' must cover every set that the policy reaches, but lack {names}.")
                out[lines] = by_set[kind.tobytes()][rows[lines]]
            return out

        bound = BoundKnownPropensity(self, data)
        bound.ask = lookup
        bound.covered = set(by_set)
        return bound

    def __repr__(self) -> str:
        return "KnownPropensity.from_arrays(...)"


def _by_kind(required: Bools) -> list[tuple[Ints, Bools]]:
    kinds, index = unique_sets(required)
    return list(zip(lines_of(index, len(kinds)), kinds, strict=True))


class BoundKnownPropensity:
    """A known propensity bound to the records."""

    min_propensity = 0.0
    learned = False

    def __init__(self, propensity: KnownPropensity, data: Retrospective) -> None:
        self.name = repr(propensity)
        self.data, self.sometimes = data, ~data.always_recorded
        self.covered: set[bytes] | None = None  # sets that it knows of; None: all

        def ask(rows: Ints, required: Bools) -> ArrayLike:
            label = (data.labels[rows],) if propensity.labels else ()
            return propensity.function(data.values[rows], required, *label)

        self.ask: Callable[[Ints, Bools], ArrayLike] = ask

    def covers(self, required: Bools) -> bool:
        """Whether it knows the probability of this set."""
        needed = required & self.sometimes
        return self.covered is None or not needed.any() or needed.tobytes() in self.covered

    def scores(self, row_weight: Floats) -> None:
        """Nothing was learned."""
        return

    def refit(self, row_weight: Floats) -> BoundKnownPropensity:
        """What is known stays as it is."""
        return self

    def excluding(self, unsupported: SupportMap) -> BoundKnownPropensity:
        """What is known stays as it is."""
        return self

    def impossible(self, rows: Ints, sets: Bools, index: Ints, least: float) -> Bools:
        """Where the probability of sets[index], recorded or not, is known to be below ``least``."""
        out = np.zeros(len(rows), dtype=bool)
        required = sets & self.sometimes
        answers = any_of(required)
        if self.covered is not None:
            answers &= [s.tobytes() in self.covered for s in required]
        ask = np.flatnonzero(answers[index])
        if len(ask):
            p = np.asarray(self.ask(rows[ask], required[index[ask]]), dtype=float)
            if p.shape != (len(ask),):
                raise ValueError(f"{self.name} must return shape ({len(ask)},), but returned {p.shape}.")
            if (bad := ~((p >= 0) & (p <= 1)) & ~np.isnan(p)).any():
                raise ValueError(f"{self.name} must lie in [0, 1], but {int(bad.sum())} of {len(p)} values do not.")
            out[ask] = p < least
        return out

    def answer(self, rows: Ints, sets: Bools, lines: list[Ints]) -> Answer:
        """The same where ``lines`` says which rows go with each set."""
        return Answer(self.probability(rows, sets, index_of(lines, len(rows))))

    def probability(self, rows: Ints, sets: Bools, index: Ints) -> Floats:
        """P(R >= sets[index] | given) in these rows."""
        out = np.ones(len(rows))
        required = sets & self.sometimes
        ask = np.flatnonzero(any_of(required)[index])
        if len(ask) == 0:
            return out
        answer = self.ask(rows[ask], required[index[ask]])
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
