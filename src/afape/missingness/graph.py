"""Missingness graphs: the values and indicators that the recording of each group depends on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache, cached_property
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd

from .._arguments import check_choice, check_list, check_texts, shown
from .identification import Identification, Separation, identify

__all__ = ["MGraph", "graph_of"]

_ARROWS = re.compile(r"(<->|->|<-)")
_INDICATOR = "R_"


class MGraph:
    """A missingness graph (m-graph; Mohan and Pearl 2021).

    Nodes are groups, the label and, for every group that may be missing, its indicator ``R_<group>``. The label and groups
    without an indicator are always recorded. An edge into an indicator means that the recording of its group may depend on
    the other node. Values and label may always depend on each other, so edges between them have no effect.

    Parameters
    ----------
    edges : str, sequence of pairs, or MGraph
        ``"age -> R_cbc; cbc -> R_lactate"`` or ``[("age", "R_cbc"), ("cbc", "R_lactate")]``. In text, statements end with a
        semicolon or a new line, commas join several nodes (``age, sex -> R_cbc``), and ``R_a <-> R_b`` means that the
        recordings of two groups have a common cause outside the data, such as a panel. In code, such an edge is a triple
        ``("R_a", "R_b", "<->")``.
    nodes : sequence of str
        Further nodes. A group whose indicator has no edge is missing completely at random (in text: ``"R_cbc"`` alone).

    Examples
    --------
    >>> graph = MGraph("x1 -> R_x2; x1 -> R_x3; x2 -> R_x3")
    >>> print(graph.identify(["x2", "x3"]).formula)
    P(R_x2 | x1) P(R_x3 | x1, x2, R_x2 = 1)
    """

    def __init__(self, edges: str | Iterable[Sequence[str]] | MGraph = (), nodes: Sequence[str] = ()) -> None:
        if isinstance(edges, MGraph):
            nodes, edges = [*edges.nodes, *nodes], edges.edges
        nodes = check_texts("nodes", nodes, "names")
        alone, found = (
            _parse(edges) if isinstance(edges, str) else ([], [_edge(e) for e in check_list("edges", edges, "edges")])
        )
        names: dict[str, None] = dict.fromkeys(node for a, b, _ in found for node in (a, b))
        names |= dict.fromkeys([*alone, *nodes])
        self.directed: tuple[tuple[str, str], ...] = tuple(
            dict.fromkeys((a, b) for a, b, arrow in found if arrow == "->")
        )
        together = (tuple(sorted((a, b))) for a, b, arrow in found if arrow == "<->")
        self.bidirected: tuple[tuple[str, str], ...] = tuple(dict.fromkeys((p[0], p[1]) for p in together))
        self.nodes: tuple[str, ...] = tuple(names)
        self._check()

    @classmethod
    def from_adjacency(cls, table: pd.DataFrame) -> MGraph:
        """Make a graph from a square table: a nonzero entry in row a and column b is the edge a -> b.

        Two indicators with nonzero entries in both directions are joined by ``<->``.
        """
        if not isinstance(table, pd.DataFrame) or table.empty or list(table.index) != list(table.columns):
            raise ValueError(
                "'table' must be a DataFrame with the same names, in the same order, as index and as columns."
            )
        try:
            names, on = [str(c) for c in table.columns], table.to_numpy(dtype=float)
        except (TypeError, ValueError) as error:
            raise ValueError("'table' must hold numbers, 0 for no edge, but holds other values.") from error
        if not np.isfinite(on).all():
            raise ValueError("'table' must hold 0 for no edge and any other number for an edge, but has gaps.")
        edges: list[tuple[str, ...]] = []
        for i, j in np.argwhere(on != 0):
            both = on[j, i] != 0 and all(names[k].startswith(_INDICATOR) for k in (i, j)) and i != j
            if not both:
                edges.append((names[i], names[j]))
            elif i < j:
                edges.append((names[i], names[j], "<->"))
        return cls(edges, nodes=names)

    def draw(self, ax: Any = None) -> Any:
        """Draw with matplotlib, values on the left and indicators on the right; return the axes."""
        from ..plots.records import graph

        return graph(self, ax)

    @property
    def edges(self) -> tuple[tuple[str, str, str], ...]:
        """All edges as triples (from, to, arrow)."""
        return (*((a, b, "->") for a, b in self.directed), *((a, b, "<->") for a, b in self.bidirected))

    @cached_property
    def indicators(self) -> tuple[str, ...]:
        """Indicator nodes."""
        return tuple(node for node in self.nodes if node.startswith(_INDICATOR))

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """Groups and label, including groups of which only the indicator is named."""
        named = [node for node in self.nodes if not node.startswith(_INDICATOR)]
        return tuple(dict.fromkeys([*named, *(node.removeprefix(_INDICATOR) for node in self.indicators)]))

    @cached_property
    def missing(self) -> tuple[str, ...]:
        """Groups with an indicator."""
        return tuple(node.removeprefix(_INDICATOR) for node in self.indicators)

    def causes(self, group: str) -> frozenset[str]:
        """Groups and label that the recording of a group depends on, directly or through other indicators."""
        node = _INDICATOR + check_choice("group", group, self.variables)
        if node not in self.indicators:
            return frozenset()
        return frozenset(nx.ancestors(self._separable, node) & set(self.variables))

    def identify(self, wanted: Sequence[str] | None = None, label: str | None = None) -> Identification:
        """Find out whether the propensity is identified for a policy that wants these groups (default: all).

        ``label`` is the name of the label's node; it only affects the text.
        """
        groups = list(self.missing) if wanted is None else check_texts("wanted", wanted, "groups")
        if label is not None and not isinstance(label, str):
            raise TypeError(f"'label' must be the name of the label's node, or None, but is {shown(label)}.")
        if unknown := [g for g in groups if g not in self.variables]:
            raise ValueError(
                f"'wanted' must name groups of the graph {list(self.variables)}, but {unknown[0]!r} is not one of them."
            )
        return identify(self, groups, label)

    def keeping(self, missing: Iterable[str], values: Iterable[str]) -> MGraph:
        """Return the graph over all ``values`` in which only the groups ``missing`` have indicators.

        An indicator that is always 1 depends on nothing, and nothing depends on it.
        """
        gone = set(self.indicators) - {_INDICATOR + g for g in missing}
        edges = [e for e in self.edges if e[0] not in gone and e[1] not in gone]
        return MGraph(edges, [node for node in (*self.nodes, *values) if node not in gone])

    @cached_property
    def _separable(self) -> nx.DiGraph[Any]:
        """Directed acyclic graph with hidden parents: one of all values and the label, one per pair joined by <->."""
        graph: nx.DiGraph[Any] = nx.DiGraph()
        graph.add_nodes_from([*self.variables, *self.indicators])
        graph.add_edges_from((("hidden",), value) for value in self.variables)
        graph.add_edges_from(e for e in self.directed if e[1] in self.indicators)
        graph.add_edges_from((("hidden", *pair), node) for pair in self.bidirected for node in pair)
        return graph

    @cached_property
    def separation(self) -> Separation:
        """Function (left, right, given) that is True if the graph implies the independence of two sets of nodes."""
        graph = self._separable

        @cache
        def separated(left: frozenset[str], right: frozenset[str], given: frozenset[str]) -> bool:
            return not left or not right or bool(nx.is_d_separator(graph, set(left), set(right), set(given)))

        return separated

    def _check(self) -> None:
        for node in self.nodes:
            if not isinstance(node, str) or not node or node == _INDICATOR:
                raise ValueError(f"'nodes' must have names, but the name of one is {node!r}.")
        for a, b in self.directed:
            if a.startswith(_INDICATOR) and not b.startswith(_INDICATOR):
                raise ValueError(
                    f"The edge {a} -> {b} goes from an indicator to a value, but measuring must not change values. "
                    f"If recording of {a.removeprefix(_INDICATOR)!r} depends on the value of {b!r}, write {b} -> {a}."
                )
        for a, b in self.bidirected:
            if a == b or not (a.startswith(_INDICATOR) and b.startswith(_INDICATOR)):
                raise ValueError(
                    f"'<->' must join two indicators, but {a} <-> {b} does not. With a hidden common cause of a value and a "
                    "recording, the propensity is not identified; afape.sensitivity shows its possible effect."
                )
        try:
            cycle = nx.find_cycle(nx.DiGraph(list(self.directed)))
        except nx.NetworkXNoCycle:
            return
        raise ValueError(
            f"The graph must have no cycle, but has {' -> '.join([a for a, _ in cycle] + [cycle[0][0]])}. Join two indicators "
            "with a common cause by '<->'."
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MGraph) and (set(self.nodes), set(self.edges)) == (set(other.nodes), set(other.edges))

    def __hash__(self) -> int:
        return hash((frozenset(self.nodes), frozenset(self.edges)))

    def __str__(self) -> str:
        joined = {node for a, b, _ in self.edges for node in (a, b)}
        alone = [node for node in self.nodes if node not in joined]
        return "; ".join([*(f"{a} {arrow} {b}" for a, b, arrow in self.edges), *alone])

    def __repr__(self) -> str:
        return f"MGraph({str(self)!r})"


def graph_of(graph: Any, argument: str = "graph") -> MGraph:
    """Return a graph that is given as one, or as text."""
    if not isinstance(graph, MGraph | str):
        raise TypeError(f"{argument!r} must be an afape.MGraph or its text, not {type(graph).__name__}.")
    try:
        return MGraph(graph) if isinstance(graph, str) else graph
    except ValueError as error:
        raise ValueError(f"{argument!r} must be the text of a graph, but cannot be read: {error}") from error


def _parse(text: str) -> tuple[list[str], list[tuple[str, str, str]]]:
    """Return the nodes without edges, and the edges, of a text."""
    alone: list[str] = []
    edges: list[tuple[str, str, str]] = []
    for statement in re.split(r"[;\n]", text):
        if not statement.strip():
            continue
        parts = _ARROWS.split(statement)
        sides = [[name.strip() for name in side.split(",")] for side in parts[::2]]
        if any(not name or set("<>") & set(name) for side in sides for name in side):
            raise ValueError(
                f"'edges' must have the form 'age -> R_cbc; R_cbc <-> R_lactate', but {statement.strip()!r} does not."
            )
        if len(sides) == 1:
            alone += sides[0]
        for left, arrow, right in zip(sides, parts[1::2], sides[1:], strict=False):
            edges += [(b, a, "->") if arrow == "<-" else (a, b, arrow) for a in left for b in right]
    return alone, edges


def _edge(edge: Any) -> tuple[str, str, str]:
    parts = tuple(edge) if isinstance(edge, list | tuple) else ()
    if len(parts) == 2:
        parts = (*parts, "->")
    if len(parts) != 3 or not all(isinstance(p, str) for p in parts) or parts[2] not in ("->", "<->"):
        raise ValueError(
            f"'edges' must be pairs (from, to) or triples (a, b, '<->') of names, but one is {shown(edge)}. As text, write "
            "'age -> R_cbc; R_cbc <-> R_lactate'."
        )
    return parts[0], parts[1], parts[2]
