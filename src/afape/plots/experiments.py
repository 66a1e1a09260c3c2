"""Figures of experiments with known truth, from tables of results.

Tables have one line per data set (``results``) or one line per group of data sets (``summary``), with columns ``agent``,
``estimator``, ``run``, ``rows``, ``truth`` and ``estimate`` or ``mean``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

__all__ = [
    "FIGURE_STYLE",
    "convergence_figure",
    "intervals_figure",
    "plot_convergence",
    "plot_error",
    "plot_intervals",
    "plot_robustness",
    "robustness_figure",
    "style_of",
]

# Okabe and Ito's colours, which colour-blind readers can distinguish.
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
FIGURE_STYLE: Any = {  # matplotlib settings of the figures
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.labelsize": 8,
    "legend.fontsize": 7.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "afape",  # the same figure gives the same file
    "svg.fonttype": "none",
}


def style_of(estimator: str) -> dict[str, Any]:
    """Return colour and marker of an estimator. A known propensity (``-gt``) changes neither."""
    method = estimator.removesuffix("-gt")
    return {"color": _COLOURS.get(method, "#444444"), "marker": _MARKERS.get(method, "o")}


def plot_convergence(ax: Any, results: pd.DataFrame, estimators: Sequence[str], cost: str = "total cost") -> Any:
    """Draw the mean estimate of one agent against the number of rows, with the range of the middle 90 % of the data sets."""
    ax.axhline(results["truth"].iloc[0], color="black", lw=1.2, ls="--", label="J (truth)", zorder=3)
    for name in estimators:
        own = results[results["estimator"] == name].groupby("rows")["estimate"]
        style = style_of(name)
        low, high = own.quantile(0.05), own.quantile(0.95)
        ax.fill_between(low.index, low, high, color=style["color"], alpha=0.15, lw=0)
        ax.plot(own.mean().index, own.mean(), label=name, ms=3.5, lw=1.3, **style)
    return _rows_axis(ax, results, f"estimated {cost}")


def plot_error(ax: Any, results: pd.DataFrame, estimators: Sequence[str]) -> Any:
    """Draw the root mean squared error of one agent against the number of rows, on logarithmic scales."""
    squared = results.assign(square=(results["estimate"] - results["truth"]) ** 2)
    for name in estimators:
        own = np.sqrt(squared[squared["estimator"] == name].groupby("rows")["square"].mean())
        ax.plot(own.index, own, label=name, ms=3.5, lw=1.3, **style_of(name))
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


def plot_intervals(
    ax: Any, results: pd.DataFrame, summary: pd.DataFrame, names: Sequence[str], cost: str = "total cost"
) -> Any:
    """Draw the estimates of one agent, one line per ``name``: data sets, mean, mean interval, number of covering intervals.

    Estimates and intervals outside the limits of the axis are drawn at its margin.
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
        covered = f"{own['covered']:.0f}/{own['intervals']:.0f}" if own["intervals"] else "no interval"
        ax.text(1.02, place, covered, transform=ax.get_yaxis_transform(), va="center", fontsize=6.5, color="0.35")
    ax.set_xlim(low, high)
    ax.set_ylim(-0.7, len(names) - 0.3)
    ax.set_yticks(range(len(names)), list(reversed(names)), parse_math=False)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", color="0.93", lw=0.6)
    ax.set_xlabel(cost)
    return ax


def _limits(lines: pd.DataFrame, truth: float) -> tuple[float, float]:
    """Return limits that show means and typical intervals; one estimator with a huge spread does not set them."""
    half = float(np.nanmedian((lines["mean_upper"] - lines["mean_lower"]) / 2))
    ends = np.concatenate([lines["mean"], lines["mean_lower"], lines["mean_upper"], [truth]])
    ends = ends[np.isfinite(ends)]
    reach = max(4 * half, 1.3 * float(np.nanmax(np.abs(lines["mean"] - truth), initial=0.0)), 0.05 * abs(truth))
    low, high = max(float(ends.min()), truth - reach), min(float(ends.max()), truth + reach)
    pad = 0.08 * (high - low)
    return low - pad, high + pad


def plot_robustness(ax: Any, summary: pd.DataFrame, settings: Sequence[str], cost: str = "total cost") -> Any:
    """Draw the mean estimate of one agent in each setting (column ``run``); bars cover 95 % of the data sets."""
    ax.axvline(float(summary["truth"].iloc[0]), color="black", lw=1.0, ls="--", label="J (truth)", zorder=1)
    estimators = list(dict.fromkeys(summary["estimator"]))
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
    ax.set_yticks(range(len(order)), order, parse_math=False)
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(cost)
    return ax


def convergence_figure(
    results: pd.DataFrame, agents: Sequence[str], estimators: Sequence[str], cost: str = "total cost"
) -> Any:
    """Return a figure with one column per agent: mean estimates above, root mean squared errors below."""
    figure, axes = _figure(2, len(agents), (1.2 + 2.9 * len(agents), 5.0))
    for column, agent in enumerate(agents):
        own = results[results["agent"] == agent]
        plot_convergence(axes[0, column], own, estimators, cost).set_title(agent, parse_math=False)
        plot_error(axes[1, column], own, estimators)
        axes[0, column].set_xlabel("")
    for ax in axes[:, 1:].ravel():
        ax.set_ylabel("")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside right center", frameon=False)
    return figure


def intervals_figure(
    results: pd.DataFrame, summary: pd.DataFrame, agents: Sequence[str], names: Sequence[str], cost: str = "total cost"
) -> Any:
    """Return a figure with one panel per agent and one line per ``name``, a column of both tables."""
    figure, axes = _figure(1, len(agents), (1.3 + 2.0 * len(agents), 0.9 + 0.24 * len(names)))
    for ax, agent in zip(axes[0], agents, strict=True):
        own = summary[summary["agent"] == agent]
        plot_intervals(ax, results[results["agent"] == agent], own, names, cost)
        ax.set_title(f"{agent}, J = {own['truth'].iloc[0]:.2f}", parse_math=False)
    return figure


def robustness_figure(
    summary: pd.DataFrame, agents: Sequence[str], settings: Sequence[str], cost: str = "total cost"
) -> Any:
    """Return a figure with one panel per agent and one line per setting (column ``run``)."""
    figure, axes = _figure(1, len(agents), (1.8 + 2.6 * len(agents), 3.0))
    for ax, agent in zip(axes[0], agents, strict=True):
        plot_robustness(ax, summary[summary["agent"] == agent], settings, cost).set_title(agent, parse_math=False)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside right center", frameon=False)
    return figure


def _figure(rows: int, columns: int, size: tuple[float, float]) -> tuple[Any, Any]:
    """Return a figure and its axes, (rows, columns); columns of axes share x, or a single row shares y."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, sharex=rows > 1, sharey=rows == 1)
