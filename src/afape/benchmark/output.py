"""The folder of an experiment: whose it is, tables, manifest."""

from __future__ import annotations

import json
import platform
import sys
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd

from ..files import draft_of
from .description import Description

__all__ = ["OtherExperimentError", "claim", "finish_manifest", "refuse_other", "require_packages", "write_tables"]

_PACKAGES = ("numpy", "scipy", "pandas", "scikit-learn", "jax", "optax", "pyarrow", "matplotlib")


class OtherExperimentError(ValueError):
    """The folder holds the results of another experiment."""


def require_packages(description: Description) -> None:
    """Refuse to start an experiment whose results could not be written, or whose agents could not be trained."""
    needed = {"matplotlib": "plot", "pyarrow": "paper"}
    if "dqn" in description.agents.values():
        needed |= {"jax": "agents", "optax": "agents"}
    absent = [name for name in needed if find_spec(name) is None]
    if absent:
        extras = ",".join(sorted({needed[name] for name in absent}))
        raise ModuleNotFoundError(
            f"The experiment {description.name!r} needs {', '.join(absent)}, not installed here: pip install 'afape[{extras}]'."
        )


def refuse_other(folder: Path, description: Description, seed: int) -> dict[str, Any]:
    """Refuse a folder of another experiment; returns what tells experiments apart."""
    file = folder / "manifest.json"
    own = {
        "experiment": description.name,
        "fingerprint": description.fingerprint,
        "seed": seed,
        "quick": description.quick,
        "afape": import_module("afape").__version__,
    }
    if file.exists():
        try:
            found = json.loads(file.read_text())
        except json.JSONDecodeError as error:
            raise OtherExperimentError(
                f"{file} is damaged ({error}). Name another folder, or remove this one."
            ) from error
        differing = [key for key in own if found.get(key) != own[key]]
        if differing:
            told = ", ".join(f"{key} {found.get(key)!r} and not {own[key]!r}" for key in differing)
            raise OtherExperimentError(
                f"{folder} holds results of another experiment: {told}. Name another folder, or remove this one to start anew."
            )
    return own


def claim(folder: Path, description: Description, seed: int, command: str) -> dict[str, Any]:
    """Write down whose folder it is, or refuse it; returns the manifest so far."""
    own = refuse_other(folder, description, seed)
    manifest = {**own, "command": command, "status": "running", "started": _now(), "versions": _versions()}
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "manifest.json", manifest)
    return manifest


def write_tables(folder: Path, results: pd.DataFrame, **others: pd.DataFrame) -> None:
    """Tidy results as Parquet and CSV, other tables as CSV."""
    results.to_parquet(folder / "results.parquet", index=False)
    results.to_csv(folder / "results.csv", index=False)
    for name, table in others.items():
        table.to_csv(folder / f"{name}.csv", index=False, float_format="%.6g")


def finish_manifest(folder: Path, manifest: dict[str, Any], **more: Any) -> None:
    """Say that the experiment is done, and what it took."""
    _write(folder / "manifest.json", {**manifest, **more, "status": "done", "finished": _now()})


def _write(file: Path, content: dict[str, Any]) -> None:
    with draft_of(file) as draft:
        draft.write_text(json.dumps(content, indent=2) + "\n")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "platform": f"{sys.platform} {platform.machine()}"}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
