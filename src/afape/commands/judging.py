"""What `afape evaluate` and `afape compare` have in common: judge policies, print, write the report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .screen import Screen, check_writable

if TYPE_CHECKING:
    from ..comparison import Comparison
    from ..data import Retrospective
    from ..problem_file import ProblemFile
    from ..sensitivity_analysis import Sensitivity

__all__ = ["Asked", "Judged", "tell_costs"]

_QUICK = ("imp-mean", "blocking", "cc", "ipw-miss", "ipw-semi", "dm-semi", "drl-semi", "eff-semi")
_MANY_VALUES = 500_000  # rows times columns, beyond which eff-semi takes more than about a minute


@dataclass(frozen=True)
class Asked:
    """What the user asked for."""

    data: Path
    problem: Path
    policies: tuple[str, ...]
    classifier: str | None
    train_share: float
    estimators: str | None
    report: Path | None
    bootstrap: int
    confidence: float
    seed: int
    jobs: int
    sensitivity: bool
    allow_pickle: bool

    @property
    def command(self) -> str:
        """The command that would do the same again."""
        import shlex

        name = "evaluate" if len(self.policies) == 1 else "compare"
        parts = ["afape", name, str(self.data), "--problem", str(self.problem)]
        for policy in self.policies:
            parts += ["--policy", policy]
        parts += ["--classifier", self.classifier] if self.classifier else ["--train-share", f"{self.train_share:g}"]
        parts += ["--estimators", self.estimators] if self.estimators else []
        parts += ["--bootstrap", str(self.bootstrap)] if self.bootstrap else []
        parts += ["--confidence", f"{self.confidence:g}", "--seed", str(self.seed)]
        parts += [] if self.sensitivity else ["--no-sensitivity"]
        parts += ["--allow-pickle"] if self.allow_pickle else []
        parts += ["--report", str(self.report)] if self.report else []
        return shlex.join(parts)


@dataclass(frozen=True, eq=False)
class Judged:
    """What was found."""

    comparison: Comparison
    said: ProblemFile
    words: str
    sensitivity: Sensitivity | None

    def to_dict(self, asked: Asked, screen: Screen) -> dict[str, Any]:
        """Everything for machines."""
        return {
            "command": asked.command,
            "draft": self.said.draft,
            "classifier": self.words,
            **self.comparison.to_dict(),
            "report": None if asked.report is None else str(asked.report),
            "warnings": screen.warnings,
        }


def tell_costs(asked: Asked, as_json: bool) -> None:
    """Judge, and print for people or for machines."""
    screen = Screen(as_json)
    found = _judge(asked, screen)
    _print_costs(screen, found, asked)
    screen.json(found.to_dict(asked, screen))


def _judge(asked: Asked, screen: Screen) -> Judged:
    """Read, train what has to be trained, compare, and write the report."""
    with screen.work() as tell:
        tell("reading the table", 0, 0)
        check_writable(asked.report, ".html")
        if asked.report is not None:
            from ..report import require_report

            require_report()
        from ..comparison import compare
        from .records import classifier_for, read_records
        from .specs import named_policies

        said, records = read_records(asked.data, asked.problem)
        policies = named_policies(list(asked.policies), records, asked.allow_pickle)
        tell("training the classifier", 0, 0)
        who = classifier_for(asked.classifier, records, asked.train_share, asked.seed, asked.allow_pickle)
        tell("evaluating", 0, 0)
        names, left_out = _estimators(asked.estimators, said.missingness, who.data)
        comparison = compare(
            who.data,
            policies,
            who.classifier,
            missingness=said.missingness,
            estimators=names,
            bootstrap=asked.bootstrap,
            confidence=asked.confidence,
            random_state=asked.seed,
            n_jobs=asked.jobs,
            progress=lambda done, todo: tell("evaluating", done, todo),
        )
        strength = _sensitivity(comparison, tell) if asked.sensitivity and asked.report else None
        found = Judged(comparison, said, " ".join(t for t in (who.words, left_out) if t), strength)
        if asked.report is not None:
            tell("writing the report", 0, 0)
            _write(asked, found, screen)
    return found


def _estimators(text: str | None, missingness: Any, data: Retrospective) -> tuple[list[str] | None, str]:
    """Names asked for, and what was left out: by default `mi`, and `eff-semi` where it would take many minutes."""
    from ..missingness import MNAR

    if text == "all" or (text is None and isinstance(missingness, MNAR)):
        return None, ""
    if text is not None:
        return [name.strip() for name in text.split(",") if name.strip()], ""
    if data.values.size <= _MANY_VALUES:
        return list(_QUICK), ""
    words = f"eff-semi was left out, which takes long on {data.values.size:,} values; --estimators all adds it."
    return [name for name in _QUICK if name != "eff-semi"], words


def _sensitivity(comparison: Comparison, tell: Any) -> Sensitivity | None:
    """Bounds for unmeasured reasons, or a warning that says why there are none."""
    from ..report.strength import asked_strength

    try:
        return asked_strength(comparison, lambda done, todo: tell("asking about unmeasured reasons", done, todo))
    except ValueError as error:  # not every graph allows it; the report says so
        from ..notices import AfapeWarning, warn

        warn(f"No answer about unmeasured reasons: {error}", AfapeWarning)
        return None


def _write(asked: Asked, found: Judged, screen: Screen) -> None:
    from ..report import write_report

    assert asked.report is not None
    details = {"command": asked.command, "data": str(asked.data), "problem": str(asked.problem), "seed": asked.seed}
    notes = [found.words]
    if found.said.draft:
        notes.insert(
            0,
            "Prices and costs are placeholders that `afape init` made up: edit the problem file before you use the numbers.",
        )
    strength = False if found.sensitivity is None else found.sensitivity  # None would ask once more
    write_report(found.comparison, asked.report, sensitivity=strength, notes=notes, details=details)


def _print_costs(screen: Screen, found: Judged, asked: Asked) -> None:
    """The answer, for people at a terminal."""
    from rich.markup import escape
    from rich.table import Table

    comparison = found.comparison
    if found.said.draft:
        screen.show("[bold]Prices and costs are placeholders of `afape init`: edit the problem file.[/]")
    screen.say(found.words)
    for name, evaluation in comparison.evaluations.items():
        shown = Table(title=escape(f"{name}: cost of a run"), title_justify="left", box=None, pad_edge=False)
        shown.add_column("estimator", no_wrap=True)
        for column in ("acquisition", "misclass.", "total", f"{100 * comparison.confidence:g} % interval", "eff. rows"):
            shown.add_column(column, justify="right", no_wrap=True)
        biased = {c.name for c in evaluation.choices if c.method.biased}
        for estimator, lines in evaluation.table.groupby("estimator", sort=False):
            by = {line["target"]: line for line in lines.to_dict("records")}
            total = by["total"]
            shown.add_row(
                escape(str(estimator)),
                _value(by["acquisition"]),
                _value(by["misclassification"]),
                _value(total),
                "" if total["lower"] != total["lower"] else f"{total['lower']:.4g} to {total['upper']:.4g}",
                f"{total['ess']:,.0f}",
                style="dim" if estimator in biased else None,
            )
        screen.say()
        screen.show(shown)
    screen.say()
    if len(comparison.evaluations) > 1:
        _print_ranking(screen, comparison)
    if asked.report is not None:
        screen.say(f"Report: {asked.report}")


def _value(line: dict[Any, Any]) -> str:
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
