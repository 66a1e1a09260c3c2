"""Bounds of a sensitivity analysis, drawn as bands over Lambda."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .._arguments import check_instance
from ..sensitivity_analysis.analysis import Sensitivity
from .style import DARK, GRID, axes, colour, finished, require_matplotlib, short

__all__ = ["save_bands", "sensitivity"]


def save_bands(found: Sensitivity, file: Path) -> None:
    """Write the drawing to a file, in a figure of its own that pyplot does not know."""
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 4.8), layout="constrained")
    sensitivity(found, figure.subplots())
    figure.savefig(file, dpi=150)


def sensitivity(found: Sensitivity, ax: Any = None) -> Any:
    """Draw the bounds of the cost over Lambda, and the Lambda at which the cheapest policy may cost as much as the next.

    Parameters
    ----------
    found : Sensitivity
        Result of `afape.sensitivity`.
    ax : matplotlib Axes, optional
        Where to draw; default a new figure.

    Returns
    -------
    matplotlib Axes
    """
    check_instance("found", found, Sensitivity, "a result of afape.sensitivity")
    ax = axes(ax, 7.0, 4.8)
    for k, name in enumerate(found.policies):
        _band(found, name, colour(k), ax)
    _tipping(found, ax)
    strengths = np.array(found.costs.lambdas)
    if len(strengths) > 1:
        ax.set_xlim(strengths[0], strengths[-1])
    ax.set_xscale("log")
    ax.set_xticks(strengths, [f"{v:g}" for v in strengths])
    ax.minorticks_off()
    ax.set_xlabel("Λ: largest odds ratio between true and modelled recording")
    ax.set_ylabel(f"{found.costs.target} cost")
    ax.grid(axis="y", color=GRID)
    columns = min(2, len(found.policies))
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=columns, frameon=False, fontsize=9)
    level = f", lighter: {100 * found.confidence:g} % confidence" if found.table["lower"].notna().any() else ""
    ax.set_title(f"{found.costs.kind.capitalize()} bounds{level}", fontsize=10, loc="left")
    return finished(ax)


def _band(found: Sensitivity, name: str, colour: str, ax: Any) -> None:
    part = found.table[found.table["policy"] == name]
    x = part["Lambda"].to_numpy()
    # Bands of several policies overlap: the more policies, the more transparent each band.
    alpha = 0.5 / (1 + len(found.policies))
    if part["lower"].notna().any():
        ax.fill_between(x, part["lower"], part["upper"], color=colour, alpha=0.4 * alpha, lw=0)
        for end in ("lower", "upper"):
            ax.plot(x, part[end], color=colour, lw=0.7, ls=(0, (4, 3)), alpha=0.6)
    ax.fill_between(x, part["bound_lower"], part["bound_upper"], color=colour, alpha=alpha, lw=0)
    for end, label in (("bound_lower", None), ("bound_upper", name)):
        ax.plot(x, part[end], color=colour, lw=1.6, marker="o", ms=3.5, clip_on=False, label=label)


def _tipping(found: Sensitivity, ax: Any) -> None:
    """Mark where the cheapest policy may first cost as much as the next."""
    estimates = {name: found.estimate(name) for name in found.policies}
    ranked = sorted((n for n in estimates if np.isfinite(estimates[n])), key=lambda n: estimates[n])
    if len(ranked) < 2:
        return
    tips = found.tipping(ranked[0], ranked[1], bootstrap=0).Lambda
    low, high = found.costs.lambdas[0], found.costs.lambdas[-1]
    if low < tips < high:
        ax.axvline(tips, color=DARK, lw=1, ls="--", zorder=1)
        words = f"Λ = {tips:.2f}: {short(ranked[0], 24)}\nmay cost as much as\n{short(ranked[1], 30)}"
        left = np.log(tips / low) < 0.55 * np.log(high / low)
        ax.annotate(
            words,
            (tips, 0.985),
            xycoords=("data", "axes fraction"),
            xytext=(5 if left else -5, 0),
            textcoords="offset points",
            ha="left" if left else "right",
            va="top",
            fontsize=8,
            color=DARK,
        )
