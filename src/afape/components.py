"""Components of one policy's costs in its views: what `eff-semi` weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array

from .agents.policy import Policy
from .arrays import Bools, Floats, Ints, units_of
from .estimators.weighted import Flows, state_parts
from .imputation import Components, Known, StateCosts, TooManySetsError, components_of
from .missingness import Conditioning
from .nuisance.fitted import ViewKey
from .nuisance.weights import View
from .nuisance.worst_case import Endings
from .plan import Plan
from .walk import Ground, PartColumns, Tables, WalkTable, walk

__all__ = ["policy_components"]

_FOLDS = 5  # for donors, where everything else is learned and used on the same rows


def policy_components(
    plan: Plan,
    policy: Policy,
    tables: Tables,
    given: Conditioning,
    views: Mapping[ViewKey, View],
    told: Callable[[WalkTable], None] | None = None,
) -> dict[tuple[ViewKey, bool | None], Components]:
    """Components by view, and by whether runs into unsupported sets are at their least or largest cost.

    Views that support all of the policy share theirs. ``told`` hears of every table of completed rows.
    """
    known = _known(plan, given)
    out: dict[tuple[ViewKey, bool | None], Components] = {}
    shared: Components | None = None
    for key, view in views.items():
        flags = (False, True) if view.unsupported else (None,)
        if not view.unsupported and shared is not None:
            out[key, None] = shared
            continue
        ends = [None if flag is None else Endings(plan.data, view, flag) for flag in flags]
        costs = _costs(plan, policy, known, view, ends, told)
        try:
            found = components_of(plan.data, tables, known, costs, plan.donors)
        except TooManySetsError:
            found = _no_components(plan.data.problem.n_groups, 2 * len(flags))
        for k, flag in enumerate(flags):
            out[key, flag] = found.only(slice(2 * k, 2 * k + 2))
        shared = found if not view.unsupported else shared
    return out


def _no_components(n_groups: int, n_targets: int) -> Components:
    """Nothing told apart, where the policy reaches too many sets."""
    none = np.zeros(0, dtype=np.intp)
    return Components(np.zeros((0, n_groups), dtype=bool), none, none, np.zeros((0, 0, n_targets)), (), 0)


def _known(plan: Plan, given: Conditioning) -> Known:
    data, fold = plan.data, plan.recipe.fold
    if fold.max() == 0:  # a row must not lend its values to itself
        units = units_of(len(data), data.cluster)
        fold = (np.random.default_rng(plan.donors.seed).permutation(int(units.max()) + 1) % _FOLDS)[units]
    usable, averaged = given.usable(data), plan.recipe.averaged
    everyone = np.ones(len(data), dtype=bool)
    return Known(
        data.always_recorded | given.gaps,
        everyone if usable is None else usable,
        fold,
        None if averaged is None else averaged > 0,
    )


def _costs(
    plan: Plan,
    policy: Policy,
    known: Known,
    view: View,
    ends: list[Endings | None],
    told: Callable[[WalkTable], None] | None,
) -> StateCosts:
    data, prices = plan.data, plan.data.problem.prices

    def of(table: WalkTable) -> tuple[Ints, Floats, Bools]:
        lines = np.flatnonzero(known.usable[table.row])
        alone: Ints = np.zeros(0, dtype=np.intp)
        if view.unsupported:
            lacks = view.lacks(table)
            lines, alone = lines[~lacks[lines]], np.flatnonzero(lacks & (table.depth == 0))
        every_line = np.concatenate([lines, alone])
        columns = []
        for end in ends:
            flows = Flows(table, prices, None if end is None else end.of(table))
            columns += [flows.price("before")[every_line], flows.cost[every_line]]
        return every_line, np.column_stack(columns), np.arange(len(every_line)) >= len(lines)

    columns = PartColumns.of(data, len(plan.outcomes), ends[0] is not None)

    def parts(table: WalkTable, lines: Ints) -> csr_array:
        flows = Flows(table, prices, None if ends[0] is None else ends[0].of(table))
        return state_parts(table, flows, columns)[lines]

    def run(rows: Ints, values: Floats) -> Iterator[WalkTable]:
        ground = Ground.everything(data.take(rows), values, policy, plan.classifier, plan.outcomes)
        for table in walk(ground, None, plan.walk, plan.walk_seed, plan.n_jobs):
            if told is not None:
                told(table)
            yield replace(table, row=rows[table.row])

    return StateCosts(of, run, parts)
