"""Inverse probability weighting in the semi-offline view and the missing-data view: one implementation."""

from __future__ import annotations

import numpy as np

from ..arrays import Floats, tally
from ..data import Retrospective
from ..nuisance import ChainPropensity, StackedScores
from ..walk import FREE, WalkTable
from .estimate import Estimate, Outcome, effective_size
from .weights import View, WeightedStates

__all__ = ["InverseProbability"]


# Quantities summed per row and depth; each is linear in the weights.
_REACH, _PRICE, _STOP, _COST = range(4)


class InverseProbability:
    r"""IPW-Semi, and with ``view.adjust`` all groups IPW-Miss (von Kleist et al. 2023, sections 4 and 5).

    Misclassification is :math:`\frac1n\sum_i\sum_S r_S \pi(stop|S) w_S C_S`, acquisition per decision
    :math:`\frac1n\sum_i\sum_S r_S w_S \sum_a \pi(a|S) c_a` over *all* wanted a, recorded or not: the price is known
    when the decision falls, so the weight before the step suffices. ``acquisition_weight="after"`` gives the
    paper's :math:`w_{S+a}` over recorded edges.

    Normalised (Hajek): misclassification is divided by the mean final weight
    :math:`\sum_S r_S \pi(stop|S) w_S`, acquisition of step t by the mean weight before it, where a trajectory that
    has stopped keeps its last weight. The influence values follow by the delta method; a learned logistic
    propensity adds its scores (`StackedScores`).
    """

    def __init__(
        self, data: Retrospective, view: View, *, normalize: bool = True, acquisition_weight: str = "before"
    ) -> None:
        self.data, self.view, self.normalize = data, view, normalize
        self.acquisition_weight = acquisition_weight
        self.sums = np.zeros((len(data), 1, 4))  # grows with the depth of the walk
        propensity = view.propensity
        stackable = isinstance(propensity, ChainPropensity) and propensity.estimator is None
        self.scores = StackedScores(propensity) if stackable else None  # type: ignore[arg-type]
        self.unbounded = False  # whether a recorded set has probability 0
        self.clipped = 0
        self.largest_weight = 0.0

    def add(self, table: WalkTable, weighted: WeightedStates) -> None:
        """Add the states of a chunk."""
        self.unbounded |= not np.isfinite(weighted.weight).all()
        if self.unbounded or len(weighted.lines) == 0:
            return
        lines, row, depth = weighted.lines, table.row[weighted.lines], table.depth[weighted.lines]
        quantities = self._quantities(table)[lines] * weighted.weight[:, None]
        n_depths = int(depth.max()) + 1
        if n_depths > self.sums.shape[1]:
            self.sums = np.pad(self.sums, ((0, 0), (0, n_depths - self.sums.shape[1]), (0, 0)))
        low, high = int(row.min()), int(row.max()) + 1  # a chunk is a range of rows
        cell = (row - low) * n_depths + depth
        for q in range(4):
            total = tally(cell, quantities[:, q], (high - low) * n_depths)
            self.sums[low:high, :n_depths, q] += total.reshape(high - low, n_depths)
        if self.scores is not None:
            moving = quantities * ~weighted.clipped[:, None]
            self.scores.add(row, weighted.sets, weighted.set_of, depth, moving)
        if weighted.clipped.any():  # sets of a row, not states: with adjusted groups many states share one set
            pairs = np.column_stack([row, weighted.set_of])[weighted.clipped]
            self.clipped += len(np.unique(pairs, axis=0))
        self.largest_weight = max(self.largest_weight, float(weighted.weight.max()))

    def _quantities(self, table: WalkTable) -> Floats:
        out = np.empty((len(table.row), 4))
        out[:, _REACH], out[:, _STOP] = table.reach, table.stop_flow
        out[:, _COST] = np.where(table.stop_flow > 0, table.stop_flow * table.cost, 0.0)
        if self.acquisition_weight == "before":
            out[:, _PRICE] = table.reach * table.price
        else:  # paid on arrival, at the weight of the set that the edge leads to
            arrived = table.edge_child >= 0
            price = np.where(table.edge_group == FREE, 0.0, self.data.problem.prices[table.edge_group])
            paid = (table.edge_flow * price)[arrived]
            out[:, _PRICE] = tally(table.edge_child[arrived], paid, len(table.row))
        return out

    def outcome(self, rows: str, confidence: float) -> Outcome:
        """Estimates for the three targets."""
        final = self.sums[:, :, _STOP].sum(axis=1)
        mean = self.sums.mean(axis=0)
        before = mean[:, _REACH] + np.cumsum(mean[:, _STOP]) - mean[:, _STOP]
        if self.unbounded:
            return Outcome({}, reason="a recorded set has probability 0 by the model; raise 'min_propensity'")
        if mean[:, _STOP].sum() <= 0 or (before <= 0).any():
            return Outcome({}, reason=self._why_nothing())
        values, directions = self._linearise(mean, before)
        stacked = np.array(list(directions.values()))
        influence = np.einsum("itq,etq->ei", self.sums, stacked)
        if self.scores is not None:
            influence = influence + self.scores.influence(stacked)
        estimates = {}
        for (target, value), phi in zip(values.items(), influence, strict=True):
            centred = phi if self.normalize else phi - value
            estimates[target] = Estimate(value, centred, self.data.cluster, rows, confidence)
        learned = self.view.propensity.learned
        return Outcome(
            estimates,
            ess=effective_size(final, self.data.cluster),
            normalizer=float(final.mean()),
            normalizer_error=Estimate(1.0, final - final.mean(), self.data.cluster).std_error,
            normalizers=tuple(float(b) for b in before),
            clipped=self.clipped,
            largest_weight=self.largest_weight,
            error=("stacked" if self.scores is not None else "propensity as known") if learned else "influence",
        )

    def _linearise(self, mean: Floats, before: Floats) -> tuple[dict[str, float], dict[str, Floats]]:
        """Value of each target, and its derivative (T, 4) in the means of the sums."""
        acquisition, misclassification = np.zeros_like(mean), np.zeros_like(mean)
        if not self.normalize:
            acquisition[:, _PRICE] = misclassification[:, _COST] = 1.0
            paid, wrong = float(mean[:, _PRICE].sum()), float(mean[:, _COST].sum())
        else:
            final = mean[:, _STOP].sum()
            wrong = float(mean[:, _COST].sum() / final)
            misclassification[:, _COST] = 1 / final
            misclassification[:, _STOP] = -wrong / final
            step = mean[:, _PRICE] / before
            paid = float(step.sum())
            acquisition[:, _PRICE] = 1 / before
            acquisition[:, _REACH] = -step / before
            # weight that stopped earlier still counts in every later normaliser
            later = np.cumsum((step / before)[::-1])[::-1]
            acquisition[:-1, _STOP] = -later[1:]
        values = {"acquisition": paid, "misclassification": wrong, "total": paid + wrong}
        directions = {
            "acquisition": acquisition,
            "misclassification": misclassification,
            "total": acquisition + misclassification,
        }
        return values, directions

    def _why_nothing(self) -> str:
        if self.view.adjust.all():
            return "no row has every group recorded"
        return "no row records a set of groups with which the policy stops"
