"""``afape demo``: three random policies on a synthetic problem with known true costs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import options
from .screen import Screen, check_writable

if TYPE_CHECKING:
    import pandas as pd

    from ..benchmark.demo import Demo

__all__ = ["demo"]

_TARGETS = ("total", "acquisition", "misclassification")


def demo(
    rows: Annotated[int, typer.Option(min=1000, help="Rows of the synthetic problem; 150,000 in the paper.")] = 40_000,
    seed: options.Seed = 0,
    report: Annotated[Path, typer.Option("--report", "-r", help="File of the report.")] = Path("afape-demo.html"),
    as_json: options.AsJson = False,
) -> None:
    """Evaluate three random policies on a synthetic problem with known true costs, and write a report.

    Example: afape demo --rows 20000
    """
    screen = Screen(as_json)
    with screen.work() as tell:
        tell("loading", 0, 0)
        check_writable(report, ".html")
        from ..report.page import require_report, write_report

        require_report()
        from ..benchmark.demo import demo_table, run_demo

        found = run_demo(rows, seed, tell)
        table = demo_table(found)
        tell("writing the report", 0, 0)
        command = f"afape demo --rows {rows} --seed {seed}"
        truths = ", ".join(f"{name} {truth['total'].value:.3f}" for name, truth in found.truths.items())
        note = f"A synthetic problem, drawn with seed 1. Its true costs are known: {truths}."
        write_report(found.comparison, report, notes=[note], details={"command": command, "seed": seed})
    _print(screen, found, table)
    screen.say(f"\nReport: {report}")
    from ..files.writing import plain_records

    screen.json({"command": command, "table": plain_records(table), "report": str(report)})


def _print(screen: Screen, found: Demo, table: pd.DataFrame) -> None:
    from rich.table import Table

    from ..estimators.catalogue import METHODS

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
        truth = found.truths[policy]["total"].value
        shown.add_row("")
        shown.add_row(f"[bold]{policy}[/]", f"[bold]{truth:.3f}[/]", "[bold]true cost[/]")
        for estimator in table["estimator"].unique():
            total, acquisition, wrong = (lines[policy, estimator, target] for target in _TARGETS)
            misses = truth < total["lower"] or truth > total["upper"]  # False if there is no interval
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
    *most, last = [method.name for method in METHODS.values() if method.biased]
    screen.say(
        "distance, acquis. and misclass.: estimate minus true cost, total and by kind of cost.\n"
        "Red: the interval misses the true cost. -gt: with the true propensity.\n"
        f"{', '.join(most)} and {last} are common practice, and biased."
    )
    for policy, text in found.words.items():
        if text:
            screen.say(f"\nSupport of {policy}: {text}")


def _signed(distance: float) -> str:
    return "" if distance != distance else f"{round(distance, 3) + 0.0:+.3f}"
