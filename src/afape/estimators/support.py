"""What the records can say about the sets that a policy wants."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..arrays import Bools, every, tally
from ..data import Retrospective
from ..walk import WalkTable
from ..walk.sets import unique_sets
from .weights import WeightedStates

__all__ = ["Support", "SupportReduction"]


@dataclass(frozen=True, eq=False)
class Support:
    """Positivity diagnostics of one policy.

    Attributes
    ----------
    sets : DataFrame
        One line a set of groups that the policy wants: the estimated probability that it gets there
        (``wanted``), rows that have it recorded, smallest propensity and largest weight among them.
    unsupported : float
        Estimated probability that a run wants a set which no row has recorded. Above 0, no weighting can be
        right, and the estimates leave that part of the policy out.
    estimators : DataFrame
        Effective sample size, mean final weight (1 where all is well), mean weights before each decision, largest
        weight and clipped propensities of each weighted estimator.
    n_rows, sampled : int
        Rows, and how many of them were sampled rather than enumerated.
    """

    sets: pd.DataFrame
    unsupported: float
    estimators: pd.DataFrame
    n_rows: int
    sampled: int

    def __repr__(self) -> str:
        walk = "exact walk" if self.sampled == 0 else f"{self.sampled} of {self.n_rows} rows sampled"
        head = f"Support: {len(self.sets)} sets wanted, {100 * self.unsupported:.2g} % of runs unsupported, {walk}"
        return f"{head}\n{self.sets.head(12).to_string(index=False)}\n{self.estimators.to_string(index=False)}"


@dataclass
class _SetTally:
    wanted: float = 0.0
    smallest: float = np.inf
    largest: float = 0.0


class SupportReduction:
    """Tallies wanted sets over the chunks of a walk."""

    def __init__(self, data: Retrospective) -> None:
        self.data = data
        self.sets: dict[bytes, _SetTally] = {}
        self.sampled = 0

    def add(self, table: WalkTable, weighted: WeightedStates) -> None:
        """Add the states of a chunk; their weights are those of the semi-offline or hybrid view."""
        self.sampled += len(table.sampled)
        weight = np.zeros(len(table.row))
        weight[weighted.lines] = weighted.weight * table.reach[weighted.lines]
        target, index = unique_sets(table.edge_targets(self.data.problem.free))
        wanted = tally(index, weight[table.edge_state] * table.edge_probability, len(target))
        for u, amount in enumerate(wanted):
            self._of(target[u]).wanted += float(amount)
        smallest = np.full(len(weighted.sets), np.inf)
        largest = np.zeros(len(weighted.sets))
        np.minimum.at(smallest, weighted.set_of, weighted.raw)
        np.maximum.at(largest, weighted.set_of, weighted.weight)
        for u in np.unique(weighted.set_of):
            found = self._of(weighted.sets[u])
            found.smallest = min(found.smallest, float(smallest[u]))
            found.largest = max(found.largest, float(largest[u]))

    def _of(self, required: Bools) -> _SetTally:
        return self.sets.setdefault(required.tobytes(), _SetTally())

    def result(self, estimators: pd.DataFrame) -> Support:
        """Diagnostics over all chunks."""
        problem, recorded = self.data.problem, self.data.recorded
        names = np.array(problem.group_names, dtype=object)
        lines = []
        unsupported = 0.0
        for key, found in self.sets.items():
            required = np.frombuffer(key, dtype=bool)
            rows = int(every(recorded[:, required]).sum())
            start = not (required & ~problem.free).any()
            wanted = 1.0 if start else found.wanted / len(self.data)
            if rows == 0:
                unsupported += wanted
            name = " + ".join(names[required & ~problem.free])
            lines.append(
                {
                    "set": name or ("(free groups)" if required.any() else "(nothing)"),
                    "wanted": wanted,
                    "rows_recorded": rows,
                    "share_recorded": rows / len(self.data),
                    "smallest_propensity": found.smallest if rows else 0.0,
                    "largest_weight": found.largest if rows else np.inf,
                }
            )
        sets = pd.DataFrame(lines).sort_values(["wanted", "set"], ascending=[False, True], ignore_index=True)
        return Support(sets, min(unsupported, 1.0), estimators, len(self.data), self.sampled)
