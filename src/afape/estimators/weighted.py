"""Weighted estimators: row sums that are linear in the weights, and a smooth function of their means."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from scipy.sparse import csr_array

from ..arrays import Floats, Ints, effective_size, standard_error, tally, unique_sets
from ..nuisance.fitted import Evidence
from ..nuisance.propensity import StackedScores
from ..nuisance.weights import View, WeightedStates
from ..nuisance.worst_case import Ends
from ..walk import FREE, PartColumns, WalkTable
from .booking import Bookings, StateWeights
from .estimate import TARGETS, Estimate, Outcome
from .linear import DeferredParts, InfluenceParts, LinearParts, Origin, ReplicatedParts

__all__ = [
    "REACH",
    "STOP",
    "Flows",
    "Formula",
    "WeightedSums",
    "mean_weight_before",
    "state_parts",
    "weighted_sums",
    "why_nothing",
]

# The first two quantities of every formula: incoming and stopping flow, whose means are the normalisers.
REACH, STOP = 0, 1


class Ending(NamedTuple):
    """Lines of runs that end in unsupported sets, as parts."""

    left: csr_array  # (l, P) groups that may still be acquired
    label: csr_array  # (l, P) label of the row
    state: Ints  # (l,) where they end
    flow: Floats  # (l,)


class Flows:
    """What flows through the states of a table, where runs into unsupported sets end with the set they have.

    Attributes
    ----------
    reach : ndarray of shape (s,)
        r_S, incoming flow.
    own : ndarray of shape (s,)
        Flow that stops because the policy wants to.
    ended : ndarray of shape (s,), or 0
        Flow that ends because the next set is unsupported.
    stop : ndarray of shape (s,)
        Both together.
    cost : ndarray of shape (s,)
        Misclassification cost of all that stops, times its flow.
    """

    def __init__(self, table: WalkTable, prices: Floats, ends: Ends | None = None) -> None:
        self.table, self.prices, self.ends = table, prices, ends
        self.reach = self.own = self.stop = table.stop_flow
        self.reach = table.reach
        self.ended: Floats | float = 0.0
        self.cost = np.where(table.stop_flow > 0, table.stop_flow * table.cost, 0.0)
        if ends is not None:
            self.reach = np.where(ends.whole, 1.0, table.reach)
            self.own, self.ended = np.where(ends.whole, 0.0, table.stop_flow), ends.flow
            self.stop = self.own + ends.flow
            self.cost = np.where(ends.whole, 0.0, self.cost) + ends.cost

    def price(self, weight: str) -> Floats:
        """Price of the decision in each state times its flow ("before"), or of the one that led here ("after")."""
        table, ends = self.table, self.ends
        if weight == "before":
            paid = table.reach * table.price
        else:  # paid on arrival, at the weight of the set that the edge leads to
            arrived = table.edge_child >= 0
            price = np.where(table.edge_group == FREE, 0.0, self.prices[table.edge_group])
            paid = tally(table.edge_child[arrived], (table.edge_flow * price)[arrived], len(table.row))
        if ends is None:
            return paid
        last = ends.price if weight == "before" else ends.price + ends.paid
        return np.asarray(np.where(ends.whole, 0.0, paid) + last)

    @property
    def decided(self) -> Floats:
        """Flow that decides in each state."""
        return self.table.reach if self.ends is None else np.where(self.ends.whole, 0.0, self.table.reach)

    def lost(self, columns: PartColumns) -> Iterator[Ending]:
        """Runs that end because the next set is unsupported."""
        if self.ends is not None and len(self.ends.edges):
            edges = self.ends.edges
            yield Ending(*columns.lost(self.table, edges), self.table.edge_state[edges], self.ends.edge_flow)

    def whole(self, columns: PartColumns) -> Iterator[Ending]:
        """Rows that start in an unsupported set."""
        if self.ends is not None and self.ends.whole.any():
            states = np.flatnonzero(self.ends.whole)
            yield Ending(*columns.whole(self.table.row[states]), states, np.ones(len(states)))


def state_parts(table: WalkTable, flows: Flows, columns: PartColumns) -> csr_array:
    """Parts of what the runs in every state cost there, (s, P)."""
    n_states = len(table.row)

    def placed(flow: Floats, state: Ints) -> csr_array:
        return csr_array((flow, (state, np.arange(len(state)))), shape=(n_states, len(state)))

    stops = np.flatnonzero(flows.own)
    out = columns.decisions(table, flows.decided) + placed(flows.own[stops], stops) @ columns.stops(table, stops)
    for left, label, state, flow in (*flows.lost(columns), *flows.whole(columns)):
        out = out + placed(flow, state) @ (left + label)
    return csr_array(out)


class Formula(Protocol):
    r"""An estimator as quantities of states and a function of their weighted means.

    With :math:`m_{tq}` the mean over rows of :math:`\sum_{S: |S| = t} w_S q_S`, the estimate of a target is a function of
    m alone; its derivative in m gives influence values, normalisation and learned propensities included.
    """

    n_quantities: int

    def quantities(self, table: WalkTable, flows: Flows) -> Floats:
        """q_S of every state, shape (s, Q); columns REACH and STOP are the flows."""
        ...

    def linearise(self, mean: Floats) -> tuple[dict[str, float], dict[str, Floats]]:
        """Values of the targets at ``mean`` (T, Q), and their derivatives (T, Q)."""
        ...

    # A formula that also has ``blocks(table, flows, columns, n_depths) -> Iterator[Block]`` says the same of the parts that
    # the costs are made of; normaliser ``n_depths`` is the mean final weight. Without it there are costs but no parts.


def weighted_sums(
    evidence: Evidence, formula: Formula, *, tables: Iterable[WalkTable] | None = None, scored: bool | None = None
) -> WeightedSums:
    """Reduce the walk, or other ``tables``, by a formula, chunk by chunk.

    ``scored`` says whether influence values are wanted that know a learned propensity; default: not in replicates.
    """
    data, view, row_weight = evidence.data, evidence.view, evidence.fitted.row_weight
    assert view is not None
    wanted = not evidence.replicated if scored is None else scored
    scores = view.propensity.scores(row_weight) if wanted else None
    tally_ = _Tally(len(data), formula.n_quantities, row_weight, scores)
    for table in evidence.tables if tables is None else tables:
        weighted = view.weigh(table)
        weighted = weighted.only(row_weight[table.row[weighted.lines]] > 0)
        if not np.isfinite(weighted.weight).all():
            return WeightedSums(evidence, formula, tally_, unbounded=True)
        if len(weighted.lines):
            ends = None if evidence.ends is None else evidence.ends.of(table)
            tally_.add(table, weighted, formula.quantities(table, Flows(table, data.problem.prices, ends)))
    return WeightedSums(evidence, formula, tally_)


class _Tally:
    """Sums of weighted quantities per row and depth, and figures about the weights."""

    def __init__(self, n_rows: int, n_quantities: int, row_weight: Floats, scores: StackedScores | None) -> None:
        self.sums = np.zeros((n_rows, 1, n_quantities))  # grows with the depth of the walk
        self.row_weight, self.scores = row_weight, scores
        self.clipped = 0
        self.largest_weight = 0.0

    def add(self, table: WalkTable, weighted: WeightedStates, quantities: Floats) -> None:
        """Add the states of a chunk."""
        lines, row, depth = weighted.lines, table.row[weighted.lines], table.depth[weighted.lines]
        quantities = quantities[lines] * weighted.weight[:, None]
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
            self.scores.add(row, weighted.parts, depth, moving)
        if weighted.clipped.any():  # sets of a row, not states: with adjusted groups many states share one set
            kinds = unique_sets(weighted.sets)[1]
            pairs = np.column_stack([row, kinds[weighted.set_of]])[weighted.clipped]
            self.clipped += len(np.unique(pairs, axis=0))
        self.largest_weight = max(self.largest_weight, float(weighted.weight.max()))


@dataclass(frozen=True, eq=False)
class WeightedSums:
    """A formula in a view, reduced to sums per row and depth."""

    evidence: Evidence
    formula: Formula
    tally: _Tally
    unbounded: bool = False  # whether a recorded set has probability 0

    @cached_property
    def _mean(self) -> Floats:
        weight = self.tally.row_weight
        return np.asarray(np.einsum("i,itq->tq", weight, self.tally.sums) / weight.sum())

    @property
    def reason(self) -> str:
        """Why there is no answer; empty where there is one."""
        view = self.evidence.view
        assert view is not None
        if view.refusal:
            return view.refusal
        if self.unbounded:
            return "a recorded set has probability 0 by the model; raise 'min_propensity'"
        return why_nothing(view) if (mean_weight_before(self._mean) <= 0).any() else ""

    @property
    def values(self) -> dict[str, float]:
        """Value of each target."""
        return dict.fromkeys(TARGETS, float("nan")) if self.reason else self.formula.linearise(self._mean)[0]

    def outcome(self, rows: str, confidence: float) -> Outcome:
        """Estimates of the targets with their influence values."""
        if self.reason:
            return Outcome({}, reason=self.reason)
        data, weight, sums = self.evidence.data, self.tally.row_weight, self.tally.sums
        mean_weight = np.zeros_like(self._mean)
        mean_weight[:, STOP] = 1.0  # the direction of the mean final weight
        values, influence = self.linearised
        (of_weight,) = self._influence({"mean weight": mean_weight})
        estimates = {
            target: Estimate(value, phi, data.cluster, rows, confidence)
            for (target, value), phi in zip(values.items(), influence, strict=True)
        }
        final, used = sums[:, :, STOP].sum(axis=1), weight > 0
        cluster = None if data.cluster is None else data.cluster[used]
        before = mean_weight_before(self._mean)
        return Outcome(
            estimates,
            ess=effective_size(final[used], cluster),
            normalizer=float(before[-1]),
            normalizer_error=standard_error(of_weight, data.cluster),
            normalizers=tuple(float(b) for b in before),
            clipped=self.tally.clipped,
            largest_weight=self.tally.largest_weight,
            error_method=self._error_method,
        )

    @property
    def linearised(self) -> tuple[dict[str, float], Floats]:
        """Values, and influence values (E, n), the learning of the propensity included where it has scores."""
        values, directions = self.formula.linearise(self._mean)
        return values, self._influence(directions)

    def _influence(self, directions: dict[str, Floats]) -> Floats:
        return self.influence_of(np.array(list(directions.values())))

    def influence_of(self, directions: Floats, booked: Bookings | None = None) -> Floats:
        """Influence values (E, n) of estimates with derivatives (E, T, Q), and what was booked beside them."""
        weight, total = self.tally.row_weight, self.tally.row_weight.sum()
        # Plain estimates are means, normalised ones have mean-zero directions; centring serves both.
        phi = np.einsum("itq,etq->ei", self.tally.sums, directions)
        if booked is not None:
            phi += booked.rows.T
        centre = phi @ weight / total
        influence = weight * (phi - centre[:, None])
        if self.tally.scores is not None:
            more = None if booked is None or booked.slopes is None else booked.slopes.found
            influence = influence + self.tally.scores.influence(directions, more)
        return np.asarray(influence * (len(weight) / total))

    @property
    def parted(self) -> bool:
        """Whether the parts of the costs are known: not where action values are known of the costs alone."""
        known = self.evidence.values is None or self.evidence.part_values is not None
        return known and hasattr(self.formula, "blocks")

    def parts(self, rows: str, confidence: float) -> LinearParts | None:
        """The parts of the costs; None where they are not known."""
        if not self.parted:
            return None
        booked, origin = self.booked(), Origin(self.evidence.data.cluster, rows, confidence)
        if self.evidence.replicated:
            return ReplicatedParts(booked.values, origin)
        return InfluenceParts(booked.values, self.part_influence(booked), origin)

    def later(self, rows: str, confidence: float) -> LinearParts | None:
        """The same, computed when they are asked for; until then the walk, its weights and its action values are kept."""
        if not self.parted or self.evidence.replicated:
            return self.parts(rows, confidence)
        evidence = replace(self.evidence, fitted=replace(self.evidence.fitted, runs={}))
        kept = replace(self, evidence=evidence)
        return DeferredParts(lambda: kept.parts(rows, confidence))  # type: ignore[arg-type, return-value]

    def booked(self) -> Bookings:
        """Sums of the parts, in a further pass over the tables with the normalisers that are known by now."""
        evidence, booked = self.evidence, self.bookings()
        assert evidence.view is not None
        for table in evidence.tables:
            weighted = evidence.view.weigh(table)
            weighted = weighted.only(self.tally.row_weight[table.row[weighted.lines]] > 0)
            weights = StateWeights(len(table.row), weighted)
            ends = None if evidence.ends is None else evidence.ends.of(table)
            flows = Flows(table, evidence.data.problem.prices, ends)
            blocks = self.formula.blocks(table, flows, evidence.columns, self.tally.sums.shape[1])  # type: ignore[attr-defined]
            for block in blocks:
                booked.add(block, weights)
            booked.close(weights)
        return booked

    def bookings(self) -> Bookings:
        """Nothing booked yet."""
        before = mean_weight_before(self._mean)
        normalisers = before if self.evidence.recipe.normalize else np.ones_like(before)
        return Bookings(normalisers, self.tally.row_weight, self.evidence.columns.width, self.tally.scores)

    def part_influence(self, booked: Bookings) -> Floats:
        """Influence values (n, P) of what was booked."""
        pulls = booked.pulls(self.tally.sums.shape[1:], self.evidence.recipe.normalize)
        return self.influence_of(pulls, booked).T

    @property
    def _error_method(self) -> str:
        view = self.evidence.view
        if view is None or not view.propensity.learned:
            return "influence"
        scores = self.tally.scores
        return "stacked" if scores is not None and scores.whole else "propensity as known"


def why_nothing(view: View) -> str:
    """Why there is no estimate."""
    if view.adjust.all():
        return "no row has every group recorded"
    return "no row records a set of groups with which the policy stops"


def mean_weight_before(mean: Floats) -> Floats:
    """Mean weight before each decision, and last the mean final weight, shape (T + 1,).

    A trajectory that has stopped keeps its last weight.
    """
    stopped = np.concatenate([[0.0], np.cumsum(mean[:, STOP])])
    return np.asarray(np.append(mean[:, REACH], 0.0) + stopped)
