"""Costs of policies, and the differences between them, with intervals."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arguments import check_estimator, check_instance
from ..estimators.estimate import Bounds
from ..results.comparison import Comparison
from ..results.evaluation import Evaluation
from .style import DARK, GREY, GRID, ORANGE, SKY, axes, finished, short

__all__ = ["costs", "differences"]


def costs(found: Comparison | Evaluation, estimator: str | None = None, ax: Any = None) -> Any:
    """Draw the cost of each policy as a bar: acquisition and misclassification stacked, with the interval of the total.

    Parameters
    ----------
    found : Comparison or Evaluation
        Result of `compare` or `evaluate`.
    estimator : str, optional
        Name of an estimator; default the preferred one.
    ax : matplotlib Axes, optional
        Where to draw; default a new figure.

    Returns
    -------
    matplotlib Axes
    """
    check_instance("found", found, (Comparison, Evaluation), "a result of afape.compare or afape.evaluate")
    comparison = found if isinstance(found, Comparison) else Comparison({found.policy: found}, found.confidence)
    estimator = comparison.best_estimator if estimator is None else check_estimator(estimator)
    totals = comparison.estimates(estimator, "total")
    parts = {t: comparison.estimates(estimator, t) for t in ("acquisition", "misclassification")}
    order = sorted(totals, key=lambda name: -sum(totals[name].interval(comparison.confidence)))
    ax = axes(ax, 7.0, 1.3 + 0.5 * len(order))
    for y, name in enumerate(order):
        low, high = totals[name].interval(comparison.confidence)
        if isinstance(totals[name], Bounds):
            style = {"height": 0.5, "color": "none", "edgecolor": GREY, "hatch": "///"}
            ax.barh(y, high - low, left=low, label=_once(ax, "bounds"), **style)
            continue
        paid, wrong = parts["acquisition"][name].value, parts["misclassification"][name].value
        ax.barh(y, paid, height=0.55, color=SKY, label=_once(ax, "acquisition"))
        ax.barh(y, wrong, left=paid, height=0.55, color=ORANGE, label=_once(ax, "misclassification"))
        if np.isfinite(low):
            ax.errorbar(
                totals[name].value,
                y,
                xerr=[[max(totals[name].value - low, 0)], [max(high - totals[name].value, 0)]],
                color=DARK,
                capsize=4,
                lw=1.5,
                label=_once(ax, f"{100 * comparison.confidence:g} % interval of the total"),
            )
    ax.set_yticks(range(len(order)), [short(name) for name in order])
    ax.set_xlabel(f"cost of a run, by {estimator}")
    ax.set_xlim(left=min(0.0, ax.get_xlim()[0]))
    ax.grid(axis="x", color=GRID)
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False, fontsize=9)
    return finished(ax)


def _once(ax: Any, label: str) -> str:
    """Return a label for the legend that shows every label once."""
    return "_nolegend_" if label in ax.get_legend_handles_labels()[1] else label


def differences(found: Comparison, estimator: str | None = None, target: str = "total", ax: Any = None) -> Any:
    """Draw the differences of all pairs of policies; a point is filled if its simultaneous interval excludes 0.

    Parameters
    ----------
    found : Comparison
        Result of `compare`.
    estimator, target
        As in `Comparison.differences`.
    ax : matplotlib Axes, optional
        Where to draw; default a new figure.

    Returns
    -------
    matplotlib Axes
    """
    check_instance("found", found, Comparison, "a result of afape.compare")
    table = found.differences(estimator, target).iloc[::-1]
    ax = axes(ax, 7.0, 1.2 + 0.36 * len(table))
    for y, line in enumerate(table.to_dict("records")):
        clear = line["lower"] > 0 or line["upper"] < 0
        ax.plot([line["lower"], line["upper"]], [y, y], color=DARK, lw=1.5)
        ax.plot([line["difference"]], [y], "o", color=DARK, mfc=DARK if clear else "white", ms=6)
    ax.axvline(0, color=GREY, lw=1, ls="--")
    ax.set_yticks(
        range(len(table)), [f"{short(r['policy'], 22)} − {short(r['minus'], 22)}" for r in table.to_dict("records")]
    )
    ax.set_xlabel(f"difference of the {target} cost, simultaneous {100 * found.confidence:g} % intervals")
    ax.grid(axis="x", color=GRID)
    return finished(ax)
