"""A group of columns with gaps: which rows have it, what they hold, and which of its columns are categories."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..arrays import Floats, Ints, in_own_units, units_of
from ..data import Retrospective

__all__ = ["Block", "Variable", "blocks_of"]


@dataclass(frozen=True, eq=False)
class Variable:
    """One column of the table, by its place in the block.

    Parameters
    ----------
    columns : ndarray of int
        Columns of the block: one for a number, one per level for a category.
    levels : ndarray of shape (K, len(columns)), or None
        Patterns that a category can take, most frequent first; None for a number.
    """

    columns: Ints
    levels: Floats | None


@dataclass(frozen=True, eq=False)
class Block:
    """Columns of one group, missing together.

    Parameters
    ----------
    columns : ndarray of int
        Columns of the data.
    values : ndarray of shape (m, len(columns))
        What the rows that have the group recorded hold.
    present, absent : ndarray of int
        Rows that have the group recorded, and rows that lack it.
    variables : list of Variable
        The columns of the table that the group consists of.
    units : ndarray of int, shape (m,)
        What each recorded row is drawn with: its cluster, or itself.
    """

    columns: Ints
    values: Floats
    present: Ints
    absent: Ints
    variables: list[Variable]
    units: Ints

    @cached_property
    def scaled(self) -> Floats:
        """Values with variance 1 in sum over the columns of each variable, so that all weigh the same."""
        values = in_own_units(self.values)
        centred = values - values.mean(axis=0)
        for variable in self.variables:
            spread = np.sqrt((centred[:, variable.columns] ** 2).mean(axis=0).sum())
            centred[:, variable.columns] /= spread if spread > 0 else 1.0
        return np.asarray(centred)

    @property
    def clustered(self) -> bool:
        """Whether some rows belong together."""
        return bool(self.units.max() + 1 < len(self.units))

    def bootstrap(self, rng: np.random.Generator) -> Ints:
        """How often each recorded row comes in a sample with replacement of rows or clusters."""
        n_units = int(self.units.max()) + 1
        return np.bincount(rng.integers(n_units, size=n_units), minlength=n_units)[self.units]


def blocks_of(data: Retrospective) -> list[Block]:
    """Blocks of the groups with gaps, the most often recorded first."""
    share = data.recorded.mean(axis=0)
    blocks = []
    for g in np.argsort(-share, kind="stable"):
        columns = np.flatnonzero(data.column_group == g)
        if share[g] == 1 or len(columns) == 0:
            continue
        present = np.flatnonzero(data.recorded[:, g])
        values = data.values[np.ix_(present, columns)]
        sources = data.source_column[columns]
        variables = [_variable(values, np.flatnonzero(sources == s)) for s in dict.fromkeys(sources)]
        cluster = None if data.cluster is None else data.cluster[present]
        units = units_of(len(present), cluster)
        blocks.append(Block(columns, values, present, np.flatnonzero(~data.recorded[:, g]), variables, units))
    return blocks


def _variable(values: Floats, columns: Ints) -> Variable:
    """Several columns are the levels of a category; a number that takes at most two values is one, too."""
    held = values[:, columns]
    if len(columns) == 1 and len(np.unique(held)) > 2:
        return Variable(columns, None)
    levels, count = np.unique(held, axis=0, return_counts=True)
    return Variable(columns, levels[np.argsort(-count, kind="stable")])
