"""Walk policies over what is recorded, and tell how far it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ..agents.policy import Policy
from ..arrays import Bools, Floats, tally, unique_sets
from ..data import Retrospective
from ..missingness import MNAR
from ..nuisance.values.models import LearnedValues
from ..plan import Plan
from ..progress import Progress
from ..walk import Ground, Tables, TableStore, WalkTable, walk

__all__ = ["Steps", "Walked", "walk_policies"]

_PROBE_ROWS = 256  # rows by whose sets the form of the propensity is chosen
_MOST_WANTED = 20_000  # sets whose support is searched for


class Steps:
    """Counts rows that were walked and replicates that were drawn, and tells of them."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self.progress, self.total, self.done = progress, total, 0

    def add(self, count: int) -> None:
        """So many more are done."""
        self.done += count
        if self.progress is not None:
            self.progress(min(self.done, self.total), self.total)

    def part(self, count: int) -> Steps:
        """Steps of a part that is told of on its own, so many at most; `add` them when it is done."""
        base = self.done

        def tell(done: int, _: int) -> None:
            if self.progress is not None:
                self.progress(min(base + done, self.total), self.total)

        return Steps(tell, count)

    def walked(self, table: WalkTable) -> None:
        """The rows of this table are walked."""
        self.add(int((table.depth == 0).sum()))  # each row starts in one state

    def telling(self, tables: Iterable[WalkTable]) -> Iterator[WalkTable]:
        """The same tables, told of one by one."""
        for table in tables:
            self.walked(table)
            yield table


@dataclass(frozen=True, eq=False)
class Walked:
    """The walk of one policy over what is recorded.

    Attributes
    ----------
    tables : Tables
        Its tables.
    wanted : ndarray of bool, shape (u, G)
        Distinct sets that the policy wants somewhere, nothing at all among them; where they are very many, those that are
        wanted most.
    asked : ndarray of bool, shape (v, G)
        Sets that it reaches or wants in a few rows spread over the data; under a graph in all rows, because what has to be
        adjusted for depends on them.
    n_wanted : int
        How many sets it wants.
    """

    tables: Tables
    wanted: Bools
    asked: Bools
    n_wanted: int = 0

    def gaps(self, data: Retrospective) -> bool:
        """Whether the policy wants anything that some row lacks."""
        return bool((self.asked | self.wanted.any(axis=0))[:, ~data.always_recorded].any())

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out."""
        if self.n_wanted <= len(self.wanted):
            return ()
        return (f"Support was searched for the {len(self.wanted):,} sets wanted most, of {self.n_wanted:,}.",)


def walk_policies(
    plan: Plan, policies: Mapping[str, Policy], told: Callable[[WalkTable], None] | None = None
) -> dict[str, Walked]:
    """Walk every policy over what is recorded: the only time that it and the classifier are asked about it."""
    data, store = plan.data, TableStore()
    n, free = len(data), data.problem.free
    few = n if isinstance(plan.missingness, MNAR) else min(_PROBE_ROWS, n)
    probed = np.isin(np.arange(n), np.linspace(0, n - 1, few).astype(np.intp))
    # What stopping would cost helps to learn what going on will cost, where the label may be used.
    learned = isinstance(plan.recipe.values, LearnedValues) and plan.recipe.values.augment_label
    predicts = learned and any("values" in choice.method.needs for choice in plan.choices)
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
            if told is not None:
                told(table)

        ground = Ground.recorded(data, policy, plan.classifier, predicts, plan.outcomes)
        tables = store.keep(walk(ground, None, plan.walk, plan.walk_seed, plan.n_jobs), seen)
        most, n_wanted = _most_wanted(np.concatenate(wanted), np.concatenate(amount))
        out[name] = Walked(tables, most, unique_sets(np.concatenate(asked))[0], n_wanted)
    return out


def _most_wanted(sets: Bools, amount: Floats) -> tuple[Bools, int]:
    """Distinct sets, those of the largest amount where they are very many; and how many there are."""
    distinct, index = unique_sets(sets)
    if len(distinct) <= _MOST_WANTED:
        return distinct, len(distinct)
    order = np.argsort(-tally(index, amount, len(distinct)), kind="stable")[:_MOST_WANTED]
    return distinct[np.sort(order)], len(distinct)
