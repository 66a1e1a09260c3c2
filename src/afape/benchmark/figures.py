"""Figures of experiments: functions that draw on matplotlib axes, and one that writes what a description asks for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .description import Description, FigureSpec
from .drawing import COMPLETE

__all__ = ["draw_figures", "plot_convergence", "plot_error", "plot_intervals", "plot_robustness", "style_of"]

# Okabe and Ito's colours, which stay apart for colour-blind readers.
_COLOURS = {
    "complete": "#555555",
    "imp-mean": "#999999",
    "blocking": "#E69F00",
    "cc": "#CC79A7",
    "ipw-miss": "#D55E00",
    "mi": "#56B4E9",
    "ipw-semi": "#0072B2",
    "ipw-semi-miss": "#56B4E9",
    "dm-semi": "#B8A900",
    "dm-semi-miss": "#B8A900",
    "drl-semi": "#009E73",
    "drl-semi-miss": "#009E73",
    "eff-semi": "#000000",
    "eff-semi-miss": "#000000",
}
_MARKERS = {
    "complete": "*",
    "imp-mean": "v",
    "blocking": "s",
    "cc": "^",
    "ipw-miss": "D",
    "ipw-semi": "o",
    "ipw-semi-miss": "P",
}
_SIZES: Any = {
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.labelsize": 8,
    "legend.fontsize": 7.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "afape",  # the same figure, the same file
    "svg.fonttype": "none",
}


def style_of(estimator: str) -> dict[str, Any]:
    """Colour and marker of an estimator, the same in every figure; a known propensity has the same colour."""
    method = estimator.removesuffix("-gt")
    return {"color": _COLOURS.get(method, "#444444"), "marker": _MARKERS.get(method, "o")}


def plot_convergence(ax: Any, results: pd.DataFrame, estimators: Sequence[str]) -> Any:
    """Mean estimate of one agent against the number of rows, with the range of the middle 90 % of the data sets."""
    ax.axhline(results["truth"].iloc[0], color="black", lw=1.2, ls="--", label="J (truth)", zorder=3)
    for name in estimators:
        part = results[results["estimator"] == name].groupby("rows")["estimate"]
        style = style_of(name)
        low, high = part.quantile(0.05), part.quantile(0.95)
        ax.fill_between(low.index, low, high, color=style["color"], alpha=0.15, lw=0)
        ax.plot(part.mean().index, part.mean(), label=name, ms=3.5, lw=1.3, **style)
    return _rows_axis(ax, results, "estimated total cost")


def plot_error(ax: Any, results: pd.DataFrame, estimators: Sequence[str]) -> Any:
    """Root mean squared error of one agent against the number of rows, on logarithmic scales."""
    squared = results.assign(square=(results["estimate"] - results["truth"]) ** 2)
    for name in estimators:
        part = np.sqrt(squared[squared["estimator"] == name].groupby("rows")["square"].mean())
        ax.plot(part.index, part, label=name, ms=3.5, lw=1.3, **style_of(name))
    from matplotlib.ticker import LogLocator

    ax.set_yscale("log")
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_formatter("")
    return _rows_axis(ax, results, "root mean squared error")


def _rows_axis(ax: Any, results: pd.DataFrame, label: str) -> Any:
    sizes = sorted(results["rows"].unique())
    ax.set_xscale("log")
    ax.set_xticks(sizes, [f"{n:,}" for n in sizes])
    ax.minorticks_off()
    ax.set_xlabel("rows")
    ax.set_ylabel(label)
    ax.grid(axis="y", color="0.93", lw=0.6)
    return ax


def plot_intervals(ax: Any, results: pd.DataFrame, summary: pd.DataFrame, names: Sequence[str]) -> Any:
    """Estimates of one agent by name of estimator (column ``name``): data sets, mean, mean interval, intervals that hit.

    The axis is that of the estimates and intervals of estimators that are right somewhere; what lies beyond is marked at the
    margin.
    """
    truth = float(summary["truth"].iloc[0])
    ax.axvline(truth, color="black", lw=1.0, ls="--", zorder=1)
    lines, points = summary.set_index("name"), results.groupby("name")["estimate"]
    low, high = _limits(lines.reindex(list(names)), truth)
    for place, name in enumerate(reversed(names)):
        if name not in lines.index:
            continue
        own, style = lines.loc[name], style_of(name.split(",")[0])
        single = points.get_group(name).clip(low, high)
        ax.plot(single, np.full(len(single), place - 0.22), "|", color=style["color"], ms=4, alpha=0.6, mew=0.7)
        if np.isfinite(own["mean_lower"]):
            ax.plot(
                np.clip([own["mean_lower"], own["mean_upper"]], low, high), [place, place], color=style["color"], lw=1.6
            )
        face = "white" if "-gt" in name else style["color"]
        ax.plot(np.clip(own["mean"], low, high), place, style["marker"], color=style["color"], mfc=face, ms=4.5)
        hits = f"{own['covered']:.0f}/{own['intervals']:.0f}" if own["intervals"] else "no interval"
        ax.text(1.02, place, hits, transform=ax.get_yaxis_transform(), va="center", fontsize=6.5, color="0.35")
    ax.set_xlim(low, high)
    ax.set_ylim(-0.7, len(names) - 0.3)
    ax.set_yticks(range(len(names)), list(reversed(names)))
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", color="0.93", lw=0.6)
    ax.set_xlabel("total cost")
    return ax


def _limits(lines: pd.DataFrame, truth: float) -> tuple[float, float]:
    """Room for means and typical intervals; a single estimator of enormous spread must not decide it."""
    half = float(np.nanmedian((lines["mean_upper"] - lines["mean_lower"]) / 2))
    ends = np.concatenate([lines["mean"], lines["mean_lower"], lines["mean_upper"], [truth]])
    ends = ends[np.isfinite(ends)]
    reach = max(4 * half, 1.3 * float(np.nanmax(np.abs(lines["mean"] - truth), initial=0.0)), 0.05 * abs(truth))
    low, high = max(float(ends.min()), truth - reach), min(float(ends.max()), truth + reach)
    pad = 0.08 * (high - low)
    return low - pad, high + pad


def plot_robustness(ax: Any, summary: pd.DataFrame, settings: Sequence[str]) -> Any:
    """Mean estimate of one agent in each setting (column ``run``), bars over 95 % of the data sets."""
    ax.axvline(float(summary["truth"].iloc[0]), color="black", lw=1.0, ls="--", label="J (truth)", zorder=1)
    estimators = [e for e in dict.fromkeys(summary["estimator"]) if e != COMPLETE]
    order = list(reversed(settings))
    for j, name in enumerate(estimators):
        own = summary[summary["estimator"] == name].set_index("run").reindex(order)
        place = np.arange(len(order)) + 0.18 * ((len(estimators) - 1) / 2 - j)
        style = style_of(name)
        ax.errorbar(
            own["mean"], place, xerr=1.96 * own["std_deviation"], fmt=style["marker"], color=style["color"], ms=4, lw=1.2,
            label=name,
        )  # fmt: skip
    for line in np.arange(len(order) - 1) + 0.5:
        ax.axhline(line, color="0.93", lw=0.6)
    ax.set_yticks(range(len(order)), order)
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel("total cost")
    return ax


def draw_figures(description: Description, results: pd.DataFrame, summary: pd.DataFrame, folder: Path) -> list[Path]:
    """Write every figure of a description as PNG and SVG."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    makers = {"convergence": _convergence, "intervals": _intervals, "robustness": _robustness}
    written = []
    for spec in description.figures:
        agents = list(spec.agents) or list(dict.fromkeys(results["agent"]))
        chosen = (results["target"] == "total") & results["run"].isin(spec.runs) & results["agent"].isin(agents)
        short = (summary["target"] == "total") & summary["run"].isin(spec.runs) & summary["agent"].isin(agents)
        with plt.rc_context(_SIZES):
            figure = makers[spec.kind](plt, spec, results[chosen], summary[short], agents)
            figure.suptitle(spec.title, fontsize=10, x=0.01, ha="left")
            for ending in ("png", "svg"):
                file = folder / f"{spec.name}.{ending}"
                figure.savefig(file, dpi=200, metadata={"Date": None} if ending == "svg" else {"Software": None})
                written.append(file)
            plt.close(figure)
    return written


def _convergence(plt: Any, spec: FigureSpec, results: pd.DataFrame, summary: pd.DataFrame, agents: list[str]) -> Any:
    figure, axes = plt.subplots(
        2, len(agents), figsize=(1.2 + 2.9 * len(agents), 5.0), layout="constrained", squeeze=False, sharex=True
    )
    shown = [e for e in spec.estimators if e in set(results["estimator"])] or [
        e for e in dict.fromkeys(results["estimator"]) if e != COMPLETE
    ]
    for column, agent in enumerate(agents):
        own = results[results["agent"] == agent]
        plot_convergence(axes[0, column], own, shown).set_title(agent)
        plot_error(axes[1, column], own, shown)
        axes[0, column].set_xlabel("")
    for ax in axes[:, 1:].ravel():
        ax.set_ylabel("")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside right center", frameon=False)
    return figure


def _intervals(plt: Any, spec: FigureSpec, results: pd.DataFrame, summary: pd.DataFrame, agents: list[str]) -> Any:
    results, summary = _named(results, spec), _named(summary, spec)
    names = list(dict.fromkeys(summary["name"]))
    names = [n for n in spec.estimators if n in names] or _in_order(names)
    figure, axes = plt.subplots(
        1,
        len(agents),
        figsize=(1.3 + 2.0 * len(agents), 0.9 + 0.24 * len(names)),
        layout="constrained",
        squeeze=False,
        sharey=True,
    )
    for ax, agent in zip(axes[0], agents, strict=True):
        own = summary[summary["agent"] == agent]
        plot_intervals(ax, results[results["agent"] == agent], own, names)
        ax.set_title(f"{agent}, J = {own['truth'].iloc[0]:.2f}")
    return figure


def _named(table: pd.DataFrame, spec: FigureSpec) -> pd.DataFrame:
    """Estimators by name; those that come in two runs are told apart by the later run's name."""
    first = table.groupby("estimator")["run"].transform("first")
    table = table[(table["estimator"] != COMPLETE) | (table["run"] == spec.runs[0])]
    marked, first = table["run"].str.replace("the paper's ", ""), first[table.index]
    return table.assign(name=table["estimator"].where(table["run"] == first, table["estimator"] + ", " + marked))


def _in_order(names: list[str]) -> list[str]:
    """In the order of the catalogue, each followed by its variants."""
    from ..estimators.catalogue import METHODS

    order = {name: k for k, name in enumerate([COMPLETE, *METHODS])}
    return sorted(names, key=lambda n: (order.get(n.split(",")[0].removesuffix("-gt"), 99), "," in n, "-gt" in n))


def _robustness(plt: Any, spec: FigureSpec, results: pd.DataFrame, summary: pd.DataFrame, agents: list[str]) -> Any:
    figure, axes = plt.subplots(
        1, len(agents), figsize=(1.8 + 2.6 * len(agents), 3.0), layout="constrained", squeeze=False, sharey=True
    )
    for ax, agent in zip(axes[0], agents, strict=True):
        plot_robustness(ax, summary[summary["agent"] == agent], spec.runs).set_title(agent)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside right center", frameon=False)
    return figure
