"""Inputs of a walk, and the builder of its table.

`Ground.ask` asks the policy, and the classifier where a run may stop (everywhere if ``predicts``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays import Bools, Floats, Ints, every, merge
from ..agents.policy import Policy, ask_policy
from ..classifiers import Classifier, ask_classifier
from ..data.retrospective import Retrospective
from .outcomes import NO_OUTCOMES, OwnOutcomes
from .table import FREE, WalkTable

__all__ = ["Answers", "Ground", "Step", "TableBuilder", "block"]


class Answers(NamedTuple):
    """Answers of policy and classifier in m states."""

    probability: Floats  # (m, G + 1) pi(a | S)
    blocked: Floats  # (m, G + 1) pi renormalised over the available groups
    available: Bools  # (m, G)
    price: Floats  # (m,) expected price of the next decision
    cost: Floats  # (m,) NaN if neither the policy nor the blocked policy stops
    predicted: Ints  # (m,) -1 if the classifier was not asked
    outcomes: Floats  # (m, O) NaN if neither the policy nor the blocked policy stops


class Copies(NamedTuple):
    """Imputed copies of rows. Copies of one row have equal values in the groups that are shown."""

    origin: Ints  # (n,) original row of each copy
    shown: Bools  # (n, G)

    def distinct(self, row: Ints, acquired: Bools) -> tuple[Ints, Ints]:
        """Return the indices of states that look different, (u,), and the index of each state among them, (m,)."""
        same = every(self.shown[row] | ~acquired)
        alike, others = np.flatnonzero(same), np.flatnonzero(~same)
        first, inverse = merge(self.origin[row[alike]], acquired[alike])
        place = np.empty(len(row), dtype=np.intp)
        place[alike], place[others] = inverse, len(first) + np.arange(len(others))
        return np.concatenate([alike[first], others]), place


@dataclass(frozen=True, eq=False)
class Ground:
    """Rows, availability, policy and classifier.

    Parameters
    ----------
    data : Retrospective
        Supplies labels, prices, costs and the columns of the groups.
    values : ndarray of shape (n, d)
        Values that an acquisition reveals.
    available : ndarray of bool, shape (n, G)
        Groups that the walk can acquire.
    start : ndarray of bool, shape (n, G)
        Set in which each row starts.
    rooted : bool
        True if the walk starts one level earlier, with an empty set and one forced edge that reveals all free groups. This
        is needed if a free group is not always available.
    policy, classifier
        The bound policy, and the classifier.
    predicts : bool
        True if the classifier is asked in every state, False if only where a run may stop.
    outcomes : OwnOutcomes
        The user's outcome functions, asked where a run may stop.
    everywhere : bool
        True if classifier and outcomes are asked in every state, because runs within a smaller budget may stop there.
    copies : Copies, optional
        Rows that look equal until a hidden group is acquired; such states are asked once.
    """

    data: Retrospective
    values: Floats
    available: Bools
    start: Bools
    rooted: bool
    policy: Policy
    classifier: Classifier
    predicts: bool = False
    outcomes: OwnOutcomes = NO_OUTCOMES
    copies: Copies | None = None
    everywhere: bool = False

    @staticmethod
    def recorded(
        data: Retrospective,
        policy: Policy,
        classifier: Classifier,
        predicts: bool = False,
        outcomes: OwnOutcomes = NO_OUTCOMES,
        everywhere: bool = False,
    ) -> Ground:
        """Walk over the recorded groups of each row."""
        free = data.problem.free
        rooted = not bool(data.recorded[:, free].all())
        start = np.zeros_like(data.recorded) if rooted else np.broadcast_to(free, data.recorded.shape)
        return Ground(
            data,
            data.values,
            data.recorded,
            start,
            rooted,
            policy,
            classifier,
            predicts,
            outcomes,
            everywhere=everywhere,
        )

    @staticmethod
    def everything(
        data: Retrospective,
        values: Floats,
        policy: Policy,
        classifier: Classifier,
        outcomes: OwnOutcomes = NO_OUTCOMES,
        copies: Copies | None = None,
    ) -> Ground:
        """Walk with all groups available, over complete or imputed values."""
        shape = data.recorded.shape
        start = np.broadcast_to(data.problem.free, shape)
        available = np.ones(shape, dtype=bool)
        return Ground(data, values, available, start, False, policy, classifier, outcomes=outcomes, copies=copies)

    @staticmethod
    def partly_free(
        data: Retrospective, policy: Policy, classifier: Classifier, outcomes: OwnOutcomes = NO_OUTCOMES
    ) -> Ground:
        """Walk over the recorded groups, starting from the free groups that the row has."""
        start = data.problem.free & data.recorded
        return Ground(data, data.values, data.recorded, start, False, policy, classifier, outcomes=outcomes)

    def ask(self, row: Ints, acquired: Bools) -> Answers:
        """Ask policy and classifier in these states, with one call of each; states that look equal are asked once."""
        if self.copies is None:
            return self._ask(row, acquired)
        first, place = self.copies.distinct(row, acquired)
        return Answers(*(column[place] for column in self._ask(row[first], acquired[first])))  # type: ignore[arg-type]

    def _ask(self, row: Ints, acquired: Bools) -> Answers:
        data = self.data
        n_groups = acquired.shape[1]
        seen = np.where(acquired[:, data.column_group], self.values[row], np.nan)
        p = ask_policy(self.policy, seen, acquired, row)
        available = self.available[row]
        blocked = block(p, available)
        cost, predicted = np.full(len(row), np.nan), np.full(len(row), -1, dtype=np.intp)
        stops = (p[:, n_groups] > 0) | (blocked[:, n_groups] > 0) | self.everywhere
        if self.predicts or stops.all():
            predicted = ask_classifier(self.classifier, seen, acquired, row, data.costs.shape[1])
            cost = data.costs[data.labels[row], predicted]
        elif stops.any():
            codes = ask_classifier(self.classifier, seen[stops], acquired[stops], row[stops], data.costs.shape[1])
            predicted[stops], cost[stops] = codes, data.costs[data.labels[row[stops]], codes]
        outcomes = self.outcomes.ask(seen, acquired, data.labels[row], row, stops)
        # A product and a sum, not a matrix product: the latter rounds differently for different chunk sizes.
        price = (p[:, :n_groups] * data.problem.prices).sum(axis=1)
        return Answers(p, blocked, available, price, cost, predicted, outcomes)


def block(p: Floats, available: Bools) -> Floats:
    """Renormalise probabilities (m, G + 1) over the available groups (m, G); stop if none of the wanted is available.

    This is the blocked policy of the paper's Definition 1.
    """
    blocked = p.copy()
    blocked[:, :-1] *= available
    mass = blocked.sum(axis=1)
    nothing = mass == 0
    blocked[nothing, -1] = 1.0
    return np.asarray(blocked / np.where(nothing, 1.0, mass)[:, None])


class Step(NamedTuple):
    """Answers and wanted edges of one depth, with m states and e edges."""

    probability: Floats  # (m, G + 1); at a forced root the first column is the edge FREE
    blocked: Floats  # (m, G + 1)
    state: Ints  # (e,) state within this depth
    group: Ints  # (e,) column of ``probability``
    edge_available: Bools  # (e,)
    forced: bool  # True at a forced root
    free: Bools  # (G,)

    def target(self, acquired: Bools, edges: Ints) -> Bools:
        """Return the sets that these edges lead to, shape (len(edges), G)."""
        target = acquired[self.state[edges]].copy()
        if self.forced:
            target |= self.free
        else:
            target[np.arange(len(edges)), self.group[edges]] = True
        return target


class TableBuilder:
    """Builds one table; for each depth, call `visit`, `stop`, `flow` and `lead` once, in this order."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.columns: dict[str, list[NDArray[Any]]] = {name: [] for name in WalkTable.__annotations__}
        self.n_lines = 0
        self.depth = 0

    def visit(self, row: Ints, acquired: Bools, reach: Floats) -> Step:
        """Ask policy and classifier in these states, and add the states and their wanted edges."""
        forced = self.ground.rooted and self.depth == 0
        if forced:
            step, price, cost = self._root(row, acquired)
            predicted = np.full(len(row), -1, dtype=np.intp)
            outcomes = np.full((len(row), len(self.ground.outcomes)), np.nan)
        else:
            answers = self.ground.ask(row, acquired)
            state, group = np.nonzero(answers.probability[:, :-1] > 0)
            available = answers.available[state, group]
            step = Step(answers.probability, answers.blocked, state, group, available, False, self._free)
            price, cost = answers.price, answers.cost
            predicted, outcomes = answers.predicted, answers.outcomes
        edges = step.state
        probability = step.probability[edges, step.group]
        self._add(row=row, acquired=acquired, reach=reach, price=price, cost=cost)
        self._add(predicted=predicted, outcomes=outcomes)
        self._add(depth=np.full(len(row), self.depth), stop=step.probability[:, -1])
        self._add(edge_state=edges + self.n_lines, edge_probability=probability)
        self._add(edge_group=np.full(len(edges), FREE) if forced else step.group)
        self._add(edge_available=step.edge_available)
        self.n_lines += len(row)
        self.depth += 1
        return step

    @property
    def _free(self) -> Bools:
        return self.ground.data.problem.free

    def _root(self, row: Ints, acquired: Bools) -> tuple[Step, Floats, Floats]:
        """Root state: an empty set and one forced edge of price 0; neither policy nor classifier is asked."""
        m = len(row)
        available = every(self.ground.available[row][:, self._free])
        p = np.zeros((m, acquired.shape[1] + 1))
        p[:, 0] = 1.0
        step = Step(
            p, p * available[:, None].astype(float), np.arange(m), np.zeros(m, np.intp), available, True, self._free
        )
        return step, np.zeros(m), np.full(m, np.nan)

    def stop(self, flow: Floats, blocked: Floats) -> None:
        """Add the flow that stops in each state of this depth."""
        self._add(stop_flow=flow, blocked_stop_flow=blocked)

    def flow(self, flow: Floats, blocked: Floats) -> None:
        """Add the flow over each wanted edge of this depth."""
        self._add(edge_flow=flow, edge_blocked_flow=blocked)

    def lead(self, edges: Ints, child: Ints) -> None:
        """Add the states of the next depth that these edges lead to."""
        column = np.full(len(self.columns["edge_flow"][-1]), -1, dtype=np.intp)
        column[edges] = child + self.n_lines
        self._add(edge_child=column)

    def abandon(self, keep: Bools) -> None:
        """Drop states of the next depth that are not in ``keep``, before they are visited."""
        place = np.where(keep, np.cumsum(keep) - 1, -1)
        child = self.columns["edge_child"][-1]
        inside = child >= 0
        moved = place[child[inside] - self.n_lines]
        child[inside] = np.where(moved >= 0, moved + self.n_lines, -1)

    def table(self, sampled: Ints | None = None) -> WalkTable:
        """Return the table of all depths."""
        self._add(sampled=np.array([], dtype=np.intp) if sampled is None else sampled)
        return WalkTable(**{name: np.concatenate(pieces) for name, pieces in self.columns.items()})

    def _add(self, **columns: NDArray[Any]) -> None:
        for name, column in columns.items():
            self.columns[name].append(column)
