"""The records: what is missing together, and why it is taken to be missing."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import unique_sets
from ..data import Retrospective
from ..missingness import MGraph
from .style import COLOURS, DARK, axes, finished, short_names

__all__ = ["graph", "missingness"]


def missingness(data: Retrospective, most: int = 12, ax: Any = None) -> Any:
    """Patterns of what is recorded together, the most frequent on top; filled squares are recorded.

    Parameters
    ----------
    data : Retrospective
        Records.
    most : int
        Patterns to show; the others are summed up in words.
    ax : matplotlib Axes, optional
        Where to draw; default a new figure.

    Returns
    -------
    matplotlib Axes
    """
    patterns, index = unique_sets(data.recorded)
    count = np.bincount(index, minlength=len(patterns))
    order = np.argsort(-count, kind="stable")[:most]
    names = list(short_names(data.problem.group_names, 20).values())
    g = len(names)
    ax = axes(ax, 2.6 + 0.42 * g, 1.6 + 0.3 * len(order))
    for y, u in enumerate(order[::-1]):
        for x in range(g):
            filled = bool(patterns[u, x])
            face = COLOURS[0] if filled else "white"
            ax.add_patch(_square(x, y, face))
        ax.text(g - 0.3, y, f"{100 * count[u] / len(data):.1f} %", va="center", fontsize=9, color=DARK)
    shares = data.recorded.mean(axis=0)
    labels = [f"{name} ({100 * s:.0f} %)" for name, s in zip(names, shares, strict=True)]
    ax.set_xticks(range(g), labels, rotation=45, ha="right", fontsize=9)
    ax.set(xlim=(-0.7, g + 0.9), ylim=(-0.7, len(order) - 0.3), aspect="equal")
    ax.set_yticks([])
    rest = 100 * (1 - count[order].sum() / len(data))
    if len(patterns) > len(order):
        ax.set_title(
            f"{len(patterns) - len(order)} more patterns have {rest:.1f} % of the rows", fontsize=9, loc="left"
        )
    for side in ("left", "bottom"):
        ax.spines[side].set_visible(False)
    return finished(ax)


def _square(x: float, y: float, face: str) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((x - 0.4, y - 0.4), 0.8, 0.8, facecolor=face, edgecolor="0.6", lw=0.8)


def graph(found: MGraph, ax: Any = None) -> Any:
    """The missingness graph: values on the left, whether they are recorded on the right.

    Parameters
    ----------
    found : MGraph
        The graph; ``missingness.graph_on(data)`` of any assumption.
    ax : matplotlib Axes, optional
        Where to draw; default a new figure.

    Returns
    -------
    matplotlib Axes
    """
    height = 0.75 * max(len(found.variables), len(found.indicators), 2) + 0.4
    return finished(_renamed(found).draw(axes(ax, 6.5, height)))


def _renamed(found: MGraph) -> MGraph:
    """The same graph with names that fit into its boxes."""
    names = short_names(found.variables, 20)
    shown = {node: f"R_{names[node.removeprefix('R_')]}" for node in found.indicators}
    shown |= {node: names[node] for node in found.nodes if node not in shown}
    return MGraph([(shown[a], shown[b], arrow) for a, b, arrow in found.edges], [shown[node] for node in found.nodes])
