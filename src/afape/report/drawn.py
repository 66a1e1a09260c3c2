"""The figures of the page, each with a title and words that stand in for it."""

from __future__ import annotations

import warnings
from typing import Any

from .. import plots
from ..comparison import Comparison
from ..missingness import MGraph
from ..result import Evaluation
from ..sensitivity_analysis import Sensitivity
from .figures import svg_of
from .summary import origin_of

__all__ = ["drawn"]

_MOST_NODES, _MOST_JOINED = 16, 5


def drawn(found: Comparison, strength: Sensitivity | None) -> dict[str, Any]:
    """SVG texts by name; those of policies in lists, in their order."""
    origin = origin_of(found)
    data, evaluations = origin.data, list(found.evaluations.values())
    graph = origin.missingness.graph_on(data)
    n_patterns = min(12, len({row.tobytes() for row in data.recorded}))
    size = (2.6 + 0.42 * data.problem.n_groups, 2.4 + 0.3 * n_patterns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a font without a sign of some language; the browser has it
        return {
            "graph": _graph(graph),
            "graph_note": _graph_note(graph),
            "missingness": svg_of(lambda ax: plots.missingness(data, ax=ax), "missingness", *size),
            "sensitivity": None
            if strength is None
            else svg_of(lambda ax: plots.sensitivity(strength, ax=ax), "sensitivity", 5.8, 4.2),
            "policies": [_policy(evaluation, k) for k, evaluation in enumerate(evaluations)],
        }


def _policy(found: Evaluation, k: int) -> dict[str, Any]:
    n_sets, n_balance = min(12, len(found.support.sets)), min(20, len(found.support.balance))
    depth = int(min(8, found.paths.sets["groups"].max() + 1)) if len(found.paths.sets) else 0
    return {
        "support": svg_of(lambda ax: plots.support(found, ax=ax), f"support{k}", 5.4, 1.3 + 0.38 * n_sets),
        "weights": svg_of(lambda ax: plots.weights(found, ax=ax), f"weights{k}", 5.4, 3.2) if _weighed(found) else None,
        "balance": svg_of(lambda ax: plots.balance(found, ax=ax), f"balance{k}", 5.4, 1.4 + 0.26 * n_balance)
        if n_balance
        else None,
        "paths": svg_of(lambda ax: plots.paths(found, ax=ax), f"paths{k}", 5.4, 0.3 + 0.8 * depth) if depth else None,
    }


def _weighed(found: Evaluation) -> bool:
    return any("propensity" in c.method.needs and not c.method.biased and c.name in found for c in found.choices)


def _graph(graph: MGraph) -> str | None:
    """The graph, without what joins indicators where that would be a tangle."""
    if len(graph.variables) > _MOST_NODES:
        return None
    shown = graph
    if len(graph.indicators) > _MOST_JOINED:
        shown = MGraph([e for e in graph.edges if e[2] == "->"], graph.nodes)
    height = 0.7 * max(len(shown.variables), len(shown.indicators), 2) + 0.4
    return svg_of(lambda ax: plots.graph(shown, ax=ax), "graph", 5.4, height)


def _graph_note(graph: MGraph) -> str:
    if len(graph.variables) > _MOST_NODES:
        return f"The graph has {len(graph.variables)} values, too many to draw; its text is {graph}."
    if len(graph.indicators) > _MOST_JOINED and any(e[2] == "<->" for e in graph.edges):
        return "Groups may also be recorded together for reasons of their own, which is not drawn."
    return ""
