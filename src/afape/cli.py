"""The command line: parses, calls, prints."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from .commands import register

__all__ = ["app", "main"]

app = typer.Typer(
    help="What would this active-feature-acquisition agent cost if we deployed it?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
register(app)  # scikit-learn takes a second to import, so commands import what they need when they run
study = typer.Typer(help="Long studies with known truth; resumed where they stopped.", no_args_is_help=True)
app.add_typer(study, name="study")


def main() -> None:
    """Entry point of the command ``afape``."""
    app()


@app.callback()
def _root() -> None:
    pass


Draws = Annotated[int, typer.Option(min=2, help="Data sets to draw.")]
Rows = Annotated[int, typer.Option(min=50, help="Rows of each.")]
Jobs = Annotated[int, typer.Option(min=1, help="Processes.")]
Out = Annotated[Path, typer.Option(file_okay=False, help="Folder for results; a study found there is resumed.")]


@study.command()
def coverage(draws: Draws = 2000, rows: Rows = 2000, jobs: Jobs = 1, out: Out = Path("studies/coverage")) -> None:
    """Count how often the intervals contain the truth, over many drawn data sets."""
    _study("coverage_study", out, n_draws=draws, n_rows=rows, n_jobs=jobs)


@study.command()
def mnar(draws: Draws = 1000, rows: Rows = 2000, jobs: Jobs = 1, out: Out = Path("studies/mnar")) -> None:
    """Draw data missing not at random; compare weights by its graph with weights as if it were at random."""
    _study("mnar_study", out, n_draws=draws, n_rows=rows, n_jobs=jobs)


@study.command()
def bootstrap(draws: Draws = 200, rows: Rows = 2000, jobs: Jobs = 1, out: Out = Path("studies/bootstrap")) -> None:
    """Compare the refitting bootstrap with the frozen one."""
    _study("bootstrap_study", out, n_draws=draws, n_rows=rows, n_jobs=jobs)


@study.command()
def robustness(draws: Draws = 100, rows: Rows = 10_000, jobs: Jobs = 1, out: Out = Path("studies/robustness")) -> None:
    """Make propensity or action values wrong, and see which estimators survive."""
    _study("robustness_study", out, n_draws=draws, n_rows=rows, n_jobs=jobs)


@study.command()
def correction(draws: Draws = 300, rows: Rows = 2000, jobs: Jobs = 1, out: Out = Path("studies/correction")) -> None:
    """Measure what accounting for a learned propensity does to standard errors."""
    _study("correction_study", out, n_draws=draws, n_rows=rows, n_jobs=jobs)


@study.command()
def values(draws: Draws = 100, rows: Rows = 2000, jobs: Jobs = 1, out: Out = Path("studies/values")) -> None:
    """Measure regressors for action values, with and without the label."""
    _study("values_study", out, n_draws=draws, n_rows=rows, n_jobs=jobs)


@study.command()
def efficiency(
    draws: Draws = 200,
    real_draws: Annotated[int, typer.Option(min=2, help="Data sets to draw from real rows.")] = 40,
    rows: Annotated[
        list[int] | None, typer.Option(min=100, help="Rows of a data set; may be repeated. Default 2000, 1000, 8000.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(envvar="AFAPE_DATA", help="Folder with heloc.csv and income.csv, for real rows.")
    ] = None,
    jobs: Jobs = 1,
    out: Out = Path("studies/efficiency"),
) -> None:
    """Measure error, bias, coverage and time of the efficient estimator beside others."""
    console = Console()
    with _bar(console) as tell:
        tell("loading", 0, 1)
        from .experiments.efficiency import efficiency_study

        efficiency_study(
            out,
            n_draws=draws,
            real_draws=real_draws,
            sizes=tuple(rows or (2000, 1000, 8000)),
            folder=data,
            n_jobs=jobs,
            progress=lambda done, todo: tell("problems", done, todo),
        )
    console.print(f"Written to {out}: README.md, summary.csv")


@study.command()
def outcomes(draws: Draws = 1000, rows: Rows = 2000, jobs: Jobs = 1, out: Out = Path("studies/outcomes")) -> None:
    """Count how often intervals of rates, sensitivity, predictive values, Brier score and AUC contain the truth."""
    console = Console()
    with _bar(console) as tell:
        tell("loading", 0, 1)
        from .experiments.outcomes import outcomes_study
        from .experiments.study import OtherStudyError

        try:
            summary = outcomes_study(
                out,
                n_draws=draws,
                n_rows=rows,
                n_jobs=jobs,
                progress=lambda done, todo: tell("batches", done, todo),
            )
        except (OSError, OtherStudyError) as error:
            raise typer.BadParameter(f"'--out' cannot be used: {error}") from error
    shown = summary[["quantity", "truth", "bias", "mean_std_error", "coverage"]]
    console.print(shown.to_string(index=False, float_format="{:.4g}".format), soft_wrap=True)
    console.print(f"Written to {out}: README.md, summary.csv")


def _study(name: str, out: Path, **arguments: int) -> None:
    console = Console()
    with _bar(console) as tell:
        tell("loading", 0, 1)
        from .experiments import pages, studies
        from .experiments.study import OtherStudyError

        try:
            pages.require_matplotlib()
        except ModuleNotFoundError as error:
            raise typer.BadParameter(str(error)) from error
        try:
            summary = getattr(studies, name)(out, progress=lambda done, todo: tell("batches", done, todo), **arguments)
        except (OSError, OtherStudyError) as error:
            raise typer.BadParameter(f"'--out' cannot be used: {error}") from error
    columns = [
        "setting",
        "policy",
        "estimator",
        "target",
        "bias",
        "bias_mc_error",
        "rmse",
        "mean_std_error",
        "coverage",
    ]
    console.print(summary[columns].to_string(index=False, float_format="{:.4g}".format), soft_wrap=True)
    console.print(f"Written to {out}: {', '.join(sorted(f.name for f in out.iterdir() if f.is_file()))}")


@contextmanager
def _bar(console: Console) -> Iterator[Callable[[str, int, int], None]]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("starting", total=1)
        yield lambda what, done, todo: progress.update(task, description=what, completed=done, total=todo)
