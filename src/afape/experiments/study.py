"""Studies over many drawn data sets: run in batches, kept on disk, resumed where they stopped."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
from joblib import Parallel, delayed

__all__ = ["OtherStudyError", "run_draws"]

Record = dict[str, Any]


class OtherStudyError(ValueError):
    """The folder holds the draws of another study."""


def run_draws(
    draw: Callable[[int], list[Record]],
    n_draws: int,
    folder: Path,
    *,
    n_jobs: int = 1,
    batch: int = 20,
    progress: Callable[[int, int], None] | None = None,
) -> pd.DataFrame:
    """Records of ``draw(0), ..., draw(n_draws - 1)``, batch by batch.

    A batch is written to ``folder`` when it is whole, so a study that is killed loses no more than the batches
    under way; run again, it goes on from there. Draw k depends on k alone. ``study.txt`` says which study the folder
    belongs to, by the name of ``draw``; draws of another one are refused.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _claim(folder, getattr(draw, "study", "") or getattr(draw, "__qualname__", type(draw).__qualname__))
    starts = range(0, n_draws, batch)
    files = {start: folder / f"draws-{start:06d}-{min(start + batch, n_draws):06d}.csv" for start in starts}
    todo = [start for start in starts if not files[start].exists()]
    done = len(files) - len(todo)
    jobs = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(
        delayed(_run_batch)(draw, start, min(start + batch, n_draws), files[start]) for start in todo
    )
    if progress is not None:
        progress(done, len(files))
    for _ in jobs:
        done += 1
        if progress is not None:
            progress(done, len(files))
    return pd.concat([pd.read_csv(files[start]) for start in starts], ignore_index=True)


def _claim(folder: Path, study: str) -> None:
    """Write down whose folder it is, or refuse it."""
    note = folder / "study.txt"
    if note.exists():
        owner = note.read_text().strip()
        if owner != study:
            raise OtherStudyError(
                f"{folder} holds draws of the study {owner!r}, not of {study!r}. Name another folder."
            )
    note.write_text(f"{study}\n")


def _run_batch(draw: Callable[[int], list[Record]], start: int, stop: int, file: Path) -> None:
    records = [{"draw": k, **record} for k in range(start, stop) for record in draw(k)]
    part = file.with_suffix(".part")
    pd.DataFrame(records).to_csv(part, index=False)
    os.replace(part, file)  # whole or not at all
