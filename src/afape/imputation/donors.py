"""Rows completed from donors: a row takes what it lacks from a row of another fold with similar shown values."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field

import numpy as np

from .._arrays import Bools, Floats, Ints, Singles, in_own_units, own_units
from .._models import one_thread
from ..data.extreme_values import limit_extreme_values
from ..data.retrospective import Retrospective
from .chained import ChainedImputer
from .regressions import ROWS_PER_COEFFICIENT, least_squares
from .trees import grown_tree, leaf_donors, tree_design

__all__ = ["DonorPool", "DonorTree", "Donors"]

_MAX_KEPT = 2**22  # donors in the trees that are kept for further policies


@dataclass(frozen=True, eq=False)
class DonorPool:
    """Completed rows of other folds, from which the rows of one fold take values.

    Parameters
    ----------
    values : list of ndarray of shape (m, d)
        The rows, completed several times.
    labels : ndarray of int, shape (m,)
        Their labels.
    n_classes : int
        Number of labels.
    weight : ndarray of shape (d,)
        Weight of each column in the search for similar rows.
    """

    values: list[Floats]
    labels: Ints
    n_classes: int
    weight: Floats

    @staticmethod
    def of(data: Retrospective, rows: Ints, n_tables: int, seed: int) -> DonorPool:
        """Complete these rows ``n_tables`` times, learning from these rows only.

        Groups that none of the rows has recorded become 0: any conditional mean keeps the estimates unbiased.
        """
        chosen = data.take(rows)
        never = np.asarray(~chosen.recorded.any(axis=0))
        values = np.where(never[data.column_group], 0.0, limit_extreme_values(chosen.values)[0])
        weight = 1 / np.sqrt(np.bincount(data.source_column)[data.source_column])  # a category counts as one column
        tables = [values]
        if np.isnan(values).any():
            tables = list(ChainedImputer("trees", n_sweeps=3).completed(chosen, values, n_tables, seed))
        return DonorPool(tables, chosen.labels, len(data.classes), weight)


@dataclass(eq=False)
class Donors:
    """Donor pools by fold and donor trees by shown columns, for all policies on the same records.

    Pools and trees are made when a policy first asks for them, and kept. They do not depend on the policy that asks first.

    Parameters
    ----------
    seed : int
        Seed of completions and trees.
    """

    seed: int
    _pools: dict[tuple[int, bytes], DonorPool] = field(init=False, repr=False, default_factory=dict)
    _trees: dict[tuple[bytes, int, int], DonorTree] = field(init=False, repr=False, default_factory=dict)  # undrawn

    def pool(self, data: Retrospective, rows: Bools, n_tables: int, fold: int) -> DonorPool:
        """The donors of a fold: these rows (n,), completed ``n_tables`` times."""
        key = fold, np.packbits(rows).tobytes()
        if key not in self._pools:
            with one_thread():
                self._pools[key] = DonorPool.of(data, np.flatnonzero(rows), n_tables, self.seed + fold)
        return self._pools[key]

    def tree(self, pool: DonorPool, fold: int, table: int, shown: Bools, number: list[int], min_leaf: int) -> DonorTree:
        """A tree of a pool with its own random numbers, which are the same for every policy.

        ``shown`` (d,) are the columns to find donors by, ``number`` the shown groups beside those that are always known.
        """
        key = shown.tobytes(), fold, table
        found = self._trees.get(key)
        if found is None or found.grown.pool is not pool:
            rng = np.random.default_rng([self.seed, fold, table, *number])
            with one_thread():
                found = DonorTree(_GrownTree(pool, table, shown, rng, min_leaf), rng)
            if (len(self._trees) + 1) * len(pool.labels) <= _MAX_KEPT:
                self._trees[key] = found
        return DonorTree(found.grown, deepcopy(found.rng))


class _GrownTree:
    """A tree on a bootstrap sample of a pool; rows in the same leaf are similar in what is shown.

    One tree with several outputs predicts the hidden columns, each with variance 1, from the shown ones, the label, and
    linear predictions of the hidden columns per label class.
    """

    def __init__(self, pool: DonorPool, table: int, shown: Bools, rng: np.random.Generator, min_leaf: int) -> None:
        self.pool, self.values, self.shown = pool, pool.values[table % len(pool.values)], shown
        n = len(self.values)
        count = np.bincount(rng.integers(n, size=n), minlength=n)
        hidden = in_own_units(self.values[:, ~shown])
        centre, spread = hidden.mean(axis=0), hidden.std(axis=0)
        scaled = (hidden - centre) / np.where(spread > 0, spread, 1.0) * pool.weight[~shown]
        self._fit_linear(scaled, count)
        design = self._design(self.values[:, shown], pool.labels)
        self.tree = grown_tree(design, scaled, count, min_leaf, rng)
        self.donors = np.repeat(np.arange(n), count)
        self.donor_leaf = self.tree.tree_.apply(design[self.donors])

    def leaf(self, values: Floats, labels: Ints) -> Ints:
        """Leaf of each row (m,); only shown columns are used."""
        return np.asarray(self.tree.tree_.apply(self._design(values[:, self.shown], labels)))

    def _fit_linear(self, scaled: Floats, count: Ints) -> None:
        """Coefficients per label class; those of all classes together for a class with too few rows."""
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


@dataclass(frozen=True, eq=False)
class DonorTree:
    """A grown tree and the random numbers that choose donors. Every call of `complete` draws further numbers."""

    grown: _GrownTree
    rng: np.random.Generator

    def complete(self, values: Floats, labels: Ints) -> Floats:
        """Draw the hidden columns of these rows (m, d) from one donor per row, which keeps their joint law."""
        grown, out = self.grown, values.copy()
        chosen = grown.donors[leaf_donors(grown.donor_leaf, grown.leaf(values, labels), self.rng)]
        out[:, ~grown.shown] = grown.values[chosen][:, ~grown.shown]
        return out
