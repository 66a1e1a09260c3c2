"""Episodes advanced together as arrays: what both environments are made of."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..agents.learned import check_stopper
from ..agents.sb3 import observation
from ..arrays import Bools, Floats, Ints
from ..classifiers import ask_classifier
from ..data import Retrospective

__all__ = ["Episodes", "Outcome"]


class Outcome(NamedTuple):
    """What one step did to the episodes that took it."""

    reward: Floats  # minus the price, or minus the misclassification cost at the end
    ended: Bools
    blocked: Bools  # asked for what the row does not have, or has already: ended as if stopped


class Episodes:
    """Episodes on records, one per place.

    Parameters
    ----------
    data : Retrospective
        Each episode runs on one of its rows.
    classifier
        Predicts where an episode stops.
    size : int
        Episodes at a time.
    """

    def __init__(self, data: Any, classifier: Any, size: int) -> None:
        self.data = checked_data(data)
        self.classifier = check_stopper(classifier, self.data)
        self.row = np.zeros(size, dtype=np.intp)
        self.acquired = np.zeros((size, self.data.problem.n_groups), dtype=bool)

    def start(self, places: Ints, rows: Ints) -> None:
        """Start these episodes on these rows, with the free groups that the rows have."""
        self.row[places] = rows
        self.acquired[places] = self.data.recorded[rows] & self.data.problem.free

    @property
    def values(self) -> Floats:
        """What the agent sees, NaN outside the acquired groups."""
        return np.where(self.acquired[:, self.data.column_group], self.data.values[self.row], np.nan)

    def observe(self) -> NDArray[np.float32]:
        """Values, 0 where unknown, followed by 1 for each acquired group."""
        return np.asarray(observation(self.values, self.acquired))

    def masks(self) -> Bools:
        """Actions that are open: recorded groups that are not acquired, and stopping."""
        open_groups = self.data.recorded[self.row] & ~self.acquired
        return np.column_stack([open_groups, np.ones(len(self.row), dtype=bool)])

    def act(self, places: Ints, actions: Ints) -> Outcome:
        """Take one action in each of these episodes; one call of the classifier for all that end."""
        n_groups = self.acquired.shape[1]
        allowed = self.masks()[places, actions]
        ended = (actions == n_groups) | ~allowed
        reward = np.zeros(len(places))
        on = np.flatnonzero(~ended)
        reward[on] = -self.data.problem.prices[actions[on]]
        self.acquired[places[on], actions[on]] = True
        if ended.any():
            reward[ended] = -self._stop_cost(places[ended])
        return Outcome(reward, ended, ~allowed)

    def _stop_cost(self, places: Ints) -> Floats:
        data, row = self.data, self.row[places]
        codes = ask_classifier(self.classifier, self.values[places], self.acquired[places], row, len(data.classes))
        return np.asarray(data.costs[data.labels[row], codes])


def checked_data(data: Any) -> Retrospective:
    """Refuse an environment without rows."""
    if data is None:
        raise ValueError(
            "'data' must be given before an environment can be reset: "
            "AcquisitionEnv(data, classifier), or gymnasium.make(afape.gym.ID, data=data, classifier=classifier)."
        )
    if not isinstance(data, Retrospective):
        raise TypeError(f"'data' must be an afape.Retrospective, not {type(data).__name__}.")
    if not len(data):
        raise ValueError("'data' must have rows for episodes to run on, but is empty.")
    return data


def checked_actions(actions: Any, shape: tuple[int, ...], n_groups: int) -> Ints:
    """Refuse what is not one action per episode."""
    array = np.asarray(actions)
    if array.shape != shape or array.dtype.kind not in "iu" or (array < 0).any() or (array > n_groups).any():
        raise ValueError(
            f"'action' must be a group index, or {n_groups} to stop, shape {shape}, but is {array.tolist()!r}. "
            "info['action_mask'] tells which are open."
        )
    return array.astype(np.intp).reshape(-1)
