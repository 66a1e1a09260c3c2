"""Parts of a policy's cost in tiny worlds, by enumeration of trajectories; nothing here uses the package's walk."""

from __future__ import annotations

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
