"""``afape reproduce`` and ``afape benchmark``: experiments with known truth."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

if TYPE_CHECKING:  # scikit-learn takes a second to import, so commands import what they need when they run
    from ..benchmark import Finished

__all__ = ["benchmark", "register", "reproduce"]

_Name = Annotated[
    str,
    typer.Argument(help="synthetic-mar, synthetic-mnar, double-robustness, heloc, income, or all.", show_default=False),
]
_File = Annotated[Path, typer.Argument(help="TOML file that describes the experiment.", show_default=False)]
_Quick = Annotated[bool, typer.Option("--quick", help="A reduced run that only shows that everything works.")]
_Jobs = Annotated[int, typer.Option(min=1, help="Processes; the results do not depend on it.")]
_Seed = Annotated[int, typer.Option(min=0, help="Seed.")]
_Draws = Annotated[int | None, typer.Option(min=2, help="At most so many data sets of each size.")]
_Data = Annotated[Path | None, typer.Option(help="The table, or a folder with heloc.csv and income.csv.")]
_Out = Annotated[
    Path | None, typer.Option(file_okay=False, help="Folder for results; an experiment found there is resumed.")
]
_Describe = Annotated[bool, typer.Option("--describe", help="Print the description, to make one of your own from it.")]


def register(app: typer.Typer) -> None:
    """Add both commands."""
    app.command()(reproduce)
    app.command()(benchmark)


def reproduce(
    name: _Name,
    out: _Out = None,
    quick: _Quick = False,
    jobs: _Jobs = 1,
    seed: _Seed = 0,
    draws: _Draws = None,
    data: _Data = None,
    describe: _Describe = False,
) -> None:
    """Run an experiment of the paper end to end, or all of them.

    Killed and started again, it goes on where it stopped. Results go to reproduced/NAME, or to the folder that --out names.
    """
    console = Console()
    with _told(console) as tell:
        from .. import benchmark as room
        from ..benchmark import paper_experiments as paper

        if describe:
            text = paper.describe(name).read_text(encoding="utf-8")
            console.print(text, markup=False, highlight=False, soft_wrap=True)
            return
        if name != "all":
            paper.describe(name)  # refuses an unknown name before anything is set up
        folder = out or (Path("reproduced") if name == "all" else Path("reproduced") / name)
        settings = room.Settings(seed, jobs, data, _command())
        done = room.reproduce(name, folder, settings, quick=quick, draws=draws, tell=tell)
    _report(console, done, folder)


def benchmark(
    description: _File,
    out: _Out = None,
    quick: _Quick = False,
    jobs: _Jobs = 1,
    seed: _Seed = 0,
    draws: _Draws = None,
    data: _Data = None,
) -> None:
    """Test estimators on your own complete table: induce missingness, evaluate, compare with the truth.

    The description is a TOML file like those of the paper's experiments, which afape reproduce NAME --describe prints. Results go
    to a folder named like the file, or to the one that --out names.
    """
    console = Console()
    with _told(console) as tell:
        from .. import benchmark as room

        described = room.read_description(description, quick=quick)
        if draws is not None:
            described = described.reduced(draws)
        folder = out or Path(description.stem)
        done = [room.run_experiment(described, folder, room.Settings(seed, jobs, data, _command()), tell)]
    _report(console, done, folder)


def _command() -> str:
    """What the user typed, where it was typed; the program by its name alone."""
    return shlex.join(["afape", *sys.argv[1:]]) if Path(sys.argv[0]).name == "afape" else ""


@contextmanager
def _told(console: Console) -> Iterator[Callable[[str, int, int], None]]:
    """A progress bar; what is the user's to mend ends the command with a message, not with a traceback."""
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    try:
        with Progress(*columns, console=console, transient=True) as progress:
            task = progress.add_task("loading", total=1)
            yield lambda what, done, todo: progress.update(task, description=what, completed=done, total=todo)
    except (ValueError, OSError, ModuleNotFoundError) as error:
        console.print(f"Error: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(2) from error


def _report(console: Console, done: list[Finished], folder: Path) -> None:
    from ..benchmark.page import coverage_table

    for finished in done:
        console.print(f"\n{finished.description.title}", style="bold", highlight=False)
        console.print(coverage_table(finished).to_string(index=False), markup=False, highlight=False, soft_wrap=True)
    console.print(f"\nWritten to {folder}; README.md shows it.", highlight=False, soft_wrap=True)
