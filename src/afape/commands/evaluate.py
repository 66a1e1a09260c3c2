"""``afape evaluate`` and ``afape compare``: what one policy or several policies would cost."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..files.writing import atomic_write
from . import options
from .policies import HELP as POLICY_HELP
from .screen import Screen, Tell, UserError, check_writable, extrapolated_cell

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from ..blocks.scanning import Scan
    from ..data.retrospective import Retrospective
    from ..files.problem_file import ProblemFile
    from ..missingness.assumptions import MAR, MCAR, MNAR
    from ..results.comparison import Comparison
    from ..sensitivity_analysis.analysis import Sensitivity

__all__ = ["COMPARE_HELP", "EVALUATE_HELP", "evaluate"]

EVALUATE_HELP = """Estimate what a policy would cost if it were deployed.

Example: afape evaluate records.csv --problem records.toml --policy fixed:cbc,lactate --report out.html
"""
COMPARE_HELP = """Compare several policies on the same rows: differences with joint intervals, and a ranking.

Example: afape compare records.csv --problem records.toml --policy none --policy all --policy lean=rules.txt --report out.html
"""
_MANY_VALUES = 500_000  # rows times columns; with more, estimators with components take more than about a minute


@dataclass(frozen=True)
class Request:
    """The arguments of one call."""

    data: Path
    problem: Path
    policies: tuple[str, ...]
    classifier: str | None
    decide: str | None
    train_share: float
    estimators: str | None
    report: Path | None
    bootstrap: int
    confidence: float
    seed: int
    jobs: int
    sensitivity: bool
    min_cell: int
    allow_pickle: bool
    block_rows: int | None = None
    scratch: Path | None = None
    tables: tuple[Path, ...] = ()
    appendix: Path | None = None

    @property
    def command(self) -> str:
        """The command that gives the same result again."""
        name = "evaluate" if len(self.policies) == 1 else "compare"
        words = ["afape", name, str(self.data), "--problem", str(self.problem)]
        for policy in self.policies:
            words += ["--policy", policy]
        words += ["--classifier", self.classifier] if self.classifier else ["--train-share", f"{self.train_share:g}"]
        words += ["--decide", self.decide] if self.decide else []
        words += ["--estimators", self.estimators] if self.estimators else []
        words += ["--bootstrap", str(self.bootstrap)] if self.bootstrap else []
        words += ["--confidence", f"{self.confidence:g}", "--seed", str(self.seed)]
        words += [] if self.sensitivity else ["--no-sensitivity"]
        words += ["--min-cell", str(self.min_cell)] if self.min_cell != options.MIN_CELL else []
        words += ["--allow-pickle"] if self.allow_pickle else []
        words += ["--block-rows", str(self.block_rows)] if self.block_rows else []
        words += ["--scratch", str(self.scratch)] if self.scratch else []
        words += ["--report", str(self.report)] if self.report else []
        words += [word for table in self.tables for word in ("--table", str(table))]
        words += ["--appendix", str(self.appendix)] if self.appendix else []
        return shlex.join(words)


def evaluate(
    data: options.Tables,
    problem: options.ProblemPath,
    policy: Annotated[
        list[str], typer.Option("--policy", help=f"{POLICY_HELP} Repeat it for each policy.", show_default=False)
    ],
    classifier: options.ClassifierSpec = None,
    report: options.Report = None,
    estimators: options.Estimators = None,
    train_share: options.TrainShare = 0.3,
    decide: options.Decide = None,
    bootstrap: options.Bootstrap = 0,
    confidence: options.Confidence = 0.95,
    seed: options.Seed = 0,
    jobs: options.Jobs = 1,
    sensitivity: options.Sensitivity = True,
    min_cell: options.MinCell = options.MIN_CELL,
    table: options.ResultTables = None,
    appendix: options.Appendix = None,
    as_json: options.AsJson = False,
    allow_pickle: options.AllowPickle = False,
    block_rows: options.BlockRows = None,
    scratch: options.Scratch = None,
) -> None:
    """Estimate the costs of one or several policies, print them, and write the report."""
    request = Request(
        data, problem, tuple(policy), classifier, decide, train_share, estimators, report, bootstrap, confidence, seed, jobs,
        sensitivity, min_cell, allow_pickle, block_rows, scratch, tuple(table or ()), appendix,
    )  # fmt: skip
    screen = Screen(as_json)
    with screen.work() as tell:
        tell("reading the table", 0, 0)
        _check_report(report)
        _check_exports(request)
        problem_file, comparison, notes = _evaluated(request, tell)
        comparison = _made_by(request, comparison)
        if report is not None:
            strength = _sensitivity(comparison, tell) if sensitivity else None
            tell("writing the report", 0, 0)
            _write_report(request, report, comparison, notes, strength)
        _write_exports(request, comparison)
    written = [("Report", report), *(("Table", file) for file in request.tables), ("Appendix", appendix)]
    _print(screen, comparison, notes, [(what, file) for what, file in written if file is not None])
    screen.json(
        {
            "command": request.command,
            "draft": problem_file.draft,
            "classifier": notes[-1],
            **comparison.to_dict(),
            "report": None if report is None else str(report),
            "tables": [str(file) for file in request.tables],
            "appendix": None if appendix is None else str(appendix),
            "warnings": screen.warnings,
        }
    )


def _made_by(request: Request, comparison: Comparison) -> Comparison:
    """Return the results with their command and table; a page that is passed on shows no folders."""
    from ..results.provenance import file_checksum

    command = re.sub(r"[^\s='\"]*/", "", request.command)
    table = file_checksum(request.data) if request.data.is_file() else {}  # the rows of several files have one checksum
    marked = {}
    for name, e in comparison.evaluations.items():
        if e.origin is not None and e.provenance is not None:
            made = replace(e.provenance, command=command, table=table)
            e = replace(e, origin=replace(e.origin, provenance=made))
        marked[name] = e
    return replace(comparison, evaluations=marked)


def _check_report(report: Path | None) -> None:
    """Refuse a report that could not be written."""
    check_writable(report, ".html")
    if report is not None:
        from ..report.page import require_report

        require_report()


def _evaluated(request: Request, tell: Tell) -> tuple[ProblemFile, Comparison, list[str]]:
    """Compare the policies on a table in memory, or on the files of a folder or pattern in blocks."""
    from .inputs import is_scan, read_records, scan_records

    if is_scan(request.data):
        problem_file, scan = scan_records(request.data, request.problem, request.block_rows, request.scratch)
        return problem_file, *_compare_blocks(request, problem_file, scan, tell)
    if request.block_rows is not None or request.scratch is not None:
        raise UserError("--block-rows and --scratch are for a folder or a pattern of files, but DATA is one file.")
    problem_file, records = read_records(request.data, request.problem)
    return problem_file, *_compare(request, problem_file, records, tell)


def _compare_blocks(
    request: Request, problem_file: ProblemFile, scan: Scan, tell: Tell
) -> tuple[Comparison, list[str]]:
    """Train the classifier on some rows if needed, and compare the policies block by block."""
    from ..comparison import compare
    from .classifiers import classifier_for_scan
    from .policies import named_policies

    tell("training the classifier", 0, 0)
    classifier, rest, rows, note = classifier_for_scan(
        request.classifier, scan, request.train_share, request.decide, request.seed, request.allow_pickle
    )
    policies = named_policies(list(request.policies), rows, request.allow_pickle)
    tell("dealing the rows to blocks", 0, 0)
    n_values = rest.n_rows * rows.values.shape[1]
    names, left_out = _estimators(request.estimators, problem_file.missingness, n_values)
    with _workers(request.jobs) as executor:
        comparison = compare(
            rest,
            policies,
            classifier,
            missingness=problem_file.missingness,
            estimators=names,
            **_settings(request),
            executor=executor if rest.n_blocks > 1 else None,
            progress=lambda done, todo: tell("evaluating blocks", done, todo),
        )
    note += _left_out(left_out, n_values)
    if request.sensitivity and rest.n_blocks > 1:
        note += " The sensitivity to unmeasured reasons is left out, because it needs all rows in memory."
    return comparison, [*([_DRAFT] if problem_file.draft else []), note]


@contextmanager
def _workers(jobs: int) -> Iterator[Executor | None]:
    """Give a pool of processes; None for one process."""
    if jobs == 1:
        yield None
        return
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield pool


def _left_out(names: list[str], n_values: int) -> str:
    if not names:
        return ""
    return (
        f" {', '.join(names)} was left out, because it takes long on {n_values:,} values; --estimators all includes it."
    )


def _check_exports(request: Request) -> None:
    """Refuse tables and an appendix that could not be written."""
    for file in request.tables:
        if file.suffix.lower() not in _WRITERS:
            raise UserError(f"--table {str(file)!r} must end in one of {', '.join(_WRITERS)}.")
        check_writable(file, option="--table")
    check_writable(request.appendix, ".md", "--appendix")


def _write_exports(request: Request, comparison: Comparison) -> None:
    for file in request.tables:
        _WRITERS[file.suffix.lower()](comparison, file)
    if request.appendix is not None:
        from ..report.appendix import write_appendix

        write_appendix(comparison, request.appendix, min_cell=request.min_cell)


def _write_text(text: str, file: Path) -> None:
    with atomic_write(file) as draft:
        draft.write_text(text, encoding="utf-8")


_WRITERS: dict[str, Callable[[Comparison, Path], None]] = {
    ".md": lambda found, file: _write_text(found.to_markdown(), file),
    ".tex": lambda found, file: _write_text(found.to_latex(), file),
    ".xlsx": lambda found, file: found.to_excel(file),
}


def _compare(
    request: Request, problem_file: ProblemFile, records: Retrospective, tell: Tell
) -> tuple[Comparison, list[str]]:
    """Train the classifier if needed and compare the policies; the notes tell the reader how."""
    from ..comparison import compare
    from .classifiers import classifier_for
    from .policies import named_policies

    policies = named_policies(list(request.policies), records, request.allow_pickle)
    tell("training the classifier", 0, 0)
    classifier, rows, note = classifier_for(
        request.classifier, records, request.train_share, request.decide, request.seed, request.allow_pickle
    )
    tell("evaluating", 0, 0)
    names, left_out = _estimators(request.estimators, problem_file.missingness, rows.values.size)
    comparison = compare(
        rows,
        policies,
        classifier,
        missingness=problem_file.missingness,
        estimators=names,
        **_settings(request),
        n_jobs=request.jobs,
        progress=lambda done, todo: tell("evaluating", done, todo),
    )
    note += _left_out(left_out, rows.values.size)
    return comparison, [*([_DRAFT] if problem_file.draft else []), note]


_DRAFT = "Prices and costs are placeholders from `afape init`: edit the problem file before you use the numbers."


def _settings(request: Request) -> dict[str, Any]:
    """Settings of `compare` that a table in memory and a folder of files share."""
    return {"bootstrap": request.bootstrap, "confidence": request.confidence, "random_state": request.seed}


def _estimators(text: str | None, missingness: MCAR | MAR | MNAR, n_values: int) -> tuple[list[str] | None, list[str]]:
    """Return the names of the estimators (None for all), and those that are left out because the table is large.

    By default methods with imputations are left out, and on large tables methods with components too. Under `MNAR`
    nothing is left out by default: which methods are allowed depends on the policy, and a name that is not allowed is
    an error.
    """
    from ..estimators.catalogue import METHODS
    from ..missingness.assumptions import MNAR

    if text == "all" or (text is None and isinstance(missingness, MNAR)):
        return None, []
    if text is not None:
        return [name.strip() for name in text.split(",") if name.strip()], []
    quick = [m for m in METHODS.values() if not m.hybrid and not m.imputes]
    slow = [m.name for m in quick if m.composed and n_values > _MANY_VALUES]
    return [m.name for m in quick if m.name not in slow], slow


def _sensitivity(comparison: Comparison, tell: Tell) -> Sensitivity | None:
    """Return bounds under unmeasured reasons, or None with a warning that says why there are none."""
    from ..report.sensitivity import sensitivity_of

    try:
        return sensitivity_of(comparison, lambda done, todo: tell("sensitivity to unmeasured reasons", done, todo))
    except ValueError as error:  # not every graph allows it
        from ..warnings import AfapeWarning, warn

        warn(f"The sensitivity to unmeasured reasons could not be computed: {error}", AfapeWarning)
        return None


def _write_report(
    request: Request, report: Path, comparison: Comparison, notes: list[str], sensitivity: Sensitivity | None
) -> None:
    from ..report.page import write_report

    wanted = False if sensitivity is None else sensitivity  # None would compute it
    write_report(
        comparison,
        report,
        sensitivity=wanted,
        notes=notes[:-1],
        details={"classifier": notes[-1]},
        min_cell=request.min_cell,
        in_file=True,
    )


def _print(screen: Screen, comparison: Comparison, notes: list[str], written: list[tuple[str, Path]]) -> None:
    for note in notes:
        screen.say(note, style="bold" if note == _DRAFT else None)
    for name in comparison.evaluations:
        screen.say()
        screen.show(_costs(name, comparison))
    screen.say()
    if len(comparison.evaluations) > 1:
        _print_ranking(screen, comparison)
    for doubt in comparison.doubts:
        screen.say(f"{'!' if doubt.grave else '?'} {doubt.text}")
    for what, file in written:
        screen.say(f"{what}: {file}")


def _costs(name: str, comparison: Comparison) -> Any:
    """Return the costs of one policy as a table for the terminal."""
    from rich.markup import escape
    from rich.table import Table

    evaluation = comparison.evaluations[name]
    shown = Table(title=escape(f"{name}: cost of a run"), title_justify="left", box=None, pad_edge=False)
    shown.add_column("estimator", no_wrap=True)
    for column in ("acquisition", "misclass.", "total", f"{100 * comparison.confidence:g} % interval", "eff. rows"):
        shown.add_column(column, justify="right", no_wrap=True)
    biased = {c.name for c in evaluation.choices if c.method.biased}
    further = bool(evaluation.table["extrapolated"].notna().any())
    if further:
        shown.add_column("extrapolated", justify="right", no_wrap=True)
    for estimator, lines in evaluation.table.groupby("estimator", sort=False):
        by_target = {line["target"]: line for line in lines.to_dict("records")}
        total = by_target["total"]
        shown.add_row(
            escape(str(estimator)),
            _value(by_target["acquisition"]),
            _value(by_target["misclassification"]),
            _value(total),
            "" if total["lower"] != total["lower"] else f"{total['lower']:.4g} to {total['upper']:.4g}",
            f"{total['ess']:,.0f}",
            *([extrapolated_cell(total)] if further else []),
            style="dim" if estimator in biased else None,
        )
    return shown


def _value(line: dict[Any, Any]) -> str:
    """Return an estimate, its bounds, or nothing, as text."""
    if line["bound_lower"] == line["bound_lower"]:
        return f"{line['bound_lower']:.4g} to {line['bound_upper']:.4g}"
    return "" if line["estimate"] != line["estimate"] else f"{line['estimate']:.4g}"


def _print_ranking(screen: Screen, comparison: Comparison) -> None:
    try:
        table = comparison.ranking()
    except ValueError as error:
        screen.say(str(error))
        return
    screen.say(f"Ranking by {comparison.best_estimator}")
    screen.say(table.to_string(index=False, float_format="{:.4g}".format))
