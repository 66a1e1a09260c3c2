"""The score with which a run ends: its area under the ROC curve and its calibration, from weighted stops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..arrays import Bools, Floats, Ints, tally
from ..nuisance.fitted import Evidence
from .booking import Block, Bookings, StateWeights, Term
from .estimate import Estimate
from .ipw import inverse_probability
from .proportion import Proportion
from .weighted import WeightedSums

__all__ = ["Bin", "FinalScores"]


class Bin(NamedTuple):
    """Cases whose final score lies in a range."""

    low: float
    high: float
    share: float  # of all cases
    predicted: float  # mean score
    observed: Estimate | None  # share of the class; None where there is no case


class _Stops(NamedTuple):
    """Lines in which a run stops, over all tables."""

    row: Ints
    amount: Floats  # flow times weight times row weight
    score: Floats
    positive: Bools


@dataclass(frozen=True, eq=False)
class FinalScores:
    """Scores of an outcome in the states where runs stop, weighted to represent the policy's runs.

    Parameters
    ----------
    evidence : Evidence
        Walk, view and row weights.
    column : int
        Which of the user's own outcomes is the score.
    label : int
        Code of the class whose score it is.
    rows, confidence
        Identity of the rows, and the level of intervals.
    """

    evidence: Evidence
    column: int
    label: int
    rows: str
    confidence: float

    @cached_property
    def _sums(self) -> WeightedSums:
        return inverse_probability(self.evidence)

    @property
    def reason(self) -> str:
        """Why there is no answer; empty where there is one."""
        view = self.evidence.view
        assert view is not None
        if view.unsupported:
            return "the policy wants sets that the records do not support"
        if self._sums.reason:
            return self._sums.reason
        positive = self._stops.positive
        return "" if positive.any() and not positive.all() else "all cases that count are of one class"

    @cached_property
    def _stops(self) -> _Stops:
        view, row_weight, data = self.evidence.view, self.evidence.fitted.row_weight, self.evidence.data
        assert view is not None
        found = []
        for table in self.evidence.tables:
            weighted = view.weigh(table)
            amount = weighted.weight * table.stop_flow[weighted.lines] * row_weight[table.row[weighted.lines]]
            used = np.flatnonzero(amount > 0)
            lines = weighted.lines[used]
            row = table.row[lines]
            found.append((row, amount[used], table.outcomes[lines, self.column], data.labels[row] == self.label))
        return _Stops(*(np.concatenate(part) for part in zip(*found, strict=True)))

    def auc(self) -> Proportion:
        r"""Area under the ROC curve from weighted pairs of a case and a non-case.

        .. math:: \hat A = \frac{\sum_{i: y_i = 1} \sum_{j: y_j = 0} \omega_i \omega_j \, k(s_i, s_j)}
           {\sum_{i: y_i = 1} \omega_i \sum_{j: y_j = 0} \omega_j}, \qquad k = 1(s_i > s_j) + \tfrac12 1(s_i = s_j)

        with :math:`\omega` the flow of a stop times its weight. A row has one label, so that no pair is of one row. The
        derivative in the weights gives influence values, those of a learned propensity included: of a case
        :math:`(F_0(s) - \hat A) / P_1`, with :math:`F_0` the distribution of the others' scores, and likewise of the others.
        """
        total = self.evidence.fitted.row_weight.sum()
        cases, others = self._of(True), self._of(False)
        weight = np.array([others[1].sum(), cases[1].sum()])
        area = float(cases[1] @ _share_below(cases[0], *others) / weight[1])

        def slope(score: Floats, positive: Bools) -> Floats:
            rank = np.where(positive, _share_below(score, *others), 1 - _share_below(score, *cases))
            return np.asarray((rank - area) * total / weight[positive.astype(int)])[:, None]

        return self._estimates(np.array([area]), slope)[0]

    def _of(self, positive: bool) -> tuple[Floats, Floats]:
        stops = self._stops
        mine = stops.positive == positive
        return stops.score[mine], stops.amount[mine]

    def calibration(self, edges: Floats) -> list[Bin]:
        """Mean score and observed share of the class in ranges of the score; the last range includes its upper end."""
        stops, n_bins = self._stops, len(edges) - 1
        place = _bins(stops.score, edges)
        amount = tally(place, stops.amount, n_bins)
        filled = amount > 0
        positive = np.divide(
            tally(place, stops.amount * stops.positive, n_bins), amount, where=filled, out=np.zeros(n_bins)
        )
        score = np.divide(tally(place, stops.amount * stops.score, n_bins), amount, where=filled, out=np.zeros(n_bins))
        total = self.evidence.fitted.row_weight.sum()

        def slope(values: Floats, is_positive: Bools) -> Floats:
            at = _bins(values, edges)
            out = np.zeros((len(values), n_bins))
            gap = (is_positive - positive[at]) * total
            out[np.arange(len(values)), at] = np.divide(gap, amount[at], where=filled[at], out=np.zeros(len(values)))
            return out

        found = self._estimates(positive, slope)
        return [
            Bin(
                float(edges[b]),
                float(edges[b + 1]),
                float(amount[b] / amount.sum()),
                float(score[b]) if filled[b] else float("nan"),
                found[b] if filled[b] else None,
            )
            for b in range(n_bins)
        ]

    def _estimates(self, values: Floats, slope: Callable[[Floats, Bools], Floats]) -> list[Proportion]:
        """Estimates whose derivatives in the weight of a stop are ``slope(score, positive)``, (l, E)."""
        evidence, sums = self.evidence, self._sums
        assert evidence.view is not None
        booked = Bookings(np.ones(1), sums.tally.row_weight, len(values), sums.tally.scores)
        for table in evidence.tables:
            weighted = evidence.view.weigh(table)
            weighted = weighted.only(sums.tally.row_weight[table.row[weighted.lines]] > 0)
            lines = np.flatnonzero(table.stop_flow > 0)
            row = table.row[lines]
            matrix = slope(table.outcomes[lines, self.column], evidence.data.labels[row] == self.label)
            term = Term(table.stop_flow[lines], lines, np.zeros(len(lines), dtype=np.intp))
            weights = StateWeights(len(table.row), weighted)
            booked.add(Block(matrix, row, (term,)), weights)
            booked.close(weights)
        influence = sums.influence_of(np.zeros((len(values), *sums.tally.sums.shape[1:])), booked)
        cluster = evidence.data.cluster
        return [
            Proportion(float(value), phi, cluster, self.rows, self.confidence, limits=(0.0, 1.0))
            for value, phi in zip(values, influence, strict=True)
        ]


def _bins(score: Floats, edges: Floats) -> Ints:
    return np.clip(np.searchsorted(edges, score, side="right") - 1, 0, len(edges) - 2)


def _share_below(at: Floats, score: Floats, amount: Floats) -> Floats:
    """Weighted share of scores below each value, ties counted half."""
    order = np.argsort(score, kind="stable")
    score, total = score[order], np.concatenate([[0.0], np.cumsum(amount[order])])
    low, high = (np.searchsorted(score, at, side=side) for side in ("left", "right"))
    return np.asarray((total[low] + total[high]) / 2 / total[-1])
