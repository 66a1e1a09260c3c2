"""Tiny discrete worlds in which everything can be enumerated, and a slow, obvious second implementation.

Nothing here uses the package's walk: trajectories are enumerated as ordered sequences of decisions, one row at a
time, and expectations are sums over every cell and every missingness pattern.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

import afape

# Rows that enumerate a world are no sample of it.
enumerated = pytest.mark.filterwarnings(
    "ignore::afape.warnings.NormalizerWarning",
    "ignore::afape.warnings.HeavyWeightsWarning",
    "ignore::afape.warnings.BalanceWarning",
    "ignore::afape.warnings.AssumptionWarning",
    "ignore::afape.warnings.SupportWarning",
    "ignore::afape.warnings.ValueFallbackWarning",
)


class TablePolicy:
    """Random probabilities for every state, fixed by the seed; some actions have probability zero."""

    def __init__(self, seed, n_groups, zeros=0.3):
        self.seed, self.n_groups, self.zeros, self.table = seed, n_groups, zeros, {}

    def of(self, seen, acquired):
        key = (tuple(np.nan_to_num(seen, nan=-1.0)), tuple(acquired))
        if key not in self.table:
            rng = np.random.default_rng(
                [self.seed, *[round(1000 * v) + 1000 for v in key[0]], *[int(a) for a in key[1]]]
            )
            p = rng.dirichlet(np.ones(self.n_groups + 1)) * (rng.random(self.n_groups + 1) > self.zeros)
            p[:-1][np.asarray(acquired)] = 0.0
            if p.sum() == 0:
                p[-1] = 1.0
            self.table[key] = p / p.sum()
        return self.table[key]

    def probabilities(self, values, acquired):
        return np.array([self.of(v, a) for v, a in zip(values, acquired, strict=True)])


class TableClassifier:
    """A random label for every state, fixed by the seed."""

    def __init__(self, seed, n_classes):
        self.seed, self.n_classes, self.table = seed, n_classes, {}

    def of(self, seen, acquired):
        key = (tuple(np.nan_to_num(seen, nan=-1.0)), tuple(acquired))
        if key not in self.table:
            rng = np.random.default_rng(
                [self.seed, 7, *[round(1000 * v) + 1000 for v in key[0]], *[int(a) for a in key[1]]]
            )
            self.table[key] = int(rng.integers(self.n_classes))
        return self.table[key]

    def predict(self, values, acquired):
        return np.array([self.of(v, a) for v, a in zip(values, acquired, strict=True)])


class Zero:
    """Predicts the first class whatever it sees."""

    def predict(self, values, acquired):
        return np.zeros(len(values), dtype=int)


class Shares(ClassifierMixin, BaseEstimator):
    """Share of the outcome in every cell of its inputs: exact where these are discrete."""

    def fit(self, X, y, sample_weight=None):
        weight = np.ones(len(y)) if sample_weight is None else sample_weight
        self.classes_ = np.array([0, 1])
        self.cells_ = {}
        for key in {tuple(x) for x in X}:
            mine = (np.array(key) == X).all(axis=1)
            self.cells_[key] = np.average(y[mine], weights=weight[mine])
        return self

    def predict_proba(self, X):
        p = np.array([self.cells_[tuple(x)] for x in X])
        return np.column_stack([1 - p, p])


@dataclass
class World:
    """A joint law of values and label, a law of patterns given some groups, a policy and a classifier."""

    seed: int
    n_groups: int = 3
    n_levels: int = 2
    n_classes: int = 2
    n_free: int = 1
    given: tuple = (0,)  # groups that missingness depends on; always recorded
    free_gaps: bool = False  # whether free groups outside 'given' have gaps

    def __post_init__(self):
        rng = np.random.default_rng([self.seed, 11])
        names = [f"g{i}" for i in range(self.n_groups)]
        # The second group has two columns, so that groups and columns differ.
        self.group_columns = {n: [n, f"{n}b"] if i == 1 else [n] for i, n in enumerate(names)}
        self.costly = np.arange(self.n_groups) >= self.n_free
        self.prices = np.where(self.costly, np.round(rng.uniform(0.5, 3, self.n_groups), 2), 0.0)
        self.costs = np.round(rng.uniform(1, 9, (self.n_classes, self.n_classes)), 1)
        self.levels = np.array(list(itertools.product(range(self.n_levels), repeat=self.n_groups)))
        cells = list(itertools.product(range(len(self.levels)), range(self.n_classes)))
        self.cell_levels = np.array([self.levels[i] for i, _ in cells])
        self.cell_label = np.array([y for _, y in cells])
        self.cell_mass = rng.dirichlet(np.ones(len(cells)))
        self.patterns = np.array(list(itertools.product([False, True], repeat=self.n_groups)))
        self.policy = TablePolicy(self.seed, self.n_groups)
        self.classifier = TableClassifier(self.seed, self.n_classes)
        self._pattern_law = {}

    @cached_property
    def problem(self):
        costs = {n: float(p) for n, p in zip(self.group_columns, self.prices, strict=True) if p > 0}
        return afape.Problem(self.group_columns, costs, "y", self.costs, classes=list(range(self.n_classes)))

    @property
    def always(self):
        fixed = np.zeros(self.n_groups, dtype=bool)
        fixed[list(self.given)] = True
        if not self.free_gaps:
            fixed |= ~self.costly
        return fixed

    def pattern_law(self, levels, label=None):
        """P(R = r | x_given): correlated between groups, positive for every pattern that has 'always' recorded."""
        key = tuple(levels[list(self.given)])
        if key not in self._pattern_law:
            rng = np.random.default_rng([self.seed, 13, *key])
            mass = rng.dirichlet(np.ones(len(self.patterns))) + 0.02
            mass *= (self.patterns | ~self.always).all(axis=1)
            self._pattern_law[key] = mass / mass.sum()
        return self._pattern_law[key]

    def superset(self, levels, required, label=None):
        """P(R >= required | x_given), by summing patterns."""
        return self.pattern_law(levels, label)[(self.patterns | ~np.asarray(required)).all(axis=1)].sum()

    def known_propensity(self):
        first = [list(self.frame_columns).index(n) for n in self.group_columns]

        def lookup(values, required):
            out = []
            for v, s in zip(values, required, strict=True):
                out.append(self.superset(np.nan_to_num(v[first], nan=0).astype(int), s))
            return np.array(out)

        return afape.KnownPropensity(lookup)

    @property
    def frame_columns(self):
        return [c for columns in self.group_columns.values() for c in columns]

    def values(self, levels):
        """Column values of a cell: the second column of a group is a function of its level."""
        out = []
        for level, columns in zip(levels, self.group_columns.values(), strict=True):
            out += [float(level)] if len(columns) == 1 else [float(level), float(2 - level)]
        return np.array(out)

    @property
    def column_group(self):
        return np.array([i for i, c in enumerate(self.group_columns.values()) for _ in c])

    def frame(self, levels, labels, recorded):
        values = np.array([self.values(x) for x in levels])
        values[~recorded[:, self.column_group]] = np.nan
        return pd.DataFrame(values, columns=self.frame_columns).assign(y=labels)

    def everything(self):
        """Every (cell, pattern) of positive probability as a row, with its probability."""
        rows = [
            (x, y, r, m * q)
            for x, y, m in zip(self.cell_levels, self.cell_label, self.cell_mass, strict=True)
            for r, q in zip(self.patterns, self.pattern_law(x, y), strict=True)
            if q > 0
        ]
        levels, labels, recorded, mass = (np.array(part) for part in zip(*rows, strict=True))
        data = afape.Retrospective(self.frame(levels, labels, recorded), self.problem)
        return data, levels, mass

    def complete(self):
        recorded = np.ones((len(self.cell_levels), self.n_groups), dtype=bool)
        return afape.Retrospective(self.frame(self.cell_levels, self.cell_label, recorded), self.problem)

    def draw(self, n, seed):
        """n rows of the world."""
        rng = np.random.default_rng([self.seed, 17, seed])
        cells = rng.choice(len(self.cell_mass), size=n, p=self.cell_mass)
        levels = self.cell_levels[cells]
        labels = self.cell_label[cells]
        laws = {c: self.pattern_law(self.cell_levels[c], self.cell_label[c]) for c in np.unique(cells)}
        pattern = [rng.choice(len(self.patterns), p=laws[c]) for c in cells]
        return afape.Retrospective(self.frame(levels, labels, self.patterns[pattern]), self.problem)

    # --- the slow, obvious way ---------------------------------------------------------------------------------

    def seen(self, row, acquired):
        return np.where(np.asarray(acquired)[self.column_group], row, np.nan)

    def trajectories(self, row, start, available):
        """Every ordered sequence of decisions, as (probability, [(set before, action), ...]); the last action is
        'stop', or a wanted group that is not available."""
        stop = self.n_groups

        def extend(probability, acquired, history):
            p = self.policy.of(self.seen(row, acquired), tuple(acquired))
            for a in np.flatnonzero(p):
                step = (*history, (tuple(acquired), int(a)))
                if a == stop or not available[a]:
                    yield probability * p[a], step
                else:
                    grown = list(acquired)
                    grown[a] = True
                    yield from extend(probability * p[a], grown, step)

        yield from extend(1.0, list(start), ())

    def stop_cost(self, row, label, acquired):
        return self.costs[label, self.classifier.of(self.seen(row, acquired), tuple(acquired))]

    def true_costs(self):
        """(J_a, J_mc) by enumeration."""
        acquisition = misclassification = 0.0
        for x, y, mass in zip(self.cell_levels, self.cell_label, self.cell_mass, strict=True):
            for probability, steps in self.trajectories(
                self.values(x), ~self.costly, np.ones(self.n_groups, dtype=bool)
            ):
                acquisition += mass * probability * sum(self.prices[a] for _, a in steps[:-1])
                misclassification += mass * probability * self.stop_cost(self.values(x), y, steps[-1][0])
        return acquisition, misclassification

    def weighted_row(self, row, label, recorded, weight, acquisition_weight="before"):
        """One row of IPW-Semi by enumeration of trajectories: dict of sums, with steps kept apart.

        'weight' maps a set to 1 / P(R >= set | x), or to 0 where the row may not be used.
        """
        free = ~self.costly
        rooted = bool((free & ~self.always).any())
        depths = self.n_groups + 2
        out = {k: np.zeros(depths) for k in ("price", "reach", "stop", "cost")}
        first = 0
        if rooted:
            out["reach"][0] += weight(np.zeros(self.n_groups, dtype=bool))
            first = 1
            if not recorded[free].all():
                return out
        seen_prefixes = set()
        for _, steps in self.trajectories(row, free, recorded):
            probability = 1.0
            for t, (acquired, a) in enumerate(steps):
                p = self.policy.of(self.seen(row, acquired), acquired)
                w = weight(np.array(acquired))
                prefix = steps[:t]
                if (prefix, acquired) not in seen_prefixes:  # each ordered prefix counts once
                    seen_prefixes.add((prefix, acquired))
                    out["reach"][first + t] += probability * w
                    if acquisition_weight == "before":
                        out["price"][first + t] += probability * w * (p[:-1] @ self.prices)
                probability *= p[a]
                if a == self.n_groups:
                    out["stop"][first + t] += probability * w
                    out["cost"][first + t] += probability * w * self.stop_cost(row, label, acquired)
                elif recorded[a] and acquisition_weight == "after":
                    grown = np.array(acquired)
                    grown[a] = True
                    arrived = (steps[: t + 1], "paid")
                    if arrived not in seen_prefixes:
                        seen_prefixes.add(arrived)
                        out["price"][first + t + 1] += probability * weight(grown) * self.prices[a]
        return out

    def blocked_row(self, row, label, recorded):
        """(acquisition, misclassification) of the blocked policy in one row."""
        totals = np.zeros(2)

        def extend(probability, acquired):
            p = self.policy.of(self.seen(row, acquired), tuple(acquired)).copy()
            p[:-1] *= recorded
            p = p / p.sum() if p.sum() > 0 else np.eye(self.n_groups + 1)[-1]
            for a in np.flatnonzero(p):
                if a == self.n_groups:
                    totals[1] += probability * p[a] * self.stop_cost(row, label, acquired)
                else:
                    totals[0] += probability * p[a] * self.prices[a]
                    grown = list(acquired)
                    grown[a] = True
                    extend(probability * p[a], grown)

        extend(1.0, list(~self.costly & recorded))
        return totals


@dataclass
class GraphWorld(World):
    """A world whose missingness follows a graph: random tables P(R_g = 1 | parents), hidden coins for '<->'."""

    graph: str = ""

    def __post_init__(self):
        super().__post_init__()
        self.drawn = afape.MGraph(self.graph)

    @property
    def missingness(self):
        return afape.MNAR(graph=self.drawn)

    @property
    def always(self):
        return np.array([f"g{i}" not in self.drawn.missing for i in range(self.n_groups)])

    def one(self, group, levels, label, pattern, coins):
        """P(R_group = 1 | its parents)."""
        parents = sorted(a for a, b in self.drawn.directed if b == f"R_{group}")
        key = []
        for parent in parents:
            if parent == "y":
                key.append(int(label))
            elif parent.startswith("R_"):
                key.append(int(pattern[int(parent[3:])]))
            else:
                key.append(int(levels[int(parent[1:])]))
        key += [coins[pair] for pair in self.drawn.bidirected if f"R_{group}" in pair]
        rng = np.random.default_rng([self.seed, 23, int(group[1:]), *key])
        return rng.uniform(0.25, 0.95)

    def pattern_law(self, levels, label=None):
        key = (tuple(levels), label)
        if key not in self._pattern_law:
            law = np.zeros(len(self.patterns))
            pairs = self.drawn.bidirected
            for values in itertools.product([0, 1], repeat=len(pairs)):
                coins = dict(zip(pairs, values, strict=True))
                for i, pattern in enumerate(self.patterns):
                    p = 0.5 ** len(pairs)
                    for g in range(self.n_groups):
                        if self.always[g]:
                            p *= float(pattern[g])
                        else:
                            q = self.one(f"g{g}", levels, label, pattern, coins)
                            p *= q if pattern[g] else 1 - q
                    law[i] += p
            self._pattern_law[key] = law
        return self._pattern_law[key]

    def known_propensity(self):
        first = [list(self.frame_columns).index(n) for n in self.group_columns]

        def lookup(values, required, labels):
            levels = np.nan_to_num(values[:, first], nan=0).astype(int)
            return np.array([self.superset(x, s, y) for x, s, y in zip(levels, required, labels, strict=True)])

        return afape.KnownPropensity(lookup, labels=True)


class ExactValues:
    """Q and V of a world by enumeration, given the acquired values and those of 'given' (and the label)."""

    def __init__(self, world, label):
        self.world, self.label, self.memo = world, label, {}
        columns = list(world.frame_columns)
        self.first = [columns.index(n) for n in world.group_columns]
        self.width = 2

    def stop(self, row, label, acquired):
        """What a stop costs: nothing for groups, something for the label."""
        return np.array([0.0, self.world.stop_cost(row, label, acquired)])

    def take(self, group):
        """What an acquisition costs."""
        return np.array([self.world.prices[group], 0.0])

    def known(self, values):
        """Levels of the groups, -1 where not known."""
        return tuple(np.nan_to_num(values[self.first], nan=-1).astype(int))

    def cells(self, known, y):
        world = self.world
        match = ((world.cell_levels == known) | (np.array(known) < 0)).all(axis=1)
        if self.label:
            match &= world.cell_label == y
        return np.flatnonzero(match)

    def q(self, known, acquired, y):
        """(G + 1, width): expected costs to go of each action, its own price included."""
        key = (known, acquired, y if self.label else None)
        if key in self.memo:
            return self.memo[key]
        world = self.world
        cells = self.cells(known, y)
        mass = world.cell_mass[cells] / world.cell_mass[cells].sum()
        out = np.zeros((world.n_groups + 1, self.width))
        for i, m in zip(cells, mass, strict=True):
            row = world.values(world.cell_levels[i])
            out[-1] += m * self.stop(row, world.cell_label[i], acquired)
            for a in np.flatnonzero(~np.array(acquired)):
                seen = tuple(world.cell_levels[i][g] if g == a else k for g, k in enumerate(known))
                grown = tuple(bool(s) or g == a for g, s in enumerate(acquired))
                out[a] += m * self.v(seen, grown, world.cell_label[i])
        for a in np.flatnonzero(~np.array(acquired)):
            out[a] += self.take(a)
        self.memo[key] = out
        return out

    def v(self, known, acquired, y):
        world = self.world
        row = world.values(np.maximum(known, 0))
        p = world.policy.of(world.seen(row, acquired), acquired)
        wanted = p > 0
        return p[wanted] @ self.q(known, acquired, y)[wanted]

    def function(self, values, acquired, labels):
        return np.array(
            [
                self.q(self.known(v), tuple(bool(s) for s in a), y)
                for v, a, y in zip(values, acquired, labels, strict=True)
            ]
        )

    def root(self, values, labels):
        world = self.world
        out = []
        free = tuple(bool(f) for f in ~world.costly)
        for v, y in zip(values, labels, strict=True):
            known = self.known(v)
            cells = self.cells(known, y)
            mass = world.cell_mass[cells] / world.cell_mass[cells].sum()
            total = np.zeros(self.width)
            for i, m in zip(cells, mass, strict=True):
                seen = tuple(world.cell_levels[i][g] if free[g] else k for g, k in enumerate(known))
                total += m * self.v(seen, free, world.cell_label[i])
            out.append(total)
        return np.array(out)


def hajek(rows):
    """Normalised estimates from the rows of `World.weighted_row`, written out."""
    mean = {k: np.mean([r[k] for r in rows], axis=0) for k in rows[0]}
    before = mean["reach"] + np.concatenate([[0.0], np.cumsum(mean["stop"])[:-1]])
    acquisition = sum(p / b for p, b in zip(mean["price"], before, strict=True) if p > 0)
    return acquisition, mean["cost"].sum() / mean["stop"].sum()


WORLDS = [
    World(1),
    World(2, n_groups=4, n_levels=2),
    World(3, n_groups=3, n_levels=3, n_classes=3),
    World(4, n_groups=4, n_levels=3),
    World(5, n_groups=3, n_free=0, given=(0,)),
    World(6, n_groups=3, n_free=2, free_gaps=True),
    World(7, n_groups=4, n_levels=2, n_free=2, given=(2,), free_gaps=True),
    World(8, n_groups=3, n_levels=2, n_free=1, given=(1, 2)),
]

GRAPH_WORLDS = {
    "paper": GraphWorld(41, graph="g0 -> R_g1; g0 -> R_g2; g1 -> R_g2"),
    "each other's": GraphWorld(42, graph="g1 -> R_g2; g2 -> R_g1"),
    "odds ratio": GraphWorld(43, graph="g2 -> R_g1 -> R_g2"),
    "odds ratio of three": GraphWorld(
        44, n_groups=4, graph="g2 -> R_g1 -> R_g2; g3 -> R_g2; R_g2 -> R_g3; g1 -> R_g3; g0 -> R_g2"
    ),
    "label": GraphWorld(45, graph="y -> R_g1; g1, y -> R_g2", n_classes=3),
    "recorded together": GraphWorld(46, graph="g2 -> R_g1 <-> R_g2; g0 -> R_g1"),
    "free group with gaps": GraphWorld(47, n_free=2, graph="g1 -> R_g2; R_g1"),
    "colluder": GraphWorld(48, n_groups=4, graph="g1 -> R_g2 <- R_g1; g0 -> R_g1; g2 -> R_g3", n_levels=2),
    "peeling": GraphWorld(54, n_groups=4, graph="g3 -> R_g1 -> R_g2 -> R_g3; g1 -> R_g2"),
    "comparison": GraphWorld(55, n_groups=4, graph="g1 -> R_g2 -> R_g1; g3 -> R_g1; R_g2 -> R_g3; g2 -> R_g3"),
    "no free group": GraphWorld(49, n_free=0, n_levels=3, graph="g0 -> R_g1; R_g0; g1 -> R_g2"),
}
