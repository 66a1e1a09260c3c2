"""Weighted estimators: sums of the amounts that a formula books, times the weights of states."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from .._arrays import Floats, effective_size, standard_error, tally
from ..action_values.learning_errors import ValueSlopes
from ..propensity.scores import StackedScores
from ..propensity.weights import View
from ..walk.columns import Columns
from ..walk.table import WalkTable
from .amounts import Amounts, InfluenceAmounts, ReplicatedAmounts, Sample
from .answer import Answer, Costs, PartAmounts
from .booking import Lines, add_slopes, book, summed
from .endings import endings_of
from .evidence import Evidence
from .flows import Flows
from .normalisers import Normalisers, WeighedTable, normalisers_of, weighed

__all__ = ["Booked", "Formula", "Included", "Weighted", "why_nothing"]

_REACH, _STOP = 0, 1  # incoming and stopping flow, whose weighted means are the normalisers


class Formula(Protocol):
    r"""The formula of a method, stated once for any columns.

    It yields lines of amounts :math:`a_l`, each with a flow :math:`f_l`, a state :math:`S_l` that gives the weight, and a step
    :math:`t_l` that gives the normaliser. The estimate is

    .. math:: \frac1n \sum_i \sum_{l \in i} \frac{w_{S_l}}{b_{t_l}} f_l \, a_l ,

    with :math:`b_t` the mean weight before decision t. A run that has stopped keeps its last weight.
    """

    def lines(self, table: WalkTable, flows: Flows, columns: Columns) -> Iterable[Lines]:
        """Yield the lines of a table."""
        ...


class _Sums(NamedTuple):
    """Result of the second pass over the tables: the booked amounts of each row."""

    steps: Floats  # (T + 2, P) mean of weighted amounts by normaliser, not divided by it
    rows: Floats  # (n, P) weighted amounts, divided by normalisers
    flows: Floats  # (n, T, 2) weighted incoming and stopping flow
    scores: StackedScores | None  # derivatives with respect to the parameters of a learned propensity
    slopes: ValueSlopes | None  # derivatives in action values; None if the formula has none


class Included(NamedTuple):
    """Which errors of learning the influence values include; None if nothing was learned."""

    propensity: bool | None = None
    values: bool | None = None
    means: bool | None = None  # conditional means of `eff-semi`

    @property
    def error_method(self) -> str:
        """Name in tables: "influence", "stacked", or what is treated as known although it was learned."""
        names = ("propensity", "action values", "conditional means")
        left_out = [name for name, included in zip(names, self, strict=True) if included is False]
        if left_out:
            return f"{' and '.join(left_out)} as known"
        return "influence" if self == Included() else "stacked"


class Booked(NamedTuple):
    """Values of the columns, and their influence values if these are needed."""

    values: Floats  # (P,)
    influence: Floats | None = None  # (n, P), for known action values
    final: Floats = np.zeros(0)  # (n,) final weight of each row, 0 in rows that are not averaged over
    mean_weight: Floats = np.zeros(0)  # (n,) influence values of the mean final weight
    errors: Floats | None = None  # (n, P) what learned action values add to the influence values
    included: Included = Included()

    @property
    def whole(self) -> Floats | None:
        """Influence values (n, P), including the error of learned action values if it is known."""
        return self.influence if self.influence is None or self.errors is None else self.influence + self.errors

    def amounts(self, sample: Sample) -> Amounts:
        """Return the columns as amounts of these rows."""
        influence = self.whole
        if influence is None:
            return ReplicatedAmounts(self.values, sample)
        return InfluenceAmounts(self.values, influence, sample.weighted(self.final))


@dataclass(frozen=True, eq=False)
class Weighted:
    """A formula in a view.

    Parameters
    ----------
    evidence : Evidence
        Walk, view and row weights.
    formula : Formula
        The formula of the method.
    normalize : bool
        Divide by mean weights.
    scored : bool
        True if influence values are needed in bootstrap replicates too.
    tables : sequence of WeighedTable, optional
        Tables that replace the walk.
    """

    evidence: Evidence
    formula: Formula
    normalize: bool = True
    scored: bool = False
    tables: Sequence[WeighedTable] | None = None

    @property
    def view(self) -> View:
        """The view in which rows are weighted."""
        assert self.evidence.view is not None
        return self.evidence.view

    @property
    def _influential(self) -> bool:
        """True if influence values are computed. Most replicates need only the values."""
        return self.scored or not self.evidence.replicated

    def _weighed(self) -> Iterable[WeighedTable]:
        """Return the tables with their weights; every pass reads them again."""
        if self.tables is not None:
            return self.tables
        return (weighed(self.evidence, table, self._flows(table)) for table in self.evidence.tables)

    def _flows(self, table: WalkTable) -> Flows:
        bounded = self.evidence.largest is not None
        return Flows.of(table, endings_of(table, self.evidence.data, self.view) if bounded else None)

    @cached_property
    def normalisers(self) -> Normalisers:
        """First pass over the tables."""
        return normalisers_of(self._weighed(), self.evidence.fitted.row_weight)

    @property
    def reason(self) -> str:
        """Why there is no answer; empty if there is one."""
        if self.view.refusal:
            return self.view.refusal
        if not self.normalisers.bounded:
            return "the model gives a recorded set probability 0; raise 'min_propensity'"
        return why_nothing(self.view) if (self.normalisers.before <= 0).any() else ""

    @cached_property
    def _divisors(self) -> Floats:
        """Normalisers of all steps, (T + 2,): before each decision, final, none."""
        before = self.normalisers.before
        return np.append(before if self.normalize else np.ones_like(before), 1.0)

    def _summed(self, columns: Columns) -> _Sums:
        """Book all lines of the formula in these columns."""
        row_weight, before = self.evidence.fitted.row_weight, self._divisors
        n, n_depths, width = len(row_weight), len(before) - 2, columns.width
        steps = np.zeros((len(before), width))
        wanted = self._influential
        rows, sums = np.zeros((n if wanted else 0, width)), np.zeros((n if wanted else 0, n_depths, 2))
        scores = self.view.propensity.scores(row_weight) if wanted else None
        slopes = self._no_slopes() if wanted else None
        for table, weighted, flows in self._weighed():
            if len(weighted.lines) == 0:
                continue
            lines, row = weighted.lines, table.row[weighted.lines]
            weight = np.zeros(len(table.row))
            weight[lines] = weighted.weight * row_weight[row]
            by_state = np.zeros((len(table.row), width)) if wanted else None
            for found in self.formula.lines(table, flows, columns):
                book(found, before, weight, by_state, steps)
                if slopes is not None:
                    add_slopes(found, before, weight / row_weight.sum(), slopes)
            if by_state is None:
                continue
            depth, flow = table.depth[lines], np.column_stack([flows.reach, flows.stop])[lines]
            booked = np.column_stack([flow, by_state[lines]]) * weighted.weight[:, None]
            low, high = int(row.min()), int(row.max()) + 1  # a chunk is a range of rows
            cell, size = (row - low) * n_depths + depth, (high - low) * n_depths
            for q in (_REACH, _STOP):
                sums[low:high, :, q] += tally(cell, booked[:, q], size).reshape(-1, n_depths)
            every_line = np.arange(len(row))
            rows[low:high] += summed(row - low, np.ones(len(row)), booked[:, 2:], every_line, high - low)
            if scores is not None:
                scores.add(row, weighted.made_of, depth, booked * (row_weight[row] * ~weighted.clipped)[:, None])
        return _Sums(steps / row_weight.sum(), rows, sums, scores, slopes)

    def _no_slopes(self) -> ValueSlopes | None:
        """Return zeros for the edges and stops that have action values; None if errors of these are not needed."""
        table = self.evidence.fitted.table
        if not self.evidence.valued or self.evidence.replicated or table is None:
            return None
        return ValueSlopes(np.zeros(len(table.edge_state)), np.zeros(len(table.row)))

    def booked(self, columns: Columns) -> Booked:
        """Compute values and influence values of the columns."""
        sums = self._summed(columns)
        if not self._influential:
            return Booked((sums.steps / self._divisors[:, None]).sum(axis=0))
        row_weight = self.evidence.fitted.row_weight
        values = row_weight @ sums.rows / row_weight.sum()  # equals the sum over steps, but does not depend on chunks
        directions = self._directions(sums)
        mean_weight = np.zeros_like(directions[:1])
        mean_weight[:, :, _STOP] = 1.0
        found = self._influence(sums, np.concatenate([directions, mean_weight]))
        final = sums.flows[:, :, _STOP].sum(axis=1) * row_weight
        stacked = sums.scores is not None and sums.scores.whole
        propensity = stacked if self.view.propensity.learned else None
        if sums.slopes is None:
            return Booked(values, found[:-1].T, final, found[-1], None, Included(propensity))
        known = self.evidence.action_values(columns)
        errors = known.errors(sums.slopes)
        included = Included(propensity, errors is not None if known.learned else None)
        errors = None if errors is None else errors * len(row_weight)
        return Booked(values, found[:-1].T, final, found[-1], errors, included)

    def amounts(self, columns: Columns) -> Amounts:
        """Compute values of the columns, with their influence values."""
        return self.booked(columns).amounts(self.evidence.sample)

    def _directions(self, sums: _Sums) -> Floats:
        """Compute the derivatives of every column with respect to the weighted sums by depth, (P, T, 2 + P).

        The first two sums are the flows, the others the booked amounts.
        """
        width, n_depths = sums.steps.shape[1], len(self._divisors) - 2
        out = np.zeros((width, n_depths, 2 + width))
        out[:, :, 2:] = np.eye(width)[:, None, :]
        if self.normalize:
            pull = -sums.steps[:-1] / self._divisors[:-1, None] ** 2
            out[:, :, _REACH] = pull[:-1].T
            # A stop counts in every later normaliser, because a run that has stopped keeps its last weight.
            out[:, :, _STOP] = np.cumsum(pull[::-1], axis=0)[::-1][1:].T
        return out

    def _influence(self, sums: _Sums, directions: Floats) -> Floats:
        """Compute influence values (E, n) from derivatives (E, T, 2 + P), including the error of learned propensities."""
        weight = self.evidence.fitted.row_weight
        out = np.einsum("itq,etq->ei", sums.flows, directions[:, :, :2])
        out += directions[:, 0, 2:] @ sums.rows.T
        # Plain estimates are means and need centring; normalised ones have mean zero, so centring changes nothing.
        out -= (out @ weight / weight.sum())[:, None]
        out *= weight
        if sums.scores is not None:
            out += sums.scores.influence(directions)
        out *= len(weight) / weight.sum()
        return np.asarray(out)

    def answer(self) -> Answer:
        """Return costs with figures about the weights."""
        if self.reason:
            return Answer(reason=self.reason)
        columns = self.evidence.cost_columns
        booked = self.booked(columns)
        costs = Costs(booked.amounts(self.evidence.sample), columns.tariff)
        return replace(self.figures(booked), costs=costs, reduction=self)

    def figures(self, booked: Booked) -> Answer:
        """Return figures about the weights, as an answer without costs."""
        data, normalisers = self.evidence.data, self.normalisers
        used = self.evidence.fitted.row_weight > 0
        cluster = None if data.cluster is None else data.cluster[used]
        known = booked.influence is not None
        return Answer(
            ess=effective_size(booked.final[used], cluster) if known else float("nan"),
            normalizer=float(normalisers.before[-1]),
            normalizer_error=standard_error(booked.mean_weight, data.cluster) if known else 0.0,
            normalizers=tuple(float(b) for b in normalisers.before),
            clipped=normalisers.clipped,
            largest_weight=normalisers.largest_weight,
            error_method=booked.included.error_method,
        )

    def parts(self) -> PartAmounts | None:
        """Return parts of the costs; None if the known action values have no parts."""
        columns = self.evidence.part_columns
        return None if columns is None else PartAmounts(self.amounts(columns), columns)


def why_nothing(view: View) -> str:
    """Return the reason why there is no estimate."""
    if view.adjust.all():
        return "no row has every group recorded"
    return "no row records a set of groups with which the policy stops"
