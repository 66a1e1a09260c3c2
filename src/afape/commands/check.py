"""``afape check``: test the assumption, and check the support of policies."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from .policies import HELP
from .screen import DOUBTFUL, Screen

if TYPE_CHECKING:
    from ..blocks.scanning import Scan
    from ..data.retrospective import Retrospective
    from ..data.row_counts import RowCounts
    from ..files.problem_file import ProblemFile
    from ..support.label_gaps import LabelGaps
    from ..support.missingness_check import MissingnessCheck
    from ..support.support import Support

__all__ = ["check"]

_LEVEL, _SAMPLE = 0.05, 10_000  # level of the tests, and rows of a scan that policies are checked with
_SHOWN = 10  # contradictions of the assumption


def check(
    data: options.Tables,
    problem: options.ProblemPath,
    policy: Annotated[list[str] | None, typer.Option("--policy", help=HELP, show_default=False)] = None,
    as_json: options.AsJson = False,
    allow_pickle: options.AllowPickle = False,
) -> None:
    """Show what is missing, test what the assumption implies, and check the support of policies.

    Exit codes: 0 if no problem was found; 1 if the records contradict the assumption, or support a policy poorly or
    not at all, or rows without a label are left out although labels are not missing by chance; 2 for bad input.

    Example: afape check records.csv --problem records.toml --policy fixed:cbc,lactate
    """
    screen = Screen(as_json)
    with screen.work() as tell:
        tell("reading the table", 0, 0)
        from ..check import check_missingness, check_support
        from ..data.row_counts import RowCounts
        from .inputs import is_scan, read_files, scan_records
        from .policies import named_policies

        rows: Retrospective | Scan
        dropped = None
        if is_scan(data):
            from ..blocks.checking import missingness_of_scan

            problem_file, rows = scan_records(data, problem, None, None)
            policies = named_policies(policy, rows.read(_SAMPLE), allow_pickle) if policy else {}
            tell("testing the assumption", 0, 0)
            tested, records = missingness_of_scan(check_missingness, rows, problem_file.missingness, _LEVEL)
        else:
            problem_file, frame = read_files(data, problem)
            rows = problem_file.records(frame)
            policies = named_policies(policy or [], rows, allow_pickle)
            tell("testing the assumption", 0, 0)
            tested, records = check_missingness(rows, problem_file.missingness), RowCounts.of(rows)
            dropped = _dropped(problem_file, frame, tested.level)
        supports = {}
        for done, (name, agent) in enumerate(policies.items()):
            tell(f"checking the support of {name}", done, len(policies))
            supports[name] = check_support(rows, agent, missingness=problem_file.missingness)
    holds = tested.holds and (dropped is None or dropped.by_chance) and all(s.holds for s in supports.values())
    _print(screen, records, tested, supports, dropped)
    screen.json(
        {
            "command": "check",
            "holds": holds,
            "rows": len(records),
            "labels_missing": records.unlabelled,
            "labels_dropped": None if dropped is None else dropped.to_dict(),
            "weighted": records.weighted,
            "recorded": dict(zip(records.problem.group_names, records.recorded_share.tolist(), strict=True)),
            "missingness": tested.to_dict(),
            "support": {name: support.to_dict() for name, support in supports.items()},
            "warnings": screen.warnings,
        }
    )
    if not holds:
        raise typer.Exit(DOUBTFUL)


def _dropped(problem_file: ProblemFile, frame: Any, level: float) -> LabelGaps | None:
    """Return the tests about rows that the problem file leaves out because they have no label; None if there are none."""
    if problem_file.missing_labels != "drop":
        return None
    import warnings

    from ..support.label_gaps import label_gaps

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about these columns, they came already
        return label_gaps(replace(problem_file, missing_labels="weigh").records(frame), level)


def _print(
    screen: Screen, data: RowCounts, tested: MissingnessCheck, supports: dict[str, Support], dropped: LabelGaps | None
) -> None:
    from rich.markup import escape

    weighted = " with weights" if data.weighted else ""
    screen.show(f"[bold]{len(data):,} rows{weighted}, label {escape(str(data.problem.label))}[/]")
    screen.show(_groups(data))
    screen.say()
    head, *_ = str(tested).splitlines()
    more = len(tested.findings) - _SHOWN
    rest = [f"! {more} more: --json prints all"] if more > 0 else []
    screen.say("\n".join([head, *(f"! {text}" for text in tested.findings[:_SHOWN]), *rest]))
    for text in () if tested.labels is None else tested.labels.words:
        screen.say(f"{text} They stay in, and costs of errors are weighted.")
    for text in () if dropped is None else dropped.words:
        screen.say(f"{'' if dropped is None or dropped.by_chance else '! '}{text} They are left out.")
    for name, support in supports.items():
        screen.say()
        screen.show(f"[bold]{escape(name)}[/]")
        for text in support.words:
            screen.say(text)
        screen.say(support.groups.to_string(index=False, float_format="{:.4g}".format))
    screen.say()
    screen.say(f"Next: {_next_step(data, tested, supports, dropped)}")


def _next_step(
    data: RowCounts, tested: MissingnessCheck, supports: dict[str, Support], dropped: LabelGaps | None
) -> str:
    """Return one thing to do, the most important first."""
    from ..files.toml_words import in_file_words
    from ..results.doubts import FEW_ROWS

    if len(data) < FEW_ROWS:
        return f"collect more records. {len(data)} rows are too few for an answer, which needs at least {FEW_ROWS}."
    if dropped is not None and not dropped.by_chance:
        return 'write missing_labels = "weigh" in the problem file, which keeps the rows without a label.'
    if tested.suggestion is not None:
        return tested.suggestion.toml
    for name, support in supports.items():
        if support.advice and not support.holds:
            return f"{in_file_words(support.advice[0])} (policy {name})"
    if not supports:
        return "check the support of a policy with --policy all."
    return "nothing found here contradicts an evaluation: afape compare."


def _groups(data: RowCounts) -> Any:
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column, side in (("group", "left"), ("columns", "right"), ("price", "right"), ("recorded", "right")):
        table.add_column(column, justify=side)  # type: ignore[arg-type]
    shares = data.recorded_share
    for g, (name, columns) in enumerate(data.problem.groups.items()):
        price = "free" if data.problem.free[g] else f"{data.problem.prices[g]:g}"
        table.add_row(escape(name), str(len(columns)), price, f"{100 * shares[g]:.1f} %")
    if data.unlabelled:
        labelled = float(data.label_cases.sum() / data.cases)
        table.add_row(escape(str(data.problem.label)), "label", "", f"{100 * labelled:.1f} %")
    table.add_row("all groups", "", "", f"{100 * data.complete_share:.1f} %", style="dim")
    return table
