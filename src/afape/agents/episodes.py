"""Episodes on records with gaps: thousands advanced together, and the replay that keeps what they met."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Bools, Floats, Ints, every
from ..classifiers import Classifier, ask_classifier, check_classifier
from ..data import Retrospective
from .greedy import epsilon_greedy
from .training import SetWeights

__all__ = ["Records", "Replay", "Visits", "run_episodes"]


class Visits(NamedTuple):
    """States that episodes met, and what was done there."""

    row: Ints  # (m,)
    acquired: Bools  # (m, G)
    action: Ints  # (m,) group, or G to stop
    stop_cost: Floats  # (m,) cost had the episode stopped here; 0 where the agent classifies itself
    weight: Floats  # (m,) of the state
    next_weight: Floats  # (m,) of the state after the action


@dataclass(frozen=True, eq=False)
class Records:
    """Records that an agent learns from.

    Parameters
    ----------
    data : Retrospective
        Rows with gaps.
    classifier : Classifier or None
        Predicts where an episode stops; None where the agent does so itself.
    weights : callable or None
        ``weights(rows, sets)``: what a row that has these groups recorded stands for. None: every row for itself.
    """

    data: Retrospective
    classifier: Classifier | None
    weights: SetWeights | None

    def __post_init__(self) -> None:
        if not isinstance(self.data, Retrospective):
            raise TypeError(f"'data' must be an afape.Retrospective, not {type(self.data).__name__}.")
        if self.weights is not None and (isinstance(self.weights, type) or not callable(self.weights)):
            raise TypeError(
                f"'weights' must be a function of rows and sets, but is {type(self.weights).__name__}. Use "
                "afape.training_weights(data, missingness)."
            )

    @staticmethod
    def judged(data: Retrospective, classifier: Any, weights: SetWeights | None) -> Records:
        """Records with a classifier, which is checked too."""
        bare = Records(data, None, weights)
        return replace(bare, classifier=check_classifier(classifier, data))

    @cached_property
    def starts(self) -> Ints:
        """Rows that have every free group."""
        free = self.data.problem.free
        rows = np.flatnonzero(every(self.data.recorded[:, free])) if free.any() else np.arange(len(self.data))
        if len(rows) == 0:
            raise ValueError(
                "'data' must have rows with every free group recorded, because episodes start from these groups, but has "
                "none. Give the group that is missing a price, or leave it out of the problem."
            )
        return rows

    @cached_property
    def acquirable(self) -> Bools:
        """Costly groups that some row to start from has: nothing can be learned about the others."""
        return np.asarray(~self.data.problem.free & self.data.recorded[self.starts].any(axis=0))

    def seen(self, row: Ints, acquired: Bools) -> Floats:
        """Values in these states, NaN outside the acquired groups."""
        return np.where(acquired[:, self.data.column_group], self.data.values[row], np.nan)

    def stop_cost(self, row: Ints, acquired: Bools) -> Floats:
        """Cost of stopping in these states: one call of the classifier."""
        if self.classifier is None or len(row) == 0:
            return np.zeros(len(row))
        codes = ask_classifier(self.classifier, self.seen(row, acquired), acquired, row, len(self.data.classes))
        return self.data.costs[self.data.labels[row], codes]

    def weight(self, row: Ints, acquired: Bools) -> Floats:
        """Weight of these states, checked."""
        if self.weights is None or len(row) == 0:
            return np.ones(len(row))
        w = np.asarray(self.weights(row, acquired), dtype=float)
        if w.shape != row.shape or not np.isfinite(w).all() or (w < 0).any():
            raise ValueError(
                f"'weights' must return one finite number per state that is not negative, shape {row.shape}, but returned "
                f"shape {w.shape}{'' if w.shape != row.shape else f' with {w.min()!r} to {w.max()!r}'}. "
                "Use afape.training_weights(data, missingness)."
            )
        return w

    @cached_property
    def unit(self) -> float:
        """What the best constant prediction costs: costs are learned in this unit."""
        shares = np.bincount(self.data.labels, minlength=len(self.data.classes)) / len(self.data)
        constant = float(np.abs(shares @ self.data.costs).min())
        return constant or float(self.data.problem.prices.max()) or 1.0


def run_episodes(
    records: Records,
    action_values: Callable[[Floats, Bools], Floats],
    n_episodes: int,
    epsilon: float,
    rng: np.random.Generator,
) -> Visits:
    r"""Run blocked episodes side by side, epsilon-greedy: actions are limited to what the row has recorded.

    One call of the network and one of the classifier per step, for all episodes that still run.

    Rows that lack a group go other ways than rows that have it, so that rows met in S are no random sample of those that
    have S. Where states are weighted, they carry :math:`w_S \prod_t b(a_t) / b'(a_t)` with b the epsilon-greedy choice among
    all groups that are left and b' that among the recorded ones, as simulated runs do in the paper's IPW-Semi.
    """
    data, starts = records.data, records.starts
    n_groups = data.problem.n_groups
    row = rng.choice(starts, size=n_episodes, replace=n_episodes > len(starts))
    acquired, ratio = np.tile(data.problem.free, (n_episodes, 1)), np.ones(n_episodes)
    steps = []
    while len(row):
        left = ~acquired & records.acquirable
        q = action_values(records.seen(row, acquired), acquired)
        blocked = epsilon_greedy(q, left & data.recorded[row], epsilon)
        action = (blocked.cumsum(axis=1) > rng.random((len(row), 1))).argmax(axis=1)
        after, goes_on = acquired.copy(), action < n_groups
        after[goes_on, action[goes_on]] = True
        weight, next_weight = ratio * records.weight(row, acquired), np.ones(len(row))
        if records.weights is not None:
            line = np.arange(len(row))
            ratio = ratio * epsilon_greedy(q, left, epsilon)[line, action] / blocked[line, action]
            next_weight[goes_on] = ratio[goes_on] * records.weight(row[goes_on], after[goes_on])
        steps.append(Visits(row, acquired, action, records.stop_cost(row, acquired), weight, next_weight))
        row, acquired, ratio = row[goes_on], after[goes_on], ratio[goes_on]
    return Visits(*(np.concatenate(parts) for parts in zip(*steps, strict=True)))


class Replay:
    """A ring of visited states: the oldest leave first."""

    def __init__(self, size: int, n_groups: int) -> None:
        self.visits = Visits(
            np.zeros(size, dtype=np.intp),
            np.zeros((size, n_groups), dtype=bool),
            np.zeros(size, dtype=np.intp),
            *(np.zeros(size) for _ in range(3)),
        )
        self.size, self.filled, self._next = size, 0, 0

    def add(self, visits: Visits) -> None:
        """Keep these states; of more than fit, the last."""
        m = min(len(visits.row), self.size)
        place = (self._next + np.arange(m)) % self.size
        for kept, new in zip(self.visits, visits, strict=True):
            kept[place] = new[-m:]
        self._next = int((self._next + m) % self.size)
        self.filled = min(self.size, self.filled + m)
