"""Parts of a policy's cost in tiny worlds, by enumeration of trajectories; nothing here uses the package's walk."""

from __future__ import annotations

import itertools

import numpy as np
from worlds import ExactValues


def n_parts(world):
    """Costly groups, pairs of labels, numbers of acquisitions, and one outcome of its own."""
    costly = int(world.costly.sum())
    return costly + world.n_classes**2 + costly + 1 + 1


def own_outcome(values, acquired, labels):
    """Any function of what a run stops with."""
    return np.nan_to_num(values).sum(axis=1) * (1 + labels) + acquired.sum(axis=1) ** 2


def stop_parts(world, row, label, acquired):
    """What a stop gives: the pair of labels, the number of costly groups, the outcome."""
    out = np.zeros(n_parts(world))
    costly, k = int(world.costly.sum()), world.n_classes
    seen = world.seen(row, acquired)
    out[costly + label * k + world.classifier.of(seen, tuple(acquired))] = 1.0
    out[costly + k * k + int(np.asarray(acquired)[world.costly].sum())] = 1.0
    out[-1] = own_outcome(seen[None], np.asarray(acquired)[None], np.array([label]))[0]
    return out


def take_parts(world, group):
    """What an acquisition takes."""
    out = np.zeros(n_parts(world))
    if group < world.n_groups and world.costly[group]:
        out[np.flatnonzero(world.costly).tolist().index(group)] = 1.0
    return out


def run_parts(world, row, label):
    """Expected parts of a run on a complete row."""
    out = np.zeros(n_parts(world))
    for probability, steps in world.trajectories(row, ~world.costly, np.ones(world.n_groups, dtype=bool)):
        taken = sum((take_parts(world, a) for _, a in steps[:-1]), np.zeros(n_parts(world)))
        out += probability * (taken + stop_parts(world, row, label, steps[-1][0]))
    return out


def true_parts(world):
    """Expected parts in the world."""
    cells = zip(world.cell_levels, world.cell_label, world.cell_mass, strict=True)
    return sum(mass * run_parts(world, world.values(x), y) for x, y, mass in cells)


def priced(world):
    """Acquisition and misclassification cost as linear combinations of the parts, (P, 2)."""
    out = np.zeros((n_parts(world), 2))
    costly = int(world.costly.sum())
    out[:costly, 0] = world.prices[world.costly]
    out[costly : costly + world.n_classes**2, 1] = world.costs.ravel()
    return out


def weighted_parts(world, row, label, recorded, weight):
    """One row of plain IPW-Semi by enumeration: the weight before a decision for what it takes, the last for a stop."""
    out = np.zeros(n_parts(world))
    free = ~world.costly
    if not recorded[free].all():
        return out
    seen_prefixes = set()
    for _, steps in world.trajectories(row, free, recorded):
        probability = 1.0
        for t, (acquired, a) in enumerate(steps):
            p = world.policy.of(world.seen(row, acquired), acquired)
            w = weight(np.array(acquired))
            if steps[:t] not in seen_prefixes:  # each ordered prefix counts once
                seen_prefixes.add(steps[:t])
                for g in np.flatnonzero(p[:-1]):
                    out += probability * w * p[g] * take_parts(world, g)
            probability *= p[a]
            if a == world.n_groups:
                out += probability * w * stop_parts(world, row, label, acquired)
    return out


class ExactParts(ExactValues):
    """Q and V of the parts of a world, by enumeration."""

    def __init__(self, world, label):
        super().__init__(world, label)
        self.width = n_parts(world)

    def stop(self, row, label, acquired):
        return stop_parts(self.world, row, label, acquired)

    def take(self, group):
        return take_parts(self.world, group)


class PartComponents:
    """Parts of the runs in every set S, by cell of a world, and the rows that weight their Hoeffding components.

    Parameters
    ----------
    world : World
        The world.
    known : ndarray of bool, shape (G,)
        Groups that every row has.
    means : callable
        ``means(exact, t)`` gives what is taken for E[g_S | x_T, what is known, y], (cells, sets, P).
    """

    def __init__(self, world, known, means):
        self.world, self.gaps, self.known, self.means = world, ~known, known, means
        self.numbers = {np.zeros(world.n_groups, dtype=bool).tobytes(): 0}
        found = [self.runs(world.values(x), y) for x, y in zip(world.cell_levels, world.cell_label, strict=True)]
        self.sets = np.array([np.frombuffer(key, dtype=bool) for key in self.numbers])
        self.parts = np.zeros((len(found), len(self.sets), n_parts(world)))
        for cell, by_set in enumerate(found):
            for key, amount in by_set.items():
                self.parts[cell, self.numbers[key]] = amount
        self.memo = {}

    def runs(self, row, label):
        """What runs on a complete row take and give in each set, of which only groups with gaps count."""
        world, out, seen = self.world, {}, set()
        for _, steps in world.trajectories(row, ~world.costly, np.ones(world.n_groups, dtype=bool)):
            reach = 1.0
            for t, (acquired, a) in enumerate(steps):
                p = world.policy.of(world.seen(row, acquired), acquired)
                if (steps[:t], acquired) not in seen:  # each ordered prefix counts once
                    seen.add((steps[:t], acquired))
                    key = (np.array(acquired) & self.gaps).tobytes()
                    self.numbers.setdefault(key, len(self.numbers))
                    taken = sum((p[g] * take_parts(world, g) for g in np.flatnonzero(p[:-1])), np.zeros(n_parts(world)))
                    given = p[-1] * stop_parts(world, row, label, acquired) if p[-1] > 0 else 0.0
                    out[key] = out.get(key, 0.0) + reach * (taken + given)
                reach *= p[a]
        return out

    def cells_of(self, t):
        """Number of the cell of (x_T, what is known, y) that each full cell lies in."""
        keys = np.column_stack([self.world.cell_levels[:, t | self.known], self.world.cell_label])
        return np.unique(keys, axis=0, return_inverse=True)[1].ravel()

    @property
    def inner(self):
        """Sets strictly inside one that runs reach, small ones first."""
        found = {}
        for s in self.sets:
            groups = np.flatnonzero(s)
            for size in range(len(groups)):
                for part in itertools.combinations(groups, size):
                    t = np.isin(np.arange(len(s)), part)
                    found[t.tobytes()] = t
        return sorted(found.values(), key=lambda t: t.sum())

    def mean(self, t):
        """What is taken for the conditional means, (cells, sets, P)."""
        if t.tobytes() not in self.memo:
            self.memo[t.tobytes()] = self.means(self, t)
        return self.memo[t.tobytes()]

    def row_parts(self, cell, recorded, weight, q):
        """Value of one row with components of at most q groups apart, set by set, by the recursion that defines them."""
        out = np.zeros(n_parts(self.world))
        for number, s in enumerate(self.sets):
            groups = np.flatnonzero(s)
            inside = [
                np.isin(np.arange(len(s)), part)
                for size in range(min(q + 1, len(groups)))
                for part in itertools.combinations(groups, size)
            ]
            component = {}
            for t in inside:
                if (t & ~recorded).any():
                    continue
                smaller = [f for key, f in component.items() if not (np.frombuffer(key, dtype=bool) & ~t).any()]
                component[t.tobytes()] = self.mean(t)[cell, number] - sum(smaller, np.zeros(n_parts(self.world)))
                out += weight(t) * component[t.tobytes()]
            if not (s & ~recorded).any():
                out += weight(s) * (self.parts[cell, number] - sum(component.values(), np.zeros(n_parts(self.world))))
        return out

    def row_parts_by_steps(self, cell, recorded, weight, q):
        """Value of one row, groups added one at a time up to q of them: the mean over every order of the groups."""
        out = np.zeros(n_parts(self.world))
        for number, s in enumerate(self.sets):
            orders = list(itertools.permutations(np.flatnonzero(s)))
            for order in orders:
                steps = [np.isin(np.arange(len(s)), order[:k]) for k in range(min(q + 1, len(order)))]
                before = np.zeros(n_parts(self.world))
                for t in [*steps, s]:
                    if (t & ~recorded).any():
                        break
                    now = self.parts[cell, number] if t is s else self.mean(t)[cell, number]
                    out += weight(t) * (now - before) / len(orders)
                    before = now
        return out

    def bound(self):
        """Standard deviation of the efficient influence value of the total cost.

        It is E[h | what is recorded] where (sum over r of P(R = r | X_o) E[. | x_r, X_o, Y]) h = m - J, and m the cost of
        a run with everything measured.
        """
        world, mass = self.world, self.world.cell_mass
        m = self.parts.sum(axis=1) @ priced(world).sum(axis=1)
        law = np.array([world.pattern_law(x, y) for x, y in zip(world.cell_levels, world.cell_label, strict=True)])
        operator = np.zeros((len(m), len(m)))
        for k, pattern in enumerate(world.patterns):
            cell = self.cells_of(pattern & self.gaps)
            same = (cell[:, None] == cell[None]) * mass
            operator += law[:, [k]] * same / same.sum(axis=1, keepdims=True)
        h = np.linalg.lstsq(operator, m - mass @ m, rcond=None)[0]
        return float(np.sqrt(mass @ (h * (m - mass @ m))))


def exact_part_means(exact, t):
    """The right conditional means."""
    cell, mass = exact.cells_of(t), exact.world.cell_mass
    flat = exact.parts.reshape(len(exact.parts), -1)
    total = np.array([np.bincount(cell, mass * column) for column in flat.T])
    return (total / np.bincount(cell, mass)).T[cell].reshape(exact.parts.shape)


def arbitrary_part_means(exact, t):
    """Any function of what is shown: the same in all cells that agree there."""
    rng = np.random.default_rng([9, *np.flatnonzero(t)])
    return rng.normal(size=exact.parts.shape)[exact.cells_of(t)]
