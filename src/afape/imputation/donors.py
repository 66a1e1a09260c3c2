"""Completed rows from donors: what a row lacks is taken from rows of other folds that are like it in what it may show."""

from __future__ import annotations

from copy import copy, deepcopy
from dataclasses import dataclass, field

import numpy as np

from ..arrays import Bools, Floats, Ints, Singles, in_own_units, own_units
from ..data import Retrospective
from .chained import ChainedImputer
from .linear import ROWS_PER_COEFFICIENT, least_squares
from .trees import grown_tree, leaf_donors, tree_design

__all__ = ["DonorPool", "DonorTree", "Donors"]

_HELD = 2**22  # donors in the trees that are kept for further policies


@dataclass(frozen=True, eq=False)
class DonorPool:
    """Rows of other folds, completed, that lend their values to the rows of one fold.

    Parameters
    ----------
    values : list of ndarray of shape (m, d)
        The same rows completed several times.
    labels : ndarray of int, shape (m,)
        Their labels.
    n_classes : int
        Number of labels.
    weight : ndarray of shape (d,)
        What each column weighs in the search for similar rows.
    """

    values: list[Floats]
    labels: Ints
    n_classes: int
    weight: Floats

    @staticmethod
    def of(data: Retrospective, rows: Ints, n_tables: int, seed: int) -> DonorPool:
        """Complete these rows, and these alone, ``n_tables`` times."""
        part = data.take(rows)
        never = np.asarray(~part.recorded.any(axis=0))
        if never.any():  # nobody to take these groups from: any constant will do, a conditional mean need not be right
            recorded = part.recorded | never
            part.values = np.where(never[part.column_group], 0.0, part.values)
            part.recorded = recorded
        weight = 1 / np.sqrt(
            np.bincount(data.source_column)[data.source_column]
        )  # levels of a category weigh as one column
        if not np.isnan(part.values).any():
            return DonorPool([part.values], part.labels, len(data.classes), weight)
        tables = list(ChainedImputer("trees", n_sweeps=3).impute(part, n_tables, seed))
        return DonorPool(tables, part.labels, len(data.classes), weight)

    def tree(self, shown: Bools, table: int, rng: np.random.Generator, min_leaf: int) -> DonorTree:
        """A tree that finds donors by the columns ``shown`` and the label, grown on a bootstrap sample."""
        values = self.values[table % len(self.values)]
        count = np.bincount(rng.integers(len(values), size=len(values)), minlength=len(values))
        return DonorTree(self, values, shown, count, rng, min_leaf)


@dataclass(frozen=True, eq=False)
class Donors:
    """Donor pools by fold and trees by what they show, made once for all policies on the same records.

    Parameters
    ----------
    seed : int
        Seed of completions and trees.
    """

    seed: int
    pools: dict[tuple[int, bytes], DonorPool] = field(default_factory=dict)
    trees: dict[tuple[bytes, int, int], tuple[DonorPool, DonorTree]] = field(default_factory=dict)

    def pool(self, data: Retrospective, rows: Bools, n_tables: int, fold: int) -> DonorPool:
        """The donors of a fold: these rows, completed ``n_tables`` times."""
        key = fold, np.packbits(rows).tobytes()
        if key not in self.pools:
            self.pools[key] = DonorPool.of(data, np.flatnonzero(rows), n_tables, self.seed + fold)
        return self.pools[key]

    def tree(self, pool: DonorPool, fold: int, table: int, shown: Bools, number: list[int], min_leaf: int) -> DonorTree:
        """A tree of a pool; it draws the same for every policy, whichever came first.

        ``number`` are the groups that are shown beside those that are always known.
        """
        key = shown.tobytes(), fold, table
        grown_on, found = self.trees.get(key, (None, None))
        if found is None or grown_on is not pool:
            rng = np.random.default_rng([self.seed, fold, table, *number])
            found = pool.tree(shown, table, rng, min_leaf)
            if (len(self.trees) + 1) * len(pool.labels) <= _HELD:
                self.trees[key] = pool, found
        return found.again()


class DonorTree:
    """Rows in the same leaf are alike in what is shown, for all that is hidden at once.

    One tree with several outputs predicts the hidden columns, each with variance 1, from the shown ones, the label, and
    linear predictions of the hidden columns per label class. A row takes all hidden columns from one donor of its leaf,
    so that what is hidden keeps its joint law.
    """

    def __init__(
        self, pool: DonorPool, values: Floats, shown: Bools, count: Ints, rng: np.random.Generator, min_leaf: int
    ) -> None:
        self.pool, self.values, self.shown, self.rng = pool, values, shown, rng
        hidden = in_own_units(values[:, ~shown])
        centre, spread = hidden.mean(axis=0), hidden.std(axis=0)
        scaled = (hidden - centre) / np.where(spread > 0, spread, 1.0) * pool.weight[~shown]
        self._fit_linear(scaled, count)
        design = self._design(values[:, shown], pool.labels)
        self.tree = grown_tree(design, scaled, count, min_leaf, rng)
        self.donors = np.repeat(np.arange(len(count)), count)
        self.leaf = self.tree.tree_.apply(design[self.donors])

    def again(self) -> DonorTree:
        """The same tree with the draws it began with."""
        other = copy(self)
        other.rng = deepcopy(self.rng)
        return other

    def _fit_linear(self, scaled: Floats, count: Ints) -> None:
        """Coefficients per label class, or of all classes together where a class has too few rows."""
        shown, labels = self.values[:, self.shown], self.pool.labels
        self.units = own_units(shown)  # so that squares stay finite, however large the values are
        unit = np.ldexp(shown, -self.units)
        self.location, self.scale = unit.mean(axis=0), np.where(unit.std(axis=0) > 0, unit.std(axis=0), 1.0)
        z = self._standardised(shown)
        rows = np.repeat(np.arange(len(z)), count)
        together = least_squares(z[rows], scaled[rows])
        self.coefficients = np.repeat(together[None], self.pool.n_classes, axis=0)
        for y in range(self.pool.n_classes):
            mine = rows[labels[rows] == y]
            if len(mine) >= ROWS_PER_COEFFICIENT * z.shape[1]:
                self.coefficients[y] = least_squares(z[mine], scaled[mine])

    def _standardised(self, shown: Floats) -> Floats:
        return np.column_stack([np.ones(len(shown)), (np.ldexp(shown, -self.units) - self.location) / self.scale])

    def _design(self, shown: Floats, labels: Ints) -> Singles:
        linear = np.einsum("ip,ipc->ic", self._standardised(shown), self.coefficients[labels])
        label = np.eye(self.pool.n_classes, dtype=np.float32)[labels][:, 1:]
        return np.column_stack([tree_design(shown, self.units), label, linear.astype(np.float32)])

    def complete(self, values: Floats, labels: Ints) -> Floats:
        """These rows with their hidden columns drawn; what they hold there is not looked at."""
        out = values.copy()
        leaf = self.tree.tree_.apply(self._design(values[:, self.shown], labels))
        chosen = self.donors[leaf_donors(self.leaf, leaf, self.rng)]
        out[:, ~self.shown] = self.values[chosen][:, ~self.shown]
        return out
