"""Checksum of records, which tells two tables apart."""

from __future__ import annotations

import hashlib

from .retrospective import Retrospective

__all__ = ["checksum_of_records"]


def checksum_of_records(data: Retrospective) -> str:
    """Checksum of the values, labels, columns, classes, weights and clusters of records, in the order of the rows."""
    names = repr((data.columns, data.column_group.tolist(), data.classes.tolist()))
    found = hashlib.sha256(names.encode() + data.fingerprints().tobytes())
    for more in (data.weight, data.cluster):
        if more is not None:
            found.update(more.tobytes())
    return found.hexdigest()[:16]
