"""Writing of files: atomic replacement, and tables as JSON. Imports no large packages."""

from __future__ import annotations

import math
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["atomic_write", "escaped_cells", "plain_records", "plain_value", "visible"]


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Give a temporary file in the same folder; it replaces ``path`` at the end, unless there was an error."""
    temporary = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}")
    # A new file with a name that nobody can guess: a link of this name, made by somebody else, is never followed.
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0)
    os.close(os.open(temporary, flags, 0o666))
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def escaped_cells(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table for CSV whose texts a spreadsheet does not take for formulas: those that start with = + - @ get a '."""

    def escaped(cell: Any) -> Any:
        formula = isinstance(cell, str) and cell[:1] in tuple("=+-@\t\r") and not _NUMBER.fullmatch(cell)
        return f"'{cell}" if formula and cell else cell

    found = frame.rename(columns=escaped)
    texts = [column for column in found.columns if found[column].dtype.kind not in "biufc"]
    return found.assign(**{column: found[column].astype(object).map(escaped) for column in texts})


_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


def visible(text: str) -> str:
    """Write control characters as escapes, except ends of lines and tabs: a name must not steer the terminal."""
    return "".join(c if c in "\n\t " or c.isprintable() else repr(c)[1:-1] for c in text)


def plain_records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows as dicts for JSON, with None for numbers that are not finite."""
    return [
        {str(k): None if isinstance(v, float) and not math.isfinite(v) else v for k, v in record.items()}
        for record in frame.to_dict("records")
    ]


def plain_value(value: Any) -> Any:
    """Convert numpy numbers to Python numbers, and everything else to text: the ``default`` of ``json.dumps``."""
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", 0) == 0 else str(value)
