"""The figures of the page, each with a title and words that stand in for it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from .. import plots
from ..comparison import Comparison
from ..missingness import MGraph
from ..result import Evaluation
from ..sensitivity_analysis import Sensitivity
from .figures import svg_of
from .summary import origin_of

__all__ = ["drawn"]

_MOST_NODES, _MOST_ALONE, _MOST_JOINED = 30, 8, 5


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
            "graph": _graph(graph, [*data.problem.group_names, str(data.problem.label)]),
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


def _shown(graph: MGraph, order: Sequence[str]) -> MGraph:
    """The graph in the order of the groups; if it is large, without what joins indicators and what nothing depends on."""
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
        return "Groups may also be recorded together for reasons of their own, which is not drawn."
    return ""
