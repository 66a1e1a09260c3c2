"""How well the records support the sets that a policy wants: sums over the chunks of its walk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
import pandas as pd
from scipy.special import chdtrc, stdtr

from ..arrays import (
    Bools,
    Floats,
    Ints,
    cluster_sums,
    count_supersets,
    effective_size,
    every,
    in_own_units,
    lines_of,
    share_of_heaviest,
    tally,
)
from ..data import Retrospective
from ..missingness.assumptions import Conditioning
from ..nuisance.propensity.logistic import flexible_design, score_test
from ..nuisance.weights import View, WeightedStates
from ..nuisance.worst_case import unsupported_edges
from ..support import SupportMap, SupportSearch, SupportThresholds
from ..walk import FREE, WalkTable
from .support import BALANCE_COLUMNS, HEAVIEST_COLUMNS, SET_COLUMNS, VIOLATION_COLUMNS, WEIGHT_COLUMNS, Support
from .words import ThinSet, advice_on, findings_on, heavy_words, thin_words, undecided_table, violation_table

__all__ = ["SupportSums", "balance_of", "carried_by_few", "label_suspected", "support_of"]

_ASKED = 4096  # wanted but not recorded sets whose propensity is looked at, per chunk
_HEAVIEST = 10
_FIFTIETH = 0.02  # effective rows are few only below this share of all rows
_LABEL_ROWS, _LEAST_ROWS = 10_000, 20  # rows by which the label is tested, at most and at least of each kind
_SUSPECTED = 0.02  # adjusted level at which the label is looked at more closely
_BALANCED, _BALANCE_ROWS = 12, 10_000  # sets whose balance is looked at, most wanted first, and rows looked at


def carried_by_few(limits: SupportThresholds, n_rows: int, rows: int, ess: float, ten_heaviest: float) -> bool:
    """Whether a few rows carry an estimate: of ``n_rows`` rows ``rows`` have weights, and are worth ``ess``."""
    few = ess < min(limits.carrying_rows, _FIFTIETH * n_rows)
    return bool(ess < rows / 2 and (few or ten_heaviest > limits.ten_heaviest))


@dataclass
class _SetTally:
    wanted: float = 0.0
    smallest: float = np.inf
    largest: float = 0.0
    weight: float = 0.0
    squares: float = 0.0
    heaviest: float = 0.0
    rows: int = 0  # that have the set and want it
    top: Floats = field(default_factory=lambda: np.zeros(0))  # the largest weights times flow
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
        n_groups = data.problem.n_groups
        self.acquired = np.zeros((n_groups + 2, n_groups))  # by depth of the decision
        self.wanting = np.zeros((len(data), n_groups), dtype=bool)
        # By depth: flow that arrives, and flow that ends there because it stops or because what it wants is unsupported.
        self.arriving, self.ending = np.zeros(n_groups + 2), np.zeros(n_groups + 2)
        self.final = np.zeros(len(data))  # weight with which a row stops
        self.largest = 0.0
        self.heaviest: list[tuple[float, int, bytes, float]] = []  # flow times weight, row, set, weight
        self.sampled = 0
        self.lost = 0.0  # share of runs that want a set which the view's map calls unsupported
        self.followed = np.zeros(len(data))  # flow that a row follows to a stop, in supported sets

    def add(self, table: WalkTable, weighted: WeightedStates, view: View) -> None:
        """Add the states of a chunk; their weights are those of the semi-offline or hybrid view."""
        data = self.data
        self.sampled += len(table.sampled)
        flow = np.zeros(len(table.row))
        weight = np.where(
            np.isfinite(weighted.weight), weighted.weight, 0.0
        )  # of probability 0: estimators have no answer
        flow[weighted.lines] = weight * table.reach[weighted.lines]
        self.followed += tally(table.row[weighted.lines], table.stop_flow[weighted.lines], len(data))
        target, index = table.edge_sets(data.problem.free)
        along = flow[table.edge_state] * table.edge_probability
        for u, amount in enumerate(tally(index, along, len(target))):
            self._of(target[u]).wanted += float(amount)
        self._groups(table, along)
        depth, levels = table.depth, len(self.arriving)
        stopping = np.zeros(len(table.row))
        stopping[weighted.lines] = weight * table.stop_flow[weighted.lines]
        self.arriving += tally(depth, flow, levels)
        if view.unsupported:
            whole = (depth == 0) & view.lacks(table)  # starts that are unsupported themselves: the row ends there
            self.followed[table.row[whole]] = 0.0
            lost = unsupported_edges(table, data, view.unsupported, view.adjust) & ~whole[table.edge_state]
            self.lost += (float(along[lost].sum()) + float(flow[whole].sum())) / len(data)
            self.ending += tally(depth[table.edge_state[lost]], along[lost], levels)
            self.ending += tally(depth[whole], flow[whole], levels)
            stopping[whole] = 0.0
        self.ending += tally(depth, stopping, levels)
        self._final(table, weighted, stopping[weighted.lines])
        self._weights(table, weighted, flow[weighted.lines])
        self._propensities(table, view, target, index)

    def _groups(self, table: WalkTable, along: Floats) -> None:
        """Which groups are acquired in which decision, and in which rows that have them."""
        n_groups = self.data.problem.n_groups
        costly = table.edge_group != FREE
        group, state = table.edge_group[costly], table.edge_state[costly]
        cell = table.depth[state] * n_groups + group
        self.acquired += tally(cell, along[costly], self.acquired.size).reshape(self.acquired.shape)
        taken = table.edge_available[costly] & (along[costly] > 0)
        self.wanting[table.row[state[taken]], group[taken]] = True

    def _final(self, table: WalkTable, weighted: WeightedStates, stopping: Floats) -> None:
        """Weights with which rows stop, and the largest of them with their rows and sets."""
        row = table.row[weighted.lines]
        self.final += tally(row, stopping, len(self.data))
        self.largest = max(self.largest, float(weighted.weight[stopping > 0].max(initial=0.0)))
        for i in np.argpartition(stopping, -min(_HEAVIEST, len(stopping)))[-_HEAVIEST:] if len(stopping) else ():
            key = table.sets[table.set_index[weighted.lines[i]]].tobytes()
            self.heaviest.append((float(stopping[i]), int(row[i]), key, float(weighted.weight[i])))
        self.heaviest = sorted(self.heaviest, key=lambda h: (-h[0], h[1]))[:_HEAVIEST]

    def _weights(self, table: WalkTable, weighted: WeightedStates, flow: Floats) -> None:
        n = len(weighted.sets)
        smallest, largest, heaviest = np.full(n, np.inf), np.zeros(n), np.zeros(n)
        np.minimum.at(smallest, weighted.set_of, weighted.raw)
        np.maximum.at(largest, weighted.set_of, weighted.weight)
        np.maximum.at(heaviest, weighted.set_of, flow)
        total, squares = tally(weighted.set_of, flow, n), tally(weighted.set_of, flow**2, n)
        lines = lines_of(weighted.set_of, n)
        for u in np.unique(weighted.set_of):
            if u == len(table.sets):  # rows that represent only themselves
                continue
            found, mine = self._of(table.sets[u]), flow[lines[u]]
            found.rows += int((mine > 0).sum())
            found.top = _largest(np.concatenate([found.top, mine]))
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
        exists = count_supersets(self.data.recorded, sets) > 0
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
        thin = self._thin(sets, keys, found)
        if semi.refusal or unsupported or found or found.minor or thin:
            violations = violation_table(data, found, columns)
            refused = (f"No estimate: {semi.refusal}.",) if semi.refusal else ()
            warnings = (*refused, *findings_on(data, sets, found, unsupported, columns), *thin_words(thin, thresholds))
        if found or not views["holds"].all():
            advice = advice_on(data, found, views, columns, self.adjust)
        nothing = pd.DataFrame(columns=WEIGHT_COLUMNS)
        groups, pairs = self._group_table(sets, keys), self._pair_table(keys)
        support = Support(
            sets, unsupported, nothing, len(data), self.sampled, groups, pairs, views, violations, warnings, advice
        )
        heaviest = self._heaviest_table()
        heavy = heavy_words(self.carried, len(data), heaviest) if self.few else ()
        balance = balance_of(data, semi, self._balanced(sets, keys))
        return replace(support, heaviest=heaviest, heavy=heavy, balance=balance)

    @property
    def carried(self) -> tuple[int, float, float, float]:
        """Rows that stop somewhere, how many they are worth, the share of the ten heaviest, and the largest weight."""
        cluster = self.data.cluster
        rows = int((cluster_sums(self.final, cluster) > 0).sum())
        ess = effective_size(self.final, cluster) if rows else 0.0
        return rows, ess, share_of_heaviest(self.final, cluster), self.largest

    @property
    def few(self) -> bool:
        """Whether a few rows carry what the view can follow to the end."""
        rows, ess, ten, _ = self.carried
        return rows > 0 and carried_by_few(self.thresholds, len(self.data), rows, ess, ten)

    def _heaviest_table(self) -> pd.DataFrame:
        total = max(float((self.final**2).sum()), 1e-300)
        lines = [(row, self._name(key), weight, w**2 / total) for w, row, key, weight in self.heaviest if w > 0]
        return pd.DataFrame(lines, columns=HEAVIEST_COLUMNS)

    def _balanced(self, sets: pd.DataFrame, keys: list[bytes]) -> dict[str, Bools]:
        """Sets that enough runs want, most wanted first, with what a row must have recorded for them."""
        lines = zip(sets.to_dict("records"), keys, strict=True)
        enough = [
            (line["set"], np.frombuffer(key, dtype=bool) | self.adjust)
            for line, key in lines
            if line["wanted"] >= self.thresholds.wanted and line["rows_recorded"] > 1
        ]
        gaps = ~self.data.always_recorded
        return {name: required for name, required in enough if (required & gaps).any()}

    def _name(self, key: bytes) -> str:
        problem = self.data.problem
        named = (g for g, has, free in zip(problem.group_names, key, problem.free, strict=True) if has and not free)
        return " + ".join(named) or ("(free groups)" if any(key) else "(nothing)")

    @property
    def mean_before(self) -> Floats:
        """Mean weight before the decision at each depth, runs that have ended counted at their last weight."""
        ended = np.concatenate([[0.0], np.cumsum(self.ending)[:-1]])
        return np.asarray(np.maximum(self.arriving + ended, 1e-300))

    def _thin(self, sets: pd.DataFrame, keys: list[bytes], known: SupportMap) -> list[tuple[str, ThinSet]]:
        """Sets that enough runs want, and that too few rows, or a few heavy ones, represent."""
        limits: SupportThresholds = self.thresholds
        told: list[tuple[str, ThinSet]] = []
        for line, key in zip(sets.to_dict("records"), keys, strict=True):
            rows, found = line["rows_wanting"], self.sets[key]
            told_already = line["rows_recorded"] == 0 or (rows == 0 and bool(known))
            if line["wanted"] < limits.wanted or told_already or line["set"].startswith("("):
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
        lines = []
        never = 0.0
        shallowest = 0 if not problem.free.any() or self.data.always_recorded[problem.free].all() else 1
        required = np.array([np.frombuffer(key, dtype=bool) for key in self.sets]).reshape(-1, problem.n_groups)
        rows_having = count_supersets(recorded, required | self.adjust).tolist()
        sizes, before = (required & ~problem.free).sum(axis=1).tolist(), self.mean_before.tolist()
        for (key, found), rows, size in zip(self.sets.items(), rows_having, sizes, strict=True):
            # The decision that leads here; its weights have a mean near 1, which makes this a probability.
            wanted = 1.0 if size == 0 else min(found.wanted / before[size - 1 + shallowest], 1.0)
            never += 0.0 if rows else wanted
            finite = 0 < found.squares < np.inf  # a weight without bound: nothing can be said
            ten = (found.top**2).sum() / found.squares if finite else 0.0
            ess = found.weight**2 / found.squares if finite else 0.0
            smallest = found.smallest if rows and np.isfinite(found.smallest) else 0.0
            largest = found.largest if found.largest > 0 else np.inf
            share = rows / len(self.data)
            lines.append((self._name(key), wanted, rows, share, found.rows, smallest, largest, ess, ten, key))
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
                    "wanted": min(float((self.acquired[:, g] / self.mean_before).sum()), 1.0),
                    "rows_recorded": rows,
                    "share_recorded": rows / len(self.data),
                    "rows_wanting": int(self.wanting[:, g].sum()),
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


def _largest(values: Floats) -> Floats:
    return values if len(values) <= _HEAVIEST else np.partition(values, -_HEAVIEST)[-_HEAVIEST:]


def support_of(
    data: Retrospective,
    tables: Iterable[WalkTable],
    search: SupportSearch,
    semi: View,
    complete: View | None,
    undecided: SupportMap | None = None,
) -> Support:
    """What the records support of a policy whose walk these tables are, in its semi-offline or hybrid view."""
    sums = SupportSums(data, search.thresholds, semi.adjust)
    for table in tables:
        sums.add(table, semi.weigh(table), semi)
    support = sums.result(semi, complete, search.columns)
    if not undecided:
        return support
    unclear, told = undecided_table(data, undecided, search.thresholds.healthy, search.columns)
    return replace(support, undecided=unclear, warnings=(*support.warnings, *told))


def label_suspected(data: Retrospective, given: Conditioning, groups: Ints) -> bool:
    """Whether the label predicts the recording of one of these groups given what is always recorded; by 10,000 rows."""
    rows = np.unique(np.linspace(0, len(data) - 1, min(len(data), _LABEL_ROWS)).astype(np.intp))
    columns = given.matrix(data)[rows]
    classes = (data.labels[rows, None] == np.arange(1, len(data.classes))).astype(float)
    cluster = None if data.cluster is None else data.cluster[rows]
    p_values = []
    for g in groups:
        has = data.recorded[rows, g]
        if min(int(has.sum()), int((~has).sum())) >= _LEAST_ROWS:
            statistic, degrees = score_test(flexible_design(columns, has), has, classes, cluster)
            p_values.append(float(chdtrc(degrees, statistic)) if degrees else 1.0)
    return min(p_values, default=1.0) * len(p_values) < _SUSPECTED


def balance_of(data: Retrospective, view: View, sets: Mapping[str, Bools]) -> pd.DataFrame:
    r"""How far rows that have a set differ from all rows in what is always recorded, before and after weighting.

    .. math:: d = \frac1s \Big( \frac{\sum_i 1(R_i \ge S) w_i x_i}{\sum_i 1(R_i \ge S) w_i} - \bar x \Big), \qquad
       w_i = 1 / P(R \ge S \mid X_o)

    with mean and standard deviation s over all rows in which the set is supported; before weighting w = 1. The label counts
    as a column, by class. At most 10,000 rows, spread evenly, are looked at.
    """
    n = len(data)
    looked = np.unique(np.linspace(0, n - 1, min(n, _BALANCE_ROWS)).astype(np.intp))
    names, values = _always(data, looked)
    values = in_own_units(values)
    lines: list[tuple[object, ...]] = []
    for name, required in list(sets.items())[:_BALANCED]:
        target = ~view.unsupported.lacking(required)[looked] if view.unsupported else np.ones(len(looked), dtype=bool)
        has = np.flatnonzero(target & every(data.recorded[looked][:, required]))
        if len(has) < 2 or view.refusal:
            continue
        probability = view.propensity.probability(looked[has], required[None], np.zeros(len(has), dtype=np.intp))
        with np.errstate(divide="ignore"):
            weight = 1.0 / np.maximum(probability, view.propensity.min_propensity)
        if not np.isfinite(weight).all():
            continue
        mean, spread = values[target].mean(axis=0), values[target].std(axis=0)
        spread = np.where(spread > 1e-12 * np.abs(mean), spread, np.inf)  # what does not vary does not differ
        x = values[has]
        before, after = (x.mean(axis=0) - mean) / spread, (weight @ x / weight.sum() - mean) / spread
        terms = (weight[:, None] * (x - mean)) ** 2
        error = np.sqrt(terms.sum(axis=0)) / weight.sum() / spread
        # As uncertain as the error of so many rows; see Estimate.degrees_of_freedom.
        freedom = terms.sum(axis=0) ** 2 / np.maximum((terms**2).sum(axis=0), 1e-300)
        p_value = 2 * stdtr(np.maximum(freedom, 1.0), -np.abs(after) / np.maximum(error, 1e-300))
        lines += zip([name] * len(names), names, before, after, error, p_value, strict=True)
    table = pd.DataFrame(lines, columns=BALANCE_COLUMNS)
    worst = np.argsort(-table["after"].abs().to_numpy(dtype=float), kind="stable")
    return table.iloc[worst].reset_index(drop=True)


def _always(data: Retrospective, rows: Ints) -> tuple[list[str], Floats]:
    """Names and columns of what is always recorded: groups without gaps, and the label by class."""
    columns = np.flatnonzero(data.always_recorded[data.column_group])
    codes = np.arange(1 if len(data.classes) == 2 else 0, len(data.classes))
    names = [*(data.columns[j] for j in columns), *(f"{data.problem.label}={data.classes[c]}" for c in codes)]
    return names, np.column_stack([data.values[rows][:, columns], data.labels[rows, None] == codes])
