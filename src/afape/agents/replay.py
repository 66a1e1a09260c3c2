"""Episodes on records with gaps, run in parallel, and the replay buffer that keeps the visited states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .._arguments import check_takes
from .._arrays import Bools, Floats, Ints, every, tally
from ..classifiers import Classifier, ask_classifier, check_classifier
from ..data.retrospective import Retrospective, check_records
from .policy import epsilon_greedy
from .settings import SetWeights

__all__ = ["Records", "Replay", "Visits", "run_episodes"]


class Visits(NamedTuple):
    """States that episodes visited, and the actions taken there."""

    row: Ints  # (m,)
    acquired: Bools  # (m, G)
    action: Ints  # (m,) group, or G to stop
    stop_cost: Floats  # (m,) cost of stopping here; 0 if the agent itself classifies
    weight: Floats  # (m,) weight of the state
    next_weight: Floats  # (m,) weight of the state after the action


@dataclass(frozen=True, eq=False)
class Records:
    """Records that an agent learns from.

    Parameters
    ----------
    data : Retrospective
        Rows with gaps.
    classifier : Classifier or None
        Predicts the label where an episode stops; None if the agent itself predicts it.
    weights : callable or None
        ``weights(rows, sets)``: weight of a row that has these groups recorded. None: weight 1.
    starts : ndarray of int
        Rows that have every free group; episodes start in these.
    acquirable : ndarray of bool, shape (G,)
        Costly groups that some row in ``starts`` has. Nothing can be learned about other groups.
    unit : float
        Cost of the best constant prediction; costs are learned in this unit.
    """

    data: Retrospective
    classifier: Classifier | None
    weights: SetWeights | None
    starts: Ints
    acquirable: Bools
    unit: float

    @staticmethod
    def of(data: Retrospective, classifier: Classifier | None, weights: SetWeights | None) -> Records:
        """Check the arguments, and find where episodes start and which groups they can acquire."""
        if not check_records(data).labelled.all():
            if weights is not None:
                raise ValueError(
                    "'weights' are functions of the rows, so 'data' must have all labels: use data.with_labels()."
                )
            data = data.with_labels()
        if weights is not None and (isinstance(weights, type) or not callable(weights)):
            raise TypeError(
                f"'weights' must be a function of rows and sets, but is {type(weights).__name__}. Use "
                "afape.optimisation.training_weights(data, missingness)."
            )
        if weights is not None:
            check_takes("weights", weights, "rows, sets")
        free = data.problem.free
        starts = np.flatnonzero(every(data.recorded[:, free])) if free.any() else np.arange(len(data))
        if len(starts) == 0:
            raise ValueError(
                "'data' must have rows with every free group recorded, because episodes start from these groups, but has "
                "none. Set a price for the group with gaps, or leave it out of the problem."
            )
        acquirable = np.asarray(~free & data.recorded[starts].any(axis=0))
        shares = tally(data.labels, data.row_weight, len(data.classes)) / data.row_weight.sum()
        constant = float(np.abs(shares @ data.costs).min())
        unit = constant or float(data.problem.prices.max()) or 1.0
        return Records(data, classifier, weights, starts, acquirable, unit)

    @staticmethod
    def with_classifier(data: Retrospective, classifier: Any, weights: SetWeights | None) -> Records:
        """Return records with a classifier, which is checked."""
        check_records(data)
        return Records.of(data, check_classifier(classifier, data), weights)

    def drawn_starts(self, size: int, rng: np.random.Generator) -> Ints:
        """Draw rows that episodes start in, (size,), in proportion to their weights."""
        if self.data.weight is None:
            return np.asarray(rng.choice(self.starts, size=size, replace=size > len(self.starts)))
        weight = self.data.weight[self.starts]
        return np.asarray(rng.choice(self.starts, size=size, p=weight / weight.sum()))

    def seen(self, row: Ints, acquired: Bools) -> Floats:
        """Values in these states, (m, d), NaN outside the acquired groups."""
        return np.where(acquired[:, self.data.column_group], self.data.values[row], np.nan)

    def stop_cost(self, row: Ints, acquired: Bools) -> Floats:
        """Cost of stopping in these states, (m,), by one call of the classifier."""
        if self.classifier is None or len(row) == 0:
            return np.zeros(len(row))
        codes = ask_classifier(self.classifier, self.seen(row, acquired), acquired, row, len(self.data.classes))
        return self.data.costs[self.data.labels[row], codes]

    def weight(self, row: Ints, acquired: Bools) -> Floats:
        """Weights of these states, (m,), checked."""
        if self.weights is None or len(row) == 0:
            return np.ones(len(row))
        w = np.array(self.weights(row.copy(), acquired.copy()), dtype=float)
        if w.shape != row.shape or not np.isfinite(w).all() or (w < 0).any():
            raise ValueError(
                f"'weights' must return one finite number per state that is not negative, shape {row.shape}, but returned "
                f"shape {w.shape}{'' if w.shape != row.shape else f' with {w.min()!r} to {w.max()!r}'}. "
                "Use afape.optimisation.training_weights(data, missingness)."
            )
        return w


def run_episodes(
    records: Records,
    action_values: Callable[[Floats, Bools], Floats],
    n_episodes: int,
    epsilon: float,
    rng: np.random.Generator,
) -> Visits:
    r"""Run blocked, epsilon-greedy episodes in parallel: only recorded groups can be acquired.

    Each step calls the network once and the classifier once, for all episodes that still run.

    Rows that lack a group take other paths than rows that have it, so the rows that visit S are not a random sample of the
    rows that have S. If states are weighted, their weight is :math:`w_S \prod_t b(a_t) / b'(a_t)`, as for simulated runs in
    the paper's IPW-Semi: b is the epsilon-greedy policy over all groups that are left, b' over the recorded ones.
    """
    data = records.data
    n_groups = data.problem.n_groups
    row = records.drawn_starts(n_episodes, rng)
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
    """A ring buffer of visited states: new states replace the oldest."""

    def __init__(self, size: int, n_groups: int) -> None:
        self.visits = Visits(
            np.zeros(size, dtype=np.intp),
            np.zeros((size, n_groups), dtype=bool),
            np.zeros(size, dtype=np.intp),
            *(np.zeros(size) for _ in range(3)),
        )
        self.size, self.filled, self._next = size, 0, 0

    def add(self, visits: Visits) -> None:
        """Add these states; if they do not all fit, the last ones."""
        m = min(len(visits.row), self.size)
        place = (self._next + np.arange(m)) % self.size
        for kept, new in zip(self.visits, visits, strict=True):
            kept[place] = new[-m:]
        self._next = int((self._next + m) % self.size)
        self.filled = min(self.size, self.filled + m)
