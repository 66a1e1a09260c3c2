"""Several columns of a table that hold one and the same measurement, made one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals.stable.v1 as nw

__all__ = ["merge_columns"]

_HOW = ("first", "min", "max", "mean")


def merge_columns(frame: Any, columns: Mapping[str, Sequence[str]], how: str = "first") -> Any:
    """Merge columns that hold the same measurement, such as a pressure by cuff and by catheter.

    Parameters
    ----------
    frame : pandas, polars or pyarrow table
        Records; left as it is.
    columns : mapping from the new column to those that it is made of
        In order of preference.
    how : {"first", "min", "max", "mean"}
        Of the values that a row has: the first one, or their minimum, maximum or mean.

    Returns
    -------
    table of the same kind
        With the new columns in place of those that they are made of.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"cuff": [120.0, None], "catheter": [118.0, 95.0], "died": [0, 1]})
    >>> merge_columns(frame, {"pressure": ["catheter", "cuff"]})
       died  pressure
    0     0     118.0
    1     1      95.0
    """
    if how not in _HOW:
        raise ValueError(f"'how' must be one of {list(_HOW)}, but is {how!r}.")
    if not isinstance(columns, Mapping) or not columns:
        raise TypeError(f"'columns' must be a mapping from new columns to lists of columns, but is {columns!r}.")
    try:
        table: nw.DataFrame[Any] = nw.from_native(frame, eager_only=True)
    except TypeError as error:
        raise TypeError(
            f"'frame' must be a pandas, polars or pyarrow table in memory, not {type(frame).__name__}."
        ) from error
    listed = {new: [old] if isinstance(old, str) else list(old) for new, old in columns.items()}
    merged = [name for names in listed.values() for name in names]
    for name in merged:
        if name not in table.columns:
            raise ValueError(f"'columns' must name columns of the table, but {name!r} is none: {table.columns[:20]}.")
    if len(set(merged)) < len(merged) or not all(listed.values()):
        raise ValueError(
            f"'columns' must name each column once, and at least one for each new one, but is {columns!r}."
        )
    taken = [new for new in listed if new in table.columns and new not in merged]
    if taken:
        raise ValueError(f"'columns' must give new columns new names, but {taken[0]!r} is a column already.")
    added = [_merged(names, how).alias(new) for new, names in listed.items()]
    kept = [name for name in table.columns if name not in merged]
    return table.select(*(nw.col(name) for name in kept), *added).to_native()


def _merged(names: Sequence[str], how: str) -> nw.Expr:
    if how == "min":
        return nw.min_horizontal(*names)
    if how == "max":
        return nw.max_horizontal(*names)
    if how == "mean":
        return nw.mean_horizontal(*names)
    found = nw.col(names[-1])
    for name in reversed(names[:-1]):
        found = nw.when(~nw.col(name).is_null()).then(nw.col(name)).otherwise(found)
    return found
