"""Weighted estimators: row sums that are linear in the weights, and a smooth function of their means."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ..arrays import Floats, tally
from ..data import Retrospective
from ..nuisance import ChainPropensity, StackedScores
from ..walk import WalkTable
from ..walk.sets import unique_sets
from .estimate import TARGETS, Estimate, Outcome, effective_size
from .weights import View, WeightedStates

__all__ = ["REACH", "STOP", "Formula", "WeightedEstimator", "mean_weight_before"]

# The first two quantities of every formula: incoming and stopping flow, whose means are the normalisers.
REACH, STOP = 0, 1


class Formula(Protocol):
    r"""An estimator as quantities of states and a function of their weighted means.

    With :math:`m_{tq}` the mean over rows of :math:`\sum_{S: |S| = t} w_S q_S`, the estimate of a target is a function of
    m alone; its derivative in m gives influence values, normalisation and learned propensities included.
    """

    n_quantities: int

    def quantities(self, table: WalkTable) -> Floats:
        """q_S of every state, shape (s, Q); columns REACH and STOP are the flows."""
        ...

    def linearise(self, mean: Floats) -> tuple[dict[str, float], dict[str, Floats]]:
        """Values of the targets at ``mean`` (T, Q), and their derivatives (T, Q)."""
        ...


class WeightedEstimator:
    """A formula in a view: sums over chunks of the walk, then estimates with influence values.

    Parameters
    ----------
    data : Retrospective
        Records.
    view : View
        Which rows may speak, and their weights.
    formula : Formula
        IPW or doubly robust.
    row_weight : ndarray of shape (n,), optional
        Weights of the rows in every mean: 0 for rows that only serve to learn nuisances.
    """

    def __init__(self, data: Retrospective, view: View, formula: Formula, row_weight: Floats | None = None) -> None:
        self.data, self.view, self.formula = data, view, formula
        self.row_weight = np.ones(len(data)) if row_weight is None else row_weight
        self.sums = np.zeros((len(data), 1, formula.n_quantities))  # grows with the depth of the walk
        propensity = view.propensity
        stackable = isinstance(propensity, ChainPropensity) and propensity.stacked
        self.scores = StackedScores(propensity, self.row_weight) if stackable else None  # type: ignore[arg-type]
        self.unbounded = False  # whether a recorded set has probability 0
        self.clipped = 0
        self.largest_weight = 0.0

    @property
    def parts(self) -> tuple[WeightedEstimator, ...]:
        """Itself: one estimator, one formula."""
        return (self,)

    def add(self, table: WalkTable, weighted: WeightedStates) -> None:
        """Add the states of a chunk."""
        weighted = weighted.only(self.row_weight[table.row[weighted.lines]] > 0)
        self.unbounded |= not np.isfinite(weighted.weight).all()
        if self.unbounded or len(weighted.lines) == 0:
            return
        lines, row, depth = weighted.lines, table.row[weighted.lines], table.depth[weighted.lines]
        quantities = self.formula.quantities(table)[lines] * weighted.weight[:, None]
        n_depths = int(depth.max()) + 1
        if n_depths > self.sums.shape[1]:
            self.sums = np.pad(self.sums, ((0, 0), (0, n_depths - self.sums.shape[1]), (0, 0)))
        low, high = int(row.min()), int(row.max()) + 1  # a chunk is a range of rows
        cell = (row - low) * n_depths + depth
        for q in range(quantities.shape[1]):
            total = tally(cell, quantities[:, q], (high - low) * n_depths)
            self.sums[low:high, :n_depths, q] += total.reshape(high - low, n_depths)
        if self.scores is not None:
            moving = quantities * (self.row_weight[row] * ~weighted.clipped)[:, None]
            self.scores.add(row, weighted.sets, weighted.set_of, depth, moving)
        if weighted.clipped.any():  # sets of a row, not states: with adjusted groups many states share one set
            kinds = unique_sets(weighted.sets)[1]
            pairs = np.column_stack([row, kinds[weighted.set_of]])[weighted.clipped]
            self.clipped += len(np.unique(pairs, axis=0))
        self.largest_weight = max(self.largest_weight, float(weighted.weight.max()))

    def replicate(self, table: WalkTable, view: View, row_weight: Floats, *formulas: Formula) -> dict[str, float]:
        """Values of the targets with other weights of rows and states, as in a bootstrap; NaN where there are none."""
        (formula,) = formulas
        weighted = view.weigh(table)
        if not np.isfinite(weighted.weight).all():  # a row that this replicate did not draw has no say
            weighted = weighted.only(row_weight[table.row[weighted.lines]] > 0)
        if not np.isfinite(weighted.weight).all():
            return dict.fromkeys(TARGETS, float("nan"))
        row, depth = table.row[weighted.lines], table.depth[weighted.lines]
        factor = weighted.weight * row_weight[row]
        quantities = formula.quantities(table)[weighted.lines] * factor[:, None]
        n_depths = table.n_depths
        mean = np.column_stack([tally(depth, quantities[:, q], n_depths) for q in range(quantities.shape[1])])
        mean /= row_weight.sum()
        if (mean_weight_before(mean) <= 0).any():
            return dict.fromkeys(TARGETS, float("nan"))
        return formula.linearise(mean)[0]

    def outcome(self, rows: str, confidence: float) -> Outcome:
        """Estimates for the three targets."""
        final = self.sums[:, :, STOP].sum(axis=1)
        total = self.row_weight.sum()
        mean = np.einsum("i,itq->tq", self.row_weight, self.sums) / total
        before = mean_weight_before(mean)
        if self.view.refusal:
            return Outcome({}, reason=self.view.refusal)
        if self.unbounded:
            return Outcome({}, reason="a recorded set has probability 0 by the model; raise 'min_propensity'")
        if (before <= 0).any():
            return Outcome({}, reason=self.why_nothing())
        values, directions = self.formula.linearise(mean)
        stacked = np.array(list(directions.values()))
        scale = len(self.data) / total
        # Plain estimates are means, normalised ones have mean-zero directions; centring serves both.
        phi = np.einsum("itq,etq->ei", self.sums, stacked)
        centre = phi @ self.row_weight / total
        influence = self.row_weight * (phi - centre[:, None])
        if self.scores is not None:
            influence = influence + self.scores.influence(stacked)
        estimates = {
            target: Estimate(value, influence[e] * scale, self.data.cluster, rows, confidence)
            for e, (target, value) in enumerate(values.items())
        }
        used = self.row_weight > 0
        cluster = None if self.data.cluster is None else self.data.cluster[used]
        learned = self.view.propensity.learned
        return Outcome(
            estimates,
            ess=effective_size(final[used], cluster),
            normalizer=float(before[-1]),
            normalizer_error=Estimate(1.0, final[used] - final[used].mean(), cluster).std_error,
            normalizers=tuple(float(b) for b in before),
            clipped=self.clipped,
            largest_weight=self.largest_weight,
            error=("stacked" if self.scores is not None else "propensity as known") if learned else "influence",
        )

    def why_nothing(self) -> str:
        """Why there is no estimate."""
        if self.view.adjust.all():
            return "no row has every group recorded"
        return "no row records a set of groups with which the policy stops"


def mean_weight_before(mean: Floats) -> Floats:
    """Mean weight before each decision, and last the mean final weight, shape (T + 1,).

    A trajectory that has stopped keeps its last weight.
    """
    stopped = np.concatenate([[0.0], np.cumsum(mean[:, STOP])])
    return np.asarray(np.append(mean[:, REACH], 0.0) + stopped)
