"""The figures of an experiment, as its description asks for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from ..estimators.catalogue import METHODS
from ..plots.experiments import FIGURE_STYLE, convergence_figure, intervals_figure, robustness_figure
from .data_set import COMPLETE
from .description import Description, FigureSpec

__all__ = ["draw_figures"]


def draw_figures(description: Description, results: pd.DataFrame, summary: pd.DataFrame, folder: Path) -> None:
    """Write every figure of a description as PNG and SVG."""
    import matplotlib as mpl

    for spec in description.figures:
        agents = list(spec.agents) or list(dict.fromkeys(results["agent"]))
        for target, name in spec.files.items():
            shown, short = (
                table[(table["target"] == target) & table["run"].isin(spec.runs) & table["agent"].isin(agents)]
                for table in (results, summary)
            )
            with mpl.rc_context(FIGURE_STYLE):
                figure = _figure(spec, shown, short, agents, f"{target} cost")
                figure.suptitle(spec.title, fontsize=10, x=0.01, ha="left")
                figure.savefig(folder / f"{name}.png", dpi=200, metadata={"Software": None})
                figure.savefig(folder / f"{name}.svg", dpi=200, metadata={"Date": None})


def _figure(spec: FigureSpec, results: pd.DataFrame, summary: pd.DataFrame, agents: list[str], cost: str) -> Any:
    if spec.kind == "convergence":
        known = [e for e in dict.fromkeys(results["estimator"]) if e != COMPLETE]
        chosen = [e for e in spec.estimators if e in set(results["estimator"])]
        return convergence_figure(results, agents, chosen or known, cost)
    if spec.kind == "robustness":
        return robustness_figure(summary[summary["estimator"] != COMPLETE], agents, spec.runs, cost)
    results, summary = _with_names(results, spec.runs), _with_names(summary, spec.runs)
    names = list(dict.fromkeys(summary["name"]))
    chosen = [n for n in spec.estimators if n in names]
    return intervals_figure(results, summary, agents, chosen or _in_order(names), cost)


def _with_names(table: pd.DataFrame, runs: tuple[str, ...]) -> pd.DataFrame:
    """Add a column ``name``: the estimator, followed by the run if it is not the first run with this estimator."""
    first = table.groupby("estimator")["run"].transform("first")
    table = table[(table["estimator"] != COMPLETE) | (table["run"] == runs[0])]
    later = table["estimator"] + ", " + table["run"].str.replace("the paper's ", "")
    return table.assign(name=table["estimator"].where(table["run"] == first[table.index], later))


def _in_order(names: list[str]) -> list[str]:
    """Sort names by the order of the catalogue; known propensities and later runs follow their method."""
    order = {name: k for k, name in enumerate([COMPLETE, *METHODS])}
    return sorted(names, key=lambda n: (order.get(n.split(",")[0].removesuffix("-gt"), 99), "," in n, "-gt" in n))
