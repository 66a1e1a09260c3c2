"""``python -m studies NAME``: run a study, or continue one that was interrupted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from afape.commands.screen import Screen
from studies.blocks import blocks_study
from studies.coverage import bootstrap_study, coverage_study, mnar_study
from studies.efficiency import SIZES, efficiency_study
from studies.intervals import intervals_study
from studies.labels import labels_study
from studies.nuisances import correction_study, values_study
from studies.outcomes import outcomes_study
from studies.robustness import robustness_study
from studies.seeds import seeds_study
from studies.simulation import Task
from studies.sizes import sizes_study
from studies.support import SIZES as SUPPORT_SIZES
from studies.support import support_study

__all__ = ["app"]


@dataclass(frozen=True)
class _Study:
    name: str
    help: str
    run: Callable[[Task], pd.DataFrame]
    draws: int = 200
    rows: int = 2000


_STUDIES = (
    _Study("coverage", "Count how often the intervals contain the truth.", coverage_study, draws=2000),
    _Study("mnar", "Compare weights by the graph with weights as if MAR, on MNAR data.", mnar_study, draws=1000),
    _Study("bootstrap", "Compare the refitting bootstrap with the frozen bootstrap.", bootstrap_study),
    _Study("robustness", "Make propensity or action values wrong.", robustness_study, draws=100, rows=10_000),
    _Study("labels", "Weigh missing labels, or leave out the rows without a label.", labels_study),
    _Study("correction", "Account for a learned propensity in standard errors, or not.", correction_study, draws=300),
    _Study("values", "Compare regressors for action values, with and without the label.", values_study, draws=100),
    _Study("intervals", "Compare intervals of weighted means on few and heavy rows.", intervals_study, draws=1000),
    _Study("sizes", "Count how often tests reject where their hypothesis holds.", sizes_study, rows=1000),
    _Study(
        "outcomes", "Count how often intervals of rates, metrics and scores contain the truth.", outcomes_study, 1000
    ),
)
_SHOWN = (
    "quantity", "setting", "problem", "rows", "policy", "estimator", "target", "bias", "bias_mc_error", "rmse", "mean_std_error",
    "coverage", "world", "method", "relative_length", "test", "about",
    "size", "size_mc_error",
)  # fmt: skip
_INTERRUPTED = "Interrupted. The same command continues the study."

_Draws = Annotated[int, typer.Option(min=2, help="Number of data sets.")]
_Rows = Annotated[int, typer.Option(min=50, help="Rows of a data set.")]
_Jobs = Annotated[int, typer.Option(min=1, help="Number of processes.")]
_Out = Annotated[Path, typer.Option(file_okay=False, help="Folder of the results; a study found there is continued.")]

app = typer.Typer(help="Long studies with known truth.", no_args_is_help=True, add_completion=False)


def _command(study: _Study) -> Callable[..., None]:
    def command(
        draws: _Draws = study.draws,
        rows: _Rows = study.rows,
        jobs: _Jobs = 1,
        out: _Out = Path("studies") / study.name,
    ) -> None:
        screen = Screen()
        with screen.work(_INTERRUPTED) as tell:
            task = Task(out, draws, rows, jobs, lambda done, total: tell("batches", done, total))
            summary = study.run(task)
        _print(screen, summary, out)

    return command


for _study in _STUDIES:
    app.command(_study.name, help=_study.help)(_command(_study))


@app.command()
def efficiency(
    draws: _Draws = 200,
    real_draws: Annotated[int, typer.Option(min=2, help="Number of data sets with real rows.")] = 40,
    rows: Annotated[
        list[int] | None, typer.Option(min=100, help="Rows of a data set; may be repeated. Default 2000, 1000, 8000.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(envvar="AFAPE_DATA", help="Folder with heloc.csv and income.csv, for real rows.")
    ] = None,
    jobs: _Jobs = 1,
    out: _Out = Path("studies/efficiency"),
) -> None:
    """Measure error, bias, coverage and time of the efficient estimator beside others."""
    screen = Screen()
    with screen.work(_INTERRUPTED) as tell:
        summary = efficiency_study(
            out,
            n_draws=draws,
            real_draws=real_draws,
            sizes=tuple(rows or SIZES),
            folder=data,
            n_jobs=jobs,
            progress=lambda done, total: tell("problems", done, total),
        )
    _print(screen, summary, out)


@app.command("blocks")
def rows_in_blocks(
    draws: Annotated[int, typer.Option(min=0, help="Data sets for the coverage; 0 to leave it out.")] = 200,
    rows: _Rows = 40_000,
    large: Annotated[int, typer.Option(min=1000, help="Rows of the table that is compared with its blocks.")] = 400_000,
    blocks: Annotated[str, typer.Option(help="Numbers of blocks of that comparison, separated by commas.")] = "4,16",
    estimators: Annotated[str, typer.Option(help="Its estimators, separated by commas.")] = "ipw-semi,drl-semi",
    problems: Annotated[str, typer.Option(help="Problems, separated by commas.")] = "synthetic,parabola",
    jobs: _Jobs = 1,
    out: _Out = Path("studies/blocks"),
) -> None:
    """Compare rows in blocks with the whole table, and count how often intervals from blocks contain the truth."""
    screen = Screen()
    with screen.work(_INTERRUPTED) as tell:
        task = Task(out, draws, rows, jobs, lambda done, total: tell("batches", done, total))
        numbers = tuple(map(int, blocks.split(",")))
        summary = blocks_study(task, large, numbers, tuple(estimators.split(",")), tuple(problems.split(",")))
    if draws:
        _print(screen, summary, out)
    else:
        screen.say(summary.to_string(index=False, float_format="{:.4g}".format))


@app.command()
def seeds(
    draws: Annotated[int, typer.Option(min=1, help="Number of data sets of every problem.")] = 3,
    rows: _Rows = 4000,
    data: Annotated[
        Path | None, typer.Option(envvar="AFAPE_DATA", help="Folder with heloc.csv and income.csv, for real rows.")
    ] = None,
    jobs: _Jobs = 1,
    out: _Out = Path("studies/seeds"),
) -> None:
    """Measure how much estimates move with the seed."""
    screen = Screen()
    with screen.work(_INTERRUPTED) as tell:
        task = Task(out, draws, rows, jobs, lambda done, total: tell("data sets", done, total))
        summary = seeds_study(task, data)
    screen.say(summary.to_string(index=False, float_format="{:.2f}".format))
    screen.say(f"Written to {out}. Start with README.md.")


@app.command()
def support(
    draws: Annotated[int, typer.Option(min=1, help="Number of data sets of every kind and size.")] = 20,
    rows: Annotated[
        list[int] | None, typer.Option(min=1000, help="Rows of a data set; may be repeated. Default 2000, 8000, 32000.")
    ] = None,
    jobs: _Jobs = 1,
    out: _Out = Path("studies/support"),
) -> None:
    """Count false alarms of the search for support, and holes that it names."""
    screen = Screen()
    with screen.work(_INTERRUPTED) as tell:
        sizes = tuple(rows or SUPPORT_SIZES)
        summary = support_study(out, draws, sizes, jobs, lambda done, total: tell("sizes", done, total))
    screen.say(summary.groupby(["kind", "form", "rows"], sort=False)[["false", "named"]].mean().to_string())
    screen.say(f"Written to {out}. Start with README.md.")


def _print(screen: Screen, summary: pd.DataFrame, out: Path) -> None:
    shown = summary[[column for column in _SHOWN if column in summary]]
    screen.say(shown.to_string(index=False, float_format="{:.4g}".format))
    screen.say(f"Written to {out}. Start with README.md.")


if __name__ == "__main__":
    app()
