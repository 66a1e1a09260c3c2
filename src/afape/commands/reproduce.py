"""``afape reproduce`` and ``afape benchmark``: experiments with known truth."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import options
from .screen import Screen

if TYPE_CHECKING:
    from ..benchmark.runner import Finished

__all__ = ["benchmark", "reproduce"]

_Name = Annotated[
    str,
    typer.Argument(help="synthetic-mar, synthetic-mnar, double-robustness, heloc, income, or all.", show_default=False),
]
_File = Annotated[Path, typer.Argument(help="TOML file that describes the experiment.", show_default=False)]
_Quick = Annotated[bool, typer.Option("--quick", help="A reduced run, which only shows that everything works.")]
_Full = Annotated[bool, typer.Option("--full", help="Data sets of the paper's sizes in all runs; takes many hours.")]
_Draws = Annotated[int | None, typer.Option(min=2, help="Largest number of data sets of each size.")]
_Data = Annotated[Path | None, typer.Option(help="The table, or a folder with heloc.csv and income.csv.")]
_Out = Annotated[
    Path | None, typer.Option(file_okay=False, help="Folder of the results; an experiment found there is continued.")
]
_Describe = Annotated[bool, typer.Option("--describe", help="Print the description, as a template for your own.")]
_INTERRUPTED = "Interrupted. The same command continues the experiment."


def reproduce(
    name: _Name,
    out: _Out = None,
    quick: _Quick = False,
    full: _Full = False,
    jobs: options.Jobs = 1,
    seed: options.Seed = 0,
    draws: _Draws = None,
    data: _Data = None,
    describe: _Describe = False,
) -> None:
    """Run an experiment of the paper, or all of them.

    A run that was interrupted continues when it is started again. Results go to reproduced/NAME, or to the folder of --out.

    Example: afape reproduce heloc --quick
    """
    screen = Screen()
    with screen.work(_INTERRUPTED) as tell:
        from .. import benchmark as room

        description = room.describe(name) if describe or name != "all" else None  # refuses an unknown name
        folder = out or (Path("reproduced") if name == "all" else Path("reproduced") / name)
        done = []
        if not describe:
            settings = room.Settings(seed, jobs, data, _command())
            done = room.reproduce(name, folder, settings, quick=quick, full=full, draws=draws, tell=tell)
    if describe and description is not None:
        screen.say(description.read_text(encoding="utf-8"))
    else:
        _print(screen, done, folder)


def benchmark(
    description: _File,
    out: _Out = None,
    quick: _Quick = False,
    jobs: options.Jobs = 1,
    seed: options.Seed = 0,
    draws: _Draws = None,
    data: _Data = None,
) -> None:
    """Test estimators on your own complete table: hide values, evaluate, compare with the true cost.

    The description is a TOML file like those of the paper's experiments, which afape reproduce NAME --describe prints. Results go
    to a folder with the name of the file, or to the folder of --out.

    Example: afape benchmark own.toml --quick
    """
    screen = Screen()
    with screen.work(_INTERRUPTED) as tell:
        from .. import benchmark as room

        experiment = room.read_description(description, quick=quick)
        if draws is not None:
            experiment = experiment.reduced(draws)
        folder = out or Path(description.stem)
        done = [room.run_experiment(experiment, folder, room.Settings(seed, jobs, data, _command()), tell)]
    _print(screen, done, folder)


def _command() -> str:
    """Return the command as the user typed it, or nothing if another program called us."""
    return shlex.join(["afape", *sys.argv[1:]]) if Path(sys.argv[0]).name == "afape" else ""


def _print(screen: Screen, done: list[Finished], folder: Path) -> None:
    from ..benchmark.page import coverage_table

    for finished in done:
        screen.say(f"\n{finished.description.title}", style="bold")
        screen.say(coverage_table(finished).to_string(index=False))
    screen.say(f"\nWritten to {folder}. Start with README.md.")
