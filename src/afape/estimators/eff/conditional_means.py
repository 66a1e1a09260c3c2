"""Conditional means of the costs of runs: some groups of a row are shown, the others are drawn, and the policy is run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from ..._arrays import Bools, Floats, Ints
from ...agents.policy import Policy
from ...classifiers import Classifier
from ...data.retrospective import Retrospective
from ...propensity.weights import View
from ...walk.columns import PartColumns
from ...walk.ground import Copies, Ground
from ...walk.outcomes import OwnOutcomes
from ...walk.table import WalkTable
from ...walk.walker import WalkOptions, walk
from ..endings import endings_of
from ..flows import Flows, state_amounts
from .completion import Completer, KnownGroups

__all__ = ["Collected", "DrawnAmounts", "Ledger", "Runner", "ShownAmounts", "TooManySetsError", "mean_amounts"]

_CELLS = 2**25  # largest number of rows times sets times costs
_AT_ONCE = 2**18  # completed rows per batch
_KEPT = 2**24  # amounts of single completions that are kept, for standard errors


class TooManySetsError(Exception):
    """Raised if the policy reaches too many sets for components."""


class DrawnAmounts(NamedTuple):
    """The completions behind expected amounts, and what each contributes: amounts divided by the row's number of draws."""

    row: Ints  # (c,) row of each completion
    donor: Ints  # (c,) row that its hidden values come from; -1 without a donor
    share: Floats  # (c,) one over the number of completions of the row
    draw: Ints  # (l,) completion of each line
    line: Ints  # (l,) the expected amount that the line is part of
    amount: csr_array  # (l, P)


class ShownAmounts(NamedTuple):
    """Parts of the costs of the runs in S: known (``shown`` is None), or expected given the shown groups."""

    shown: Bools | None  # (G,)
    row: NDArray[Any]  # (m,) sorted
    reached: NDArray[Any]  # (m,) index of S among the sets
    amount: csr_array  # (m, P)
    draws: DrawnAmounts | None = None  # None for known amounts, or if there are too many completions to keep


@dataclass(frozen=True, eq=False)
class Runner:
    """Runs a policy on completed rows."""

    policy: Policy
    classifier: Classifier
    outcomes: OwnOutcomes
    options: WalkOptions
    seed: int
    n_jobs: int | None
    report: Callable[[WalkTable], None] | None = None  # called with every table

    def walk(
        self, data: Retrospective, rows: Ints, values: Floats, copies: Copies, n_rows: int
    ) -> Iterator[tuple[WalkTable, Ints]]:
        """Walk completed rows, some of ``n_rows`` in all batches.

        Yields tables with row numbers of the records, and the index into ``rows`` of each state.
        """
        ground = Ground.everything(data.take(rows), values, self.policy, self.classifier, self.outcomes, copies)
        options = self.options.within(n_rows, data.problem.n_groups)
        for table in walk(ground, None, options, self.seed, self.n_jobs):
            if self.report is not None:
                self.report(table)
            yield replace(table, row=rows[table.row]), table.row


class Collected(NamedTuple):
    """Sums of amounts by key, row and set."""

    key: Ints  # (m,)
    row: Ints  # (m,)
    reached: Ints  # (m,) number of the set
    amount: csr_array  # (m, P)

    @staticmethod
    def summed(found: Sequence[Collected]) -> Collected:
        """Sum amounts with equal key, row and set; the result is sorted by these."""
        key, row, reached = (np.concatenate(column) for column in list(zip(*found, strict=True))[:3])
        order = np.lexsort((reached, row, key))
        new = np.zeros(len(order), dtype=bool)
        new[:1] = True
        for column in (key, row, reached):
            new[1:] |= np.diff(column[order]) != 0
        place = np.empty(len(order), dtype=np.intp)
        place[order] = np.cumsum(new) - 1
        first = order[new]
        onto = csr_array((np.ones(len(place)), (place, np.arange(len(place)))), shape=(len(first), len(place)))
        amount = csr_array(onto @ vstack([one.amount for one in found], format="csr"))
        return Collected(key[first], row[first], reached[first], amount)


@dataclass(eq=False)
class Ledger:
    """Numbers sets in the order of their appearance, and collects amounts by row and set."""

    data: Retrospective
    known: KnownGroups
    view: View
    columns: PartColumns
    numbers: dict[bytes, int] = field(default_factory=dict)
    busiest: int = 1  # largest number of states in a row

    def number(self, sets: Bools) -> Ints:
        """Return the number of each set; groups that are always known are ignored."""
        keys = ((s & ~self.known.groups).tobytes() for s in sets)
        return np.array([self.numbers.setdefault(key, len(self.numbers)) for key in keys], dtype=np.intp)

    def collect(self, tables: Iterable[tuple[WalkTable, Ints]]) -> Collected:
        """Sum the amounts of the runs by key, row and set; each table comes with a key for each of its states."""
        n_costs, collected = 4 if self.view.unsupported else 2, []
        for table, key in tables:
            lines = np.flatnonzero(self.known.usable[table.row])
            alone: Ints = np.zeros(0, dtype=np.intp)  # starts of rows that represent only themselves
            ends = None
            if self.view.unsupported:
                lacks, ends = self.view.lacks(table), endings_of(table, self.data, self.view)
                lines, alone = lines[~lacks[lines]], np.flatnonzero(lacks & (table.depth == 0))
            number = self.number(table.sets)[table.set_index[lines]]
            number = np.concatenate([number, np.zeros(len(alone), dtype=np.intp)])
            lines = np.concatenate([lines, alone])
            self.busiest = max(self.busiest, int(np.bincount(table.row[lines]).max(initial=1)))
            found = csr_array(state_amounts(Flows.of(table, ends), self.columns))[lines]
            collected.append(Collected(key[lines], table.row[lines], number, found))
            width = len(self.numbers)
            if len(self.data) * width * n_costs > _CELLS or width**2 > _CELLS:
                raise TooManySetsError
        return Collected.summed(collected)

    @property
    def sets(self) -> Bools:
        """All sets so far, (u, G); the first is the empty set."""
        n_groups = self.data.problem.n_groups
        return np.array([np.frombuffer(key, dtype=bool) for key in self.numbers]).reshape(-1, n_groups)


def mean_amounts(
    completer: Completer, ledger: Ledger, runner: Runner, shown: Sequence[tuple[Bools, Ints]], count: Ints
) -> list[ShownAmounts]:
    """Compute the mean amounts over completions, by row and set, given each of the shown sets.

    ``shown`` are sets with the rows that have them, ``count`` (n,) is the number of completions of each row. Completions of
    several sets are run together, because each call of the classifier takes time and there may be many sets with few rows.
    """
    collected: list[Collected] = []
    drawn: list[Collected] = []
    lent: list[tuple[Ints, Ints, Ints]] = []  # shown set, row and donor of each completion
    n_rows = sum(int(count[rows].sum()) for _, rows in shown)
    for batch in _batches(completer, shown, count):
        key = np.concatenate([np.full(len(rows), k) for k, rows, _, _ in batch])
        rows, donor = (np.concatenate([one[j] for one in batch]) for j in (1, 3))
        seen = np.array([t | completer.known.groups for t, _ in shown])[key]
        copies = Copies(rows, seen)
        walked = runner.walk(
            completer.data, rows, np.concatenate([values for _, _, values, _ in batch]), copies, n_rows
        )
        start = sum(len(rows) for rows, *_ in lent)
        each = ledger.collect((table, start + place) for table, place in walked)
        collected.append(Collected.summed([each._replace(key=key[each.key - start])]))
        lent.append((key, rows, donor))
        drawn = [*drawn, each] if sum(one.amount.nnz for one in (*drawn, each)) <= _KEPT else []
    if not collected:
        return []
    found = Collected.summed(collected)
    found.amount.data /= np.repeat(count[found.row], np.diff(found.amount.indptr))
    ends = np.searchsorted(found.key, np.arange(len(shown) + 1))
    each_draw = _draws(found, drawn, lent, count, len(shown)) if len(drawn) == len(lent) else [None] * len(shown)
    return [
        ShownAmounts(t, found.row[a:b], found.reached[a:b], csr_array(found.amount[a:b]), draws)
        for (t, _), a, b, draws in zip(shown, ends[:-1], ends[1:], each_draw, strict=True)
    ]


def _draws(
    found: Collected, drawn: list[Collected], lent: list[tuple[Ints, Ints, Ints]], count: Ints, n_shown: int
) -> list[DrawnAmounts | None]:
    """Return the single completions of every shown set."""
    key, row, donor = (np.concatenate(column) for column in zip(*lent, strict=True))
    draw, reached = (np.concatenate([one[j] for one in drawn]) for j in (0, 2))
    amount = csr_array(vstack([one.amount for one in drawn], format="csr"))
    amount.data /= np.repeat(count[row[draw]], np.diff(amount.indptr))
    width = int(found.reached.max()) + 1
    code = (found.key * (int(found.row.max()) + 1) + found.row) * width + found.reached  # increasing
    line = np.searchsorted(code, (key[draw] * (int(found.row.max()) + 1) + row[draw]) * width + reached)
    first = np.searchsorted(found.key, np.arange(n_shown))
    out: list[DrawnAmounts | None] = []
    for k in range(n_shown):
        mine, lines = np.flatnonzero(key == k), np.flatnonzero(key[draw] == k)
        place = np.searchsorted(mine, draw[lines])
        own = DrawnAmounts(
            row[mine], donor[mine], 1 / count[row[mine]], place, line[lines] - first[k], csr_array(amount[lines])
        )
        out.append(own)
    return out


def _batches(
    completer: Completer, shown: Sequence[tuple[Bools, Ints]], count: Ints
) -> Iterator[list[tuple[int, Ints, Floats, Ints]]]:
    """Yield batches of completed rows, each with the index of its shown set, row numbers and donors."""
    batch: list[tuple[int, Ints, Floats, Ints]] = []
    for k, (t, rows) in enumerate(shown):
        for row, values, donor in completer.draws(t, rows, count):
            batch.append((k, row, values, donor))
            if sum(len(done) for _, done, _, _ in batch) >= _AT_ONCE:
                yield batch
                batch = []
    if batch:
        yield batch
