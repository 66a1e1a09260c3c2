"""How well the records support the sets that a policy wants: sums over the chunks of its walk."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from ..arrays import Bools, Floats, Ints, every, tally
from ..data import Retrospective
from ..nuisance.weights import View, WeightedStates
from ..nuisance.worst_case import unsupported_edges
from ..support import SupportSearch, SupportThresholds
from ..walk import FREE, WalkTable
from .support import SET_COLUMNS, VIOLATION_COLUMNS, WEIGHT_COLUMNS, Support
from .words import ThinSet, advice_on, findings_on, thin_words, violation_table

__all__ = ["SupportSums", "support_of"]

_ASKED = 4096  # wanted but not recorded sets whose propensity is looked at, per chunk


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


class SupportSums:
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
            if u == len(table.sets):  # rows that represent only themselves
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

    def result(self, semi: View, complete: View | None, columns: tuple[str, ...]) -> Support:
        """Diagnostics over all chunks; ``columns`` are the names of X_o, in which regions are told.

        ``complete`` is None where the probability of a complete row is not identified.
        """
        data, thresholds, found = self.data, self.thresholds, semi.unsupported
        sets, keys, never = self._set_table()
        unsupported = min(max(self.lost, never), 1.0)
        views = self._view_table(unsupported, complete, bool(semi.refusal))
        violations = pd.DataFrame(columns=VIOLATION_COLUMNS)
        warnings: tuple[str, ...] = ()
        advice: tuple[str, ...] = ()
        thin = self._thin(sets, keys)
        if semi.refusal or unsupported or found or found.minor or thin:
            violations = violation_table(data, found, columns)
            refused = (f"No estimate: {semi.refusal}.",) if semi.refusal else ()
            warnings = (*refused, *findings_on(data, sets, found, unsupported, columns), *thin_words(thin, thresholds))
        if found or not views["holds"].all():
            advice = advice_on(data, found, views, columns, self.adjust)
        nothing = pd.DataFrame(columns=WEIGHT_COLUMNS)
        groups, pairs = self._group_table(sets, keys), self._pair_table(keys)
        return Support(
            sets, unsupported, nothing, len(data), self.sampled, groups, pairs, views, violations, warnings, advice
        )

    def _thin(self, sets: pd.DataFrame, keys: list[bytes]) -> list[tuple[str, ThinSet]]:
        """Sets that enough runs want, and that too few rows, or a few heavy ones, represent."""
        limits, told = self.thresholds, []
        for line, key in zip(sets.to_dict("records"), keys, strict=True):
            rows, found = line["rows_recorded"], self.sets[key]
            if line["wanted"] < limits.wanted or rows == 0 or line["set"].startswith("("):
                continue
            heavy, small = found.heaviest / max(found.weight, 1e-300), found.small / max(found.asked, 1)
            thin = ThinSet(line["set"], line["wanted"], rows, line["ess"], heavy, small)
            if rows < limits.rows:
                told.append(("rows", thin))
            elif 0 < line["ess"] < limits.effective_rows:
                told.append(("effective", thin))
            elif heavy > limits.weight:
                told.append(("heavy", thin))
            elif small > limits.small:
                told.append(("small", thin))
        return told

    def _set_table(self) -> tuple[pd.DataFrame, list[bytes], float]:
        """One line per set, their keys, and the share of runs that want a set which no row has."""
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
        table = pd.DataFrame(lines, columns=[*SET_COLUMNS, "key"])
        table = table.sort_values(["wanted", "set"], ascending=[False, True], ignore_index=True)
        return table.drop(columns="key"), list(table["key"]), never

    def _group_table(self, sets: pd.DataFrame, keys: list[bytes]) -> pd.DataFrame:
        problem = self.data.problem
        holds = np.array([np.frombuffer(key, dtype=bool) for key in keys]).reshape(-1, problem.n_groups)
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

    def _pair_table(self, keys: list[bytes]) -> pd.DataFrame:
        names, recorded = self.data.problem.group_names, self.data.recorded
        together = recorded.T.astype(float) @ recorded.astype(float)
        wanted = [np.frombuffer(key, dtype=bool) for key in keys]
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


def support_of(
    data: Retrospective,
    tables: Iterable[WalkTable],
    search: SupportSearch,
    semi: View,
    complete: View | None,
) -> Support:
    """What the records support of a policy whose walk these tables are, in its semi-offline or hybrid view."""
    sums = SupportSums(data, search.thresholds, semi.adjust)
    for table in tables:
        sums.add(table, semi.weigh(table), semi)
    return sums.result(semi, complete, search.columns)
