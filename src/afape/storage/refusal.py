"""What a file is refused with."""

from __future__ import annotations

__all__ = ["StorageError"]


class StorageError(ValueError):
    """A thing that cannot be stored, or a file that cannot be trusted or does not fit; the text says what differs."""
