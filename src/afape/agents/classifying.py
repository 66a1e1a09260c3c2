"""What the network agents share that predict the label themselves."""

from __future__ import annotations

from abc import abstractmethod
from typing import Self

from ..arrays import Bools, Floats, Ints
from ..data import Retrospective
from .episodes import Records, Visits
from .network_agent import NetworkAgent
from .training import SetWeights

__all__ = ["ClassifyingAgent"]


class ClassifyingAgent(NetworkAgent):
    """An agent whose network also predicts: policy and classifier in one."""

    arguments = "data"

    def fit(self, data: Retrospective, weights: SetWeights | None = None) -> Self:
        """Learn to acquire and to classify from these records; ``weights`` as of `DQN`."""
        return self._fit(Records(data, None, weights))

    def predict(self, values: Floats, acquired: Bools) -> Ints:
        """Label codes of shape (n,) from what was acquired."""
        return self.codes(self._outputs(values, acquired)[:, self.network_.layout.n_groups :], self.costs_)

    @staticmethod
    @abstractmethod
    def codes(endings: Floats, costs: Floats) -> Ints:
        """Label codes from the outputs about ending the run, and the costs indexed [true, predicted]."""

    def _end_costs(self, records: Records, ends: Visits) -> Floats:
        data = records.data
        return data.costs[data.labels[ends.row], self.predict(records.seen(ends.row, ends.acquired), ends.acquired)]
