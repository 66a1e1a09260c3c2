"""What a walk runs on: rows, what is available in them, the two models that are asked, and the table that it builds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..agents.policy import Policy, ask_policy
from ..arrays import Bools, Floats, Ints, every
from ..classifiers import Classifier, ask_classifier
from ..data import Retrospective
from ..outcomes import NO_OUTCOMES, OwnOutcomes
from .table import FREE, WalkTable

__all__ = ["Answers", "Ground", "Step", "TableBuilder", "block"]


class Answers(NamedTuple):
    """What policy and classifier say in a batch of states."""

    probability: Floats  # (m, G + 1) pi(a | S)
    blocked: Floats  # (m, G + 1) renormalised over what is available
    available: Bools  # (m, G)
    price: Floats  # (m,)
    cost: Floats  # (m,) NaN where neither policy stops
    predicted: Ints  # (m,) -1 where the classifier was not asked
    outcomes: Floats  # (m, O) NaN where neither policy stops


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
        What the walk may acquire.
    start : ndarray of bool, shape (n, G)
        Where each row starts.
    rooted : bool
        Whether the walk starts one level earlier, with nothing acquired and one forced edge that reveals all
        free groups: needed where a free group is not always available.
    policy, classifier
        The bound policy, and the classifier.
    predicts : bool
        Whether the classifier is asked in every state, or only where a run may stop.
    outcomes : OwnOutcomes
        Functions of the user's own, asked where a run may stop.
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

    @staticmethod
    def recorded(
        data: Retrospective,
        policy: Policy,
        classifier: Classifier,
        predicts: bool = False,
        outcomes: OwnOutcomes = NO_OUTCOMES,
    ) -> Ground:
        """Walk over what each row has recorded."""
        free = data.problem.free
        rooted = not bool(data.recorded[:, free].all())
        start = np.zeros_like(data.recorded) if rooted else np.broadcast_to(free, data.recorded.shape)
        return Ground(data, data.values, data.recorded, start, rooted, policy, classifier, predicts, outcomes)

    @staticmethod
    def everything(
        data: Retrospective,
        values: Floats,
        policy: Policy,
        classifier: Classifier,
        outcomes: OwnOutcomes = NO_OUTCOMES,
    ) -> Ground:
        """Walk with every group available, over complete or completed values."""
        shape = data.recorded.shape
        start = np.broadcast_to(data.problem.free, shape)
        available = np.ones(shape, dtype=bool)
        return Ground(data, values, available, start, False, policy, classifier, outcomes=outcomes)

    @staticmethod
    def partly_free(
        data: Retrospective, policy: Policy, classifier: Classifier, outcomes: OwnOutcomes = NO_OUTCOMES
    ) -> Ground:
        """Walk from the free groups that each row happens to have."""
        start = data.problem.free & data.recorded
        return Ground(data, data.values, data.recorded, start, False, policy, classifier, outcomes=outcomes)

    def ask(self, row: Ints, acquired: Bools) -> Answers:
        """Ask policy and classifier in these states: one call of each."""
        data = self.data
        n_groups = acquired.shape[1]
        seen = np.where(acquired[:, data.column_group], self.values[row], np.nan)
        p = ask_policy(self.policy, seen, acquired, row)
        available = self.available[row]
        blocked = block(p, available)
        cost, predicted = np.full(len(row), np.nan), np.full(len(row), -1, dtype=np.intp)
        stops = (p[:, n_groups] > 0) | (blocked[:, n_groups] > 0)
        if self.predicts or stops.all():
            predicted = ask_classifier(self.classifier, seen, acquired, row, len(data.classes))
            cost = data.costs[data.labels[row], predicted]
        elif stops.any():
            codes = ask_classifier(self.classifier, seen[stops], acquired[stops], row[stops], len(data.classes))
            predicted[stops], cost[stops] = codes, data.costs[data.labels[row[stops]], codes]
        outcomes = self.outcomes.ask(seen, acquired, data.labels[row], row, stops)
        # A product and a sum, not a matrix product: the latter rounds differently for different chunk sizes.
        price = (p[:, :n_groups] * data.problem.prices).sum(axis=1)
        return Answers(p, blocked, available, price, cost, predicted, outcomes)


def block(p: Floats, available: Bools) -> Floats:
    """Renormalise over what is available; stop where nothing wanted is.

    The blocked policy of the paper's Definition 1.
    """
    blocked = p.copy()
    blocked[:, :-1] *= available
    mass = blocked.sum(axis=1)
    nothing = mass == 0
    blocked[nothing, -1] = 1.0
    return np.asarray(blocked / np.where(nothing, 1.0, mass)[:, None])


class Step(NamedTuple):
    """Answers and wanted edges of one depth."""

    probability: Floats  # (m, G + 1); at a forced root the first column stands for the edge FREE
    blocked: Floats
    state: Ints  # (e,) state within this depth
    group: Ints  # (e,) column of ``probability``
    edge_available: Bools
    forced: bool
    free: Bools

    def target(self, acquired: Bools, edges: Ints) -> Bools:
        """Sets that these edges lead to."""
        target = acquired[self.state[edges]].copy()
        if self.forced:
            target |= self.free
        else:
            target[np.arange(len(edges)), self.group[edges]] = True
        return target


class TableBuilder:
    """One table in the making: `visit`, `stop`, `flow` and `lead` are called once per depth, in this order."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.columns: dict[str, list[NDArray[Any]]] = {name: [] for name in WalkTable.__annotations__}
        self.n_lines = 0
        self.depth = 0

    def visit(self, row: Ints, acquired: Bools, reach: Floats) -> Step:
        """Ask the models in these states and list their wanted edges."""
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
        """Nothing acquired, one forced edge of price 0, no question to anybody."""
        m = len(row)
        available = every(self.ground.available[row][:, self._free])
        p = np.zeros((m, acquired.shape[1] + 1))
        p[:, 0] = 1.0
        step = Step(
            p, p * available[:, None].astype(float), np.arange(m), np.zeros(m, np.intp), available, True, self._free
        )
        return step, np.zeros(m), np.full(m, np.nan)

    def stop(self, flow: Floats, blocked: Floats) -> None:
        """Flow that stops in each state of this depth."""
        self._add(stop_flow=flow, blocked_stop_flow=blocked)

    def flow(self, flow: Floats, blocked: Floats) -> None:
        """Flow over each wanted edge of this depth."""
        self._add(edge_flow=flow, edge_blocked_flow=blocked)

    def lead(self, edges: Ints, child: Ints) -> None:
        """Say which of the next depth's states these edges lead to."""
        column = np.full(len(self.columns["edge_flow"][-1]), -1, dtype=np.intp)
        column[edges] = child + self.n_lines
        self._add(edge_child=column)

    def abandon(self, keep: Bools) -> None:
        """Drop states of the next depth before they are visited."""
        place = np.where(keep, np.cumsum(keep) - 1, -1)
        child = self.columns["edge_child"][-1]
        inside = child >= 0
        moved = place[child[inside] - self.n_lines]
        child[inside] = np.where(moved >= 0, moved + self.n_lines, -1)

    def table(self, sampled: Ints | None = None) -> WalkTable:
        """Put the depths together."""
        self._add(sampled=np.array([], dtype=np.intp) if sampled is None else sampled)
        return WalkTable(**{name: np.concatenate(parts) for name, parts in self.columns.items()})

    def _add(self, **parts: NDArray[Any]) -> None:
        for name, part in parts.items():
            self.columns[name].append(part)
