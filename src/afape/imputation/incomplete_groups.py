"""Groups with gaps: the rows that have each group recorded, their values, and the kinds of its columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._arrays import Floats, Ints, effective_size, in_own_units, tally, units_of
from ..data.retrospective import Retrospective

__all__ = ["SCALED_DIGITS", "IncompleteGroup", "Variable", "incomplete_groups"]

SCALED_DIGITS = 9


@dataclass(frozen=True, eq=False)
class Variable:
    """One column of the user's table, by its place in the group.

    Parameters
    ----------
    columns : ndarray of int
        Columns of the group: one for a number, one per level for a category.
    levels : ndarray of shape (K, len(columns)), or None
        Patterns that a category can take, most frequent first; None for a number.
    """

    columns: Ints
    levels: Floats | None


@dataclass(frozen=True, eq=False)
class IncompleteGroup:
    """Columns of one group, which are missing together.

    Parameters
    ----------
    columns : ndarray of int
        Columns of the data.
    values : ndarray of shape (m, len(columns))
        Values of the rows that have the group recorded.
    present, absent : ndarray of int
        Rows that have the group recorded, and rows that lack it.
    variables : list of Variable
        The columns of the user's table in the group.
    units : ndarray of int, shape (m,)
        Cluster of each recorded row, or the row itself without clusters.
    weight : ndarray of shape (m,), optional
        How many cases each recorded row stands for.
    """

    columns: Ints
    values: Floats
    present: Ints
    absent: Ints
    variables: list[Variable]
    units: Ints
    weight: Floats | None = None

    @cached_property
    def scaled(self) -> Floats:
        """Centred values; the variances of the columns of one variable (the levels of a category) sum to 1.

        They are rounded, because rounding errors, which depend on the units, would decide between equally good splits.
        """
        values = in_own_units(self.values)
        centred = values - values.mean(axis=0)
        for variable in self.variables:
            spread = np.sqrt((centred[:, variable.columns] ** 2).mean(axis=0).sum())
            centred[:, variable.columns] /= spread if spread > 0 else 1.0
        return np.asarray(centred.round(SCALED_DIGITS))

    @property
    def resampled(self) -> bool:
        """True if some rows share a cluster, or if rows have weights: parameters then come from bootstrap samples."""
        return self.weight is not None or bool(self.units.max() + 1 < len(self.units))

    def bootstrap(self, rng: np.random.Generator) -> Ints:
        """How often each recorded row occurs in a sample with replacement of rows or clusters, (m,)."""
        n_units = int(self.units.max()) + 1
        if self.weight is not None:
            return self._weighted_bootstrap(n_units, rng)
        return np.bincount(rng.integers(n_units, size=n_units), minlength=n_units)[self.units]

    def _weighted_bootstrap(self, n_units: int, rng: np.random.Generator) -> Ints:
        """Draw rows, or clusters, in proportion to their mean weights: as many as these are worth (Kish's effective size)."""
        mean = tally(self.units, self.weight, n_units) / np.bincount(self.units, minlength=n_units)  # type: ignore[arg-type]
        worth = max(round(effective_size(mean, None)), 1)
        return np.asarray(rng.multinomial(worth, mean / mean.sum()))[self.units]


def incomplete_groups(data: Retrospective, values: Floats) -> list[IncompleteGroup]:
    """Groups that some rows have recorded and others lack, most often recorded first, then by name; ``values`` to learn from."""
    share = data.recorded.mean(axis=0)
    found = []
    by_name = data.problem.groups_by_name
    for g in by_name[np.argsort(-share[by_name], kind="stable")]:
        columns = np.flatnonzero(data.column_group == g)
        if share[g] in (0, 1) or len(columns) == 0:
            continue
        present = np.flatnonzero(data.recorded[:, g])
        held = values[np.ix_(present, columns)]
        sources = data.source_column[columns]
        variables = [_variable(held, np.flatnonzero(sources == s)) for s in dict.fromkeys(sources)]
        cluster = None if data.cluster is None else data.cluster[present]
        units = units_of(len(present), cluster)
        weight = None if data.weight is None else data.weight[present]
        absent = np.flatnonzero(~data.recorded[:, g])
        found.append(IncompleteGroup(columns, held, present, absent, variables, units, weight))
    return found


def _variable(values: Floats, columns: Ints) -> Variable:
    """Several columns are the levels of a category; so is a number with at most two values."""
    held = values[:, columns]
    if len(columns) == 1 and len(np.unique(held)) > 2:
        return Variable(columns, None)
    levels, count = np.unique(held, axis=0, return_counts=True)
    return Variable(columns, levels[np.argsort(-count, kind="stable")])
