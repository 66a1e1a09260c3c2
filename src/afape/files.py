"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["draft_of"]


@contextmanager
def draft_of(path: Path) -> Iterator[Path]:
    """A file beside the path, to be written; it takes the place of the path unless an error comes first."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield draft
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
