"""Errors of files, and suggestions for mistyped names."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["ProblemFileError", "StorageError", "TableError", "nearest"]


class ProblemFileError(ValueError):
    """A problem file that cannot be used.

    Attributes
    ----------
    line : int or None
        Line of the error, counted from 1; None if the error belongs to no line.
    """

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


class TableError(ValueError):
    """A data file that cannot be read as a table."""


class StorageError(ValueError):
    """An object that cannot be saved, or a saved file that cannot be loaded."""


def nearest(name: str, known: Iterable[str], most: int = 8) -> str:
    """Return a sentence that suggests the most similar known name, or lists up to ``most`` known names."""
    names = [str(k) for k in known]
    small = {k.lower(): k for k in reversed(names)}
    near = get_close_matches(str(name).lower(), list(small), n=1, cutoff=0.6)
    if near:
        return f"Did you mean {small[near[0]]!r}?"
    shown = ", ".join(repr(k) for k in names[:most])
    return f"Known: {shown}{', ...' if len(names) > most else ''}." if names else "There are none."
