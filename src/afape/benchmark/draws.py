"""Many drawn data sets: evaluated in batches, kept on disk, continued after an interruption."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

from .._processes import in_processes
from ..files.writing import atomic_write
from ..warnings import AfapeWarning, warn

__all__ = ["Draw", "OtherStudyError", "claim_folder", "run_draws"]

Draw = Callable[[int], list[dict[str, Any]]]


class OtherStudyError(ValueError):
    """The folder holds the draws of another study."""


def run_draws(
    draw: Draw,
    n_draws: int,
    folder: Path,
    study: str,
    *,
    n_jobs: int = 1,
    batch: int = 20,
    progress: Callable[[int, int], None] | None = None,
) -> pd.DataFrame:
    """Return the records of ``draw(0), ..., draw(n_draws - 1)``, with a column ``draw``.

    Each finished batch is written to ``folder``. A study that was interrupted continues with the batches that are not there
    yet, so ``draw(k)`` must depend on k only.

    Parameters
    ----------
    draw : callable
        ``draw(k)`` returns the records of data set k.
    n_draws : int
        Number of data sets.
    folder : Path
        Folder of the batches; created if it does not exist.
    study : str
        Describes the study and all that its numbers depend on. A folder with the draws of another study, or of another
        version of afape, is refused.
    n_jobs : int
        Number of processes.
    batch : int
        Data sets per batch.
    progress : callable, optional
        Called as ``progress(done, total)``, in batches.
    """
    claim_folder(folder, study)
    starts = range(0, n_draws, batch)
    files = {start: folder / f"draws-{start:06d}-{min(start + batch, n_draws):06d}.csv" for start in starts}
    todo = [start for start in starts if not _is_whole(files[start])]
    done = len(files) - len(todo)
    tasks = [(draw, start, min(start + batch, n_draws), files[start]) for start in todo]
    jobs = in_processes(_run_batch, tasks, n_jobs, return_as="generator_unordered")
    if progress is not None:
        progress(done, len(files))
    for _ in jobs:
        done += 1
        if progress is not None:
            progress(done, len(files))
    return pd.concat([pd.read_csv(files[start]) for start in starts], ignore_index=True)


def _is_whole(file: Path) -> bool:
    """Return True if a batch is there; a damaged one is reported and computed again."""
    if not file.exists():
        return False
    try:
        return len(pd.read_csv(file)) > 0
    except (ValueError, OSError) as error:
        warn(f"{str(file)!r} is damaged ({error}); its data sets are computed again.", AfapeWarning)
        return False


def claim_folder(folder: Path, study: str) -> None:
    """Write study and version into ``study.txt`` of a new folder; refuse the folder if it names another study or version."""
    study = f"{study}; afape {version('afape')}"
    folder.mkdir(parents=True, exist_ok=True)
    note = folder / "study.txt"
    if note.exists():
        owner = note.read_text(errors="replace").strip()
        if owner and owner != study:
            raise OtherStudyError(
                f"{folder} holds draws of the study {owner!r}, not of {study!r}. Choose another folder, or delete this one."
            )
    with atomic_write(note) as draft:
        draft.write_text(f"{study}\n")


def _run_batch(draw: Draw, start: int, stop: int, file: Path) -> None:
    records = [{"draw": k, **record} for k in range(start, stop) for record in draw(k)]
    with atomic_write(file) as draft:
        pd.DataFrame(records).to_csv(draft, index=False)
