"""Runs an experiment end to end: world, data sets, tables, figures, page."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd

from .._arguments import LARGEST_SEED, check_callable, check_count, check_folder, check_path, check_takes, shown
from .._copies import HandsOutCopies
from ..files.writing import escaped_cells
from .data_set import data_set_records
from .description import Description, Run
from .draws import claim_folder, run_draws
from .figures import draw_figures
from .identity import identity_of
from .manifest import finish_manifest, only_run, start_manifest
from .page import write_page
from .summary import COSTS, data_efficiency, summarise_results
from .world import Tell, World, complete_table, make_world

__all__ = ["Finished", "Settings", "check_settings", "require_packages", "run_experiment"]


@dataclass(frozen=True)
class Settings:
    """Settings of a run that are not in the description.

    Attributes
    ----------
    seed : int
        Seed of the table, the split, the training and all data sets.
    jobs : int
        Number of processes; the results do not depend on it.
    data : Path, optional
        File or folder of the table.
    command : str
        The command that started it, for the manifest and the page.
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
            raise TypeError(f"'command' must be a text, but is {shown(self.command)}.")


def check_settings(settings: Any, tell: Any) -> Settings:
    """Return the settings, by default the default ones; refuse a ``tell`` that is not callable."""
    if settings is not None and not isinstance(settings, Settings):
        raise TypeError(f"'settings' must be an afape.benchmark.Settings or None, but is {shown(settings)}.")
    if tell is not None:
        check_callable("tell", tell, "a function tell(step, done, total)")
        check_takes("tell", tell, "step, done, total")
    return Settings() if settings is None else settings


def require_packages(description: Description) -> None:
    """Raise an error, before the experiment starts, if it needs packages that are not installed."""
    needed = {"matplotlib": "plot", "pyarrow": "paper"}
    if any(agent.startswith("dqn") for agent in description.agents.values()):
        needed |= {"jax": "agents", "optax": "agents"}
    absent = [name for name in needed if find_spec(name) is None]
    if absent:
        extras = ",".join(sorted({needed[name] for name in absent}))
        raise ModuleNotFoundError(
            f"The experiment {description.name!r} needs {', '.join(absent)}. Install with: pip install 'afape[{extras}]'."
        )


@dataclass(frozen=True, eq=False)
class Finished(HandsOutCopies):
    """The results of an experiment: tidy results, summary, data efficiency, and how much is recorded.

    Attributes
    ----------
    description : Description
    folder : Path
    results, summary, efficiency : DataFrame
    complete_share : float
        Share of the rows that stay complete.
    recorded_shares : tuple of float
        Share of the rows with k groups with a price recorded, for k = 0, 1, ...
    """

    description: Description
    folder: Path
    results: pd.DataFrame
    summary: pd.DataFrame
    efficiency: pd.DataFrame
    complete_share: float
    recorded_shares: tuple[float, ...] = ()


def run_experiment(
    description: Description, folder: Path, settings: Settings | None = None, tell: Tell | None = None
) -> Finished:
    """Run an experiment, or continue one that was interrupted.

    The same description and seed give the same tables, bit for bit.

    Parameters
    ----------
    description : Description
        What `read_description` returned.
    folder : Path
        Folder of the results: ``results.parquet`` and ``.csv`` (one line per run, size, data set, agent, estimator and
        target), ``summary.csv``, ``efficiency.csv`` if ``ipw-miss`` is among the estimators, figures, ``README.md`` and
        ``manifest.json``. Intermediate results are in ``draws-*`` and ``parts``.
    settings : Settings, optional
        Seed, number of processes, path of the table.
    tell : callable, optional
        Called as ``tell(step, done, total)`` to report progress.
    """
    if not isinstance(description, Description):
        raise TypeError(
            f"'description' must be a Description, as read_description returns it, but is {shown(description)}."
        )
    folder, settings = check_folder("folder", folder), check_settings(settings, tell)
    tell = tell or (lambda what, done, todo: None)
    require_packages(description)
    with only_run(folder):
        return _run(description, folder, settings, tell)


def _run(description: Description, folder: Path, settings: Settings, tell: Tell) -> Finished:
    began = time.perf_counter()
    tell("loading the table", 0, 1)
    complete = complete_table(description, settings.data, settings.seed)
    own = identity_of(description, complete, settings.seed)
    manifest = start_manifest(folder, own, settings.command)
    claim_folder(folder / "parts", _study("agents and true costs", own))
    world = make_world(description, complete, folder / "parts", settings.seed, tell)
    prepared = time.perf_counter() - began
    results = _results(description, world, folder, settings, own, tell)
    summary = summarise_results(results)
    efficiency = pd.concat(
        [data_efficiency(results, run.name, target) for run in description.runs for target in COSTS],
        ignore_index=True,
    )
    tell(f"{description.name}: figures", 0, 1)
    results.to_parquet(folder / "results.parquet", index=False)
    escaped_cells(results).to_csv(folder / "results.csv", index=False)
    escaped_cells(summary).to_csv(folder / "summary.csv", index=False, float_format="%.6g")
    if len(efficiency):
        escaped_cells(efficiency).to_csv(folder / "efficiency.csv", index=False, float_format="%.6g")
    draw_figures(description, results, summary, folder)
    finished = Finished(description, folder, results, summary, efficiency, world.complete_share, world.recorded_shares)
    write_page(finished, settings.command)
    seconds = {"preparation": round(prepared, 1), "all": round(time.perf_counter() - began, 1)}
    finish_manifest(
        folder,
        manifest,
        seconds_of_last_start=seconds,
        processes=settings.jobs,
        complete_share=round(world.complete_share, 4),
        recorded_shares=[round(share, 4) for share in world.recorded_shares],
        runs={run.name: {"rows": list(run.rows), "draws": run.draws} for run in description.runs},
    )
    return finished


def _study(what: str, own: dict[str, Any]) -> str:
    """Name what a folder of intermediate results holds, and all that it depends on."""
    return f"{what}; {', '.join(f'{key} {value}' for key, value in own.items() if key != 'afape')}"


def _results(
    description: Description, world: World, folder: Path, settings: Settings, own: dict[str, Any], tell: Tell
) -> pd.DataFrame:
    """Return the results of all runs: one line per run, size, data set, agent, estimator and target."""
    steps = [(run, rows) for run in description.runs for rows in run.rows]
    todo, done, tables = sum(run.draws for run, _ in steps), 0, []
    for run, rows in steps:
        label = f"{description.name}: {run.name}, {rows} rows"
        draws = run_draws(
            partial(data_set_records, world, run, rows, settings.seed),
            run.draws,
            folder / f"draws-{_slug(run)}-{rows}",
            _study(f"{run.name}, {rows} rows", own),
            n_jobs=settings.jobs,
            batch=1,
            progress=lambda new, of, done=done, label=label: tell(label, done + new, todo),  # type: ignore[misc]
        )
        done += run.draws
        tables.append(draws.assign(run=run.name, rows=rows))
    results = pd.concat(tables, ignore_index=True)
    support = results["support"].astype(object)  # pandas reads a column of blanks as numbers
    results["support"] = support.where(support.notna(), "")
    first = ["run", "rows", "draw"]
    return results[[*first, *(c for c in results.columns if c not in first)]]


def _slug(run: Run) -> str:
    return "".join(c if c.isalnum() else "-" for c in run.name.lower())
