"""What an estimate relies on: support in the records, influential rows, balance after weighting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from .._arguments import check_count, check_instance
from .._arrays import cluster_sums
from ..estimators.estimate import Bounds
from ..results.evaluation import Evaluation
from .style import BLUE, GREY, GRID, RED, axes, colour, counts_on_log, finished, short, wrapped

__all__ = ["SET_WIDTH", "balance", "love_plot", "support", "weights"]

SET_WIDTH = 34  # letters per line in the name of a set of groups


def support(found: Evaluation, most: int = 12, ax: Any = None) -> Any:
    """Draw the sets that the policy wants most: the share of its runs that want them, the share of rows that have them.

    Parameters
    ----------
    found : Evaluation
        Result of `evaluate`.
    most : int
        Number of sets to show.
    ax : matplotlib Axes, optional
        Where to draw; default a new figure.

    Returns
    -------
    matplotlib Axes
    """
    check_instance("found", found, Evaluation, "a result of afape.evaluate")
    check_count("most", most, 1)
    table = found.support.sets.head(most).iloc[::-1]
    broken = set(found.support.violations["set"]) if len(found.support.violations) else set()
    ax = axes(ax, 7.0, 1.2 + 0.42 * len(table))
    y = np.arange(len(table))
    lacking = [name in broken or rows == 0 for name, rows in zip(table["set"], table["rows_recorded"], strict=True)]
    colours = [RED if bad else BLUE for bad in lacking]
    ax.barh(y + 0.18, 100 * table["wanted"], height=0.34, color=colours, label="runs that want it")
    ax.barh(y - 0.18, 100 * table["share_recorded"], height=0.34, color=GREY, label="rows that have it")
    ax.set_yticks(y, [wrapped(name, SET_WIDTH) for name in table["set"]])
    ax.set_xlabel("%")
    ax.set_xlim(0, 100)
    ax.grid(axis="x", color=GRID)
    ax.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, frameon=False, fontsize=9)
    return finished(ax)


def weights(found: Evaluation, ax: Any = None) -> Any:
    """Draw how much of the variance of the total cost comes from the most influential rows, one line per estimator.

    Parameters
    ----------
    found : Evaluation
        Result of `evaluate`.
    ax : matplotlib Axes, optional
        Where to draw; default a new figure.

    Returns
    -------
    matplotlib Axes
    """
    check_instance("found", found, Evaluation, "a result of afape.evaluate")
    ax = axes(ax, 7.0, 3.4)
    names = [c.name for c in found.choices if c.method.weighs and not c.method.biased and c.name in found]
    totals = {name: found[name]["total"] for name in names}
    influences = {n: e.influence for n, e in totals.items() if not isinstance(e, Bounds) and e.influence is not None}
    influences = {name: phi for name, phi in influences.items() if phi.any()}
    for k, (name, phi) in enumerate(influences.items()):
        squares = np.sort(cluster_sums(phi, totals[name].cluster) ** 2)[::-1]
        share = 100 * np.cumsum(squares) / squares.sum()
        at = np.unique(np.geomspace(1, len(share), 200).astype(int))
        ax.plot(at, share[at - 1], color=colour(k), lw=1.8, ls=("-", "--", ":")[k % 3], label=name)
    ax.axvline(10, color=GREY, lw=1, ls="--")
    ax.set_xscale("log")
    counts_on_log(ax.xaxis)
    ax.set(xlabel="most influential rows (dashed: ten rows)", ylabel="% of the variance", ylim=(0, 102))
    ax.grid(color=GRID)
    if influences:
        ax.legend(frameon=False, fontsize=9)
    return finished(ax)


def balance(found: Evaluation, most: int = 20, ax: Any = None) -> Any:
    """Love plot: how far rows that have a set differ from all rows, before and after weighting.

    Parameters
    ----------
    found : Evaluation
        Result of `evaluate`.
    most : int
        Number of lines to show, the largest differences first.
    ax : matplotlib Axes, optional
        Where to draw; default a new figure.

    Returns
    -------
    matplotlib Axes
    """
    check_instance("found", found, Evaluation, "a result of afape.evaluate")
    return love_plot(found.support.balance, most, ax)


def love_plot(table: pd.DataFrame, most: int, ax: Any = None) -> Any:
    """Draw absolute differences before and after weighting, one line per set and column, the largest at the top."""
    check_count("most", most, 1)
    shown = table.head(most).iloc[::-1]
    ax = axes(ax, 7.0, 1.2 + 0.28 * len(shown))
    height = np.arange(len(shown))
    for column, edge, face in (("before", RED, "none"), ("after", BLUE, BLUE)):
        size = shown[column].abs().to_numpy(dtype=float)
        ax.scatter(size, height, edgecolors=edge, facecolors=face, label=f"{column} weighting", zorder=3)
    ax.axvline(0.1, color=GREY, ls="--", lw=1)
    ax.set_yticks(
        height, [f"{short(r['column'], 30)} ({wrapped(r['set'], SET_WIDTH)})" for r in shown.to_dict("records")]
    )
    ax.set_xlabel("standard deviations")
    ax.set_xlim(left=0.0)
    ax.grid(axis="y", color=GRID)
    ax.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, frameon=False, fontsize=9)
    return finished(ax)
