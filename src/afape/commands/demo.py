"""``afape demo``: three policies on a synthetic problem with known true costs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from .screen import Screen, check_writable, extrapolated_cell

if TYPE_CHECKING:
    import pandas as pd

    from ..benchmark.demo import Demo

__all__ = ["demo"]

_TARGETS = ("total", "acquisition", "misclassification")
_MISSES = "misses"


def demo(
    rows: Annotated[int, typer.Option(min=1000, help="Rows of the synthetic problem; 150,000 in the paper.")] = 40_000,
    seed: options.Seed = 0,
    every: Annotated[bool, typer.Option("--all", help="Apply every estimator, also with the true propensity.")] = False,
    report: Annotated[Path, typer.Option("--report", "-r", help="File of the report.")] = Path("afape-demo.html"),
    as_json: options.AsJson = False,
) -> None:
    """Evaluate three policies on a synthetic problem with known true costs, and write a report.

    Example: afape demo --rows 20000
    """
    screen = Screen(as_json)
    with screen.work() as tell:
        tell("loading", 0, 0)
        check_writable(report, ".html")
        from ..report.page import require_report, write_report

        require_report()
        from ..benchmark.demo import demo_table, run_demo

        found = run_demo(rows, seed, tell, every)
        table = demo_table(found)
        tell("writing the report", 0, 0)
        command = f"afape demo --rows {rows} --seed {seed}{' --all' if every else ''}"
        truths = ", ".join(f"{name} {truth['total'].value:.3f}" for name, truth in found.truths.items())
        note = f"A synthetic problem, drawn with seed 1. Its true costs are known: {truths}."
        write_report(found.comparison, report, notes=[note], details={"command": command, "seed": seed})
    (_print_all if every else _print)(screen, found, table)
    for doubt in found.comparison.doubts:
        screen.say(f"{'!' if doubt.grave else '?'} {doubt.text}")
    screen.say(f"\nReport: {report}")
    from ..files.writing import plain_records

    screen.json({"command": command, "table": plain_records(table), "report": str(report)})


def _table(title: str, columns: tuple[str, ...]) -> Any:
    from rich.table import Table

    shown = Table(title=title, title_justify="left", box=None, padding=(0, 1), pad_edge=False)
    shown.add_column(columns[0], no_wrap=True)
    for column in columns[1:]:
        shown.add_column(column, justify="right", no_wrap=True)
    return shown


def _print(screen: Screen, found: Demo, table: pd.DataFrame) -> None:
    """Print three lines per policy: the true cost, common practice, and the recommended estimator."""
    from ..benchmark.demo import COMMON

    data = next(iter(found.comparison.evaluations.values())).support.n_rows
    shown = _table(
        f"Cost of a run, estimated from {data:,} records with gaps", ("", "cost", "95 % interval", "off by", "")
    )
    lines = {(r["policy"], r["estimator"]): r for r in table.to_dict("records") if r["target"] == "total"}
    best = found.comparison.best_estimator
    for policy in table["policy"].unique():
        truth = found.truths[policy]["total"].value
        shown.add_row("")
        shown.add_row(f"[bold]{policy}[/]")
        shown.add_row("  the truth", f"{truth:.3f}")
        for name, words in ((COMMON, "common practice"), (best, f"afape ({best})")):
            line = lines[policy, name]
            off = "" if line["distance"] != line["distance"] else f"{100 * line['distance'] / truth:+.1f} %"
            shown.add_row(f"  {words}", _estimate(line), _interval(line), off, _MISSES if _misses(line) else "")
    screen.show(shown)
    screen.say(
        f"off by: estimate minus true cost. {_MISSES}: the interval misses the true cost. Common practice here is {COMMON}: the\n"
        "policy acquires only what was recorded. --all shows every estimator."
    )


def _print_all(screen: Screen, found: Demo, table: pd.DataFrame) -> None:
    """Print every estimator, with both kinds of cost."""
    from ..estimators.catalogue import METHODS

    further = bool(table["extrapolated"].notna().any())
    names = ["estimator", "estimate", "95 % interval", "distance", "acquis.", "misclass.", "eff. rows"]
    columns = tuple(names + (["extrapolated"] if further else []))
    shown = _table("Total cost of a run, estimated from records with gaps", columns)
    lines = {(r["policy"], r["estimator"], r["target"]): r for r in table.to_dict("records")}
    for policy in table["policy"].unique():
        shown.add_row("")
        name = policy.removeprefix("acquire ")
        shown.add_row(f"[bold]{name}[/]", f"[bold]{found.truths[policy]['total'].value:.3f}[/]", "[bold]true cost[/]")
        for estimator in table["estimator"].unique():
            total, acquisition, wrong = (lines[policy, estimator, target] for target in _TARGETS)
            distances = [_signed(line["distance"]) for line in (total, acquisition, wrong)]
            interval = f"{_interval(total)}{'*' if _misses(total) else ' '}"
            cells = (_estimate(total), interval, *distances, f"{total['ess']:,.0f}")
            shown.add_row(f" {estimator}", *cells, *([extrapolated_cell(total)] if further else []))
    screen.show(shown)
    *most, last = [method.name for method in METHODS.values() if method.biased]
    screen.say(
        "distance, acquis. and misclass.: estimate minus true cost, total and by kind of cost.\n"
        "*: the interval misses the true cost. -gt: with the true propensity.\n"
        f"{', '.join(most)} and {last} are common practice, and biased."
    )


def _misses(line: dict[Any, Any]) -> bool:
    """True if the interval misses the true cost; False if there is no interval."""
    return bool(line["truth"] < line["lower"] or line["truth"] > line["upper"])


def _estimate(line: dict[Any, Any]) -> str:
    return "bounds" if line["bound_lower"] == line["bound_lower"] else f"{line['estimate']:.3f}"


def _interval(line: dict[Any, Any]) -> str:
    return "bootstrap only" if line["lower"] != line["lower"] else f"{line['lower']:.3f} to {line['upper']:.3f}"


def _signed(distance: float) -> str:
    return "" if distance != distance else f"{round(distance, 3) + 0.0:+.3f}"
