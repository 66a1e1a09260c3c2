"""The command line: parses, calls, prints."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

if TYPE_CHECKING:  # scikit-learn takes a second to import, so commands import what they need when they run
    import pandas as pd

__all__ = ["app", "main"]

_TARGETS = ("total", "acquisition", "misclassification")

app = typer.Typer(
    help="What would this active-feature-acquisition agent cost if we deployed it?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
study = typer.Typer(help="Long studies with known truth; resumed where they stopped.", no_args_is_help=True)
app.add_typer(study, name="study")


def main() -> None:
    """Entry point of the command ``afape``."""
    app()


@app.callback()
def _root() -> None:
    pass


@app.command()
def demo(
    rows: Annotated[int, typer.Option(min=1000, help="Rows of the synthetic problem.")] = 150_000,
    seed: Annotated[int, typer.Option(help="Seed.")] = 0,
) -> None:
    """Evaluate three random policies on a synthetic problem whose true cost is known."""
    console = Console()
    with _bar(console) as tell:
        tell("loading", 0, 1)
        from .experiments.demo import run_demo

        table = run_demo(rows, seed, tell)
    _print_demo(console, table)


def _print_demo(console: Console, table: pd.DataFrame) -> None:
    shown = Table(
        title="Total cost of a run, estimated from records with gaps",
        title_justify="left",
        box=None,
        padding=(0, 1),
        pad_edge=False,
    )
    shown.add_column("estimator", no_wrap=True)
    for column in ("estimate", "95 % interval", "distance", "acquis.", "misclass.", "eff. rows"):
        shown.add_column(column, justify="right", no_wrap=True)
    lines = {(r["policy"], r["estimator"], r["target"]): r for r in table.to_dict("records")}
    for policy in table["policy"].unique():
        truth = lines[policy, "ipw-semi", "total"]["truth"]
        shown.add_row("")
        shown.add_row(f"[bold]{policy}[/]", f"[bold]{truth:.3f}[/]", "[bold]the truth[/]")
        for estimator in table["estimator"].unique():
            total, acquisition, wrong = (lines[policy, estimator, target] for target in _TARGETS)
            covers = total["lower"] <= truth <= total["upper"]
            shown.add_row(
                f" {estimator}",
                f"{total['estimate']:.3f}",
                f"{total['lower']:.3f} to {total['upper']:.3f}",
                _signed(total["distance"]),
                _signed(acquisition["distance"]),
                _signed(wrong["distance"]),
                f"{total['ess']:,.0f}",
                style=None if covers else "red",
            )
    console.print(shown)
    console.print(
        "distance: estimate minus truth, of the total and of its two parts. Red: the interval misses the truth.\n"
        "imp-mean, blocking and cc are what the field reports today; -gt knows the true propensity."
    )


def _signed(distance: float) -> str:
    return f"{round(distance, 3) + 0.0:+.3f}"


@study.command()
def coverage(
    draws: Annotated[int, typer.Option(min=2, help="Data sets to draw.")] = 2000,
    rows: Annotated[int, typer.Option(min=50, help="Rows of each.")] = 2000,
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder for results; a study found there is resumed.")] = Path(
        "studies/coverage"
    ),
) -> None:
    """Count how often the intervals contain the truth, over many drawn data sets."""
    console = Console()
    with _bar(console) as tell:
        tell("loading", 0, 1)
        from .experiments.coverage import coverage_study

        summary = coverage_study(
            out, n_draws=draws, n_rows=rows, n_jobs=jobs, progress=lambda done, todo: tell("batches", done, todo)
        )
    columns = ["policy", "estimator", "target", "bias", "bias_mc_error", "rmse", "mean_std_error", "coverage"]
    console.print(summary[columns].to_string(index=False, float_format="{:.4g}".format))
    console.print(f"Written to {out}: summary.csv, README.md, coverage.svg")


@contextmanager
def _bar(console: Console) -> Iterator[Callable[[str, int, int], None]]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("starting", total=1)
        yield lambda what, done, todo: progress.update(task, description=what, completed=done, total=todo)
