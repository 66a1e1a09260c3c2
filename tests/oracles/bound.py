"""The semiparametric bound of a world, and conditional means of what runs cost, by enumeration of cells and patterns."""

from __future__ import annotations

import itertools

import numpy as np

from afape.walk import Ground, WalkTable, walk


class ExactComponents:
    """Costs g_S of every cell of a world, and their means given a part of the groups and the label."""

    def __init__(self, world, known):
        self.world, self.gaps = world, ~known
        self.known = known
        cells = world.complete()
        self.labels = world.cell_label
        table = WalkTable.concatenate(
            list(walk(Ground.everything(cells, cells.values, world.policy, world.classifier)))
        )
        keys = {np.zeros(world.n_groups, dtype=bool).tobytes(): 0}
        number = [keys.setdefault((s & self.gaps).tobytes(), len(keys)) for s in table.acquired]
        self.sets = np.array([np.frombuffer(key, dtype=bool) for key in keys])
        self.costs = np.zeros((len(cells), len(keys), 2))
        np.add.at(self.costs[:, :, 0], (table.row, number), table.reach * table.price)
        wrong = np.where(table.stop_flow > 0, table.stop_flow * table.cost, 0.0)
        np.add.at(self.costs[:, :, 1], (table.row, number), wrong)

    def cells_of(self, t):
        """Number of the cell of (x_T, what is known, y) that each full cell lies in."""
        shown = t | self.known
        keys = np.column_stack([self.world.cell_levels[:, shown], self.labels])
        return np.unique(keys, axis=0, return_inverse=True)[1].ravel()

    def mean(self, values, t):
        """E[values | x_T, what is known, y] in every full cell."""
        cell, mass = self.cells_of(t), self.world.cell_mass
        flat = values.reshape(len(values), -1)
        total = np.array([np.bincount(cell, mass * column) for column in flat.T])
        return (total / np.bincount(cell, mass)).T[cell].reshape(values.shape)

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

    def bound(self):
        """Standard deviation of the efficient influence value of the total cost.

        It is E[h | what is recorded] where (sum over r of P(R = r | X_o) E[. | x_r, X_o, Y]) h = m - J, and m the cost of
        a run with everything measured.
        """
        world, mass = self.world, self.world.cell_mass
        m = self.costs.sum(axis=(1, 2))
        law = np.array([world.pattern_law(x, y) for x, y in zip(world.cell_levels, self.labels, strict=True)])
        operator = np.zeros((len(m), len(m)))
        for k, pattern in enumerate(world.patterns):
            cell = self.cells_of(pattern & self.gaps)
            same = (cell[:, None] == cell[None]) * mass
            operator += law[:, [k]] * same / same.sum(axis=1, keepdims=True)
        h = np.linalg.lstsq(operator, m - mass @ m, rcond=None)[0]
        return float(np.sqrt(mass @ (h * (m - mass @ m))))
