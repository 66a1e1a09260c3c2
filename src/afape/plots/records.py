"""The records: which groups are recorded together, and the missingness graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arguments import check_count, check_instance
from ..data.label_group import with_label_group
from ..data.retrospective import check_records
from ..data.row_counts import Records, RowCounts
from ..missingness.graph import MGraph
from .style import BLUE, DARK, PALE_BLUE, PALE_ORANGE, RED, axes, finished, short_names

__all__ = ["graph", "missingness"]

_Point = tuple[float, float]


def missingness(data: Records, most: int = 12, ax: Any = None) -> Any:
    """Draw the patterns of recorded groups, the most frequent at the top; filled squares are recorded.

    The label is the last column if it has gaps. Shares are those of the cases if rows have weights.

    Parameters
    ----------
    data : Retrospective or RowCounts
        Records.
    most : int
        Number of patterns to show; a title says how many rows have other patterns.
    ax : matplotlib Axes, optional
        Where to draw; default a new figure.

    Returns
    -------
    matplotlib Axes
    """
    check_count("most", most, 1)
    found = data if isinstance(data, RowCounts) else RowCounts.of(with_label_group(check_records(data)))
    patterns, share = found.patterns, 100 * found.pattern_cases / found.cases
    order = np.argsort(-found.pattern_counts, kind="stable")[:most]
    names = list(short_names(found.problem.group_names, 20).values())
    g = len(names)
    ax = axes(ax, 2.6 + 0.42 * g, 1.6 + 0.3 * len(order))
    for y, u in enumerate(order[::-1]):
        for x in range(g):
            ax.add_patch(_square(x, y, BLUE if patterns[u, x] else "white"))
        ax.text(g - 0.3, y, f"{share[u]:.1f} %", va="center", fontsize=9, color=DARK)
    shares = found.recorded_share
    labels = [f"{name} ({100 * s:.0f} %)" for name, s in zip(names, shares, strict=True)]
    ax.set_xticks(range(g), labels, rotation=45, ha="right", fontsize=9)
    ax.set(xlim=(-0.7, g + 0.9), ylim=(-0.7, len(order) - 0.3), aspect="equal")
    ax.set_yticks([])
    others = len(patterns) - len(order)
    if others:
        rest, what = 100 - share[order].sum(), "cases" if found.weighted else "rows"
        ax.set_title(f"{others} more patterns have {rest:.1f} % of the {what}", fontsize=9, loc="left")
    ax.spines[["left", "bottom"]].set_visible(False)
    return finished(ax)


def _square(x: float, y: float, face: str) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((x - 0.4, y - 0.4), 0.8, 0.8, facecolor=face, edgecolor="0.6", lw=0.8)


def graph(found: MGraph, ax: Any = None) -> Any:
    """Draw a missingness graph: values on the left, indicators of recording on the right, ``<->`` as dashed lines.

    Parameters
    ----------
    found : MGraph
        The graph; any assumption gives its own by ``missingness.graph_on(data)``.
    ax : matplotlib Axes, optional
        Where to draw; default a new figure.

    Returns
    -------
    matplotlib Axes
    """
    check_instance("found", found, MGraph, "an afape.MGraph")
    ax = axes(ax, 6.5, 0.75 * max(len(found.variables), len(found.indicators), 2) + 0.4)
    places, names = _places(found), short_names(found.variables, 20)
    boxes = {}
    for node, (x, y) in places.items():
        indicator = node in found.indicators
        text = f"R_{names[node.removeprefix('R_')]}" if indicator else names[node]
        box = {"boxstyle": "round,pad=0.35", "fc": PALE_ORANGE if indicator else PALE_BLUE, "ec": DARK}
        side = "left" if x > 0 else "right"  # the columns face each other, so no arrow between them crosses a box
        boxes[node] = ax.text(x, y, text, ha=side, va="center", bbox=box, zorder=4).get_bbox_patch()
    for a, b, arrow in found.edges:
        _draw_edge(ax, (places[a], places[b]), (boxes[a], boxes[b]), arrow)
    rows = [y for _, y in places.values()]
    ax.set(xlim=(-0.7, 1.7), ylim=(min(rows) - 0.6, max(rows) + 0.6))
    ax.set_axis_off()
    return finished(ax)


def _places(found: MGraph) -> dict[str, _Point]:
    """Points (x, y) of the nodes: a group and its indicator have the same height, so self-censoring is a level arrow."""
    lines = {value: -float(i) for i, value in enumerate(found.variables)}
    places = {value: (0.0, y) for value, y in lines.items() if value in found.nodes}
    return places | {node: (1.0, lines[node.removeprefix("R_")]) for node in found.indicators}


def _draw_edge(ax: Any, ends: tuple[_Point, _Point], boxes: tuple[Any, Any], arrow: str) -> None:
    """Draw an arrow from box to box; boxes are drawn before, because only then their size is known."""
    from matplotlib.patches import FancyArrowPatch

    start, end = ends
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
            color=RED if arrow == "<->" else DARK,
            mutation_scale=13,
            patchA=boxes[0],
            patchB=boxes[1],
            shrinkA=1,
            shrinkB=1,
            zorder=3,
        )
    )
