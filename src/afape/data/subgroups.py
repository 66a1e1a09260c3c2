"""Subgroups of rows, defined by a recorded column or an array."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arguments import in_order_of_rows, shown
from .._arrays import Bools, Ints, any_of
from .retrospective import Retrospective

__all__ = ["MISSING_LEVEL", "Levels", "levels_of"]

MISSING_LEVEL = "not recorded"
_MOST = 50  # levels; a column with more is a number and not a category


@dataclass(frozen=True, eq=False)
class Levels:
    """Level of every row.

    Attributes
    ----------
    name : str
        Name of the column that defines the levels.
    names : tuple of str
        Names of the levels, in order. Rows without the value have their own level, the last.
    codes : ndarray of int, shape (n,)
        Level of each row.
    n_missing : int
        Number of rows without the value.
    """

    name: str
    names: tuple[str, ...]
    codes: Ints
    n_missing: int = 0

    def take(self, kept: Bools) -> Levels:
        """Return the levels of the rows for which ``kept``, shape (n,), is True; levels without rows are removed."""
        codes = self.codes[kept]
        present = np.unique(codes)
        missing = int((codes == len(self.names) - 1).sum()) if self.n_missing else 0
        names = tuple(self.names[c] for c in present)
        return Levels(self.name, names, np.searchsorted(present, codes), missing)


def levels_of(by: Any, data: Retrospective) -> Levels:
    """Return the levels of a recorded column, given by name, or of an array with one entry per row."""
    if isinstance(by, str):
        return _of_column(by, data)
    try:
        entries = np.asarray(in_order_of_rows(by), dtype=object)
    except Exception as error:  # numpy calls the user's objects
        raise ValueError(
            f"'by' must be a column name or an array of {len(data)} entries, but is {shown(by)}."
        ) from error
    if entries.shape != (len(data),):
        raise ValueError(
            f"'by' must be the name of a column or an array with one entry per row, shape ({len(data)},), but has shape "
            f"{entries.shape}."
        )
    return _numbered(str(getattr(by, "name", None) or "by"), entries.tolist())


def _of_column(name: str, data: Retrospective) -> Levels:
    if name == data.problem.label:
        return _numbered(name, [data.classes[c] for c in data.labels])
    features = list(data.problem.feature_columns)
    if name not in features:
        raise ValueError(
            f"'by' must name a column of a group or be an array with one entry per row, but {name!r} is not a column of a group. "
            f"The columns are {[*features, data.problem.label]}; for any other column, pass the values."
        )
    places = np.flatnonzero(data.source_column == features.index(name))
    block = data.values[:, places]
    if len(places) == 1:
        return _numbered(name, block[:, 0].tolist())
    levels = [data.columns[j].removeprefix(f"{name}=") for j in places]
    gaps = any_of(np.isnan(block))
    chosen = np.nan_to_num(block).argmax(axis=1)
    return _numbered(name, [None if gap else levels[c] for gap, c in zip(gaps, chosen, strict=True)])


def _numbered(name: str, entries: list[Any]) -> Levels:
    if odd := [e for e in entries if not isinstance(e, Hashable)]:
        raise TypeError(f"'by' must have texts or numbers as entries, but one is {shown(odd[0])}.")
    known = {e for e in entries if not _blank(e)}
    if len(known) > _MOST:
        raise ValueError(
            f"'by' must have at most {_MOST} levels, but {name!r} has {len(known)}. Divide a number into ranges first, for "
            "example with pandas.cut."
        )
    if not known:
        raise ValueError(f"'by' must have levels, but {name!r} is blank in every row.")
    try:
        ordered = sorted(known)
    except TypeError:
        ordered = sorted(known, key=str)
    texts = [_text(level) for level in ordered]
    if len(set(texts)) < len(texts):
        raise ValueError(f"'by' must have levels with different texts, but {name!r} has {ordered}.")
    code = {level: k for k, level in enumerate(ordered)}
    codes = np.array([len(ordered) if _blank(e) else code[e] for e in entries], dtype=np.intp)
    if (codes == len(ordered)).any():
        texts.append(MISSING_LEVEL if MISSING_LEVEL not in texts else f"({MISSING_LEVEL})")
    return Levels(name, tuple(texts), codes, int((codes == len(ordered)).sum()))


def _blank(entry: Any) -> bool:
    return entry is None or entry != entry or str(entry) in ("<NA>", "NaT")


def _text(level: Any) -> str:
    whole = isinstance(level, float) and level.is_integer()
    return str(int(level)) if whole else str(level)
