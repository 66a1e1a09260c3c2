"""The figures of the page, as SVG text."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from .. import plots
from ..missingness.graph import MGraph
from ..plots.flow import layout_of_paths
from ..plots.reliance import SET_WIDTH
from ..plots.style import wrapped
from ..results.comparison import Comparison
from ..results.evaluation import Evaluation
from ..results.small_cells import shown_patterns
from ..sensitivity_analysis.analysis import Sensitivity
from .summary import origin_of

__all__ = ["figures_of"]

_MOST_NODES = 30  # a larger graph is not drawn
_MOST_ALONE = 8  # in a larger graph, values without edges are left out
_MOST_JOINED = 5  # with more indicators, edges between them are left out
_OPTIONS: Any = {
    "svg.fonttype": "none",  # text stays text: small, searchable, read aloud
    "svg.hashsalt": "afape",
    "font.family": "sans-serif",
    "font.size": 10.0,
    "text.parse_math": False,  # names of columns are not formulas
}


def figures_of(found: Comparison, sensitivity: Sensitivity | None, min_cell: int) -> dict[str, Any]:
    """Return SVG texts by name; ``policies`` is a list with one dict per policy, None where there is nothing to draw."""
    origin = origin_of(found)
    data, recorded = origin.counts, origin.recorded
    graph = origin.graph
    n_patterns = shown_patterns(recorded.pattern_counts, 12, min_cell)
    size = (2.6 + 0.42 * recorded.problem.n_groups, 2.4 + 0.3 * n_patterns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a glyph that matplotlib's font lacks; the browser has it
        return {
            "graph": _graph(graph, [*data.problem.group_names, str(data.problem.label)]),
            "graph_note": _graph_note(graph),
            "missingness": svg_of(lambda ax: plots.missingness(recorded, n_patterns, ax), "missingness", *size)
            if n_patterns
            else None,
            "sensitivity": None
            if sensitivity is None
            else svg_of(lambda ax: plots.sensitivity(sensitivity, ax=ax), "sensitivity", 5.8, 4.2),
            "policies": [_policy(evaluation, k) for k, evaluation in enumerate(found.evaluations.values())],
        }


def _policy(found: Evaluation, k: int) -> dict[str, Any]:
    sets, balance = found.support.sets.head(12), found.support.balance.head(20)
    drawing = layout_of_paths(found)
    weighted = any(c.method.weighs and not c.method.biased and c.name in found for c in found.choices)
    return {
        "support": svg_of(lambda ax: plots.support(found, ax=ax), f"support{k}", 6.6, 1.3 + _height(sets, 0.38)),
        "weights": svg_of(lambda ax: plots.weights(found, ax=ax), f"weights{k}", 5.4, 3.2) if weighted else None,
        "balance": svg_of(lambda ax: plots.balance(found, ax=ax), f"balance{k}", 8.0, 1.4 + _height(balance, 0.26))
        if len(balance)
        else None,
        "paths": svg_of(lambda ax: plots.paths(found, ax=ax), f"paths{k}", *drawing.size) if drawing.places else None,
        "paths_large": drawing.large,
    }


def _height(table: pd.DataFrame, least: float) -> float:
    """Return the height, in inches, of lines that are called by sets of groups, whose names may need several lines of text."""
    lines = max((1 + wrapped(str(name), SET_WIDTH).count("\n") for name in table["set"]), default=1)
    return max(least, 0.05 + 0.16 * lines) * len(table)


def _shown(graph: MGraph, order: Sequence[str]) -> MGraph:
    """Return the graph with its nodes in this order; a large graph loses edges between indicators and values without edges."""
    rank = {f"{start}{name}": k for k, name in enumerate(order) for start in ("", "R_")}
    edges = sorted(graph.edges, key=lambda e: (e[2] != "->", rank.get(e[1], 0), rank.get(e[0], 0)))
    if len(graph.indicators) > _MOST_JOINED:
        edges = [e for e in edges if e[2] == "->"]
    joined = {node for a, b, _ in edges for node in (a, b)}
    large = len(graph.variables) > _MOST_ALONE
    values = [v for v in order if v in graph.variables and (v in joined or not large)]
    return MGraph(edges, [*values, *(f"R_{v}" for v in order if f"R_{v}" in graph.indicators)])


def _graph(graph: MGraph, order: Sequence[str]) -> str | None:
    if len(graph.variables) > _MOST_NODES:
        return None
    shown = _shown(graph, order)
    height = 0.6 * max(len(shown.variables), len(shown.indicators), 2) + 0.4
    return svg_of(lambda ax: plots.graph(shown, ax=ax), "graph", 5.4, height)


def _graph_note(graph: MGraph) -> str:
    if len(graph.variables) > _MOST_NODES:
        return f"The graph has {len(graph.variables)} values, too many to draw."
    if len(graph.indicators) > _MOST_JOINED and any(e[2] == "<->" for e in graph.edges):
        return "The recording of two groups may also have a common cause; these lines are not drawn."
    return ""


def svg_of(draw: Callable[[Any], Any], name: str, width: float, height: float) -> str:
    """Return an SVG element drawn by a function of matplotlib axes; its identifiers begin with ``name``.

    The figure is made without pyplot, so the figures of the user stay as they are.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with mpl.rc_context(_OPTIONS):
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasSVG(figure)
        draw(figure.subplots())
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return _embedded(buffer.getvalue(), name)


def _embedded(svg: str, name: str) -> str:
    """Return the element alone, scalable, with identifiers that no other figure has."""
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = re.sub(r'xlink:href="#', f'xlink:href="#{name}-', body)
    body = body.replace("url(#", f"url(#{name}-")
    found = re.match(r"<svg[^>]*>", body)
    assert found is not None
    box = re.search(r'viewBox="([^"]*)"', found.group())
    view = box.group(1) if box else "0 0 100 100"
    width = 1.25 * float(view.split()[2]) * 4 / 3  # points to pixels, and a little larger than in print
    spaces = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    opening = f'<svg {spaces} viewBox="{view}" style="max-width:{width:.0f}px" aria-hidden="true" focusable="false">'
    return opening + body[found.end() :]
