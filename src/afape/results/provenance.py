"""Provenance: what a result was made from, so that it can be made again."""

from __future__ import annotations

import hashlib
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from .. import __version__
from ..data.checksum import checksum_of_records
from ..data.retrospective import Retrospective
from ..run.plan import Plan

__all__ = ["Provenance", "file_checksum", "joined_provenance", "provenance_of"]

_PACKAGES = ("numpy", "scipy", "pandas", "scikit-learn")


@dataclass(frozen=True)
class Provenance:
    """What a result was made from.

    Attributes
    ----------
    versions : mapping
        Versions of Python and of the packages that compute the numbers.
    seed : int or None
        ``random_state``; None if every call uses a new seed.
    options : mapping
        Options of `evaluate` or `compare` that differ from their defaults, as text.
    rows : int
        Number of evaluated rows.
    data : str
        Checksum of the evaluated rows: their values, labels, weights and clusters, in their order.
    problem : mapping
        Groups with their columns and prices, the label with its classes, and the costs of errors.
    problem_file : mapping
        Name and SHA-256 of the problem file; empty if there is none.
    table : mapping
        Name and SHA-256 of the table that a command read; empty in Python.
    command : str
        The command that makes the result again; empty in Python.
    """

    versions: Mapping[str, str]
    seed: int | None
    options: Mapping[str, str]
    rows: int
    data: str
    problem: Mapping[str, Any]
    problem_file: Mapping[str, str] = field(default_factory=dict)
    table: Mapping[str, str] = field(default_factory=dict)
    command: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain values, ready for JSON."""
        return asdict(self)

    def lines(self) -> dict[str, str]:
        """Return the record as short texts by name, for tables and pages; what is empty is left out."""
        files = {"problem file": self.problem_file, "table": self.table}
        found = {
            **self.versions,
            "seed": str(self.seed),
            "options": ", ".join(f"{name}={value}" for name, value in self.options.items()),
            "evaluated rows": str(self.rows),
            "checksum of these rows": self.data,
            **{name: f"{file['name']}, SHA-256 {file['sha256']}" for name, file in files.items() if file},
            "command": self.command,
        }
        return {name: text for name, text in found.items() if text}


def provenance_of(plan: Plan) -> Provenance:
    """Return the provenance of the results of a plan."""
    data = plan.data.original or plan.data
    file = data.problem_file
    return Provenance(
        _versions(),
        plan.seed,
        dict(plan.changed),
        len(data),
        checksum_of_records(data),
        _problem(data),
        {} if file is None else {"name": file[0], "sha256": file[1]},
    )


def joined_provenance(parts: Sequence[Mapping[str, Any] | None], seed: int | None) -> Provenance | None:
    """Return the provenance of results on the rows of all parts, from those of the parts as dicts; None if one has none."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or not known:
        return None
    sums = hashlib.sha256(" ".join(str(part["data"]) for part in known).encode())
    rows = sum(int(part["rows"]) for part in known)
    return Provenance(**{**known[0], "seed": seed, "rows": rows, "data": sums.hexdigest()[:16]})


def file_checksum(path: Path) -> dict[str, str]:
    """Return name and SHA-256 of a file, without its folder."""
    with path.open("rb") as opened:
        return {"name": path.name, "sha256": hashlib.file_digest(opened, "sha256").hexdigest()}


def _problem(data: Retrospective) -> dict[str, Any]:
    problem = data.problem
    prices = dict(zip(problem.group_names, problem.prices.tolist(), strict=True))
    return {
        "label": str(problem.label),
        "classes": [str(c) for c in data.classes],
        "misclassification_cost": data.costs.tolist(),
        "groups": {
            str(name): {"columns": [str(c) for c in columns], "price": prices[name]}
            for name, columns in problem.groups.items()
        },
    }


def _versions() -> dict[str, str]:
    system = {"python": platform.python_version(), "platform": f"{sys.platform} {platform.machine()}"}
    return {"afape": __version__, **system, **{name: version(name) for name in _PACKAGES}}
