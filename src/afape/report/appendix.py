"""write_appendix(): the items of TRIPOD+AI and STARD, filled in as far as an evaluation knows."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from pathlib import Path

from .._arguments import check_count, check_instance, check_target
from ..estimators.estimate import Bounds
from ..files.writing import atomic_write
from ..results.comparison import Comparison
from ..results.evaluation import Evaluation, NotEstimableError
from ..results.exports import cost_table, in_markdown
from ..results.small_cells import without_small
from ..results.twins import own_name
from .facts import facts_of
from .sentences import interval_words, percent
from .summary import origin_of, summarize

__all__ = ["write_appendix"]

_INTRODUCTION = (
    "This appendix was filled in by afape from one evaluation. It has two kinds of text: what the evaluation knows, and, after "
    "**Authors add**, what it cannot know. The topics are short forms of the items; the guidelines themselves have the full "
    "text. Check every sentence before you publish it."
)


def write_appendix(found: Comparison | Evaluation, path: str | Path, *, min_cell: int = 10) -> None:
    """Write the appendix as Markdown.

    Parameters
    ----------
    found : Comparison or Evaluation
        Result of `compare` or `evaluate`.
    path : str or Path
        The file. It is written completely or not at all.
    min_cell : int
        Subgroups and numbers of rows below this are left out.
    """
    target = check_target("path", path)
    check_instance("found", found, (Comparison, Evaluation), "a result of afape.compare or afape.evaluate")
    check_count("min_cell", min_cell, 0)
    comparison = found if isinstance(found, Comparison) else Comparison({found.policy: found}, found.confidence)
    comparison = without_small(comparison, origin_of(comparison).counts, min_cell)
    with atomic_write(target) as draft:
        draft.write_text(appendix(comparison, min_cell), encoding="utf-8")


def appendix(found: Comparison, min_cell: int) -> str:
    """Return the text of the appendix."""
    content = summarize(found, min_cell=min_cell)
    facts = facts_of(content) | _tables(found, content["estimator"])
    out = ["# Reporting checklists", "", _INTRODUCTION, ""]
    for guideline in tomllib.loads((files(__package__) / "templates" / "checklists.toml").read_text())["guidelines"]:
        items = guideline["items"]
        known = sum(any(facts[name] for name in item.get("facts", ())) for item in items)
        out += [f"## {guideline['name']}: {guideline['about']}", ""]
        out += [f"The evaluation knows something about {known} of {len(items)} items.", ""]
        for item in items:
            out += [f"### {item['item']} {item['topic']}", ""]
            for text in (facts[name] for name in item.get("facts", ())):
                out += [text, ""] if text else []
            out += [f"**Authors add:** {item['add']}", ""]
    return "\n".join([*out, *_record(found)])


def _tables(found: Comparison, estimator: str) -> dict[str, str]:
    """Return the facts that are tables, in Markdown."""
    estimates = {name: e for name, e in found.evaluations.items() if own_name(e, estimator) in e.answers}
    return {
        "costs": cost_table(estimates, [estimator]).markdown().strip(),
        "confusion": _confusion(found, estimator),
    }


def _confusion(found: Comparison, estimator: str) -> str:
    """Return the estimated shares of true and predicted labels of every policy."""
    lines = []
    for name, evaluation in found.evaluations.items():
        try:
            cells = evaluation.parts(own_name(evaluation, estimator)).confusion
        except (KeyError, NotEstimableError):
            continue
        for (true, predicted), share in cells.items():
            low, high = share.interval(found.confidence)
            if isinstance(share, Bounds):
                value = f"{percent(share.bound_lower)} to {percent(share.bound_upper)}"
            else:
                value = percent(share.value)
            words = interval_words({"estimate": 1.0, "lower": low, "upper": high})
            lines.append(
                f"| {in_markdown(name)} | {in_markdown(str(true))} | {in_markdown(str(predicted))} | {value} | {words} |"
            )
    if not lines:
        return ""
    head = [
        "| policy | true label | predicted label | share of runs | interval, % |",
        "| --- | --- | --- | ---: | ---: |",
    ]
    return "\n".join(["Shares of runs, estimated for deployment; they are not counts of the table.", "", *head, *lines])


def _record(found: Comparison) -> list[str]:
    """Return the provenance as a section."""
    made = found.provenance
    if made is None:
        return []
    lines = [f"- {name}: {in_markdown(text)}" for name, text in made.lines().items()]
    return ["## Record of the evaluation", "", *lines, ""]
