"""What a walk runs on: rows, what is available in them, and the two models that are asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..agents.policy import Policy, ask_policy
from ..arrays import Bools, Floats, Ints
from ..classifiers import Classifier, ask_classifier
from ..data import Retrospective

__all__ = ["Answers", "Ground"]


class Answers(NamedTuple):
    """What policy and classifier say in a batch of states."""

    probability: Floats  # (m, G + 1) pi(a | S)
    blocked: Floats  # (m, G + 1) renormalised over what is available
    available: Bools  # (m, G)
    price: Floats  # (m,)
    cost: Floats  # (m,) NaN where neither policy stops


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
    """

    data: Retrospective
    values: Floats
    available: Bools
    start: Bools
    rooted: bool
    policy: Policy
    classifier: Classifier

    @staticmethod
    def recorded(data: Retrospective, policy: Policy, classifier: Classifier) -> Ground:
        """Walk over what each row has recorded."""
        free = data.problem.free
        rooted = not bool(data.recorded[:, free].all())
        start = np.zeros_like(data.recorded) if rooted else np.broadcast_to(free, data.recorded.shape)
        return Ground(data, data.values, data.recorded, start, rooted, policy, classifier)

    @staticmethod
    def everything(data: Retrospective, values: Floats, policy: Policy, classifier: Classifier) -> Ground:
        """Walk with every group available, over complete or completed values."""
        shape = data.recorded.shape
        start = np.broadcast_to(data.problem.free, shape)
        return Ground(data, values, np.ones(shape, dtype=bool), start, False, policy, classifier)

    @staticmethod
    def partly_free(data: Retrospective, policy: Policy, classifier: Classifier) -> Ground:
        """Walk from the free groups that each row happens to have."""
        start = data.problem.free & data.recorded
        return Ground(data, data.values, data.recorded, start, False, policy, classifier)

    def ask(self, row: Ints, acquired: Bools) -> Answers:
        """Ask policy and classifier in these states: one call of each."""
        data = self.data
        n_groups = acquired.shape[1]
        seen = np.where(acquired[:, data.column_group], self.values[row], np.nan)
        p = ask_policy(self.policy, seen, acquired, row)
        available = self.available[row]
        blocked = block(p, available)
        cost = np.full(len(row), np.nan)
        stops = (p[:, n_groups] > 0) | (blocked[:, n_groups] > 0)
        if stops.all():
            codes = ask_classifier(self.classifier, seen, acquired, row, len(data.classes))
            cost = data.costs[data.labels[row], codes]
        elif stops.any():
            codes = ask_classifier(self.classifier, seen[stops], acquired[stops], row[stops], len(data.classes))
            cost[stops] = data.costs[data.labels[row[stops]], codes]
        # A product and a sum, not a matrix product: the latter rounds differently for different chunk sizes.
        price = (p[:, :n_groups] * data.problem.prices).sum(axis=1)
        return Answers(p, blocked, available, price, cost)


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
