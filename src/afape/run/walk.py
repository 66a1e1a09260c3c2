"""Walk policies over the recorded values, and report progress."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from .._arrays import Bools, Floats, tally, unique_sets
from .._progress import Progress
from ..action_values.models import LearnedValues
from ..agents.policy import Policy
from ..data.retrospective import Retrospective
from ..missingness.assumptions import MNAR
from ..walk.ground import Ground
from ..walk.limited import SharedWalks
from ..walk.repeated_answers import with_repeated_answers
from ..walk.table import Tables, TableStore, WalkTable
from ..walk.walker import walk
from .plan import Plan

__all__ = ["Steps", "Walked", "walk_policies"]

_PROBE_ROWS = 256  # rows whose sets decide the form of the propensity
_MOST_WANTED = 20_000  # largest number of sets whose support is checked


class Steps:
    """Counts walked rows and drawn replicates, and reports progress."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self.progress, self.total, self.done = progress, total, 0

    def add(self, count: int) -> None:
        """Add finished steps."""
        self.done += count
        if self.progress is not None:
            self.progress(min(self.done, self.total), self.total)

    def stage(self, count: int) -> Steps:
        """Progress steps reported for one stage (capped at ``count``); `add` them when the stage is done."""
        base = self.done

        def report(done: int, _: int) -> None:
            if self.progress is not None:
                self.progress(min(base + done, self.total), self.total)

        return Steps(report, count)

    def walked(self, table: WalkTable) -> None:
        """Count the rows of this table as walked."""
        self.add(int((table.depth == 0).sum()))  # each row starts in one state

    def reported(self, tables: Iterable[WalkTable]) -> Iterator[WalkTable]:
        """Yield the tables and report the progress of each."""
        for table in tables:
            self.walked(table)
            yield table


@dataclass(frozen=True, eq=False)
class Walked:
    """The walk of one policy over the recorded values.

    Attributes
    ----------
    tables : Tables
        Tables of states and edges.
    wanted : ndarray of bool, shape (u, G)
        Distinct sets that the policy wants in some row, including the empty set; only the most wanted if there are too many.
    asked : ndarray of bool, shape (v, G)
        Sets that the policy reaches or wants in a few rows spread over the data. Under a graph these are all rows, because
        the groups to adjust for depend on the sets.
    n_wanted : int
        Number of distinct sets that the policy wants.
    """

    tables: Tables
    wanted: Bools
    asked: Bools
    n_wanted: int = 0

    def gaps(self, data: Retrospective) -> bool:
        """True if the policy wants a group that some row lacks."""
        return bool((self.asked | self.wanted.any(axis=0))[:, ~data.always_recorded].any())

    @property
    def notes(self) -> tuple[str, ...]:
        """Note on sets whose support was not checked."""
        if self.n_wanted <= len(self.wanted):
            return ()
        return (f"Support was checked for the {len(self.wanted):,} most wanted of {self.n_wanted:,} sets.",)


def walk_policies(
    plan: Plan, policies: Mapping[str, Policy], report: Callable[[WalkTable], None] | None = None
) -> dict[str, Walked]:
    """Walk every policy over the recorded values. Policy and classifier are called on these states only here.

    Budgets of one policy share one walk. ``report`` is called with every table.
    """
    data, store = plan.data, TableStore()
    n, free = len(data), data.problem.free
    few = n if isinstance(plan.missingness, MNAR) else min(_PROBE_ROWS, n)
    probed = np.isin(data.place, np.linspace(0, n - 1, few).astype(np.intp))
    # If action values may use the label, they also use whether a stop would be right. So every state needs a prediction.
    learned = isinstance(plan.recipe.values, LearnedValues) and plan.recipe.values.augment_label
    predicts = learned and data.original is None and any(choice.method.valued for choice in plan.choices)

    def ground(policy: Policy, everywhere: bool) -> Ground:
        return Ground.recorded(data, policy, plan.classifier, predicts or everywhere, plan.outcomes, everywhere)

    def tables(ground: Ground) -> Iterator[WalkTable]:
        options = plan.walk.within(n, data.problem.n_groups)
        return with_repeated_answers(ground, walk(ground, None, options, plan.walk_seed, plan.n_jobs))

    walks = SharedWalks(list(policies.values()), ground, tables, store, predicts)
    out = {}
    for name, policy in policies.items():
        wanted: list[Bools] = [np.zeros((1, data.problem.n_groups), dtype=bool)]
        amount: list[Floats] = [np.full(1, np.inf)]
        asked: list[Bools] = []

        def seen(
            table: WalkTable,
            wanted: list[Bools] = wanted,
            amount: list[Floats] = amount,
            asked: list[Bools] = asked,
        ) -> None:
            sets, index = table.edge_sets(free)
            reach = table.reach[table.edge_state]
            kept = np.unique(index[reach > 0])
            wanted.append(sets[kept])
            amount.append(tally(index, reach * table.edge_probability, len(sets))[kept])
            mine = probed[table.row]
            asked.append(table.sets[np.unique(table.set_index[mine])])
            asked.append(sets[np.unique(index[mine[table.edge_state]])])
            if report is not None:
                report(table)

        kept = store.keep(walks.tables(policy), seen)
        most, n_wanted = _most_wanted(np.concatenate(wanted), np.concatenate(amount))
        out[name] = Walked(kept, most, unique_sets(np.concatenate(asked))[0], n_wanted)
    return out


def _most_wanted(sets: Bools, amount: Floats) -> tuple[Bools, int]:
    """Return the distinct sets, only those of largest amount if there are too many, and the number of distinct sets."""
    distinct, index = unique_sets(sets)
    if len(distinct) <= _MOST_WANTED:
        return distinct, len(distinct)
    order = np.argsort(-tally(index, amount, len(distinct)), kind="stable")[:_MOST_WANTED]
    return distinct[np.sort(order)], len(distinct)
