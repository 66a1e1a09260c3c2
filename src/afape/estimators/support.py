"""What the records can say about the sets that a policy wants."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
import pandas as pd

from ..arrays import Bools, Floats, Ints, every, tally
from ..data import Retrospective
from ..support import SupportThresholds
from ..walk import FREE, WalkTable
from .advice import advice_on, findings_on, violation_table
from .endings import unsupported_edges
from .weights import View, WeightedStates

__all__ = ["Support", "SupportReduction"]

_ASKED = 4096  # wanted but not recorded sets whose propensity is looked at, a chunk
_SET_COLUMNS = ["set", "wanted", "rows_recorded", "share_recorded", "smallest_propensity", "largest_weight", "ess"]


@dataclass(frozen=True, eq=False)
class Support:
    """Positivity diagnostics of one policy.

    Attributes
    ----------
    sets : DataFrame
        One line a set of groups that the policy wants: the estimated probability that it gets there
        (``wanted``), rows that have it recorded, the smallest propensity where it is supported (among rows that have
        it, and a part of those that want it and do not), the largest weight, and the number of rows that the
        weighted ones are worth (``ess``).
    unsupported : float
        Estimated probability that a run wants an unsupported set: one that no row has recorded, or that rows like
        this one do not have recorded. Above 0, no weighting can be right.
    estimators : DataFrame
        Effective sample size, mean final weight (1 where all is well), mean weights before each decision, largest
        weight and clipped propensities of each weighted estimator.
    n_rows, sampled : int
        Rows, and how many of them were sampled rather than enumerated.
    groups : DataFrame
        The same by group: the probability that the policy acquires it, and the worst of the sets that hold it.
    pairs : DataFrame
        Pairs of groups that no row has recorded together, and whether the policy wants both.
    views : DataFrame
        By view that applies: whether positivity holds for this policy, the share of its runs that is unsupported, rows
        that can be used, and the share of trajectories that they can follow to the end.
    violations : DataFrame
        Sets that are unsupported, in which rows, and the share of the policy's runs that meets them.
    warnings : tuple of str
        What is below a threshold; empty where all is well.
    advice : tuple of str
        What can be done.
    """

    sets: pd.DataFrame
    unsupported: float
    estimators: pd.DataFrame
    n_rows: int
    sampled: int
    groups: pd.DataFrame = field(default_factory=pd.DataFrame)
    pairs: pd.DataFrame = field(default_factory=pd.DataFrame)
    views: pd.DataFrame = field(default_factory=pd.DataFrame)
    violations: pd.DataFrame = field(default_factory=pd.DataFrame)
    warnings: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether positivity holds for this policy in the semi-offline view, as far as the records show."""
        return bool(self.unsupported == 0 and len(self.violations) == 0 and self.views["holds"].iloc[0])

    def __repr__(self) -> str:
        walk = "exact walk" if self.sampled == 0 else f"{self.sampled} of {self.n_rows} rows sampled"
        head = f"Support: {len(self.sets)} sets wanted, {100 * self.unsupported:.2g} % of runs unsupported, {walk}"
        parts = [head, *(f"! {text}" for text in self.warnings), *(f"> {text}" for text in self.advice)]
        frames = (self.views, self.violations, self.groups, self.sets.head(12), self.pairs, self.estimators)
        parts += [frame.to_string(index=False, float_format="{:.4g}".format) for frame in frames if len(frame)]
        return "\n".join(parts)


@dataclass
class _SetTally:
    wanted: float = 0.0
    smallest: float = np.inf
    largest: float = 0.0
    weight: float = 0.0
    squares: float = 0.0
    heaviest: float = 0.0
    asked: int = 0  # wanted but not recorded, and looked at
    small: int = 0  # of these, with a propensity below the threshold


class SupportReduction:
    """Tallies wanted sets over the chunks of a walk, in the semi-offline or hybrid view.

    Parameters
    ----------
    data : Retrospective
        Records.
    thresholds : SupportThresholds
        What counts as too little.
    adjust : ndarray of bool, shape (G,)
        Groups that the view adds to every set.
    """

    def __init__(self, data: Retrospective, thresholds: SupportThresholds, adjust: Bools) -> None:
        self.data, self.thresholds, self.adjust = data, thresholds, adjust
        self._usable = every(data.recorded | ~adjust)
        self.sets: dict[bytes, _SetTally] = {}
        self.acquired = np.zeros(data.problem.n_groups)
        self.sampled = 0
        self.lost = 0.0  # share of runs that want a set which the view's map calls unsupported
        self.followed = np.zeros(len(data))  # flow that a row follows to a stop, in supported sets

    def add(self, table: WalkTable, weighted: WeightedStates, view: View) -> None:
        """Add the states of a chunk; their weights are those of the semi-offline or hybrid view."""
        data = self.data
        self.sampled += len(table.sampled)
        flow = np.zeros(len(table.row))
        flow[weighted.lines] = weighted.weight * table.reach[weighted.lines]
        self.followed += tally(table.row[weighted.lines], table.stop_flow[weighted.lines], len(data))
        target, index = table.edge_sets(data.problem.free)
        along = flow[table.edge_state] * table.edge_probability
        for u, amount in enumerate(tally(index, along, len(target))):
            self._of(target[u]).wanted += float(amount)
        costly = table.edge_group != FREE
        self.acquired += tally(table.edge_group[costly], along[costly], data.problem.n_groups)
        if view.unsupported:
            whole = (table.depth == 0) & view.lacks(table)  # starts that are unsupported themselves: the row ends there
            self.followed[table.row[whole]] = 0.0
            lost = unsupported_edges(table, data, view.unsupported, view.adjust) & ~whole[table.edge_state]
            self.lost += (float(along[lost].sum()) + float(flow[whole].sum())) / len(data)
        self._weights(table, weighted, flow[weighted.lines])
        self._propensities(table, view, target, index)

    def _weights(self, table: WalkTable, weighted: WeightedStates, flow: Floats) -> None:
        n = len(weighted.sets)
        smallest, largest, heaviest = np.full(n, np.inf), np.zeros(n), np.zeros(n)
        np.minimum.at(smallest, weighted.set_of, weighted.raw)
        np.maximum.at(largest, weighted.set_of, weighted.weight)
        np.maximum.at(heaviest, weighted.set_of, flow)
        total, squares = tally(weighted.set_of, flow, n), tally(weighted.set_of, flow**2, n)
        for u in np.unique(weighted.set_of):
            if u == len(table.sets):  # rows that stand for themselves alone
                continue
            found = self._of(table.sets[u])
            found.smallest = min(found.smallest, float(smallest[u]))
            found.largest = max(found.largest, float(largest[u]))
            found.heaviest = max(found.heaviest, float(heaviest[u]))
            found.weight += float(total[u])
            found.squares += float(squares[u])

    def _propensities(self, table: WalkTable, view: View, target: Bools, index: Ints) -> None:
        """Look at wanted sets that are not recorded too: a propensity that is too small is found there."""
        if not view.propensity.learned:
            return
        wanted = ~table.edge_available & (table.reach[table.edge_state] > 0)
        edges = np.flatnonzero(wanted & self._usable[table.row[table.edge_state]])
        sets = target | self.adjust
        exists = np.array([bool(every(self.data.recorded[:, t]).any()) for t in sets], dtype=bool)
        edges = edges[exists[index[edges]]]
        if view.unsupported:
            edges = edges[~view.unsupported.lacks(table.row[table.edge_state[edges]], sets, index[edges])]
        if len(edges) == 0:
            return
        edges = edges[np.linspace(0, len(edges) - 1, min(_ASKED, len(edges))).astype(np.intp)]
        p = view.propensity.probability(table.row[table.edge_state[edges]], sets, index[edges])
        smallest = np.full(len(target), np.inf)
        np.minimum.at(smallest, index[edges], p)
        asked = np.bincount(index[edges], minlength=len(target))
        small = np.bincount(index[edges][p < self.thresholds.propensity], minlength=len(target))
        for u in np.unique(index[edges]):
            found = self._of(target[u])
            found.smallest = min(found.smallest, float(smallest[u]))
            found.asked += int(asked[u])
            found.small += int(small[u])

    def _of(self, required: Bools) -> _SetTally:
        return self.sets.setdefault(required.tobytes(), _SetTally())

    def result(self, estimators: pd.DataFrame, semi: View, miss: View | None, columns: tuple[str, ...]) -> Support:
        """Diagnostics over all chunks; ``columns`` are the names of X_o, in which regions are told.

        ``miss`` is None where the probability of a complete row is not identified.
        """
        sets, never = self._set_table()
        unsupported = min(max(self.lost, never), 1.0)
        violations = violation_table(self.data, semi.unsupported, columns)
        views = self._view_table(unsupported, miss, bool(semi.refusal))
        pairs = self._pair_table()
        tallies = [self.sets[key] for key in self._order]
        worst = [(t.heaviest / max(t.weight, 1e-300), t.small / max(t.asked, 1)) for t in tallies]
        return Support(
            sets,
            unsupported,
            estimators,
            len(self.data),
            self.sampled,
            self._group_table(sets),
            pairs,
            views,
            violations,
            (
                *((f"No estimate: {semi.refusal}.",) if semi.refusal else ()),
                *findings_on(self.data, sets, semi.unsupported, unsupported, worst, columns, self.thresholds),
            ),
            advice_on(self.data, semi.unsupported, views, columns, self.adjust),
        )

    def _set_table(self) -> tuple[pd.DataFrame, float]:
        problem, recorded = self.data.problem, self.data.recorded
        names = np.array(problem.group_names, dtype=object)
        lines = []
        never = 0.0
        for key, found in self.sets.items():
            required = np.frombuffer(key, dtype=bool)
            rows = int(every(recorded[:, required | self.adjust]).sum())
            start = not (required & ~problem.free).any()
            wanted = 1.0 if start else found.wanted / len(self.data)
            never += 0.0 if rows else wanted
            name = " + ".join(names[required & ~problem.free])
            name = name or ("(free groups)" if required.any() else "(nothing)")
            ess = found.weight**2 / found.squares if found.squares > 0 else 0.0
            smallest = found.smallest if rows and np.isfinite(found.smallest) else 0.0
            largest = found.largest if found.largest > 0 else np.inf
            lines.append((name, wanted, rows, rows / len(self.data), smallest, largest, ess, key))
        table = pd.DataFrame(lines, columns=[*_SET_COLUMNS, "key"])
        table = table.sort_values(["wanted", "set"], ascending=[False, True], ignore_index=True)
        self._order = list(table["key"])
        return table.drop(columns="key"), never

    def _group_table(self, sets: pd.DataFrame) -> pd.DataFrame:
        problem = self.data.problem
        holds = np.array([np.frombuffer(key, dtype=bool) for key in self._order]).reshape(-1, problem.n_groups)
        lines = []
        for g in np.flatnonzero(~problem.free):
            mine = sets[holds[:, g]]
            rows = int(self.data.recorded[:, g].sum())
            lines.append(
                {
                    "group": problem.group_names[g],
                    "wanted": self.acquired[g] / len(self.data),
                    "rows_recorded": rows,
                    "share_recorded": rows / len(self.data),
                    "smallest_propensity": mine["smallest_propensity"].min() if len(mine) else np.nan,
                    "largest_weight": mine["largest_weight"].max() if len(mine) else np.nan,
                    "ess": mine["ess"].min() if len(mine) else np.nan,
                }
            )
        return pd.DataFrame(lines)

    def _pair_table(self) -> pd.DataFrame:
        names, recorded = self.data.problem.group_names, self.data.recorded
        together = recorded.T.astype(float) @ recorded.astype(float)
        wanted = [np.frombuffer(key, dtype=bool) for key in self._order]
        lines = [
            (names[a], names[b], any(s[a] and s[b] for s in wanted))
            for a, b in combinations(range(len(names)), 2)
            if together[a, b] == 0
        ]
        return pd.DataFrame(lines, columns=["group", "and", "both_wanted"])

    def _view_table(self, unsupported: float, miss: View | None, refused: bool) -> pd.DataFrame:
        data = self.data
        columns = ["view", "holds", "unsupported", "rows_usable", "trajectories_usable"]
        name = "hybrid" if self.adjust.any() else "semi-offline"
        holds = unsupported == 0 and not refused
        lines = [(name, holds, unsupported, int((self.followed > 0).sum()), self.followed.mean())]
        if miss is None:
            return pd.DataFrame(lines, columns=columns)
        if miss.refusal:
            lines.append(("missing-data", False, np.nan, int(data.complete.sum()), data.complete.mean()))
            return pd.DataFrame(lines, columns=columns)
        full = np.ones((1, data.problem.n_groups), dtype=bool)
        rows = np.arange(len(data))
        lacks = miss.unsupported.lacks(rows, full, np.zeros(len(data), dtype=np.intp)) if miss.unsupported else None
        complete = data.complete if lacks is None else data.complete & ~lacks
        share = float(lacks.mean()) if lacks is not None else float(not data.complete.any())
        lines.append(("missing-data", share == 0, share, int(complete.sum()), complete.mean()))
        return pd.DataFrame(lines, columns=columns)
