"""Episodes that run in parallel as arrays; both environments use them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arguments import check_mapping, shown
from .._arrays import Bools, Floats, Ints
from ..agents.learned_agent import check_training_classifier
from ..agents.sb3 import observation
from ..classifiers import ask_classifier
from ..data.retrospective import Retrospective, check_records

__all__ = ["Effect", "Episodes", "checked_actions", "checked_options"]


class Effect(NamedTuple):
    """Effect of one step on the m episodes that took it."""

    reward: Floats  # (m,) minus the price; at the end, minus the misclassification cost
    ended: Bools  # (m,)
    blocked: Bools  # (m,) the group was not recorded or already acquired, so the episode ended


class Episodes:
    """Episodes on records, in numbered places.

    Parameters
    ----------
    data : Retrospective
        Each episode runs on one of its rows.
    classifier
        Predicts the label where an episode stops.
    size : int
        Number of places, episodes that run at a time.
    """

    def __init__(self, data: Any, classifier: Any, size: int) -> None:
        self.data = _checked_data(data)
        self.classifier = check_training_classifier(classifier, self.data)
        self.row = np.zeros(size, dtype=np.intp)
        self.acquired = np.zeros((size, self.data.problem.n_groups), dtype=bool)

    def draw(self, rng: np.random.Generator, size: int) -> Ints:
        """Draw rows at random, in proportion to their weights if they have weights; (size,)."""
        n, weight = len(self.data), self.data.weight
        if weight is None:
            return np.asarray(rng.integers(n, size=size), dtype=np.intp)
        return np.asarray(rng.choice(n, size=size, p=weight / weight.sum()), dtype=np.intp)

    def start(self, places: Ints, rows: Ints) -> None:
        """Start episodes in these places on these rows, with the free groups that the rows have."""
        self.row[places] = rows
        self.acquired[places] = self.data.recorded[rows] & self.data.problem.free

    @property
    def values(self) -> Floats:
        """Values that the agent sees, (size, d), NaN outside the acquired groups."""
        return np.where(self.acquired[:, self.data.column_group], self.data.values[self.row], np.nan)

    def observe(self) -> NDArray[np.float32]:
        """Observations, (size, d + G): values, 0 where unknown, then 1 for each acquired group."""
        return np.asarray(observation(self.values, self.acquired))

    def masks(self) -> Bools:
        """True for allowed actions, (size, G + 1): recorded groups that are not acquired, and stopping."""
        open_groups = self.data.recorded[self.row] & ~self.acquired
        return np.column_stack([open_groups, np.ones(len(self.row), dtype=bool)])

    def act(self, places: Ints, actions: Ints) -> Effect:
        """Take one action in each of these episodes. The classifier is called once, for all that end."""
        n_groups = self.acquired.shape[1]
        allowed = self.masks()[places, actions]
        ended = (actions == n_groups) | ~allowed
        reward = np.zeros(len(places))
        on = np.flatnonzero(~ended)
        reward[on] = -self.data.problem.prices[actions[on]]
        self.acquired[places[on], actions[on]] = True
        if ended.any():
            reward[ended] = -self._stop_cost(places[ended])
        return Effect(reward, ended, ~allowed)

    def _stop_cost(self, places: Ints) -> Floats:
        data, row = self.data, self.row[places]
        codes = ask_classifier(self.classifier, self.values[places], self.acquired[places], row, len(data.classes))
        return np.asarray(data.costs[data.labels[row], codes])


def _checked_data(data: Any) -> Retrospective:
    if data is None:
        raise ValueError(
            "'data' must be given before an environment can be reset: "
            "AcquisitionEnv(data, classifier), or gymnasium.make(afape.gym.ID, data=data, classifier=classifier)."
        )
    if not len(check_records(data)):
        raise ValueError("'data' must have rows for episodes to run on, but is empty.")
    if not data.labelled.all():
        raise ValueError("'data' must have all labels, because episodes end with a cost: use data.with_labels().")
    return data  # type: ignore[no-any-return]


def checked_options(options: Any) -> dict[str, Any]:
    """Return the options of ``reset`` as a dict."""
    return {} if options is None else check_mapping("options", options, "from names to values", empty=True)


def checked_actions(argument: str, actions: Any, shape: tuple[int, ...], n_groups: int) -> Ints:
    """Return the actions as an array; raise an error if there is not one valid action per episode."""
    try:
        array = np.asarray(actions)
    except Exception:  # numpy calls the user's objects
        array = np.array(None)
    if array.shape != shape or array.dtype.kind not in "iu" or (array < 0).any() or (array > n_groups).any():
        raise ValueError(
            f"{argument!r} must be a group index, or {n_groups} to stop, shape {shape}, but is {shown(actions)}. "
            "info['action_mask'] shows the allowed actions."
        )
    return array.astype(np.intp).reshape(-1)
