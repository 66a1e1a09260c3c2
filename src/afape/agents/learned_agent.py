"""Base of agents that are trained on records, and checks that all trained agents share."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from .._arrays import Bools, Floats, Ints, any_of, every
from ..classifiers import Classifier, ask_classifier, check_classifier
from ..classifiers.training_rows import KnowsRows, TrainingRows
from ..data.problem import Problem
from ..data.retrospective import Retrospective, check_records
from ..warnings import SeenRowsWarning, warn
from .policy import Policy, one_hot_actions

__all__ = [
    "Layout",
    "LearnedAgent",
    "check_groups",
    "check_states",
    "check_training_classifier",
    "not_trained",
    "stop_cost",
]


@dataclass(frozen=True, eq=False)
class Layout:
    """Groups, prices and columns that an agent was trained on."""

    groups: tuple[str, ...]
    prices: Floats  # (G,)
    columns: tuple[str, ...]
    column_group: Ints  # (d,) group of each column
    classes: tuple[Any, ...] | None = None  # labels in the order of their codes; None in files of older versions

    @staticmethod
    def of(data: Retrospective) -> Layout:
        """Return the layout of these records."""
        classes = tuple(data.classes.tolist())
        return Layout(data.problem.group_names, data.problem.prices, data.columns, data.column_group, classes)

    @property
    def free(self) -> Bools:
        """True for groups that are revealed before the first decision, shape (G,)."""
        return np.asarray(self.prices == 0)

    def to_json(self) -> dict[str, Any]:
        """Return the layout as lists for JSON."""
        return {
            "groups": list(self.groups),
            "prices": self.prices.tolist(),
            "columns": list(self.columns),
            "column_group": self.column_group.tolist(),
            "classes": None if self.classes is None else list(self.classes),
        }

    @staticmethod
    def from_json(plain: dict[str, Any]) -> Layout:
        """Restore a layout from `to_json`."""
        prices, owner = np.array(plain["prices"], dtype=float), np.array(plain["column_group"], dtype=np.intp)
        classes = plain.get("classes")
        return Layout(
            tuple(plain["groups"]), prices, tuple(plain["columns"]), owner, None if classes is None else tuple(classes)
        )


class LearnedAgent(KnowsRows, BaseEstimator, ABC):  # type: ignore[misc]
    """A deterministic agent that is trained on records with gaps.

    ``fit(data, classifier)`` trains it. ``classifier`` predicts the label when the agent stops. Train it on other rows than
    ``data``: a classifier makes fewer errors on rows that it has seen, so the agent would learn that stopping is cheaper
    than it is.
    """

    layout_: Layout

    def fit(self, data: Retrospective, classifier: Classifier) -> Self:
        """Train on records with gaps.

        Parameters
        ----------
        data : Retrospective
            Records; gaps are allowed. Rows without a label are left out.
        classifier
            Predicts the label when the agent stops: any object with ``predict(values, acquired)``.
        """
        self._check_arguments()
        _check_training(data, classifier)
        data = data.with_labels()
        self.layout_ = Layout.of(data)
        self._learn(data, classifier)
        self.rows_ = TrainingRows.of(data)
        return self

    def probabilities(self, values: Floats, acquired: Bools) -> Floats:
        """Return probability 1 for the action that the agent chooses, shape (n, G + 1)."""
        values, acquired = self._checked(values, acquired)
        seen = np.where(acquired[:, self.layout_.column_group], values, np.nan)
        if not len(seen):
            return np.zeros((0, acquired.shape[1] + 1))
        return one_hot_actions(self._actions(seen, acquired), acquired.shape[1])

    def bind(self, problem: Problem) -> Policy:
        """Return the agent; raise an error if the problem has other groups than the training data."""
        self._check_trained()
        check_groups(self, self.layout_.groups, problem)
        return self

    def _check_trained(self) -> None:
        if not hasattr(self, "layout_"):
            raise not_trained(self, "data, classifier")

    def _checked(self, values: Any, acquired: Any) -> tuple[Floats, Bools]:
        self._check_trained()
        return check_states(self, values, acquired, len(self.layout_.columns), len(self.layout_.groups))

    @property
    def columns_(self) -> tuple[str, ...]:
        """Columns of the training data."""
        return self.layout_.columns

    @property
    def column_group_(self) -> Ints:
        """Group of each column of the training data, shape (d,)."""
        return self.layout_.column_group

    @property
    def label_classes_(self) -> tuple[Any, ...] | None:
        """Labels of the training data, in the order of their codes."""
        return self.layout_.classes

    @abstractmethod
    def _check_arguments(self) -> None:
        """Raise an error for arguments out of range."""

    @abstractmethod
    def _learn(self, data: Retrospective, classifier: Classifier) -> None:
        """Learn from checked records."""

    @abstractmethod
    def _actions(self, values: Floats, acquired: Bools) -> Ints:
        """Return one action per row, shape (n,): a group that is not acquired, or G to stop."""


def check_states(agent: Any, values: Any, acquired: Any, n_columns: int, n_groups: int) -> tuple[Floats, Bools]:
    """Return the states as arrays; raise an error if their shapes differ from those of the training data."""
    x, taken = np.asarray(values, dtype=float), np.asarray(acquired, dtype=bool)
    name = type(agent).__name__
    for argument, array, wanted, what in (("values", x, n_columns, "columns"), ("acquired", taken, n_groups, "groups")):
        if array.ndim != 2 or array.shape[1] != wanted:
            raise ValueError(
                f"{argument!r} must have the {wanted} {what} that this {name} was trained with, shape (n, {wanted}), but has "
                f"shape {array.shape}. Build the data with the Problem of training."
            )
    if len(x) != len(taken):
        raise ValueError(
            f"'values' and 'acquired' must have the same number of rows, but have {len(x)} and {len(taken)}."
        )
    return x, taken


def check_groups(agent: Any, groups: tuple[str, ...], problem: Problem) -> None:
    """Raise an error if the problem has other groups than the training data."""
    if problem.group_names != groups:
        raise ValueError(
            f"This {type(agent).__name__} was trained with the groups {list(groups)}, but the problem has "
            f"{list(problem.group_names)}. Train an agent for this problem."
        )


def not_trained(agent: Any, arguments: str) -> RuntimeError:
    """Error of an agent that is used before ``fit``."""
    return RuntimeError(f"This {type(agent).__name__} is not trained yet; call fit({arguments}) first.")


def _check_training(data: Any, classifier: Any) -> None:
    """Raise an error if an agent cannot learn from these records."""
    check_records(data)
    lacking = [data.problem.group_names[g] for g in np.flatnonzero(~any_of(data.recorded.T))]
    if lacking:
        raise ValueError(
            f"'data' must record every group in some row, but {lacking[0]!r} is recorded in no row. Leave the group out "
            "of the problem: the agent cannot learn anything about it."
        )
    check_training_classifier(classifier, data)


def check_training_classifier(classifier: Any, data: Retrospective) -> Classifier:
    """Check a classifier for training an agent on these rows; warn if the classifier was trained on them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeenRowsWarning)  # replaced by the warning below
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
    """Misclassification cost of each row if the agent stops with one set of groups.

    The classifier is called once.

    Parameters
    ----------
    data : Retrospective
    classifier : Classifier
    acquired : ndarray of bool, shape (G,)
        The set of groups.
    rows : ndarray of int, shape (n,), optional
        Default: all rows.

    Returns
    -------
    ndarray of shape (n,)
        NaN in rows that do not record the whole set.
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
