"""A picture of a missingness graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .graph import MGraph

__all__ = ["draw_graph"]

_VALUE, _INDICATOR, _HIDDEN = "#dfe7f3", "#f6e2c8", "#b2182b"


def draw_graph(graph: MGraph, ax: Any = None) -> Any:
    """Values in the left column, indicators in the right one; edges joined by <-> are dashed."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Drawing needs matplotlib: pip install 'afape[plot]'.") from error
    place = _places(graph)
    if ax is None:
        height = 0.9 * max(len(graph.variables), len(graph.indicators), 2) + 0.4
        _, ax = plt.subplots(figsize=(5.0, height), layout="constrained")
    for a, b, arrow in graph.edges:
        _draw_edge(ax, place[a], place[b], arrow)
    for node, (x, y) in place.items():
        indicator = node in graph.indicators
        style = {"boxstyle": "round,pad=0.35", "fc": _INDICATOR if indicator else _VALUE, "ec": "#444444"}
        ax.text(x, y, node, ha="center", va="center", bbox=style, zorder=3)
    rows = [y for _, y in place.values()]
    ax.set(xlim=(-0.4, 1.6), ylim=(min(rows) - 0.6, max(rows) + 0.6))
    ax.set_axis_off()
    return ax


def _places(graph: MGraph) -> dict[str, tuple[float, float]]:
    """A group and its indicator on one line, so that self-censoring is a level arrow."""
    lines = {value: -float(i) for i, value in enumerate(graph.variables)}
    place = {value: (0.0, y) for value, y in lines.items() if value in graph.nodes}
    return place | {node: (1.0, lines[node.removeprefix("R_")]) for node in graph.indicators}


def _draw_edge(ax: Any, start: tuple[float, float], end: tuple[float, float], arrow: str) -> None:
    from matplotlib.patches import FancyArrowPatch

    same_column = start[0] == end[0]
    side = 1.0 if start[0] > 0 else -1.0
    downwards = np.sign(start[1] - end[1])
    bend = 0.35 * side * downwards if same_column else 0.0  # arcs leave to the outside of their column
    if arrow == "<->":
        bend *= 1.6
    ax.add_patch(
        FancyArrowPatch(
            start,
            end,
            arrowstyle="<|-|>" if arrow == "<->" else "-|>",
            connectionstyle=f"arc3,rad={-bend}",
            linestyle="--" if arrow == "<->" else "-",
            color=_HIDDEN if arrow == "<->" else "#444444",
            mutation_scale=13,
            shrinkA=18 if same_column else 26,
            shrinkB=20 if same_column else 34,
            zorder=2,
        )
    )
