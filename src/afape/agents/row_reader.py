"""Decodes encoded columns into the columns of the user's table: numbers, and levels of categories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays import Floats
from ..data.problem import Problem

__all__ = ["RowReader"]


class RowReader:
    """Decodes ``values`` into columns of the table.

    Parameters
    ----------
    problem : Problem
        Groups, columns and declared categories.
    columns : sequence of str, optional
        Names of the encoded columns, ``data.columns``. Needed if a text column has no declared categories; its levels are
        then text.

    Attributes
    ----------
    places : dict from column to list of int
        Positions of the encoded columns of each column.
    levels : dict from column to list
        Levels of each categorical column.
    group : dict from column to int
        Index of its group.
    """

    def __init__(self, problem: Problem, columns: Sequence[str] | None = None) -> None:
        self.problem = problem
        self.columns = _declared_columns(problem) if columns is None else tuple(columns)
        self.given = columns is not None
        self.places: dict[str, list[int]] = {}
        self.levels: dict[str, list[Any]] = {}
        self.group: dict[str, int] = {}
        for g, names in enumerate(problem.groups.values()):
            for name in names:
                self._find(name, g)

    def _find(self, name: str, group: int) -> None:
        if name in self.columns:
            self.places[name] = [self.columns.index(name)]
        else:
            prefix = f"{name}="
            self.places[name] = [j for j, column in enumerate(self.columns) if column.startswith(prefix)]
            if not self.places[name]:
                raise ValueError(
                    f"'columns' must have the columns of every group, but has none for {name!r}. Pass data.columns."
                )
            texts = [self.columns[j].removeprefix(prefix) for j in self.places[name]]
            declared = {level_text(level): level for level in self.problem.categories.get(name) or ()}
            self.levels[name] = [declared.get(text, text) for text in texts]
        self.group[name] = group

    def check_columns(self, columns: tuple[str, ...]) -> None:
        """Raise an error if the records have other columns."""
        if columns != self.columns:
            raise ValueError(
                f"The policy reads the columns {list(self.columns)}, but the data have {list(columns)}. {self._way_out}"
            )

    @property
    def _way_out(self) -> str:
        if self.given:
            return "Pass the data.columns of these records."
        return "A text column without declared categories is encoded as several: pass columns=data.columns."

    def check_width(self, values: Floats) -> None:
        """Raise an error if the number of columns is wrong."""
        if values.shape[1] != len(self.columns):
            raise ValueError(
                f"'values' must have the {len(self.columns)} columns {list(self.columns)}, but has "
                f"{values.shape[1]}. {self._way_out}"
            )

    def read(self, name: str, values: Floats) -> NDArray[Any]:
        """Return one column, shape (n,): floats with NaN where unknown, or levels with None where unknown."""
        block = values[:, self.places[name]]
        if name not in self.levels:
            return block[:, 0]
        known = ~np.isnan(block).any(axis=1)
        out = np.full(len(values), None, dtype=object)
        levels = np.empty(len(self.levels[name]), dtype=object)
        levels[:] = self.levels[name]
        out[known] = levels[block[known].argmax(axis=1)]
        return out


def level_text(level: Any) -> str:
    """Return the text of a level in the names of encoded columns."""
    return f"{level:g}" if isinstance(level, float) else str(level)


def _declared_columns(problem: Problem) -> tuple[str, ...]:
    """Return the names of the encoded columns if every text column has declared categories."""
    names: list[str] = []
    for column in problem.feature_columns:
        levels = problem.categories.get(column)
        names += [column] if levels is None else [f"{column}={level_text(level)}" for level in levels]
    return tuple(names)
