"""Runs an experiment end to end: world, data sets, tables, figures, page."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ..arguments import LARGEST_SEED, check_callable, check_count, check_folder, check_path
from ..experiments.study import run_draws
from .description import Description, Run
from .drawing import DataSet
from .figures import draw_figures
from .output import claim, finish_manifest, require_packages, write_tables
from .page import write_page
from .summary import data_efficiency, summarise_results
from .world import World, make_world

__all__ = ["Finished", "Settings", "checked_settings", "run_experiment"]

Tell = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Settings:
    """How an experiment is run.

    Attributes
    ----------
    seed : int
        Seed of the table, the split, the training and all data sets.
    jobs : int
        Processes; the results do not depend on it.
    data : Path, optional
        File or folder of the table.
    command : str
        How it was started, for the manifest and the page.
    """

    seed: int = 0
    jobs: int = 1
    data: Path | None = None
    command: str = ""

    def __post_init__(self) -> None:
        check_count("seed", self.seed, 0, LARGEST_SEED)
        check_count("jobs", self.jobs, 1)
        if self.data is not None:
            object.__setattr__(self, "data", check_path("data", self.data, "the path of a file or folder"))
        if not isinstance(self.command, str):
            raise TypeError(f"'command' must be text, but is {self.command!r}.")


def checked_settings(settings: Any, tell: Any) -> Settings:
    """The settings asked for, or the default ones; also refuses what cannot be told of progress."""
    if settings is not None and not isinstance(settings, Settings):
        raise TypeError(f"'settings' must be an afape.benchmark.Settings or None, but is {settings!r}.")
    if tell is not None:
        check_callable("tell", tell, "a function of what is done, how much of it and of how much")
    return Settings() if settings is None else settings


@dataclass(frozen=True, eq=False)
class Finished:
    """What an experiment gave."""

    description: Description
    folder: Path
    results: pd.DataFrame
    summary: pd.DataFrame
    efficiency: pd.DataFrame
    complete_share: float


def run_experiment(
    description: Description, folder: Path, settings: Settings | None = None, tell: Tell | None = None
) -> Finished:
    """Run, or go on where a run was stopped; the same description and seed give the same tables, bit for bit.

    Parameters
    ----------
    description : Description
        What to run.
    folder : Path
        Where results go: ``results.parquet`` and ``.csv`` (one line per run, size, data set, agent, estimator and target),
        ``summary.csv``, ``efficiency.csv`` where ``ipw-miss`` is among the estimators, figures, ``README.md`` and
        ``manifest.json``. Parts of a run under way are in ``draws-*`` and ``parts``.
    settings : Settings, optional
        Seed, processes, where the table is.
    tell : callable, optional
        Told what is done, how much of it and of how much.
    """
    if not isinstance(description, Description):
        raise TypeError(f"'description' must be what read_description returned, but is {description!r}.")
    folder, settings = check_folder("folder", folder), checked_settings(settings, tell)
    tell = tell or (lambda what, done, todo: None)
    require_packages(description)
    manifest = claim(folder, description, settings.seed, settings.command)
    began = time.perf_counter()
    world = make_world(description, folder / "parts", settings.seed, settings.data, tell)
    prepared = time.perf_counter() - began
    results = _results(description, world, folder, settings, tell)
    summary = summarise_results(results)
    efficiency = pd.concat([data_efficiency(results, run.name) for run in description.runs], ignore_index=True)
    tell(f"{description.name}: figures", 0, 1)
    write_tables(folder, results, summary=summary, **({"efficiency": efficiency} if len(efficiency) else {}))
    draw_figures(description, results, summary, folder)
    finished = Finished(description, folder, results, summary, efficiency, world.complete_share)
    write_page(finished, settings.command)
    seconds = {"preparation": round(prepared, 1), "all": round(time.perf_counter() - began, 1)}
    finish_manifest(
        folder,
        manifest,
        seconds_of_last_start=seconds,
        processes=settings.jobs,
        complete_share=round(world.complete_share, 4),
        runs={run.name: {"rows": list(run.rows), "draws": run.draws} for run in description.runs},
    )
    return finished


def _results(description: Description, world: World, folder: Path, settings: Settings, tell: Tell) -> pd.DataFrame:
    """Tidy results of all runs."""
    steps = [(run, rows) for run in description.runs for rows in run.rows]
    todo, done, parts = sum(run.draws for run, _ in steps), 0, []
    for run, rows in steps:
        label = f"{description.name}: {run.name}, {rows} rows"
        draws = run_draws(
            DataSet(world, run, rows, settings.seed, description.fingerprint),
            run.draws,
            folder / f"draws-{_slug(run)}-{rows}",
            n_jobs=settings.jobs,
            batch=1,
            progress=lambda part, of, done=done, label=label: tell(label, done + part, todo),  # type: ignore[misc]
        )
        done += run.draws
        parts.append(draws.assign(run=run.name, rows=rows))
    results = pd.concat(parts, ignore_index=True)
    said = results["support"].astype(object)  # all blank, it was read as numbers
    results["support"] = said.where(said.notna(), "")
    first = ["run", "rows", "draw"]
    return results[[*first, *(c for c in results.columns if c not in first)]]


def _slug(run: Run) -> str:
    return "".join(c if c.isalnum() else "-" for c in run.name.lower())
