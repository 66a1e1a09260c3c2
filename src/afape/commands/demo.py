"""afape demo: three random policies on a synthetic problem whose true cost is known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from .screen import Screen, check_writable

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["register"]

_TARGETS = ("total", "acquisition", "misclassification")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="demo")(demo)


def demo(
    rows: Annotated[int, typer.Option(min=1000, help="Rows of the synthetic problem; the paper has 150,000.")] = 40_000,
    seed: options.Seed = 0,
    report: Annotated[Path, typer.Option("--report", "-r", help="Where to write the report.")] = Path(
        "afape-demo.html"
    ),
    as_json: options.AsJson = False,
) -> None:
    """Evaluate three random policies on a synthetic problem whose true cost is known, and write a report.

    Example: afape demo --rows 20000
    """
    screen = Screen(as_json)
    with screen.work() as tell:
        tell("loading", 0, 0)
        check_writable(report, ".html")
        from ..report import require_report, write_report

        require_report()
        from ..experiments.demo import demo_table, run_demo

        found = run_demo(rows, seed, tell)
        table = demo_table(found)
        tell("writing the report", 0, 0)
        command = f"afape demo --rows {rows} --seed {seed}"
        note = f"A synthetic problem, drawn with seed 1. Its true costs are known: {_truths(found.truths)}."
        write_report(found.comparison, report, notes=[note], details={"command": command, "seed": seed})
    _print(screen, table, found.words)
    screen.say(f"\nReport: {report}")
    from ..plain import plain_records

    screen.json({"command": command, "table": plain_records(table), "report": str(report)})


def _truths(truths: dict[str, dict[str, Any]]) -> str:
    return ", ".join(f"{name} {truth['total'].value:.3f}" for name, truth in truths.items())


def _print(screen: Screen, table: pd.DataFrame, words: dict[str, str]) -> None:
    from rich.table import Table

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
            misses = truth < total["lower"] or truth > total["upper"]  # false where there is no interval
            interval = f"{total['lower']:.3f} to {total['upper']:.3f}"
            shown.add_row(
                f" {estimator}",
                "bounds" if total["bound_lower"] == total["bound_lower"] else f"{total['estimate']:.3f}",
                "bootstrap only" if total["lower"] != total["lower"] else interval,
                _signed(total["distance"]),
                _signed(acquisition["distance"]),
                _signed(wrong["distance"]),
                f"{total['ess']:,.0f}",
                style="red" if misses else None,
            )
    screen.show(shown)
    screen.say(
        "distance: estimate minus truth, of the total and of its two parts. Red: the interval misses the truth.\n"
        "imp-mean, blocking and cc are what the field reports today; -gt knows the true propensity."
    )
    for policy, text in words.items():
        if text:
            screen.say(f"\nSupport of {policy}: {text}")


def _signed(distance: float) -> str:
    return "" if distance != distance else f"{round(distance, 3) + 0.0:+.3f}"
