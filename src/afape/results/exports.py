"""Tables for papers and spreadsheets: costs as Markdown and LaTeX, all results as a workbook."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from .._arguments import check_target, check_texts
from ..estimators.estimate import Bounds, Estimate
from ..files.writing import atomic_write, escaped_cells
from .numbers import cost, decimals_of
from .twins import own_name

if TYPE_CHECKING:
    from .evaluation import Evaluation

__all__ = ["CostTable", "cost_table", "in_markdown", "named_estimators", "shared_tables", "write_workbook"]

_MARKDOWN = str.maketrans({sign: f"\\{sign}" for sign in "\\|*_`<>[]"})
_LATEX = str.maketrans(
    {**{sign: f"\\{sign}" for sign in "&%$#_{}"}, "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"\\": r"\textbackslash{}", "<": r"\textless{}", ">": r"\textgreater{}", "−": "$-$", "–": "--", "∞": r"$\infty$"}
)


@dataclass(frozen=True)
class CostTable:
    """Costs as texts.

    Attributes
    ----------
    columns : tuple of str
        The policy, the estimator if there are several, the targets, and the effective rows.
    lines : tuple of tuple of str
        One line per policy and estimator.
    note : str
        Estimator, level, assumption and rows.
    n_texts : int
        Number of columns that are names; the others are numbers.
    """

    columns: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]
    note: str
    n_texts: int

    def markdown(self) -> str:
        """Return the table in Markdown, with its note below."""
        rules = ["---"] * self.n_texts + ["---:"] * (len(self.columns) - self.n_texts)
        rows = [[in_markdown(cell) for cell in line] for line in (self.columns, *self.lines)]
        body = [f"| {' | '.join(line)} |" for line in (rows[0], rules, *rows[1:])]
        return "\n".join([*body, "", in_markdown(self.note), ""])

    def latex(self) -> str:
        """Return the table in LaTeX, with its note as caption."""
        rows = [" & ".join(_one_line(cell).translate(_LATEX) for cell in line) + r" \\" for line in self.lines]
        head = " & ".join(_one_line(cell).translate(_LATEX) for cell in self.columns) + r" \\"
        place = "l" * self.n_texts + "r" * (len(self.columns) - self.n_texts)
        return "\n".join(
            [
                r"\begin{table}",
                rf"\caption{{{self.note.translate(_LATEX)}}}",
                rf"\begin{{tabular}}{{{place}}}",
                r"\toprule",
                head,
                r"\midrule",
                *rows,
                r"\bottomrule",
                r"\end{tabular}",
                r"\end{table}",
                "",
            ]
        )


def named_estimators(names: Any, default: Sequence[str]) -> list[str]:
    """Return the estimators that the user names, or the default."""
    if names is None:
        return list(default)
    found = check_texts("estimators", names, "names of estimators")
    if not found:
        raise ValueError("'estimators' must name at least one estimator, but is empty.")
    return found


def cost_table(evaluations: Mapping[str, Evaluation], estimators: Sequence[str]) -> CostTable:
    """Return the costs of policies by some estimators; an estimator that a policy does not have raises an error."""
    first = next(iter(evaluations.values()))
    named = [(policy, name, e, own_name(e, name)) for policy, e in evaluations.items() for name in estimators]
    for *_, e, own in named:
        if own not in e.answers:
            e[own]  # raises an error that lists the estimators
    found = {(policy, name): e.answers[own].estimates for policy, name, e, own in named}
    decimals = decimals_of([costs["total"] for costs in found.values() if "total" in costs])
    several = len(estimators) > 1
    lines = [
        (
            policy,
            *([own] if several else []),
            *(_cell(found[policy, name].get(target), decimals, first.confidence) for target in first.targets),
            cost(e.answers[own].ess, 0),
        )
        for policy, name, e, own in named
    ]
    by = "" if several else f" by {estimators[0]}"
    note = (
        f"Cost of a run{by}, with {100 * first.confidence:g} % intervals; {first.support.n_rows:,} rows, "
        f"{first.missingness}{_version(first)}."
    )
    columns = ("policy", *(["estimator"] if several else []), *first.targets, "effective rows")
    return CostTable(columns, tuple(lines), note, 2 if several else 1)


def _cell(estimate: Estimate | None, decimals: int, confidence: float) -> str:
    """Return an estimate with its interval, or bounds with theirs."""
    if estimate is None:
        return "–"
    low, high = (cost(end, decimals) for end in estimate.interval(confidence))
    if isinstance(estimate, Bounds):
        ends = f"{cost(estimate.bound_lower, decimals)} to {cost(estimate.bound_upper, decimals)}"
        return f"bounds {ends} ({low} to {high})"
    value = cost(estimate.value, decimals)
    return value if low == high == value or low == "–" else f"{value} ({low} to {high})"


def _version(evaluation: Evaluation) -> str:
    made = evaluation.provenance
    return "" if made is None else f", afape {made.versions.get('afape', '')}"


def in_markdown(text: str) -> str:
    """Return a text on one line that Markdown shows as it is."""
    return _one_line(text).translate(_MARKDOWN)


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def shared_tables(evaluations: Mapping[str, Evaluation], estimator: str) -> dict[str, pd.DataFrame]:
    """Return what `Evaluation` and `Comparison` both write into a workbook, as one table per sheet."""
    rates, metrics, support = [], [], []
    for policy, e in evaluations.items():
        own = own_name(e, estimator)
        support.append(e.support.sets.assign(policy=policy))
        if own in e and e.answers[own].parts is not None:
            rates.append(e.parts(own).table.assign(policy=policy))
            metrics.append(e.metrics(own).assign(policy=policy))
    found = {"acquisitions and errors": rates, "metrics": metrics, "support": support}
    tables = {name: _policy_first(pd.concat(parts, ignore_index=True)) for name, parts in found.items() if parts}
    made = next(iter(evaluations.values())).provenance
    if made is not None:
        tables["provenance"] = pd.DataFrame(list(made.lines().items()), columns=["what", "value"])
    return tables


def _policy_first(table: pd.DataFrame) -> pd.DataFrame:
    return table[["policy", *[c for c in table.columns if c != "policy"]]]


def write_workbook(path: str | Path, tables: Mapping[str, pd.DataFrame]) -> None:
    """Write tables as sheets of a workbook; texts that a spreadsheet would take for formulas are escaped."""
    target = check_target("path", path)
    if target.suffix.lower() != ".xlsx":
        raise ValueError(f"'path' must end in .xlsx, but is {str(target)!r}.")
    if find_spec("openpyxl") is None:
        raise ModuleNotFoundError("A workbook needs openpyxl: pip install 'afape[excel]'.")
    with atomic_write(target) as draft, draft.open("wb") as file, pd.ExcelWriter(file, engine="openpyxl") as writer:
        for name, table in tables.items():
            table = escaped_cells(table)
            table.to_excel(writer, sheet_name=name, index=False, freeze_panes=(1, 1))
            sheet = writer.sheets[name]
            for column, cells in zip(table.columns, sheet.columns, strict=True):
                longest = max([len(str(column)), *(len(str(v)) for v in table[column].head(200))], default=8)
                sheet.column_dimensions[cells[0].column_letter].width = min(longest, 60) + 2
