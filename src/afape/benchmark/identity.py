"""What an experiment or a study computes from: checksums of tables and of saved agents."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from .. import __version__
from ..data.checksum import checksum_of_records
from ..data.retrospective import Retrospective
from .agents import saved_agent_file
from .description import Description

__all__ = ["checksum_of_records", "identity_of"]


def identity_of(description: Description, complete: Retrospective, seed: int) -> dict[str, Any]:
    """Return everything that the numbers of an experiment depend on.

    Parameters
    ----------
    description : Description
    complete : Retrospective
        The complete table.
    seed : int
    """
    files = {name: saved_agent_file(text, Path(description.folder)) for name, text in description.agents_used.items()}
    return {
        "experiment": description.name,
        "fingerprint": description.fingerprint,
        "seed": seed,
        "quick": description.quick,
        "afape": __version__,
        "table": checksum_of_records(complete),
        "agents": {name: _checksum_of_file(file) for name, file in files.items() if file is not None},
    }


def _checksum_of_file(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()[:16]
