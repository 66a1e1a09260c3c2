"""Policy, classifier and outcomes on records whose label is a group (`with_label_group`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._arrays import Bools, Floats, Ints
from ..agents.policy import Policy, ask_policy
from ..classifiers import Classifier, ask_classifier
from ..data.label_group import label_read
from ..data.retrospective import Retrospective
from .outcomes import OwnOutcomes

__all__ = ["PairsWithLabel", "on_label_group", "outcomes_on_label_group", "policy_on_label_group"]


class _StopsWithLabel:
    """The policy; where it stops, it first acquires the label."""

    def __init__(self, policy: Policy, n_columns: int) -> None:
        self.policy, self.n_columns = policy, n_columns
        self.ignores_values = getattr(policy, "ignores_values", False)

    def probabilities(self, values: Floats, acquired: Bools) -> Floats:
        """Probabilities (n, G + 2): of the groups, of the label, and of stopping, which is certain once the label is there."""
        out = np.zeros((len(values), acquired.shape[1] + 1))
        done = acquired[:, -1]
        out[done, -1] = 1.0
        rows = np.flatnonzero(~done)
        if len(rows):
            own = acquired[rows, :-1].copy()
            out[rows, :-1] = ask_policy(self.policy, values[rows, : self.n_columns], own, rows)
        return out


class PairsWithLabel:
    """The classifier; it returns the code of the pair of true and predicted label."""

    def __init__(self, classifier: Classifier, n_columns: int, n_classes: int) -> None:
        self.classifier, self.n_columns, self.n_classes = classifier, n_columns, n_classes

    def predict(self, values: Floats, acquired: Bools) -> Ints:
        """Codes K y + k of true label y and prediction k, (n,); k where the label is not known, and no run stops."""
        seen, own = values[:, : self.n_columns].copy(), acquired[:, :-1].copy()
        codes = ask_classifier(self.classifier, seen, own, np.arange(len(values)), self.n_classes)
        true = label_read(values, self.n_columns)
        return np.asarray(np.maximum(true, 0) * self.n_classes + codes, dtype=np.intp)


class _OutcomeWithLabel:
    """An outcome of the user; it gets the label that was acquired."""

    def __init__(self, function: Callable[..., Any], n_columns: int) -> None:
        self.function, self.n_columns = function, n_columns
        for name in ("limits", "label"):
            if hasattr(function, name):
                setattr(self, name, getattr(function, name))

    def __call__(self, values: Floats, acquired: Bools, labels: Ints) -> Any:
        """Return the outcome; 0 where the label is not known, and no run stops."""
        true = label_read(values, self.n_columns)
        found = self.function(values[:, : self.n_columns].copy(), acquired[:, :-1].copy(), np.maximum(true, 0))
        return found if (true >= 0).all() else np.where(true >= 0, found, 0.0)


def policy_on_label_group(policy: Policy, data: Retrospective) -> Policy:
    """Return the policy, bound to the original records, as one on these records."""
    return policy if data.original is None else _StopsWithLabel(policy, data.original.values.shape[1])


def on_label_group(classifier: Classifier, data: Retrospective) -> Classifier:
    """Return the classifier, checked on the original records, as one on these records."""
    if data.original is None:
        return classifier
    return PairsWithLabel(classifier, data.original.values.shape[1], len(data.original.classes))


def outcomes_on_label_group(outcomes: OwnOutcomes, data: Retrospective) -> OwnOutcomes:
    """Return the outcomes as those on these records."""
    if data.original is None:
        return outcomes
    n_columns = data.original.values.shape[1]
    return OwnOutcomes({name: _OutcomeWithLabel(f, n_columns) for name, f in outcomes.functions.items()})
