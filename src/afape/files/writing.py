"""Writing of files: atomic replacement, and tables as JSON. Imports no large packages."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["atomic_write", "plain_records", "plain_value"]


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Give a temporary file in the same folder; it replaces ``path`` at the end, unless there was an error."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def plain_records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows as dicts for JSON, with None for numbers that are not finite."""
    return [
        {str(k): None if isinstance(v, float) and not math.isfinite(v) else v for k, v in record.items()}
        for record in frame.to_dict("records")
    ]


def plain_value(value: Any) -> Any:
    """Convert numpy numbers to Python numbers, and everything else to text: the ``default`` of ``json.dumps``."""
    item = getattr(value, "item", None)
    return item() if callable(item) else str(value)
