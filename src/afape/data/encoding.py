"""Encodes one column of a table as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from math import isinf
from numbers import Number
from typing import Any, NamedTuple

import narwhals.stable.v1 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._arguments import shown
from .._arrays import Bools, Floats, Ints
from .text_columns import check_text, looks_blank, odd_words, warn_of_lookalikes, warn_of_many_levels

__all__ = ["EncodedColumn", "encode_column", "encode_labels", "plain_values"]


class EncodedColumn(NamedTuple):
    """Columns of numbers that encode one column of the table."""

    names: tuple[str, ...]
    block: Floats  # (n, len(names)), NaN where blank
    present: Bools  # (n,) True where not blank


_UNSET = object()


def plain_values(series: nw.Series[Any]) -> NDArray[Any]:
    """Return a float array for numbers (NaN = blank), or an object array (None = blank), shape (n,)."""
    dtype = series.dtype
    if series.is_null().all():  # polars and pyarrow have a separate type for columns without values
        return np.full(len(series), np.nan)
    if dtype.is_integer() and not series.is_null().any():
        return np.asarray(series.to_numpy()).astype(float)
    if dtype.is_numeric():
        return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=float)
    if dtype == nw.Boolean:
        blank = series.is_null().to_numpy()
        values = np.array(series.fill_null(False).to_numpy(), dtype=object)
    elif dtype in (nw.String, nw.Categorical, nw.Enum):
        values = np.array(series.to_list(), dtype=object)
        blank = pd.isna(values)
        values = np.array([None if b else str(v) for v, b in zip(values, blank, strict=True)], dtype=object)
    elif dtype == nw.Object:
        values = np.array(series.to_numpy(), dtype=object)
        blank = pd.isna(values)
        kept = values[~blank]
        if all(isinstance(v, (int, float, np.integer, np.floating)) and not isinstance(v, bool) for v in kept):
            return np.where(blank, np.nan, values).astype(float)
    else:
        raise ValueError(
            f"Column {series.name!r} has type {dtype}, which afape cannot turn into numbers. Use numbers, text, "
            "booleans or categories (a date, for example, as days since some event)."
        )
    values[blank] = None
    return values


def encode_column(series: nw.Series[Any], categories: Sequence[Any] | object | None = _UNSET) -> EncodedColumn:
    """Encode one column: numbers stay numbers, booleans become 0/1, everything else is one-hot encoded.

    A level of column ``race`` becomes the column ``race=White``. Blanks are NaN in all encoded columns.
    """
    name = series.name
    values = plain_values(series)
    levels: Sequence[Any] | None = None
    if categories is not _UNSET:
        levels = categories  # type: ignore[assignment]
    elif values.dtype == float:
        return _numeric(name, values)
    else:
        levels = declared_levels(series)
    present = ~pd.isna(values)
    kinds = {type(v) for v in values[present]}
    if categories is _UNSET and kinds <= {bool, np.bool_}:
        return _numeric(name, np.array([np.nan if v is None else float(v) for v in values], dtype=float))
    if values.dtype == object and not kinds <= {str}:
        raise ValueError(
            f"Column {name!r} mixes values of types {sorted(k.__name__ for k in kinds)}. Make them all numbers or "
            f"all text{odd_words(values[present])}."
        )
    if categories is _UNSET and levels is None:
        check_text(name, values[present])
    encoded = _one_hot(name, values, present, levels)
    if categories is _UNSET or categories is None:
        warn_of_many_levels(name, values[present], len(encoded.names))
    return encoded


def declared_levels(series: nw.Series[Any]) -> list[str] | None:
    """Return the levels that the table declares, in order; None if it declares none."""
    native = series.to_native()
    declared = series.dtype == nw.Enum or (series.dtype == nw.Categorical and isinstance(native, pd.Series))
    return [str(level) for level in series.cat.get_categories().to_list()] if declared else None


def _numeric(name: str, values: Floats) -> EncodedColumn:
    infinite = int(np.isinf(values).sum())
    if infinite:
        raise ValueError(
            f"Column {name!r} must be finite, but {infinite} of {len(values)} rows are infinite. Leave a value "
            "blank (NaN) if it was never recorded."
        )
    return EncodedColumn((name,), values[:, None], ~np.isnan(values))


def _one_hot(name: str, values: NDArray[Any], present: Bools, levels: Sequence[Any] | None) -> EncodedColumn:
    if levels is None:
        levels = sorted(set(values[present].tolist()))
    elif values.dtype == object:
        levels = [str(level) for level in levels]
    codes = pd.Index(levels).get_indexer(pd.Index(values[present]))
    if (codes < 0).any():
        unknown = values[present][codes < 0][0]
        unknown = unknown.item() if isinstance(unknown, np.generic) else unknown
        raise ValueError(
            f"Column {name!r} holds {unknown!r} in {int((codes < 0).sum())} rows, which is not among its declared "
            f"categories {list(levels)}."
        )
    block = np.full((len(values), len(levels)), np.nan)
    block[present] = np.eye(len(levels))[codes]
    names = tuple(f"{name}={level:g}" if isinstance(level, float) else f"{name}={level}" for level in levels)
    return EncodedColumn(names, block, present)


def encode_labels(series: nw.Series[Any], classes: Sequence[Any] | None) -> tuple[Ints, NDArray[Any], Bools]:
    """Return label codes (n,), -1 where blank; the classes (K,); and True for rows with a label, (n,)."""
    dtype = series.dtype
    values: NDArray[Any]
    ordered = _ordered_levels(series)
    if dtype.is_integer() and series.is_null().any():
        values = np.array(series.to_list(), dtype=object)
    elif dtype.is_integer():
        values = np.asarray(series.to_numpy())  # keep integers, so that classes look as the user wrote them
    elif dtype == nw.Categorical and not series.is_null().all():
        values = np.array(series.to_list(), dtype=object)
    else:
        values = plain_values(series)
    present = ~pd.isna(values)
    _check_labels(series.name, values[present], classes)
    if classes is None and ordered is not None:
        met = set(values[present].tolist())
        classes = [level for level in ordered if level in met]
    if classes is None:
        codes, uniques = pd.factorize(values, sort=True)
        found = np.asarray(uniques)
        warn_of_lookalikes(series.name, found.tolist())
    else:
        found = np.array(classes)
        codes = pd.Index(classes).get_indexer(pd.Index(values))
        bad = present & (codes < 0)
        if bad.any():
            raise ValueError(
                f"The label column {series.name!r} holds {values[bad].tolist()[0]!r} in {int(bad.sum())} rows, which is "
                f"not among 'classes' {list(classes)}."
            )
    return np.where(present, codes, -1).astype(np.intp), found, present


def _ordered_levels(series: nw.Series[Any]) -> list[Any] | None:
    """Return the levels of an ordered category, in their order; None if no order is declared."""
    native = series.to_native()
    if series.dtype == nw.Enum:
        return list(series.cat.get_categories().to_list())
    if isinstance(native, pd.Series) and isinstance(native.dtype, pd.CategoricalDtype) and native.cat.ordered:
        return list(native.cat.categories)
    return None


def _check_labels(name: str, values: NDArray[Any], classes: Sequence[Any] | None) -> None:
    """Raise an error for labels that are no labels, that differ only in type, or that look like blanks and are not declared."""
    if values.dtype == object:
        odd = [
            v for v in values.tolist() if not isinstance(v, str | bytes | Number) or (isinstance(v, float) and isinf(v))
        ]
    else:
        odd = values[np.isinf(values)].tolist() if values.dtype.kind == "f" else []
    if odd:
        raise ValueError(
            f"The label column {name!r} must hold finite numbers, text or booleans, but {len(odd)} rows hold others, such as "
            f"{shown(odd[0])}."
        )
    if values.dtype != object:
        return
    by_text: dict[str, set[Any]] = {}
    for value in set(values.tolist()):
        by_text.setdefault(str(value), set()).add(value)
    alike = [text for text, kinds in by_text.items() if len(kinds) > 1]
    if alike:
        raise ValueError(
            f"The label column {name!r} holds {alike[0]!r} both as text and as a number, which would be two classes. Make all "
            "labels text or all numbers."
        )
    blank = [t for t in by_text if looks_blank(t)]
    if blank and (classes is None or blank[0] not in [str(c) for c in classes]):
        count = sum(str(v) == blank[0] for v in values)
        raise ValueError(
            f"The label column {name!r} holds the text {blank[0]!r} in {count} rows, which looks like a blank. Make it null "
            "(and pass missing_labels='drop'), or list it in 'classes' of the Problem if it is a class."
        )
