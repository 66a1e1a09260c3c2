"""Small missingness graphs for tests: every one over two groups, random ones over three.

Groups are called x1 .. xk and the label y; the indicator of x1 is R_x1. Nothing of the package is used.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Graph:
    """Names of the parents of every group's indicator; None for a group that is always recorded."""

    parents: tuple[tuple[str, ...] | None, ...]
    bidirected: tuple[tuple[int, int], ...] = ()

    @classmethod
    def read(cls, text: str, n_groups: int, always: tuple[int, ...] = ()) -> Graph:
        """Graph from text such as "x1 -> R_x2; R_x1 <-> R_x2"; always counts the groups from 0."""
        parents = [None if g in always else [] for g in range(n_groups)]
        both = []
        for edge in filter(None, (part.strip() for part in text.split(";"))):
            tail, arrow, head = edge.split()
            if arrow == "<->":
                both.append(tuple(sorted((int(tail[3:]) - 1, int(head[3:]) - 1))))
            else:
                parents[int(head[3:]) - 1].append(tail)
        return cls(tuple(None if p is None else tuple(sorted(p)) for p in parents), tuple(sorted(both)))

    @property
    def n_groups(self) -> int:
        return len(self.parents)

    @property
    def gapped(self) -> tuple[int, ...]:
        return tuple(g for g, p in enumerate(self.parents) if p is not None)

    @property
    def always(self) -> tuple[int, ...]:
        return tuple(g for g, p in enumerate(self.parents) if p is None)

    @property
    def values(self) -> tuple[str, ...]:
        return (*(f"x{g + 1}" for g in range(self.n_groups)), "y")

    def edge_list(self) -> list[str]:
        into = [f"{p} -> R_x{g + 1}" for g in self.gapped for p in self.parents[g]]
        return into + [f"R_x{a + 1} <-> R_x{b + 1}" for a, b in self.bidirected]

    def edges(self) -> str:
        """The graph as text: "x1 -> R_x2; y -> R_x1; R_x1 <-> R_x2"."""
        return "; ".join(self.edge_list())

    def isolated(self) -> list[str]:
        """Indicators that no edge touches, so that the text does not name them."""
        named = set(self.edges().replace(";", " ").split())
        return [f"R_x{g + 1}" for g in self.gapped if f"R_x{g + 1}" not in named]

    def inputs(self, group: int) -> tuple[str, ...]:
        """All that the indicator of the group depends on: its parents and the latent variables it shares."""
        return (*self.parents[group], *(f"u{a}{b}" for a, b in self.bidirected if group in (a, b)))

    def above(self, group: int) -> set[int]:
        """Groups with a directed path into the indicator of the group, through other indicators or not."""
        names = self.parents[group] or ()
        direct = {int(name[1:]) - 1 for name in names if name[0] == "x"}
        return direct.union(*(self.above(int(name[3:]) - 1) for name in names if name[0] == "R"))

    def adjustment(self, wanted: tuple[int, ...]) -> tuple[int, ...]:
        """Gapped groups of the smallest set that holds all groups above R_g for every g wanted or in the set."""
        found: set[int] = set()
        while (more := found.union(*(self.above(g) for g in found.union(wanted)))) != found:
            found = more
        return tuple(sorted(found.intersection(self.gapped)))


def all_graphs(n_groups: int = 2) -> Iterator[Graph]:
    """Every graph over one or two groups of which at least one is gapped."""
    if n_groups not in (1, 2):
        raise ValueError(f"n_groups must be 1 or 2, got {n_groups}; take random_graphs for more.")
    arrows = ["{0} -> {1}", "{1} -> {0}", "{0} <-> {1}", "{0} -> {1}; {0} <-> {1}", "{1} -> {0}; {0} <-> {1}"]
    for flags in itertools.product([True, False], repeat=n_groups):
        indicators = [f"R_x{g + 1}" for g in range(n_groups) if flags[g]]
        causes = [*(f"x{g + 1}" for g in range(n_groups)), "y"]
        choices = [["", f"{cause} -> {head}"] for head in indicators for cause in causes]
        if len(indicators) == 2:
            choices.append(["", *(arrow.format(*indicators) for arrow in arrows)])
        for chosen in itertools.product(*choices) if indicators else ():
            yield Graph.read("; ".join(chosen), n_groups, tuple(g for g in range(n_groups) if not flags[g]))


def random_graphs(n_groups: int, n: int, seed: int) -> list[Graph]:
    """Different graphs of varying density; half of the draws have no self-censoring and the others little of it."""
    rng = np.random.default_rng(seed)
    found: dict[Graph, None] = {}
    while len(found) < n:
        always = tuple(np.flatnonzero(rng.random(n_groups) < rng.choice([0.0, 0.3])).tolist())
        gapped = [g for g in rng.permutation(n_groups).tolist() if g not in always]
        values, indicators = rng.uniform(0.1, 0.7, 2)
        own, label, both = rng.choice([0.0, 0.15]), rng.choice([0.0, 0.3]), rng.choice([0.0, 0.3, 0.6])
        edges = [
            f"x{a + 1} -> R_x{b + 1}"
            for a, b in itertools.product(range(n_groups), gapped)
            if rng.random() < (own if a == b else values)
        ]
        edges += [f"y -> R_x{b + 1}" for b in gapped if rng.random() < label]
        for a, b in itertools.combinations(gapped, 2):
            edges += [f"R_x{a + 1} -> R_x{b + 1}"] * int(rng.random() < indicators)
            edges += [f"R_x{a + 1} <-> R_x{b + 1}"] * int(rng.random() < both)
        if gapped:
            found[Graph.read("; ".join(edges), n_groups, always)] = None
    return list(found)
