"""The figure of a sensitivity analysis."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .analysis import Sensitivity

__all__ = ["draw_bands", "save_bands"]

# Okabe and Ito's colours, which colour-blind eyes tell apart; black and yellow left out.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")


def _require_matplotlib() -> None:
    if find_spec("matplotlib") is None:
        raise ModuleNotFoundError(
            "The figure is drawn with matplotlib, which is not installed: pip install 'afape[plot]'."
        )


def save_bands(found: Sensitivity, file: Path) -> None:
    """Write the figure, without touching the figures that a user has open."""
    _require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 4.4), layout="constrained")
    draw_bands(found, figure.subplots())
    figure.savefig(file, dpi=150)


def draw_bands(found: Sensitivity, ax: Any = None) -> Any:
    """Bounds as bands over Lambda, confidence lighter, and the Lambda at which the cheapest policy may be overtaken."""
    _require_matplotlib()
    if ax is None:
        import matplotlib.pyplot as plt

        _, ax = plt.subplots(figsize=(8.0, 4.4), layout="constrained")
    for k, name in enumerate(found.policies):
        _band(found, name, _COLOURS[k % len(_COLOURS)], ax)
    _tipping(found, ax)
    strengths = np.array(found.study.lambdas)
    if len(strengths) > 1:
        ax.set_xlim(strengths[0], strengths[-1])
    ax.set_xscale("log")
    ax.set_xticks(strengths, [f"{v:g}" for v in strengths])
    ax.minorticks_off()
    ax.set_xlabel("Λ: largest odds ratio between true and modelled recording")
    ax.set_ylabel(f"{found.study.target} cost")
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="0.92", zorder=0)
    ax.set_axisbelow(True)
    ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=9)
    level = f", lighter: {100 * found.confidence:g} % confidence" if found.table["lower"].notna().any() else ""
    ax.set_title(f"{found.study.kind.capitalize()} bounds{level}", fontsize=10, loc="left")
    return ax


def _band(found: Sensitivity, name: str, colour: str, ax: Any) -> None:
    part = found.table[found.table["policy"] == name]
    x = part["Lambda"].to_numpy()
    # Bands of many policies lie on top of each other: the more there are, the thinner each is painted.
    paint = 0.5 / (1 + len(found.policies))
    if part["lower"].notna().any():
        ax.fill_between(x, part["lower"], part["upper"], color=colour, alpha=0.4 * paint, lw=0)
        for end in ("lower", "upper"):
            ax.plot(x, part[end], color=colour, lw=0.7, ls=(0, (4, 3)), alpha=0.6)
    ax.fill_between(x, part["bound_lower"], part["bound_upper"], color=colour, alpha=paint, lw=0)
    for end, label in (("bound_lower", None), ("bound_upper", name)):
        ax.plot(x, part[end], color=colour, lw=1.6, marker="o", ms=3.5, clip_on=False, label=label)


def _tipping(found: Sensitivity, ax: Any) -> None:
    """Mark where the cheapest policy may first cost as much as the next."""
    estimates = {name: found.estimate(name) for name in found.policies}
    ranked = sorted((n for n in estimates if np.isfinite(estimates[n])), key=lambda n: estimates[n])
    if len(ranked) < 2:
        return
    tips = found.tipping(ranked[0], ranked[1], bootstrap=0).Lambda
    low, high = found.study.lambdas[0], found.study.lambdas[-1]
    if low < tips < high:
        ax.axvline(tips, color="0.25", lw=1, ls="--", zorder=1)
        words = f"Λ = {tips:.2f}: {ranked[0]} may cost as much as {ranked[1]}"
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
            color="0.25",
        )
