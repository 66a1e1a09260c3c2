"""What agents that learn from records share: checked training data, the layout of the columns, checked questions."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from ..arrays import Bools, Floats, Ints, any_of, every
from ..classifiers import Classifier, ask_classifier, check_classifier
from ..data import Problem, Retrospective
from ..notices import SeenRowsWarning, warn
from .builtin import one_hot_actions
from .policy import Policy

__all__ = ["Layout", "LearnedAgent", "check_stopper", "stop_cost"]


@dataclass(frozen=True, eq=False)
class Layout:
    """Groups, prices and columns that an agent was trained on."""

    groups: tuple[str, ...]
    prices: Floats
    columns: tuple[str, ...]
    column_group: Ints

    @staticmethod
    def of(data: Retrospective) -> Layout:
        """The layout of these records."""
        return Layout(data.problem.group_names, data.problem.prices, data.columns, data.column_group)

    @property
    def free(self) -> Bools:
        """Which groups are revealed before the first decision."""
        return np.asarray(self.prices == 0)

    def to_json(self) -> dict[str, Any]:
        """Plain lists."""
        return {
            "groups": list(self.groups),
            "prices": self.prices.tolist(),
            "columns": list(self.columns),
            "column_group": self.column_group.tolist(),
        }

    @staticmethod
    def from_json(plain: dict[str, Any]) -> Layout:
        """The layout that `to_json` described."""
        prices, owner = np.array(plain["prices"], dtype=float), np.array(plain["column_group"], dtype=np.intp)
        return Layout(tuple(plain["groups"]), prices, tuple(plain["columns"]), owner)


class LearnedAgent(BaseEstimator, ABC):  # type: ignore[misc]
    """A deterministic agent that is trained on records with gaps.

    ``fit(data, classifier)`` trains it. ``classifier`` is the one that predicts when the agent stops; it should have been
    trained on other rows than ``data``, because a classifier errs less on rows that it has seen, and the agent would learn
    that stopping is cheaper than it is.
    """

    layout_: Layout

    def fit(self, data: Retrospective, classifier: Classifier) -> Self:
        """Train on records with gaps.

        Parameters
        ----------
        data : Retrospective
            Records; gaps are welcome.
        classifier
            What predicts when the agent stops: anything with ``predict(values, acquired)``.
        """
        self._check_arguments()
        check_training(data, classifier)
        self.layout_ = Layout.of(data)
        self._learn(data, classifier)
        return self

    def probabilities(self, values: Floats, acquired: Bools) -> Floats:
        """All probability on the action that the agent chooses."""
        self._check_trained()
        values, acquired = self._checked(values, acquired)
        seen = np.where(acquired[:, self.layout_.column_group], values, np.nan)
        if not len(seen):
            return np.zeros((0, acquired.shape[1] + 1))
        return one_hot_actions(self._actions(seen, acquired), acquired.shape[1])

    def bind(self, problem: Problem) -> Policy:
        """Refuse a problem with other groups than in training."""
        self._check_trained()
        if problem.group_names != self.layout_.groups:
            raise ValueError(
                f"{type(self).__name__} was trained on the groups {list(self.layout_.groups)}, but the problem has "
                f"{list(problem.group_names)}. Train it on records of this problem."
            )
        return self

    def _check_trained(self) -> None:
        if not hasattr(self, "layout_"):
            raise RuntimeError(
                f"This {type(self).__name__} is not trained yet; call fit(records, classifier) before you ask it."
            )

    def _checked(self, values: Floats, acquired: Bools) -> tuple[Floats, Bools]:
        values, acquired = np.asarray(values, dtype=float), np.asarray(acquired, dtype=bool)
        d, n_groups = len(self.layout_.columns), len(self.layout_.groups)
        if values.ndim != 2 or values.shape[1] != d:
            raise ValueError(f"'values' must have the {d} columns of training, but has shape {values.shape}.")
        if acquired.shape != (len(values), n_groups):
            raise ValueError(
                f"'acquired' must have one row per row of 'values' and the {n_groups} groups of training, shape "
                f"{(len(values), n_groups)}, but has shape {acquired.shape}."
            )
        return values, acquired

    @abstractmethod
    def _check_arguments(self) -> None:
        """Refuse arguments out of range."""

    @abstractmethod
    def _learn(self, data: Retrospective, classifier: Classifier) -> None:
        """Learn from checked records."""

    @abstractmethod
    def _actions(self, values: Floats, acquired: Bools) -> Ints:
        """One action per row: a group that is not acquired, or G to stop."""


def check_training(data: Any, classifier: Any) -> None:
    """Refuse what nothing can be learned from; warn of rows that the classifier has seen."""
    if not isinstance(data, Retrospective):
        raise TypeError(f"'data' must be an afape.Retrospective, not {type(data).__name__}.")
    lacking = [data.problem.group_names[g] for g in np.flatnonzero(~any_of(data.recorded.T))]
    if lacking:
        raise ValueError(
            f"'data' must record every group somewhere, but {lacking[0]!r} is recorded in no row. Leave the group out "
            "of the problem: nothing can be learned about it."
        )
    check_stopper(classifier, data)


def check_stopper(classifier: Any, data: Retrospective) -> Classifier:
    """Refuse a classifier that cannot predict where episodes on these rows stop; warn of rows that it has seen."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeenRowsWarning)  # the same fact has another consequence here
        checked = check_classifier(classifier, data)
    seen = classifier.seen(data) if callable(getattr(classifier, "seen", None)) else 0
    if seen:
        warn(
            f"The classifier was trained on {seen} of the {len(data)} rows that the agent learns from, so stopping will look "
            "cheaper than it is. Split first: for_classifier, for_agent = data.split([0.5, 0.5]).",
            SeenRowsWarning,
        )
    return checked


def stop_cost(data: Retrospective, classifier: Classifier, acquired: Bools, rows: Ints | None = None) -> Floats:
    """Misclassification cost of each row if the agent stops with ``acquired``; NaN where the row lacks a part of it.

    ``acquired`` of shape (G,), one set for all rows. One call of the classifier.
    """
    rows = np.arange(len(data)) if rows is None else rows
    has = every(data.recorded[rows][:, acquired])
    cost = np.full(len(rows), np.nan)
    if has.any():
        kept = rows[has]
        state = np.broadcast_to(acquired, (len(kept), len(acquired)))
        seen = np.where(acquired[data.column_group], data.values[kept], np.nan)
        codes = ask_classifier(classifier, seen, state, kept, len(data.classes))
        cost[has] = data.costs[data.labels[kept], codes]
    return cost
