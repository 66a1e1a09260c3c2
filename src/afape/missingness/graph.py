"""Missingness graphs: which values, and which other recordings, decide whether a group is recorded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache, cached_property
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd

from .identification import Identification, Separation, identify

__all__ = ["MGraph"]

_ARROWS = re.compile(r"(<->|->|<-)")
_INDICATOR = "R_"


class MGraph:
    """A missingness graph (m-graph; Mohan and Pearl 2021).

    Nodes are groups, the label and, for every group that may be missing, its indicator ``R_<group>``. A group
    without an indicator is always recorded, and so is the label. An edge into an indicator says what its group's
    recording may depend on. Values and label are always taken as dependent on each other: edges between them may be drawn
    but decide nothing, and leaving them out claims nothing.

    Parameters
    ----------
    edges : str, sequence of pairs, or MGraph
        ``"age -> R_cbc; cbc -> R_lactate"`` or ``[("age", "R_cbc"), ("cbc", "R_lactate")]``. In text, statements end with
        a semicolon or a line, commas join several nodes (``age, sex -> R_cbc``), and ``R_a <-> R_b`` says that two
        groups are recorded together for a common reason outside the data, as panels are. In code, such an edge is a
        triple ``("R_a", "R_b", "<->")``.
    nodes : sequence of str
        Further nodes: an indicator without any edge is recorded completely at random (in text: ``"R_cbc"`` alone).

    Examples
    --------
    >>> graph = MGraph("x1 -> R_x2; x1 -> R_x3; x2 -> R_x3")
    >>> print(graph.identify(["x2", "x3"]).formula)
    P(R_x2 | x1) P(R_x3 | x1, x2, R_x2 = 1)
    """

    def __init__(self, edges: str | Iterable[Sequence[str]] | MGraph = (), nodes: Sequence[str] = ()) -> None:
        if isinstance(edges, MGraph):
            nodes, edges = [*edges.nodes, *nodes], edges.edges
        if isinstance(nodes, str):
            raise TypeError(f"'nodes' must be a list of names, but is the string {nodes!r}.")
        alone, found = _parse(edges) if isinstance(edges, str) else ([], [_edge(e) for e in edges])
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
        """Graph from a square table: a nonzero entry in line a and column b is the edge a -> b.

        Two indicators with nonzero entries both ways are joined by ``<->``.
        """
        if not isinstance(table, pd.DataFrame) or list(table.index) != list(table.columns):
            raise ValueError(
                "'table' must be a DataFrame with the same names, in the same order, as index and as columns."
            )
        names, on = [str(c) for c in table.columns], table.to_numpy(dtype=float)
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

    def to_adjacency(self) -> pd.DataFrame:
        """The table that `from_adjacency` reads.

        An edge ``R_a -> R_b`` beside ``R_a <-> R_b`` cannot be told from the latter alone, and is refused.
        """
        for a, b in self.bidirected:
            if {(a, b), (b, a)} & set(self.directed):
                raise ValueError(f"{a!r} and {b!r} are joined twice, which a table cannot show. Use str(graph).")
        table = pd.DataFrame(0, index=list(self.nodes), columns=list(self.nodes))
        for a, b in [*self.directed, *self.bidirected, *((b, a) for a, b in self.bidirected)]:
            table.loc[a, b] = 1
        return table

    def to_networkx(self) -> nx.MultiDiGraph[str]:
        """The graph for networkx; an edge's ``kind`` is "->" or "<->" (stored once, from first to second name)."""
        graph: nx.MultiDiGraph[str] = nx.MultiDiGraph()
        graph.add_nodes_from((node, {"indicator": node in self.indicators}) for node in self.nodes)
        graph.add_edges_from((a, b, {"kind": "->"}) for a, b in self.directed)
        graph.add_edges_from((a, b, {"kind": "<->"}) for a, b in self.bidirected)
        return graph

    def draw(self, ax: Any = None) -> Any:
        """Draw with matplotlib: values on the left, indicators on the right; returns the axes."""
        from .drawing import draw_graph

        return draw_graph(self, ax)

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
        """Groups and label, also groups that are named by their indicator alone."""
        named = [node for node in self.nodes if not node.startswith(_INDICATOR)]
        return tuple(dict.fromkeys([*named, *(node.removeprefix(_INDICATOR) for node in self.indicators)]))

    @cached_property
    def missing(self) -> tuple[str, ...]:
        """Groups with an indicator."""
        return tuple(node.removeprefix(_INDICATOR) for node in self.indicators)

    def causes(self, group: str) -> frozenset[str]:
        """Groups and label on which the recording of a group depends, also by way of other indicators."""
        node = _INDICATOR + group
        if node not in self.indicators:
            return frozenset()
        return frozenset(nx.ancestors(self._separable, node) & set(self.variables))

    def identify(self, wanted: Sequence[str] | None = None, label: str | None = None) -> Identification:
        """Decide what is identified for a policy that wants these groups; default all groups.

        ``label`` names the node that is the label; it matters only for words.
        """
        if isinstance(wanted, str):
            raise TypeError(f"'wanted' must be a list of groups, but is the string {wanted!r}.")
        groups = list(self.missing if wanted is None else wanted)
        if unknown := [g for g in groups if g not in self.variables]:
            raise ValueError(
                f"'wanted' must name groups of the graph {list(self.variables)}, but {unknown[0]!r} is none."
            )
        return identify(self, groups, label)

    def keeping(self, missing: Iterable[str], values: Iterable[str]) -> MGraph:
        """The same graph where only the groups ``missing`` have gaps, over all ``values``.

        An indicator that is always 1 depends on nothing and nothing depends on it.
        """
        gone = set(self.indicators) - {_INDICATOR + g for g in missing}
        edges = [e for e in self.edges if e[0] not in gone and e[1] not in gone]
        return MGraph(edges, [node for node in (*self.nodes, *values) if node not in gone])

    @property
    def separation(self) -> Separation:
        """Independences among groups, label and indicators that the graph implies."""
        return self._separated

    @cached_property
    def _separable(self) -> nx.DiGraph[Any]:
        """Directed acyclic graph with hidden parents: one of all values and label, one per pair joined by <->."""
        graph: nx.DiGraph[Any] = nx.DiGraph()
        graph.add_nodes_from([*self.variables, *self.indicators])
        graph.add_edges_from((("hidden",), value) for value in self.variables)
        graph.add_edges_from(e for e in self.directed if e[1] in self.indicators)
        graph.add_edges_from((("hidden", *pair), node) for pair in self.bidirected for node in pair)
        return graph

    @cached_property
    def _separated(self) -> Separation:
        graph = self._separable

        @cache
        def separated(left: frozenset[str], right: frozenset[str], given: frozenset[str]) -> bool:
            return not left or not right or bool(nx.is_d_separator(graph, set(left), set(right), set(given)))

        return separated

    def _check(self) -> None:
        for node in self.nodes:
            if not isinstance(node, str) or not node or node == _INDICATOR:
                raise ValueError(f"Nodes must be named by text, but one is {node!r}.")
        for a, b in self.directed:
            if a.startswith(_INDICATOR) and not b.startswith(_INDICATOR):
                raise ValueError(
                    f"The edge {a} -> {b} goes from an indicator into a value: measuring must not change what is measured. "
                    f"If the value of {b!r} decides whether {a.removeprefix(_INDICATOR)!r} is recorded, write {b} -> {a}."
                )
        for a, b in self.bidirected:
            if a == b or not (a.startswith(_INDICATOR) and b.startswith(_INDICATOR)):
                raise ValueError(
                    f"'<->' joins two indicators, but {a} <-> {b} does not. A hidden reason that acts on a value and on a "
                    "recording makes the propensity unidentified; afape.sensitivity shows what it could change."
                )
        try:
            cycle = nx.find_cycle(nx.DiGraph(list(self.directed)))
        except nx.NetworkXNoCycle:
            return
        raise ValueError(
            f"The graph must have no cycle, but has {' -> '.join([a for a, _ in cycle] + [cycle[0][0]])}. Two groups that are "
            "recorded together for a common reason are joined by '<->'."
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


def _parse(text: str) -> tuple[list[str], list[tuple[str, str, str]]]:
    """Lonely nodes and edges of a text."""
    alone: list[str] = []
    edges: list[tuple[str, str, str]] = []
    for statement in re.split(r"[;\n]", text):
        if not statement.strip():
            continue
        parts = _ARROWS.split(statement)
        sides = [[name.strip() for name in side.split(",")] for side in parts[::2]]
        if any(not name or set("<>") & set(name) for side in sides for name in side):
            raise ValueError(
                f"'edges' must read like 'age -> R_cbc; R_cbc <-> R_lactate', but {statement.strip()!r} does not."
            )
        if len(sides) == 1:
            alone += sides[0]
        for left, arrow, right in zip(sides, parts[1::2], sides[1:], strict=False):
            edges += [(b, a, "->") if arrow == "<-" else (a, b, arrow) for a in left for b in right]
    return alone, edges


def _edge(edge: Any) -> tuple[str, str, str]:
    parts = () if isinstance(edge, str) else tuple(edge)
    if len(parts) == 2:
        parts = (*parts, "->")
    if len(parts) != 3 or parts[2] not in ("->", "<->") or not all(isinstance(p, str) for p in parts):
        raise ValueError(
            f"'edges' must be pairs (from, to) or triples (a, b, '<->') of names, but one is {edge!r}; as text, "
            "'age -> R_cbc; R_cbc <-> R_lactate'."
        )
    return parts[0], parts[1], parts[2]
