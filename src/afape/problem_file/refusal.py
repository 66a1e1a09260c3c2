"""What files are refused with, and the nearest name to a mistyped one."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["ProblemFileError", "TableError", "nearest"]


class ProblemFileError(ValueError):
    """A problem file that cannot be used.

    Attributes
    ----------
    line : int or None
        Line of the file, counted from 1, where one line is to blame.
    """

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


class TableError(ValueError):
    """A data file that cannot be read as a table."""


def nearest(name: str, known: Iterable[str], most: int = 8) -> str:
    """Words that name the nearest of the known names; all of them where none is near and they are few."""
    names = [str(k) for k in known]
    small = {k.lower(): k for k in reversed(names)}
    near = get_close_matches(str(name).lower(), list(small), n=1, cutoff=0.6)
    if near:
        return f"Did you mean {small[near[0]]!r}?"
    shown = ", ".join(repr(k) for k in names[:most])
    return f"There are {shown}{', ...' if len(names) > most else ''}." if names else "There are none."
