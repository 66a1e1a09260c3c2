"""Components of a policy's costs; their conditional means come from completed rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from ..._arrays import Bools, Floats, every
from ...data.retrospective import Retrospective
from ...imputation.donors import Donors
from ...missingness.assumptions import Conditioning
from ...propensity.weights import View
from ...walk.columns import PartColumns
from ...walk.table import WalkTable
from ..evidence import ViewKey
from .completion import Completer, KnownGroups, counts_of_draws
from .conditional_means import Ledger, Runner, ShownAmounts, TooManySetsError, mean_amounts
from .splits import Lattice, Split, splits_up_to

__all__ = ["Components", "assembled", "component_steps", "components_by_view"]

_DRAWS = (2, 30)  # least and largest mean number of completions per row and set
_BUDGET = 45  # about this many completions per row, for all sets together; fewer if a row reaches over _STATES states
_FEWEST = 30  # completions per row up to which larger sets are shown too
_STATES = 16
_LINES = 2**18  # lines of components per chunk


def component_steps(n_rows: int) -> int:
    """Return the largest number of completed rows that are run."""
    return _BUDGET * n_rows


@dataclass(frozen=True, eq=False)
class Components:
    r"""Components of the policy's costs in every row, by the set of groups that each component needs.

    :math:`g_S` is the cost of the runs in S, known in rows that have S. With the components :math:`f_{S,T}` of a `Split` of
    order q, the weight :math:`w_T` of a row multiplies

    .. math:: 1(|T| \le q) \sum_{S > T} f_{S,T} \; + \; g_T - \sum_{T' < T, |T'| \le q} f_{T,T'} .

    Attributes
    ----------
    sets : ndarray of bool, shape (L, G)
        Sets T, without groups that are always known. The policy reaches the first ``n_reached`` of them.
    has : ndarray of bool, shape (n, L)
        True if the row has the set recorded.
    splits : tuple of Split
        Ways to split the costs, the largest order last.
    n_reached : int
        Number of sets that the policy reaches.
    amounts : tuple of ShownAmounts
        Known and expected amounts, by the shown groups.
    columns : PartColumns
        Columns of the amounts.
    """

    sets: Bools
    has: Bools
    splits: tuple[Split, ...]
    n_reached: int
    amounts: tuple[ShownAmounts, ...]
    columns: PartColumns

    @cached_property
    def _lattice(self) -> Lattice:
        inner = {found.shown.tobytes() for found in self.amounts if found.shown is not None}
        return Lattice(self.sets, self.n_reached, np.array([s.tobytes() in inner for s in self.sets]))

    def signs(self, shown: Bools | None, split: Split) -> Floats:
        """Return the coefficients of `Lattice.signs`, (n_reached, L); ``shown`` is t, or None for the known :math:`g_S`."""
        if shown is None:
            return np.eye(self.n_reached, len(self.sets))
        if shown.sum() > split.order:
            return np.zeros((self.n_reached, len(self.sets)))
        return self._lattice.signs(split, shown)

    def tables(self) -> Iterator[WalkTable]:
        """Yield rows with their sets as states without flow, in chunks of rows, so that a view can compute weights."""
        row, place = np.nonzero(self.has)
        starts = [0]
        for cut in range(_LINES, len(row), _LINES):
            start = int(np.searchsorted(row, row[cut]))  # a row stays in one chunk
            if start > starts[-1]:
                starts.append(start)
        for start, end in zip(starts, [*starts[1:], len(row)], strict=True):
            acquired = self.sets[place[start:end]]
            yield WalkTable.of_states(row[start:end], acquired, acquired.sum(axis=1))


def components_by_view(
    data: Retrospective,
    tables: Iterable[WalkTable],
    given: Conditioning,
    views: Mapping[ViewKey, View],
    runner: Runner,
    donors: Donors,
    averaged: Floats | None,
) -> dict[ViewKey, Components]:
    """Compute the components of a policy's costs in every view. Views without unsupported sets share theirs.

    Parameters
    ----------
    data, tables
        Records, and the policy's walk over the recorded values.
    given : Conditioning
        The groups that recording depends on.
    views : mapping
        Views that need components.
    runner : Runner
        Runs the policy on completed rows.
    donors : Donors
        Rows from which hidden values are drawn; completed rows are kept for further policies on the same records.
    averaged : ndarray, optional
        The rows that are averaged over.
    """
    known = _known_groups(data, given, averaged)
    out: dict[ViewKey, Components] = {}
    shared: Components | None = None
    for key, view in views.items():
        if view.unsupported or shared is None:
            found = _components(data, tables, known, view, runner, donors)
            shared = shared if view.unsupported else found
        out[key] = found if view.unsupported else shared  # type: ignore[assignment]
    return out


def _known_groups(data: Retrospective, given: Conditioning, averaged: Floats | None) -> KnownGroups:
    usable, everyone = given.usable(data), np.ones(len(data), dtype=bool)
    return KnownGroups(
        data.always_recorded | given.gaps,
        everyone if usable is None else usable,
        everyone if averaged is None else averaged > 0,
    )


def _largest_weight(tables: Iterable[WalkTable], view: View, n_rows: int) -> Floats:
    """Return the largest weight of a reached set that each row has, (n,); 1 for rows that are not used."""
    out = np.ones(n_rows)
    for table in tables:
        found = view.weigh(table)
        np.maximum.at(out, table.row[found.lines], found.weight)
    return out


def _components(
    data: Retrospective,
    tables: Iterable[WalkTable],
    known: KnownGroups,
    view: View,
    runner: Runner,
    donors: Donors,
) -> Components:
    """Compute the components in one view; without splits if the policy reaches too many sets."""
    columns = PartColumns.of(data, len(runner.outcomes), bool(view.unsupported))
    ledger = Ledger(data, known, view, columns)
    ledger.number(np.zeros((1, data.problem.n_groups), dtype=bool))
    try:
        own = ledger.collect((table, np.zeros_like(table.row)) for table in tables)
        inner, order, n_draws = _inner_sets(data, known, ledger.sets, max(1.0, ledger.busiest / _STATES))
        shown = [(t, np.flatnonzero(known.wanted & every(data.recorded | ~t))) for t in inner]
        shown = [(t, rows) for t, rows in shown if len(rows)]
        found = [ShownAmounts(None, own.row, own.reached, own.amount)]
        n_sets = sum((np.bincount(rows, minlength=len(data)) for _, rows in shown), np.zeros(len(data), dtype=np.intp))
        count = counts_of_draws(_largest_weight(tables, view, len(data)), n_sets, n_draws)
        found += mean_amounts(Completer(data, known, donors), ledger, runner, shown, count)
    except TooManySetsError:
        none = np.zeros((0, data.problem.n_groups), dtype=bool)
        return Components(none, np.zeros((len(data), 0), dtype=bool), (), 0, (), columns)
    splits = splits_up_to(order if len(found) > 1 else 0)
    return assembled(data, known, ledger.sets, found, splits, columns)


def assembled(
    data: Retrospective,
    known: KnownGroups,
    sets: Bools,
    amounts: Sequence[ShownAmounts],
    splits: tuple[Split, ...],
    columns: PartColumns,
) -> Components:
    """Return the components of these amounts; ``sets`` are the reached sets, the shown sets may be further ones."""
    inner = [found.shown for found in amounts if found.shown is not None]
    merged = {s.tobytes(): s for s in (*sets, *inner)}  # the reached sets come first, in their order
    every_set = np.array(list(merged.values()))
    has = np.array([every(data.recorded | ~s) for s in every_set]).T & known.usable[:, None]
    own = amounts[0]
    has[own.row[own.reached == 0], 0] = True  # rows that represent only themselves
    return Components(every_set, has, splits, len(sets), tuple(amounts), columns)


def _inner_sets(data: Retrospective, known: KnownGroups, sets: Bools, effort: float) -> tuple[list[Bools], int, int]:
    """Return strict subsets of the sets, small ones first until the budget is used; their largest size; draws for each.

    ``effort`` is the time to run the policy on a row, relative to a row of few states.
    """
    found: list[Bools] = []
    rows, order, n_used = 0, 0, max(int(known.wanted.sum()), 1)
    by_name = data.problem.groups_by_name

    def named(t: Bools) -> list[bool]:
        return [bool(shown) for shown in t[by_name]]

    for size in range(int(sets.sum(axis=1).max())):
        new: dict[bytes, Bools] = {}
        for s in sets[sets.sum(axis=1) > size]:
            for part in combinations(np.flatnonzero(s), size):
                t = np.isin(np.arange(len(s)), part)
                new[t.tobytes()] = t
        more = sum(int((known.wanted & every(data.recorded | ~t)).sum()) for t in new.values())
        if size and (rows + more) * (1 + _DRAWS[0]) * effort > _FEWEST * n_used:
            break
        found, rows, order = [*found, *sorted(new.values(), key=named)], rows + more, size
    return found, order, int(np.clip(_BUDGET * n_used / max(rows * effort, 1), *_DRAWS))
