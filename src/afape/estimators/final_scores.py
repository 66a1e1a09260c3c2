"""Area under the ROC curve and calibration, from weighted stops.

The scores are in the table of the walk: the classifier is asked in `walk.ground`, not here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, cast

import numpy as np

from .._arrays import Bools, Floats, Ints, tally
from ..walk.columns import Columns
from ..walk.table import WalkTable
from .amounts import Sample
from .booking import PLAIN, Booking, Lines
from .estimate import Estimate
from .evidence import Evidence
from .flows import Flows
from .ipw import inverse_probability
from .proportion import Proportion
from .weighted import Weighted

__all__ = ["Bin", "FinalScores"]


class Bin(NamedTuple):
    """Cases whose final score lies in a range."""

    low: float
    high: float
    share: float  # share of all cases
    predicted: float  # mean score
    observed: Estimate | None  # share of the class; None if there is no case


class _WeightedStops(NamedTuple):
    """States in which runs stop, of all tables."""

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
        Index of the outcome of the user that is the score.
    label : int
        Code of the class whose score it is.
    """

    evidence: Evidence
    column: int
    label: int

    @cached_property
    def _sums(self) -> Weighted:
        return inverse_probability(self.evidence)

    @property
    def reason(self) -> str:
        """Why there is no answer; empty if there is one."""
        view = self.evidence.view
        assert view is not None
        if view.unsupported:
            return "the policy wants sets that the records do not support"
        if self._sums.reason:
            return self._sums.reason
        positive = self._stops.positive
        return "" if positive.any() and not positive.all() else "all stops with a positive weight belong to one class"

    @cached_property
    def _stops(self) -> _WeightedStops:
        view, row_weight, data = self.evidence.view, self.evidence.fitted.row_weight, self.evidence.data
        assert view is not None
        found = []
        for table in self.evidence.tables:
            weighted = view.weigh(table)
            amount = weighted.weight * table.stop_flow[weighted.lines] * row_weight[table.row[weighted.lines]]
            used = np.flatnonzero(amount > 0)
            lines = weighted.lines[used]
            row = table.row[lines]
            found.append((row, amount[used], table.outcomes[lines, self.column], data.true_labels[row] == self.label))
        return _WeightedStops(*(np.concatenate(part) for part in zip(*found, strict=True)))

    def auc(self) -> Proportion:
        r"""Estimate the area under the ROC curve from weighted pairs of a case and a non-case.

        .. math:: \hat A = \frac{\sum_{i: y_i = 1} \sum_{j: y_j = 0} \omega_i \omega_j \, k(s_i, s_j)}
           {\sum_{i: y_i = 1} \omega_i \sum_{j: y_j = 0} \omega_j}, \qquad k = 1(s_i > s_j) + \tfrac12 1(s_i = s_j)

        with :math:`\omega` the flow of a stop times its weight. A row has one label, so the two rows of a pair
        are different. The derivative with respect to the weights gives the influence values, including the error of a learned
        propensity. For a case it is :math:`(F_0(s) - \hat A) / P_1`, with :math:`F_0` the distribution of the scores of
        non-cases; for non-cases it is analogous.
        """
        total = self.evidence.fitted.row_weight.sum()
        cases, others = self._of(True), self._of(False)
        weight = np.array([others[1].sum(), cases[1].sum()])
        area = float(cases[1] @ _share_below(cases[0], *others) / weight[1])

        def slope(score: Floats, positive: Bools) -> Floats:
            rank = np.where(positive, _share_below(score, *others), 1 - _share_below(score, *cases))
            return np.asarray((rank - area) * total / weight[positive.astype(int)])[:, None]

        classes = [self._sample(self._stops.positive == positive) for positive in (True, False)]
        fewer = max(classes, key=lambda sample: sample.concentration)
        return self._estimates(np.array([area]), slope, [fewer])[0]

    def _of(self, positive: bool) -> tuple[Floats, Floats]:
        stops = self._stops
        mine = stops.positive == positive
        return stops.score[mine], stops.amount[mine]

    def calibration(self, edges: Floats) -> list[Bin]:
        """Estimate mean score and share of the class in ranges of the score; the last range includes its upper end."""
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

        found = self._estimates(positive, slope, [self._sample(place == b) for b in range(n_bins)])
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

    def _sample(self, kept: Bools) -> Sample:
        """Return the rows of the evidence, with the concentration of the weights of these stops."""
        row, amount = self._stops.row[kept], self._stops.amount[kept]
        return self.evidence.sample.weighted(tally(row, amount, len(self.evidence.data)))

    def _estimates(
        self, values: Floats, slope: Callable[[Floats, Bools], Floats], samples: list[Sample]
    ) -> list[Proportion]:
        """Return estimates with these values (E,); ``slope(score, positive)`` is their derivative in the weight, (l, E)."""
        weighted = Weighted(self.evidence, _StopSlopes(self, slope), normalize=False)
        influence = weighted.booked(cast(Columns, _Width(len(values)))).influence
        assert influence is not None
        return [
            Proportion(
                float(value),
                phi,
                sample.cluster,
                sample.rows,
                sample.confidence,
                limits=(0.0, 1.0),
                concentration=sample.concentration,
            )
            for value, phi, sample in zip(values, self.evidence.sample.centred(influence).T, samples, strict=True)
        ]


class _Width(NamedTuple):
    """Number of columns, for a formula that needs no further description of them."""

    width: int


@dataclass(frozen=True, eq=False)
class _StopSlopes:
    """Books the derivatives with respect to the weights of stops."""

    scores: FinalScores
    slope: Callable[[Floats, Bools], Floats]

    def lines(self, table: WalkTable, flows: Flows, columns: Columns) -> Iterator[Lines]:
        """Yield the derivative of every stop, without a normaliser."""
        scores, at = self.scores, np.flatnonzero(table.stop_flow > 0)
        positive = scores.evidence.data.true_labels[table.row[at]] == scores.label
        amounts = self.slope(table.outcomes[at, scores.column], positive)
        yield Lines(amounts, (Booking(table.stop_flow[at], at, np.full(len(at), PLAIN)),))


def _bins(score: Floats, edges: Floats) -> Ints:
    return np.clip(np.searchsorted(edges, score, side="right") - 1, 0, len(edges) - 2)


def _share_below(at: Floats, score: Floats, amount: Floats) -> Floats:
    """Return the weighted share of scores below each value; ties count one half."""
    order = np.argsort(score, kind="stable")
    score, total = score[order], np.concatenate([[0.0], np.cumsum(amount[order])])
    low, high = (np.searchsorted(score, at, side=side) for side in ("left", "right"))
    return np.asarray((total[low] + total[high]) / 2 / total[-1])
