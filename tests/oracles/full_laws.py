"""Full laws of tiny missingness graphs, and pairs of them that refute identification.

Groups x1 .. xk and a label y, all with finitely many levels, have an arbitrary joint law. A *gapped* group g has an
indicator R_g whose law depends on its parents (groups, label, other indicators) and, for R_a <-> R_b, on a latent
variable that the two share. Recorded are R, the values where R = 1, the groups without an indicator and the label.

The target p(x_T, x_always, y) is identified if every two full laws with the same observed law share it. One explicit
pair with the same observed law and different targets refutes it: that pair is found here by walking along directions
in which the target moves and the observed law does not. Nothing of the package is used.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache

import numpy as np
from small_graphs import Graph, all_graphs, random_graphs

__all__ = ["FullLaw", "Graph", "all_graphs", "looks_identified", "random_graphs", "refute", "refutes"]

SAME = 1e-12  # observed laws that differ by less are the same
APART = 1e-3  # targets whose total variation distance is as much are different
SMOOTH = 1e-6  # a target gradient that leaves the span of the observed law's gradients by less lies within it
INSIDE = 7.0  # largest logit: probabilities of indicators stay above 0.0009


@dataclass(frozen=True)
class Shape:
    """How cells and parameters are numbered; shared by all laws of a graph with as many levels."""

    graph: Graph
    levels: tuple[int, ...]
    labels: int = 2
    latent: int = 2

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Number of levels of every variable, in the order of the cells."""
        sizes = {f"x{g + 1}": n for g, n in enumerate(self.levels)} | {"y": self.labels}
        sizes |= {f"R_x{g + 1}": 2 for g in self.graph.gapped}
        return sizes | {f"u{a}{b}": self.latent for a, b in self.graph.bidirected}

    @cached_property
    def cell(self) -> dict[str, np.ndarray]:
        """Level of every variable in every cell."""
        grid = np.indices(tuple(self.sizes.values())).reshape(len(self.sizes), -1)
        return dict(zip(self.sizes, grid, strict=True))

    def code(self, names: tuple[str, ...]) -> np.ndarray:
        """Number of the joint level of these variables in every cell."""
        at = np.zeros_like(self.cell["y"])
        for name in names:
            at = at * self.sizes[name] + self.cell[name]
        return at

    @cached_property
    def observed(self) -> np.ndarray:
        """Number of what is recorded in every cell: pattern, recorded values and label."""
        at = self.cell["y"]
        for g, n in enumerate(self.levels):
            seen = self.cell.get(f"R_x{g + 1}", 1) == 1
            at = at * (n + 1) + np.where(seen, self.cell[f"x{g + 1}"], n)
        return np.unique(at, return_inverse=True)[1]

    def target(self, wanted: tuple[int, ...]) -> np.ndarray:
        """Number of the values of the wanted and the always recorded groups and the label in every cell."""
        return self.code((*(f"x{g + 1}" for g in sorted({*wanted, *self.graph.always})), "y"))

    @cached_property
    def inputs(self) -> dict[str, tuple[str, ...]]:
        """Of each factor, the variables that number its parameters."""
        inputs = {"values": self.graph.values} | {u: (u,) for u in self.sizes if u[0] == "u"}
        return inputs | {f"R_x{g + 1}": self.graph.inputs(g) for g in self.graph.gapped}

    @cached_property
    def factors(self) -> dict[str, tuple[slice, np.ndarray]]:
        """Of each factor, its parameters and the number of the one that every cell uses."""
        factors, start = {}, 0
        for factor, names in self.inputs.items():
            stop = start + int(np.prod([self.sizes[name] for name in names], dtype=int))
            factors[factor] = slice(start, stop), self.code(names)
            start = stop
        return factors

    @cached_property
    def n_parameters(self) -> int:
        return max(where.stop for where, _ in self.factors.values())


shape_of = lru_cache(maxsize=256)(Shape)


def softmax(logits: np.ndarray) -> np.ndarray:
    mass = np.exp(logits - logits.max())
    return mass / mass.sum()


@dataclass(frozen=True, eq=False)
class FullLaw:
    """One full law; parameters are logits: of the cells of (x, y), of the latents' levels, of every indicator."""

    shape: Shape
    parameters: np.ndarray

    @classmethod
    def random(cls, graph: Graph, seed, levels=2, labels=2, latent=2, among=None) -> FullLaw:
        """Random law; levels is one number or one per group. The logit of p(x, y) is a sum of random tables over the
        sets of names in among: over all names if it is None.
        """
        shape = shape_of(graph, (levels,) * graph.n_groups if isinstance(levels, int) else levels, labels, latent)
        rng = np.random.default_rng(seed)
        theta = rng.normal(0, 1.2, shape.n_parameters)
        where, at = shape.factors["values"]
        first = np.unique(at, return_index=True)[1]
        theta[where] = 0.0
        for names in [graph.values] if among is None else [*((v,) for v in graph.values), *among]:
            codes = shape.code(names)[first]
            theta[where] += rng.normal(0, 0.9, codes.max() + 1)[codes]
        return cls(shape, theta)

    @property
    def graph(self) -> Graph:
        return self.shape.graph

    @cached_property
    def cells(self) -> np.ndarray:
        """Probability of every cell, latents included: the product of all factors."""
        mass = np.ones(len(self.shape.cell["y"]))
        for factor, (where, at) in self.shape.factors.items():
            logits = self.parameters[where]
            if factor[0] == "R":
                mass *= 1 / (1 + np.exp(np.where(self.shape.cell[factor] == 1, -1, 1) * logits[at]))
            else:
                mass *= softmax(logits)[at]
        return mass

    def joint(self) -> np.ndarray:
        """Table p(x1, .., xk, y, R_g of the gapped groups in their order)."""
        names = [name for name in self.shape.sizes if name[0] != "u"]
        table = self.cells.reshape(tuple(self.shape.sizes.values()))
        return table.sum(axis=tuple(range(len(names), table.ndim)))

    def observed(self) -> np.ndarray:
        """p(R = r, recorded values, y), one number for every possible record."""
        return np.bincount(self.shape.observed, self.cells)

    def target(self, wanted: tuple[int, ...]) -> np.ndarray:
        """p(x_T, x_always, y) in one vector."""
        return np.bincount(self.shape.target(tuple(wanted)), self.cells)

    def slopes(self, at: np.ndarray) -> np.ndarray:
        """Derivative in the parameters of the probabilities of the events numbered by cell."""
        n = int(at.max()) + 1
        total = np.bincount(at, self.cells)
        blocks = []
        for factor, (where, column) in self.shape.factors.items():
            width = where.stop - where.start
            logits = self.parameters[where]
            weights = self.cells
            if factor[0] == "R":
                weights = weights * (self.shape.cell[factor] - 1 / (1 + np.exp(-logits))[column])
            block = np.bincount(at * width + column, weights, n * width).reshape(n, width)
            blocks.append(block if factor[0] == "R" else block - total[:, None] * softmax(logits))
        return np.hstack(blocks)

    def moved(self, step: np.ndarray) -> FullLaw:
        return FullLaw(self.shape, self.parameters + step)

    def within(self, graph: Graph) -> FullLaw:
        """The same law as one of a graph with more edges, the new ones without effect; one label becomes two."""
        larger = shape_of(graph, self.shape.levels, max(self.shape.labels, 2), self.shape.latent)
        theta = np.zeros(larger.n_parameters)
        for factor, (where, _) in self.shape.factors.items():
            bigger, at = larger.factors[factor]
            names = tuple(name for name in self.shape.inputs[factor] if self.shape.sizes[name] > 1)
            theta[bigger][at] = self.parameters[where][larger.code(names)]
        return FullLaw(larger, theta)

    def rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The population as weighted rows: levels (m, k), label (m,), recorded (m, k), mass (m,)."""
        table = self.joint()
        grid = np.indices(table.shape).reshape(table.ndim, -1).T
        k = self.graph.n_groups
        recorded = np.ones((len(grid), k), dtype=bool)
        recorded[:, list(self.graph.gapped)] = grid[:, k + 1 :] == 1
        return grid[:, :k], grid[:, k], recorded, table.ravel()


def distance(p: np.ndarray, q: np.ndarray) -> float:
    """Total variation distance of two laws."""
    return float(np.abs(p - q).sum() / 2)


def row_space(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Thin singular value decomposition without the directions that rounding makes up."""
    left, size, right = np.linalg.svd(matrix, full_matrices=False)
    keep = size > 1e-9 * size[0]
    return left[:, keep], size[keep], right[keep]


def loose(law: FullLaw, wanted: tuple[int, ...]) -> np.ndarray:
    """Gradients of the target less their projection on those of the observed law.

    If the target is a smooth function of the observed law then this is zero at *every* law of the model.
    """
    _, _, rows = row_space(law.slopes(law.shape.observed))
    slopes = law.slopes(law.shape.target(wanted))
    return slopes - (slopes @ rows.T) @ rows


def project(law: FullLaw, observed: np.ndarray) -> FullLaw | None:
    """Gauss-Newton steps to a law with the given observed law; None if they do not get there."""
    before = np.inf
    for _ in range(12):
        off = law.observed() - observed
        error = np.abs(off).max()
        if error < 1e-15 or (error < SAME / 10 and error > before / 2):
            return law
        if error > 2 * before or np.abs(law.parameters).max() > INSIDE:
            return None
        left, size, rows = row_space(law.slopes(law.shape.observed))
        law, before = law.moved(-rows.T @ ((left.T @ off) / size)), error
    return law if np.abs(law.observed() - observed).max() < SAME / 10 else None


def walk(base: FullLaw, wanted: tuple[int, ...], n_steps: int = 60) -> FullLaw | None:
    """A law with the observed law of the base and another target, reached in small steps; None if there is no way."""
    observed, target = base.observed(), base.target(wanted)
    law, goal, length = base, None, 0.3
    for _ in range(n_steps):
        free = loose(law, wanted)
        if np.abs(free).max() < APART / 1000:
            return None
        if goal is None:
            goal = np.linalg.svd(free, full_matrices=False)[0][:, 0]
        slope = goal @ free
        if (steep := np.linalg.norm(slope)) < APART / 100:
            return None
        new = project(law.moved(length * slope / steep), observed)
        if new is None or goal @ (new.target(wanted) - law.target(wanted)) <= 0:
            length /= 3
            if length < 0.01:
                return None
            continue
        law, length = new, min(2 * length, 2.0)
        if distance(law.target(wanted), target) >= 2 * APART:
            return law
    return None


def refutes(pair: tuple[FullLaw, FullLaw], wanted: tuple[int, ...]) -> bool:
    """Whether two laws of one graph share the observed law, not the target, and lie inside the model."""
    a, b = pair
    same = np.abs(a.observed() - b.observed()).max() < SAME
    inside = max(np.abs(a.parameters).max(), np.abs(b.parameters).max()) <= INSIDE
    return bool(same and inside and distance(a.target(wanted), b.target(wanted)) >= APART)


@cache
def dependences(values: tuple[str, ...]) -> list[list[tuple[str, ...]] | None]:
    """Ways in which values and label may depend on each other: all, one or two pairs, one triple, none."""
    pairs, triples = (list(itertools.combinations(values, m)) for m in (2, 3))
    return [None, [], *([p] for p in pairs), *map(list, itertools.combinations(pairs, 2)), *([t] for t in triples)]


def laws_of(graph: Graph, seed: int) -> Iterator[FullLaw]:
    """A law of the graph for each kind of dependence, and some whose latents have three levels."""
    kinds = dependences(graph.values)
    for i, among in enumerate(kinds):
        yield FullLaw.random(graph, [seed, 1, i], among=among)
    for i, among in enumerate(kinds[:4] if graph.bidirected else []):
        yield FullLaw.random(graph, [seed, 2, i], latent=3, among=among)


def parts(graph: Graph, least: int, most: int) -> Iterator[Graph]:
    """Every graph with at least and at most so many of its edges, from few to many."""
    edges = graph.edge_list()
    for m in range(max(least, 0), min(most, len(edges)) + 1):
        for kept in itertools.combinations(edges, m):
            yield Graph.read("; ".join(kept), graph.n_groups, graph.always)


def thinned(graph: Graph, seed: int, n: int) -> Iterator[FullLaw]:
    """Laws of the graph in which a random part of edges and dependences has no effect."""
    rng = np.random.default_rng([seed, 5])
    pairs = list(itertools.combinations(graph.values, 2))
    for i in range(n):
        edges, among = (
            [e for e in all_of if rng.random() < rng.uniform(0.4, 1)] for all_of in (graph.edge_list(), pairs)
        )
        part = Graph.read("; ".join(edges), graph.n_groups, graph.always)
        yield FullLaw.random(part, [seed, 7, i], among=among, latent=2 + i % 2)


def broad_laws_of(graph: Graph, seed: int) -> Iterator[FullLaw]:
    """Laws in which some groups have so many levels that the others cannot stand in for them; a label without effect.

    The unknown law of an indicator is a function of its parents. Where records give fewer equations than the function
    has values then it is not identified, and with two levels there may be enough of them by chance.
    """
    many = 12 if graph.n_groups == 3 else 5
    broad = [tuple(many if g == b else few for g in range(graph.n_groups)) for few in (2, 3) for b in graph.gapped]
    pairs = itertools.combinations(graph.values[:-1], 2)
    kinds = [[graph.values[:-1]], *map(list, itertools.combinations(pairs, graph.n_groups - 1))]
    for i, (levels, among) in enumerate(itertools.product(broad, kinds)):
        yield FullLaw.random(graph, [seed, 3, i], levels=levels, labels=1, latent=3, among=among)


@cache
def refute_here(graph: Graph, wanted: tuple[int, ...], seed: int, broad: bool) -> tuple[FullLaw, FullLaw] | None:
    """A pair that refutes identification, both laws near one in which every edge has an effect."""
    for base in broad_laws_of(graph, seed) if broad else laws_of(graph, seed):
        if (other := walk(base, wanted)) is not None:
            return base, other
    return None


def refute(
    graph: Graph, wanted: tuple[int, ...], seed: int = 0, largest: int = 4, n_thinned: int = 20
) -> tuple[FullLaw, FullLaw] | None:
    """Two full laws of the graph with one observed law and different p(x_T, x_always, y); None if none was found.

    Identification has to hold at all laws of the model: where values and label are independent, where an edge has no
    effect. Laws of a graph with fewer edges are laws of this one. So all parts with at most so many edges are tried.
    """
    n = len(graph.edge_list())
    plans = [(n, n, False), (1, min(largest, n - 1), False), (n, n, True), (n - 1, n - 1, True)]
    for part, broad in ((part, broad) for least, most, broad in plans for part in parts(graph, least, most)):
        pair = refute_here(part, wanted, seed, broad)
        if pair is not None and refutes(lifted := (pair[0].within(graph), pair[1].within(graph)), wanted):
            return lifted
    for law in thinned(graph, seed, n_thinned):
        base = law.within(graph)
        other = walk(base, wanted)
        if other is not None and refutes((base, other), wanted):
            return base, other
    return None


def looks_identified(
    graph: Graph, wanted: tuple[int, ...], seed: int = 0, largest: int = 3, n_thinned: int = 20
) -> bool:
    """Whether the target's gradients lie in the span of the observed law's, at laws of all parts: a second opinion."""
    bases = (law for part in [graph, *parts(graph, 0, largest)] for law in laws_of(part, seed))
    laws = (law.within(graph) for law in itertools.chain(bases, thinned(graph, seed, n_thinned)))
    return all(np.abs(loose(law, wanted)).max() < SMOOTH for law in laws)
