"""The best total cost that any agent can reach on the synthetic problem, by dynamic programming on a grid.

With the classifier fixed, the best agent knows for each set S and each cell of x_S

    V(S) = min( E[C_S | x_S], min over groups g not in S of c_g + E[V(S + g) | x_S] ),

where C_S is the cost of the classifier's prediction from x_S. Each column is cut into cells of equal share, and expectations
are means of complete rows in a cell. On the rows that the means come from, the result is too low, because the minimum picks
what looks good there; the rule that it gives, run on other rows, can be reached and so is no lower than the best. The best
cost lies between the two.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

CELLS = {1: 40, 2: 20, 3: 9, 4: 1}  # per column, by how many columns a set has


class Grid:
    """Cells of the values of a set of groups."""

    def __init__(self, data, groups):
        self.columns = np.flatnonzero(np.isin(data.column_group, list(groups)))
        cells = CELLS[len(self.columns)]
        at = np.linspace(0, 1, cells + 1)[1:-1]
        self.edges = [np.quantile(data.values[:, j], at) for j in self.columns]
        self.shape = (cells,) * len(self.columns)

    def cell(self, values):
        index = [np.searchsorted(e, values[:, j]) for j, e in zip(self.columns, self.edges, strict=True)]
        return np.ravel_multi_index(index, self.shape)


def best_costs(learn, test, classifier):
    """The best cost as it looks on the rows of ``learn``, and the cost of the rule from there on the rows of ``test``."""
    problem = learn.problem
    free = tuple(np.flatnonzero(problem.free).tolist())
    costly = np.flatnonzero(~problem.free).tolist()
    value, cost = {}, {}  # by set: V in each row of learn, cost of following the rule in each row of test
    for size in range(len(costly), -1, -1):
        for extra in combinations(costly, size):
            ways = [g for g in costly if g not in extra]
            key = frozenset(extra)
            here = {name: stop_costs(d, free + extra, classifier) for name, d in (("learn", learn), ("test", test))}
            options = [here["learn"], *(problem.prices[g] + value[key | {g}] for g in ways)]
            follow = [here["test"], *(problem.prices[g] + cost[key | {g}] for g in ways)]
            grid = Grid(learn, free + extra)
            means = np.array([cell_means(grid.cell(learn.values), option, grid.shape) for option in options])
            value[key] = means.min(axis=0)[grid.cell(learn.values)]
            choice = means.argmin(axis=0)[grid.cell(test.values)]
            cost[key] = np.array(follow)[choice, np.arange(len(test))]
            if not ways:
                value[key] = here["learn"]
    return float(value[frozenset()].mean()), float(cost[frozenset()].mean())


def stop_costs(data, groups, classifier):
    acquired = np.zeros(data.recorded.shape, dtype=bool)
    acquired[:, list(groups)] = True
    seen = np.where(acquired[:, data.column_group], data.values, np.nan)
    return data.costs[data.labels, classifier.predict(seen, acquired)]


def cell_means(cell, values, shape):
    n_cells = int(np.prod(shape))
    count = np.bincount(cell, minlength=n_cells)
    return np.bincount(cell, weights=values, minlength=n_cells) / np.maximum(count, 1)
