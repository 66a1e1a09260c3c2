"""Records in which the label is one more group: recorded or not, needed by every stop, free of charge."""

from __future__ import annotations

from copy import copy

import numpy as np

from .._arrays import Floats, Ints
from .problem import Problem
from .retrospective import Retrospective

__all__ = ["label_read", "with_label_group"]


def with_label_group(data: Retrospective) -> Retrospective:
    r"""Return the records with the label as their last group; the records themselves if every row has its label.

    A run that stops then acquires this group first, at no cost, and so stops in S + Y, with the weight
    :math:`1 / P(R \ge S, R_Y = 1 | X_o)`, in rows that have S and the label. These records have no other label, so no model
    can use it where it is not among the groups. The pair of true and predicted label takes the place of the prediction.
    """
    if data.original is not None or data.labelled.all():
        return data
    new, n_classes = data.take(np.arange(len(data))), len(data.classes)
    codes = data.labels[:, None] == (np.arange(n_classes) if n_classes > 2 else 1)
    block = np.where(data.labelled[:, None], codes, np.nan)
    label = data.problem.label
    names = [f"{label}={c}" for c in data.classes] if n_classes > 2 else [label]
    new.problem = _with_group(data.problem)
    new.values = np.column_stack([data.values, block])
    new.recorded = np.column_stack([data.recorded, data.labelled])
    new.columns = (*data.columns, *names)
    new.column_group = np.append(data.column_group, np.full(len(names), data.problem.n_groups))
    new.source_column = np.append(data.source_column, np.full(len(names), len(data.problem.feature_columns)))
    new.labels, new.classes = np.zeros(len(data), dtype=np.intp), np.array(["any"])
    new.costs = data.costs.reshape(1, -1)
    new.original = data
    new._freeze()
    return new


def _with_group(problem: Problem) -> Problem:
    label, new = problem.label, copy(problem)
    set_ = object.__setattr__
    set_(new, "groups", {**problem.groups, label: (label,)})
    set_(new, "group_names", (*problem.group_names, label))
    set_(new, "feature_columns", (*problem.feature_columns, label))
    set_(new, "n_groups", problem.n_groups + 1)
    set_(new, "prices", np.append(problem.prices, 0.0))
    set_(new, "free", np.append(problem.free, False))
    set_(new, "costly", np.append(problem.costly, False))
    set_(new, "label", f"({label})")  # never a column
    set_(new, "misclassification_cost", np.asarray(problem.misclassification_cost))
    return new


def label_read(values: Floats, n_columns: int) -> Ints:
    """Label codes (n,) from the columns after the first ``n_columns``; -1 where they are not known."""
    block = values[:, n_columns:]
    known = ~np.isnan(block[:, 0])
    codes = np.nan_to_num(block).argmax(axis=1) if block.shape[1] > 1 else np.nan_to_num(block[:, 0]) > 0.5
    return np.where(known, codes, -1).astype(np.intp)
