"""Components of a policy's costs, with conditional means from completed rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from ..arrays import Bools, Floats, Ints, every, tally
from ..data import Retrospective
from ..walk import WalkTable
from .donors import Donors, DonorTree
from .splits import Lattice, Split, splits_up_to

__all__ = ["Components", "Known", "StateCosts", "TooManySetsError", "assembled", "component_steps", "components_of"]

_DRAWS = (2, 12)  # completions per row and set, at least and at most
_BUDGET = 30  # completed rows per row, of up to _STATES states each; fewer where the policy reaches more states
_STATES = 16
_TABLES = 3  # completed tables of the donors, and trees per set
_MIN_LEAF = 10
_AT_ONCE = 2**18  # completed rows that are run together
_CELLS = 2**25  # rows times sets times targets that are held


def component_steps(n_rows: int) -> int:
    """Completed rows that are run at most."""
    return _BUDGET * n_rows


class TooManySetsError(Exception):
    """The policy reaches more sets than components can be told apart for."""


class ShownParts(NamedTuple):
    """Parts of the costs of the runs in S, known of a row (``shown`` None) or expected of what is shown of it."""

    shown: Bools | None  # (G,)
    row: NDArray[Any]  # (m,)
    reached: NDArray[Any]  # (m,) place of S among the sets
    amount: csr_array  # (m, P)


@dataclass(frozen=True, eq=False)
class Components:
    r"""What every row knows of the policy's costs, by the set of groups that each part needs.

    :math:`g_S` is what the runs in S cost, known in rows that have S. With the components :math:`f_{S,T}` of a `Split` of
    order q, the coefficient of a set T in a row is

    .. math:: 1(|T| \le q) \sum_{S > T} f_{S,T} \; + \; g_T - \sum_{T' < T, |T'| \le q} f_{T,T'} .

    Attributes
    ----------
    sets : ndarray of bool, shape (L, G)
        Sets T, of groups that are not always known.
    row, place : ndarray of int, shape (l,)
        Lines: a row, and a set that it has recorded, by its place among ``sets``.
    coefficient : ndarray of shape (len(splits), l, V)
        Coefficients by split, line and target.
    splits : tuple of Split
        Ways to tell components apart, the largest order last.
    n_draws : int
        Completions per row and set.
    n_reached : int
        How many of the sets, the first ones, the policy reaches.
    parts : tuple of ShownParts
        What the costs are made of, by what is shown of a row.
    """

    sets: Bools
    row: Ints
    place: Ints
    coefficient: Floats
    splits: tuple[Split, ...]
    n_draws: int
    n_reached: int = 0
    parts: tuple[ShownParts, ...] = ()

    def only(self, targets: slice) -> Components:
        """The same for some of the targets."""
        return replace(self, coefficient=self.coefficient[:, :, targets])

    def signs(self, shown: Bools | None, shares: Floats) -> Floats:
        """What :math:`m_{S,t}` adds to the coefficient of every set T, (n_reached, L), splits mixed with these shares.

        ``shown`` is t; None for what is known of S itself.
        """
        if shown is None:
            return np.asarray(np.eye(self.n_reached, len(self.sets)) * shares.sum())
        out = np.zeros((self.n_reached, len(self.sets)))
        for split, share in zip(self.splits, shares, strict=True):
            if share and shown.sum() <= split.order:
                out += share * self._lattice.signs(split, shown)
        return out

    @cached_property
    def _lattice(self) -> Lattice:
        inner = {part.shown.tobytes() for part in self.parts if part.shown is not None}
        return Lattice(self.sets, self.n_reached, np.array([s.tobytes() in inner for s in self.sets]))

    @property
    def table(self) -> WalkTable:
        """The lines as states without flow, so that a view can weigh them."""
        acquired = self.sets[self.place]
        return WalkTable.of_states(self.row, acquired, acquired.sum(axis=1))


@dataclass(frozen=True, eq=False)
class Known:
    """What is known in the rows that are used.

    Parameters
    ----------
    groups : ndarray of bool, shape (G,)
        Groups that every used row has.
    usable : ndarray of bool, shape (n,)
        Rows that are used.
    fold : ndarray of int, shape (n,)
        Fold of each row; models and donors of a row come from other folds.
    averaged : ndarray of bool, shape (n,), optional
        Rows whose components are needed; default all.
    """

    groups: Bools
    usable: Bools
    fold: Ints
    averaged: Bools | None = None

    @property
    def wanted(self) -> Bools:
        """Rows that are used and averaged over."""
        return self.usable if self.averaged is None else self.usable & self.averaged


@dataclass(frozen=True, eq=False)
class StateCosts:
    """Costs g of the states of a table, and how the policy is run on completed rows.

    Parameters
    ----------
    of : callable
        ``of(table)`` gives the lines that count, their costs by target (m, V), and whether a line counts as a set without
        groups, because its row represents only itself (m,).
    walk : callable
        ``walk(rows, values)`` runs the policy on completed rows; its tables name the rows of the records.
    parts : callable, optional
        ``parts(table, lines)`` gives what the costs of these lines are made of, (m, P).
    """

    of: Callable[[WalkTable], tuple[Ints, Floats, Bools]]
    walk: Callable[[Ints, Floats], Iterable[WalkTable]]
    parts: Callable[[WalkTable, Ints], csr_array] | None = None


@dataclass(eq=False)
class _Ledger:
    """Sets of groups that are not always known, numbered as they are met, and costs summed by row and set."""

    gaps: Bools
    costs: StateCosts
    numbers: dict[bytes, int] = field(default_factory=dict)
    busiest: int = 1  # states of the row that has most
    held: list[tuple[Ints, Ints, csr_array]] = field(default_factory=list)  # parts of tables since they were last taken

    def number(self, sets: Bools) -> Ints:
        """Number of each set, of which only groups with gaps count."""
        keys = ((s & self.gaps).tobytes() for s in sets)
        return np.array([self.numbers.setdefault(key, len(self.numbers)) for key in keys], dtype=np.intp)

    def sums(self, tables: Iterable[WalkTable], n_rows: int) -> Floats:
        """Costs by row, set and target, (n, u, V)."""
        parts = []
        for table in tables:
            lines, amount, alone = self.costs.of(table)
            self.busiest = max(self.busiest, int(np.bincount(table.row[lines]).max(initial=1)))
            number = np.where(alone, 0, self.number(table.sets)[table.set_index[lines]])
            parts.append((table.row[lines], number, amount))
            if self.costs.parts is not None:
                self.held.append((table.row[lines], number, self.costs.parts(table, lines)))
        width, n_targets = len(self.numbers), parts[0][2].shape[1]
        if n_rows * width * n_targets > _CELLS or width**2 > _CELLS:
            raise TooManySetsError
        out = np.zeros((n_rows * width, n_targets))
        for row, number, amount in parts:
            for v in range(n_targets):
                out[:, v] += tally(row * width + number, amount[:, v], n_rows * width)
        return out.reshape(n_rows, width, n_targets)

    def take(self, shown: Bools | None, n_draws: int = 1) -> list[ShownParts]:
        """Parts of what was summed since the last time, by row and set, divided by the number of draws."""
        held, self.held = self.held, []
        if not held:
            return []
        key = np.concatenate([row << 32 | reached for row, reached, _ in held])
        pairs, place = np.unique(key, return_inverse=True)
        share = np.full(len(key), 1 / n_draws)
        by_pair = csr_array((share, (place, np.arange(len(key)))), shape=(len(pairs), len(key)))
        amount = by_pair @ vstack([amount for *_, amount in held], format="csr")
        row, reached = (pairs >> 32).astype(np.int32), (pairs & (2**32 - 1)).astype(np.int32)
        return [ShownParts(shown, row, reached, csr_array(amount))]

    @property
    def sets(self) -> Bools:
        """All sets so far, (u, G); the first has no groups."""
        return np.array([np.frombuffer(key, dtype=bool) for key in self.numbers]).reshape(-1, len(self.gaps))


def components_of(
    data: Retrospective, tables: Iterable[WalkTable], known: Known, costs: StateCosts, donors: Donors
) -> Components:
    """Components of the costs of a policy whose walk over what is recorded these tables are.

    ``donors`` keeps completed rows for further policies on the same records.
    """
    ledger = _Ledger(~known.groups, costs)
    ledger.number(np.zeros((1, data.problem.n_groups), dtype=bool))
    own = ledger.sums(tables, len(data))
    parts = ledger.take(None)
    inner, order, n_draws = _inner_sets(data, known, ledger.sets, max(1.0, ledger.busiest / _STATES))
    completer, means = _Completer(data, known, donors), {}
    for t in inner:
        rows = np.flatnonzero(known.wanted & every(data.recorded | ~t))
        if len(rows):
            means[t.tobytes()] = _mean_costs(completer, ledger, t, rows, n_draws)
            parts += ledger.take(t, n_draws)
    splits = splits_up_to(order if means else 0)
    found = assembled(data, known, ledger.sets, own, means, splits, n_draws)
    return replace(found, n_reached=len(ledger.sets), parts=tuple(parts))


def _inner_sets(data: Retrospective, known: Known, sets: Bools, effort: float) -> tuple[list[Bools], int, int]:
    """Sets strictly inside others, small ones first as far as the budget goes; their largest size, and draws for each.

    ``effort`` is what running the policy on a row takes, in units of a row of few states.
    """
    found: list[Bools] = []
    rows, order, n_used = 0, 0, max(int(known.wanted.sum()), 1)
    for size in range(int(sets.sum(axis=1).max())):
        new: dict[bytes, Bools] = {}
        for s in sets[sets.sum(axis=1) > size]:
            for part in combinations(np.flatnonzero(s), size):
                t = np.isin(np.arange(len(s)), part)
                new[t.tobytes()] = t
        more = sum(int((known.wanted & every(data.recorded | ~t)).sum()) for t in new.values())
        if size and (rows + more) * (1 + _DRAWS[0]) * effort > _BUDGET * n_used:
            break
        found, rows, order = [*found, *new.values()], rows + more, size
    return found, order, int(np.clip(_BUDGET * n_used / max(rows * effort, 1), *_DRAWS))


@dataclass(eq=False)
class _Completer:
    """Completes the rows of every fold from donors of the others."""

    data: Retrospective
    known: Known
    donors: Donors

    def _tree(self, k: int, b: int, shown: Bools, number: list[int]) -> DonorTree | None:
        fold = self.known.fold
        others = self.known.usable & (fold != k) if fold.max() > 0 else self.known.usable
        if not others.any():  # no donors: hidden values stay 0, a conditional mean need not be right
            return None
        pool = self.donors.pool(self.data, others, _TABLES, k)
        return self.donors.tree(pool, k, b, shown, number, _MIN_LEAF)

    def draws(self, t: Bools, rows: Ints, n_draws: int) -> Iterator[tuple[Ints, Floats]]:
        """Rows in which only the groups t and what is known are shown and the rest is drawn, some draws at a time."""
        data, fold = self.data, self.known.fold[rows]
        shown = (t | self.known.groups)[data.column_group]
        values = np.where(shown, data.values[rows], 0.0)
        number = np.flatnonzero(t).tolist()
        trees = {
            (k, b): self._tree(int(k), b, shown, number) for k in np.unique(fold) for b in range(min(_TABLES, n_draws))
        }
        step = max(_AT_ONCE // len(rows), 1)
        for start in range(0, n_draws, step):
            completed = []
            for m in range(start, min(start + step, n_draws)):
                out = np.empty_like(values)
                for k in np.unique(fold):
                    mine = fold == k
                    tree = trees[k, m % _TABLES]
                    out[mine] = values[mine] if tree is None else tree.complete(values[mine], data.labels[rows[mine]])
                completed.append(out)
            yield np.tile(rows, len(completed)), np.concatenate(completed)


def _mean_costs(completer: _Completer, ledger: _Ledger, t: Bools, rows: Ints, n_draws: int) -> Floats:
    """Mean over completions of the costs by row, set and target."""
    total = np.zeros((1, 1, 1))
    for who, values in completer.draws(t, rows, n_draws):
        found = ledger.sums(ledger.costs.walk(who, values), len(completer.data))
        total = np.pad(total, ((0, 0), (0, found.shape[1] - total.shape[1]), (0, 0))) + found
    return np.asarray(total / n_draws)


def assembled(
    data: Retrospective,
    known: Known,
    sets: Bools,
    own: Floats,
    means: dict[bytes, Floats],
    splits: tuple[Split, ...],
    n_draws: int,
) -> Components:
    """Put conditional means together as components, by split."""
    inner = [np.frombuffer(key, dtype=bool) for key in means]
    merged = {s.tobytes(): s for s in (*sets, *inner)}  # the sets come first, in their order
    every_set = np.array(list(merged.values()))
    is_inner = np.array([s.tobytes() in means for s in every_set])
    lattice = Lattice(every_set, len(sets), is_inner)
    has = np.array([every(data.recorded | ~s) for s in every_set]).T & known.usable[:, None]
    has[:, 0] |= (own[:, 0] != 0).any(axis=1)  # rows that represent only themselves
    row, place = np.nonzero(has)
    kept = []
    for split in splits:
        full = np.zeros((len(data), len(every_set), own.shape[2]))
        full[:, : own.shape[1]] = own
        for t, mean in zip(inner, means.values(), strict=True):
            if t.sum() <= split.order:
                signs = lattice.signs(split, t)[: mean.shape[1]]  # further sets were met later, in other completed rows
                of, onto = np.flatnonzero(signs.any(axis=1)), np.flatnonzero(signs.any(axis=0))  # few are not 0
                full[:, onto] += np.einsum("isv,st->itv", mean[:, of], signs[np.ix_(of, onto)], optimize=True)
        kept.append(full[row, place])  # one split at a time is held in full
    return Components(every_set, row, place, np.array(kept), splits, n_draws)
