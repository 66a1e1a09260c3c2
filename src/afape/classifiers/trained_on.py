"""Checks that a trained model and the records have equal columns in equal groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..data.retrospective import Retrospective

__all__ = ["check_columns"]

_LISTED = 20  # columns in an error message


def check_columns(model: Any, described: str, data: Retrospective) -> None:
    """Raise an error if a model was made for other columns than these records have.

    Values are an array, so a model finds columns by their position. Columns in another order, other levels of a category, or
    columns in other groups would be read as something else.

    Parameters
    ----------
    model
        May have ``columns_``, the names of its columns, and ``column_group_``, the group of each column.
    described : str
        The model in the error message, such as "The classifier ImputedClassifier".
    data : Retrospective
        The records that it will be used with.
    """
    columns = getattr(model, "columns_", None)
    if columns is None or isinstance(columns, str):
        return
    columns = tuple(columns)
    if columns != data.columns:
        raise ValueError(
            f"{described} was trained on the columns {list(columns[:_LISTED])}, but the data have "
            f"{list(data.columns[:_LISTED])}{_difference(columns, data.columns)}. {_way_out(columns, data)}"
        )
    owner = getattr(model, "column_group_", None)
    if owner is not None and not np.array_equal(owner, data.column_group):
        names = data.problem.group_names
        j = int(np.flatnonzero(np.asarray(owner) != data.column_group)[0])
        place = int(np.asarray(owner)[j])
        known = repr(names[place]) if place < len(names) else f"number {place + 1}"
        raise ValueError(
            f"{described} was trained with the column {columns[j]!r} in the group {known}, but in the data it is in "
            f"{names[data.column_group[j]]!r}. Build both tables with one Problem."
        )


def _difference(columns: tuple[str, ...], others: tuple[str, ...]) -> str:
    """Name the first difference if the lists in the message are cut short."""
    if max(len(columns), len(others)) <= _LISTED:
        return ""
    pairs = enumerate(zip(columns, others, strict=False))
    j = next((j for j, (a, b) in pairs if a != b), min(len(columns), len(others)))
    here, there = (repr(names[j]) if j < len(names) else "nothing" for names in (columns, others))
    return f", and so on; they differ first at column {j + 1}, {here} and {there}"


def _way_out(columns: tuple[str, ...], data: Retrospective) -> str:
    if sorted(columns) == sorted(data.columns):
        return "The order differs: build both tables with one Problem, whose groups and categories define the order."
    return "Declare 'categories' in the Problem and build both tables with it."
