"""merge_columns(): combine columns of a table that hold the same measurement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals.stable.v1 as nw

from .._arguments import check_choice, check_mapping, check_texts, shown

__all__ = ["merge_columns"]

_HOW = ("first", "min", "max", "mean")


def merge_columns(frame: Any, columns: Mapping[str, Sequence[str]], how: str = "first") -> Any:
    """Merge columns that hold the same measurement, such as a pressure by cuff and by catheter.

    Parameters
    ----------
    frame : pandas, polars or pyarrow table
        Records; not changed.
    columns : mapping from new column to a list of old columns
        Old columns in order of preference.
    how : {"first", "min", "max", "mean"}
        How to combine the values of a row: the first one that is present, or their minimum, maximum or mean.

    Returns
    -------
    table of the same type
        With the new columns instead of the old ones.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"cuff": [120.0, None], "catheter": [118.0, 95.0], "died": [0, 1]})
    >>> merge_columns(frame, {"pressure": ["catheter", "cuff"]})
       died  pressure
    0     0     118.0
    1     1      95.0
    """
    check_choice("how", how, _HOW)
    named = check_mapping("columns", columns, "from new columns to lists of columns")
    listed = {
        new: [old] if isinstance(old, str) else check_texts("columns", old, "columns") for new, old in named.items()
    }
    try:
        table: nw.DataFrame[Any] = nw.from_native(frame, eager_only=True)
    except TypeError as error:
        raise TypeError(
            f"'frame' must be a pandas, polars or pyarrow table in memory, not {type(frame).__name__}."
        ) from error
    if not table.columns:
        raise ValueError("'frame' must have columns, but is empty.")
    merged = [name for names in listed.values() for name in names]
    for name in merged:
        if name not in table.columns:
            raise ValueError(
                f"'columns' must name columns of the table, but {name!r} is not a column of it. Its columns are "
                f"{table.columns[:20]}."
            )
    if len(set(merged)) < len(merged) or not all(listed.values()):
        raise ValueError(
            f"'columns' must name each old column once, and at least one for each new column, but is {shown(columns)}."
        )
    taken = [new for new in listed if new in table.columns and new not in merged]
    if taken:
        raise ValueError(f"'columns' must give new columns new names, but the table already has {taken[0]!r}.")
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
