"""Rows completed from donors: a row takes what it lacks from a row of the other half with similar shown values."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from .._arrays import Bools, Floats, Ints, Singles, in_own_units, own_units
from .._models import one_thread
from ..data.alike_parts import alike_parts
from ..data.extreme_values import limit_extreme_values
from ..data.retrospective import Retrospective
from .chained import chained
from .incomplete_groups import SCALED_DIGITS, incomplete_groups
from .regressions import ROWS_PER_COEFFICIENT, least_squares
from .trees import TreeModel, grown_tree, tree_design

__all__ = ["DonorPool", "DonorTree", "Donors"]

_MAX_KEPT = 2**22  # donors in the trees that are kept for further policies
_SWEEPS = 3
_CHAIN_LEAF = 20  # least number of rows in a leaf from which gaps of donors are filled
_CONSTANT = 1e-12  # a spread below this, in units of the largest value, is rounding


@dataclass(frozen=True, eq=False)
class DonorPool:
    """Completed rows, from which other rows take values; rows and columns are in canonical order.

    Parameters
    ----------
    values : ndarray of shape (m, d)
        The rows, completed.
    columns : ndarray of int, shape (d,)
        Column of the records of each column here.
    labels : ndarray of int, shape (m,)
        Their labels.
    n_classes : int
        Number of labels.
    weight : ndarray of shape (d,)
        Weight of each column in the search for similar rows.
    rows : ndarray of int, shape (m,)
        Row of the records of each row here.
    cases : ndarray of shape (m,), optional
        How many cases each row stands for.
    """

    values: Floats
    columns: Ints
    labels: Ints
    n_classes: int
    weight: Floats
    rows: Ints
    cases: Floats | None = None

    @staticmethod
    def of(data: Retrospective, rows: Ints, rng: np.random.Generator) -> DonorPool:
        """Complete these rows, learning from these rows only.

        Groups that none of the rows has recorded become 0: any conditional mean keeps the estimates unbiased.
        """
        taken = data.take(rows)
        chosen = taken.in_canonical_order()
        never, source = np.asarray(~chosen.recorded.any(axis=0)), chosen.source_column
        values = np.where(never[chosen.column_group], 0.0, limit_extreme_values(chosen.values)[0])
        weight = 1 / np.sqrt(np.bincount(source)[source])  # a category counts as one column
        if np.isnan(values).any():
            model = TreeModel(_CHAIN_LEAF, proper=False)
            values = chained(values, chosen.labels, incomplete_groups(chosen, values), model, _SWEEPS, rng)
        order = rows[np.argsort(taken.place)]
        columns, n_classes = data.columns_by_name, len(data.classes)
        return DonorPool(values, columns, chosen.labels, n_classes, weight, order, chosen.weight)

    @cached_property
    def score(self) -> Floats:
        """Linear score (m, d), column by column, that separates the labels best; its sums order donors."""
        z = in_own_units(self.values)
        z = z - z.mean(axis=0)
        z /= np.where(z.std(axis=0) > _CONSTANT, z.std(axis=0), 1.0)
        labels = np.eye(self.n_classes)[self.labels]
        slopes = np.linalg.solve(z.T @ z + np.eye(z.shape[1]), z.T @ (labels - labels.mean(axis=0)))
        return np.asarray(z * (slopes @ np.linalg.svd(slopes, full_matrices=False)[2][0]))


@dataclass(eq=False)
class Donors:
    """Donor pools and donor trees, for all policies on the same records.

    Every table deals the rows into halves. The rows of a half take values from the other half. Pools and trees are made when
    a policy first asks for them, and kept. They do not depend on the policy that asks first.

    Parameters
    ----------
    seed : int
        Seed of halves, completions and trees.
    """

    seed: int
    _pools: dict[tuple[int, int, bytes], DonorPool] = field(init=False, repr=False, default_factory=dict)
    _trees: dict[tuple[bytes, int, int], DonorTree] = field(init=False, repr=False, default_factory=dict)
    _halves: dict[int, Ints] = field(init=False, repr=False, default_factory=dict)

    def halves(self, data: Retrospective, table: int) -> Ints:
        """Half of each row in a table, 0 or 1, (n,); rows of one cluster share a half."""
        if table not in self._halves:
            self._halves[table] = alike_parts(data, 2, np.random.default_rng([self.seed, 0, table]))
        return self._halves[table]

    def pool(self, data: Retrospective, rows: Bools, table: int, half: int) -> DonorPool:
        """The donors of a half of the rows: these rows (n,), completed."""
        key = table, half, np.packbits(rows).tobytes()
        if key not in self._pools:
            with one_thread():
                rng = np.random.default_rng([self.seed, 1, table, half])
                self._pools[key] = DonorPool.of(data, np.flatnonzero(rows), rng)
        return self._pools[key]

    def tree(self, pool: DonorPool, table: int, half: int, shown: Bools, number: list[int], min_leaf: int) -> DonorTree:
        """A tree of a pool, which is the same for every policy.

        ``shown`` (d,) are the columns to find donors by, ``number`` the shown groups beside those that are always known, in
        the order of their names.
        """
        key = shown.tobytes(), table, half
        found = self._trees.get(key)
        if found is None or found.pool is not pool:
            with one_thread():
                found = DonorTree(pool, shown, np.random.default_rng([self.seed, 2, table, half, *number]), min_leaf)
            if (len(self._trees) + 1) * len(pool.labels) <= _MAX_KEPT:
                self._trees[key] = found
        return found

    def positions(self, data: Retrospective, number: list[int]) -> tuple[Floats, Floats]:
        """Numbers between 0 and 1 for each row, (n,) each, that choose its donors and its first table."""
        rng = np.random.default_rng([self.seed, 3, *number])
        return rng.random(len(data))[data.place], rng.random(len(data))[data.place]


class DonorTree:
    """A tree on a pool; rows in the same leaf are similar in what is shown.

    One tree with several outputs predicts the hidden columns, each with variance 1, from the shown ones, the label, and
    linear predictions of the hidden columns per label class. The donors of a leaf are ordered by how much their hidden
    columns speak for one label, so that evenly spaced donors represent a leaf.
    """

    def __init__(self, pool: DonorPool, shown: Bools, rng: np.random.Generator, min_leaf: int) -> None:
        self.pool, seen = pool, shown[pool.columns]
        self.shown, self.hidden, self.taken = pool.columns[seen], pool.columns[~seen], np.flatnonzero(~seen)
        hidden, known = in_own_units(pool.values[:, ~seen]), pool.values[:, seen]
        centre, spread = hidden.mean(axis=0), hidden.std(axis=0)
        scaled = (hidden - centre) / np.where(spread > _CONSTANT, spread, 1.0) * pool.weight[~seen]
        scaled = scaled.round(SCALED_DIGITS)
        self._fit_linear(known, scaled)
        design = self._design(known, pool.labels)
        cases = np.ones(len(design), dtype=np.intp) if pool.cases is None else pool.cases
        self.tree = grown_tree(design, scaled, cases, min_leaf, rng, best=False)
        leaf = self.tree.tree_.apply(design)
        self.order = np.lexsort((pool.score[:, ~seen].sum(axis=1).round(SCALED_DIGITS), leaf))
        self.size = np.bincount(leaf, minlength=self.tree.tree_.node_count)
        self.first = np.cumsum(self.size) - self.size
        self.ends = None if pool.cases is None else np.cumsum(pool.cases[self.order])

    def complete(self, values: Floats, labels: Ints, position: Floats) -> tuple[Floats, Ints]:
        """Fill the hidden columns of these rows (m, d) from one donor per row, which keeps their joint law.

        ``position`` (m,), between 0 and 1, is the place of the donor among the donors of the leaf. Returns the completed rows
        and the row number of each donor, (m,).
        """
        leaf, out = self.tree.tree_.apply(self._design(values[:, self.shown], labels)), values.copy()
        chosen = self.order[self._places(leaf, position)]
        out[:, self.hidden] = self.pool.values[np.ix_(chosen, self.taken)]
        return out, self.pool.rows[chosen]

    def _places(self, leaf: Ints, position: Floats) -> Ints:
        """Place of a donor of each leaf in the order of all donors; a donor takes as much room as it stands for cases."""
        first, size = self.first[leaf], self.size[leaf]
        if self.ends is None:
            return np.asarray(first + (position * size).astype(np.intp))
        low, high = np.append(0.0, self.ends)[first], self.ends[first + size - 1]
        found = np.searchsorted(self.ends, low + position * (high - low), side="right")
        return np.asarray(np.clip(found, first, first + size - 1))

    def _fit_linear(self, shown: Floats, scaled: Floats) -> None:
        """Coefficients per label class; those of all classes together for a class with too few rows."""
        labels = self.pool.labels
        self.units = own_units(shown)  # so that squares stay finite, however large the values are
        unit = np.ldexp(shown, -self.units)
        self.location, self.scale = unit.mean(axis=0), np.where(unit.std(axis=0) > _CONSTANT, unit.std(axis=0), 1.0)
        z = self._standardised(shown)
        cases = self.pool.cases
        together = least_squares(z, scaled, cases)
        self.coefficients = np.repeat(together[None], self.pool.n_classes, axis=0)
        for y in range(self.pool.n_classes):
            mine = np.flatnonzero(labels == y)
            if len(mine) >= ROWS_PER_COEFFICIENT * z.shape[1]:
                self.coefficients[y] = least_squares(z[mine], scaled[mine], None if cases is None else cases[mine])

    def _standardised(self, shown: Floats) -> Floats:
        return np.column_stack([np.ones(len(shown)), (np.ldexp(shown, -self.units) - self.location) / self.scale])

    def _design(self, shown: Floats, labels: Ints) -> Singles:
        z = self._standardised(shown)
        linear = np.einsum("ip,ipc->ic", z, self.coefficients[labels])
        label = np.eye(self.pool.n_classes, dtype=np.float32)[labels][:, 1:]
        return np.column_stack([tree_design(z[:, 1:]), label, tree_design(linear)])
