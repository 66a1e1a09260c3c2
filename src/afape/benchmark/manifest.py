"""The manifest of an experiment's folder: which experiment it holds, package versions, times."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from .._processes import locked
from ..files.writing import atomic_write
from ..warnings import AfapeWarning, warn

__all__ = ["OtherExperimentError", "finish_manifest", "only_run", "refuse_other", "start_manifest"]

_PACKAGES = ("numpy", "scipy", "pandas", "scikit-learn", "jax", "optax", "pyarrow", "matplotlib")


_NAMES = {
    "fingerprint": "checksum of the description",
    "table": "checksum of the table",
    "agents": "checksums of saved agents",
}


class OtherExperimentError(ValueError):
    """The folder holds the results of another experiment."""


def refuse_other(folder: Path, own: dict[str, Any]) -> None:
    """Refuse a folder that holds an experiment with another identity; ``own`` comes from `identity_of`."""
    file = folder / "manifest.json"
    if not file.exists():
        return
    try:
        found = dict(json.loads(file.read_text()))
    except (ValueError, TypeError) as error:  # the folders of draws say themselves whose they are
        warn(f"{str(file)!r} is damaged ({error}) and is written again.", AfapeWarning)
        return
    if differing := [key for key in own if found.get(key) != own[key]]:
        differences = ", ".join(
            f"{_NAMES.get(key, key)} {found.get(key)!r} instead of {own[key]!r}" for key in differing
        )
        raise OtherExperimentError(
            f"{folder} holds results of another experiment: {differences}. Choose another folder, or delete this one."
        )


@contextmanager
def only_run(folder: Path) -> Iterator[None]:
    """Refuse a folder that another run is writing to; its lock says who it is."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / ".running"
    lock = locked(file)
    if lock is None:
        raise OtherExperimentError(
            f"{folder} is in use by another run: {file.read_text().strip()}. Wait until it ends, or choose another folder."
        )
    with lock:
        lock.truncate(0)
        lock.write(f"process {os.getpid()} on {platform.node()}, since {_now()}\n")
        lock.flush()
        yield
        lock.truncate(0)


def start_manifest(folder: Path, own: dict[str, Any], command: str) -> dict[str, Any]:
    """Write the manifest of an experiment that starts or continues, and return it."""
    refuse_other(folder, own)
    manifest = {**own, "command": command, "status": "running", "started": _now(), "versions": _versions()}
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder, manifest)
    return manifest


def finish_manifest(folder: Path, manifest: dict[str, Any], **more: Any) -> None:
    """Write the manifest of a finished experiment, with further entries."""
    _write(folder, {**manifest, **more, "status": "done", "finished": _now()})


def _write(folder: Path, content: dict[str, Any]) -> None:
    with atomic_write(folder / "manifest.json") as draft:
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
