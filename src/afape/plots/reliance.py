"""What an estimate relies on: support, weights, balance, and reasons that nobody measured."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import cluster_sums
from ..estimators import Bounds
from ..result import Evaluation
from ..sensitivity_analysis import Sensitivity
from .style import BAD, COLOURS, GREY, axes, counts_on_log, finished, short

__all__ = ["balance", "sensitivity", "support", "weights"]


def support(found: Evaluation, most: int = 12, ax: Any = None) -> Any:
    """Sets that the policy wants most: how many of its runs want them, and how many rows have them.

    Parameters
    ----------
    found : Evaluation
        What `evaluate` returned.
    most : int
        Sets to show.
    ax : matplotlib Axes, optional
        Where to draw; default a new figure.

    Returns
    -------
    matplotlib Axes
    """
    table = found.support.sets.head(most).iloc[::-1]
    broken = set(found.support.violations["set"]) if len(found.support.violations) else set()
    ax = axes(ax, 7.0, 1.2 + 0.42 * len(table))
    y = np.arange(len(table))
    lacking = [name in broken or rows == 0 for name, rows in zip(table["set"], table["rows_recorded"], strict=True)]
    colours = [BAD if bad else COLOURS[0] for bad in lacking]
    ax.barh(y + 0.18, 100 * table["wanted"], height=0.34, color=colours, label="runs that want it")
    ax.barh(y - 0.18, 100 * table["share_recorded"], height=0.34, color=GREY, label="rows that have it")
    ax.set_yticks(y, [short(name, 28) for name in table["set"]])
    ax.set_xlabel("%")
    ax.set_xlim(0, 100)
    ax.grid(axis="x", color="0.92")
    ax.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, frameon=False, fontsize=9)
    return finished(ax)


def weights(found: Evaluation, ax: Any = None) -> Any:
    """How few rows carry each estimate: share of the variance of the total cost in its heaviest rows.

    Parameters
    ----------
    found : Evaluation
        What `evaluate` returned.
    ax : matplotlib Axes, optional
        Where to draw; default a new figure.

    Returns
    -------
    matplotlib Axes
    """
    ax = axes(ax, 7.0, 3.4)
    names = [c.name for c in found.choices if not c.method.biased and "propensity" in c.method.needs]
    k = 0
    for name in names:
        estimate = None if name not in found else found[name]["total"]
        if (
            estimate is None
            or isinstance(estimate, Bounds)
            or estimate.influence is None
            or not estimate.influence.any()
        ):
            continue
        squares = np.sort(cluster_sums(estimate.influence, estimate.cluster) ** 2)[::-1]
        share = 100 * np.cumsum(squares) / squares.sum()
        at = np.unique(np.geomspace(1, len(share), 200).astype(int))
        ax.plot(at, share[at - 1], color=COLOURS[k % len(COLOURS)], lw=1.8, ls=("-", "--", ":")[k % 3], label=name)
        k += 1
    ax.axvline(10, color=GREY, lw=1, ls="--")
    ax.set_xscale("log")
    counts_on_log(ax.xaxis)
    ax.set(xlabel="heaviest rows (dashed: ten)", ylabel="% of the variance", ylim=(0, 102))
    ax.grid(color="0.92")
    if k:
        ax.legend(frameon=False, fontsize=9)
    return finished(ax)


def balance(found: Evaluation, most: int = 20, ax: Any = None) -> Any:
    """Love plot: how far rows that have a set differ from all rows, before and after weighting.

    Parameters
    ----------
    found : Evaluation
        What `evaluate` returned.
    most : int
        Lines to show, the largest differences first.
    ax : matplotlib Axes, optional
        Where to draw; default a new figure.

    Returns
    -------
    matplotlib Axes
    """
    from ..diagnostics.love_plot import love_plot

    shown = found.support.balance.head(most)
    named = shown.assign(column=[short(c, 20) for c in shown["column"]], set=[short(s, 15) for s in shown["set"]])
    return finished(love_plot(named, axes(ax, 7.0, 1.2 + 0.28 * len(shown)), most))


def sensitivity(found: Sensitivity, ax: Any = None) -> Any:
    """Bounds of the cost over the strength of an unmeasured reason.

    Parameters
    ----------
    found : Sensitivity
        What `afape.sensitivity` returned.
    ax : matplotlib Axes, optional
        Where to draw; default a new figure.

    Returns
    -------
    matplotlib Axes
    """
    drawn = found.plot(axes(ax, 7.0, 4.4))
    names = len(found.policies)
    drawn.legend(
        loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2 if names > 1 else 1, frameon=False, fontsize=9
    )
    return finished(drawn)
