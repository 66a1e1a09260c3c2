"""Classifiers from objects that follow the AFABench protocol."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from .._arguments import check_choice, check_list, shown
from .._arrays import Bools, Floats, Ints
from ..data.retrospective import Retrospective, check_records
from ..warnings import AssumedOrderWarning, warn
from .afabench_calls import Caller, check_device, check_feature_shape, check_features, columns_of, name_of

__all__ = ["BenchClassifier", "classifier_from_afabench"]

_KINDS = ("logits", "probabilities")
_NEAR_ONE = 1e-3  # sums of probabilities in single precision


def classifier_from_afabench(
    classifier: Any,
    data: Retrospective | None = None,
    *,
    classes: Sequence[Any] | None = None,
    features: Sequence[str | int] | None = None,
    output_kind: str | None = None,
    device: Any = None,
    feature_shape: Sequence[int] | None = None,
) -> BenchClassifier:
    """Make a classifier from an AFABench method with ``predict``, or from a separate AFABench classifier.

    Parameters
    ----------
    classifier
        Has ``predict(masked_features, feature_mask, label=None, feature_shape=None)``, or is callable with these
        arguments. It returns scores of shape (batch, n_classes); the class with the largest score is predicted.
    data : Retrospective, optional
        Records with the labels and columns of the evaluation, to put ``classes`` and ``features`` in their order.
    classes : sequence of labels, optional
        The label of each column of scores. Default: ``classifier.classes_``, if it has it; else column j is
        ``data.classes[j]``, and a warning says so unless the labels are 0, 1, ....
    features : sequence of column names or indices, optional
        The column of each feature of the classifier; names need ``data``. Default: the columns of the data in their order,
        and a warning says so.
    output_kind : {"logits", "probabilities"}, optional
        What the scores are. Default: ``classifier.output_kind``, if it has it. Else scores are probabilities if all rows
        sum to 1 and none is negative, and logits if not.
    device, feature_shape
        As in `from_afabench`.

    Returns
    -------
    BenchClassifier
        With ``predict`` and ``predict_proba``, so that `afape.brier`, `afape.score` and calibration can use it.

    Warns
    -----
    AssumedOrderWarning
        If the order of labels or columns is assumed.
    """
    asked = getattr(classifier, "predict", None) or classifier
    if isinstance(classifier, type) or not callable(asked):
        raise TypeError(f"'classifier' must have predict or be callable, as in AFABench, but is {shown(classifier)}.")
    if data is not None:
        check_records(data)
    kind = getattr(classifier, "output_kind", None) if output_kind is None else output_kind
    if output_kind is not None or isinstance(kind, str):
        check_choice("output_kind", kind, _KINDS)
    named = getattr(classifier, "classes_", None) if classes is None else classes
    labels = None if named is None else _labels(named)
    order = None if labels is None or data is None else _code_of_column(labels, data)
    listed = check_features(features)
    if listed is not None and any(isinstance(f, str) for f in listed) and data is None:
        raise ValueError("'data' must be given, because 'features' has names. Pass the records of the evaluation.")
    columns = None if listed is None else _columns(listed, data)
    caller = Caller(classifier, check_device(device), check_feature_shape(feature_shape))
    return BenchClassifier(caller, asked, labels, order, columns, kind if isinstance(kind, str) else None, data)


class BenchClassifier:
    """A classifier from an AFABench object; see `classifier_from_afabench`, which checks the arguments."""

    def __init__(
        self,
        caller: Caller,
        asked: Callable[..., Any],
        labels: list[Any] | None,
        order: Ints | None,
        columns: Ints | None,
        kind: str | None,
        data: Retrospective | None,
    ) -> None:
        self.caller, self.asked, self.order, self.columns, self.kind = caller, asked, order, columns, kind
        self.labels = labels
        if data is not None:
            self.columns_ = data.columns
        if order is not None and data is not None:
            self.label_classes_ = data.classes
        elif labels is not None:
            self.label_classes_ = np.array(labels)

    @property
    def classifier(self) -> Any:
        """The AFABench object."""
        return self.caller.asked

    def check_records(self, data: Retrospective) -> None:
        """Raise an error if these records have another number of labels; warn if an order is assumed."""
        free = np.broadcast_to(data.problem.free & data.recorded[:1], data.recorded[:1].shape)
        self._scores(np.where(free[:, data.column_group], data.values[:1], np.nan), free, len(data.classes))
        taken = []
        if self.labels is None and data.classes.tolist() != list(range(len(data.classes))):
            taken.append(f"its scores as the labels {shown(data.classes.tolist())} ('classes' names them)")
        if self.columns is None:
            taken.append(f"its features as the columns {shown(list(data.columns))} ('features' names them)")
        if taken:
            warn(
                f"The classifier {name_of(self.classifier)} has no names for its scores and features. In this order, it takes "
                f"{' and '.join(taken)}.",
                AssumedOrderWarning,
            )

    def predict(self, values: Floats, acquired: Bools) -> Ints:
        """Return the label code with the largest score, shape (n,)."""
        best = self._scores(values, acquired).argmax(axis=1)
        return np.asarray(best if self.order is None else self.order[best], dtype=np.intp)

    def predict_proba(self, values: Floats, acquired: Bools) -> Floats:
        """Probability of each label in the order of its code, shape (n, K)."""
        scores = self._scores(values, acquired).astype(float)
        p = scores if self._are_probabilities(scores) else softmax(scores, axis=1)
        p = p / p.sum(axis=1, keepdims=True)  # exact sums: single precision is off by 1e-7
        if self.order is None:
            return np.asarray(p, dtype=float)
        out = np.zeros(p.shape)
        out[:, self.order] = p
        return out

    def _scores(self, values: Floats, acquired: Bools, n_classes: int | None = None) -> NDArray[Any]:
        values, acquired = np.asarray(values, dtype=float), np.asarray(acquired, dtype=bool)
        if self.labels is not None:
            n_classes = len(self.labels)
        if not len(values):
            return np.zeros((0, n_classes or 1))
        scores = self.caller.by_size(lambda v, _: self.caller(self.asked, v, self.columns), values, acquired)
        name = name_of(self.classifier)
        if scores.ndim != 2 or len(scores) != len(values):
            raise ValueError(
                f"The classifier {name} must return scores of shape (batch, n_classes), here ({len(values)}, n_classes), but "
                f"returned {scores.shape}."
            )
        if n_classes is not None and scores.shape[1] != n_classes:
            raise ValueError(
                f"The classifier {name} must return one score per label, {n_classes} here, but returns {scores.shape[1]}. "
                "Name the label of each score in 'classes', and list all labels in 'classes' of the Problem."
            )
        if not np.isfinite(scores).all():
            raise ValueError(f"The classifier {name} must return finite scores, but some are not.")
        return scores

    def _are_probabilities(self, scores: Floats) -> bool:
        like = (scores >= 0).all(axis=1) & (abs(scores.sum(axis=1) - 1) < _NEAR_ONE)
        name = name_of(self.classifier)
        if self.kind == "probabilities" and not like.all():
            raise ValueError(
                f"The classifier {name} says that its scores are probabilities, but in {int((~like).sum())} of {len(like)} "
                "states they are negative or do not sum to 1. Pass output_kind='logits' if they are logits."
            )
        if self.kind is None and like.any() and not like.all():
            raise ValueError(
                f"The classifier {name} returns scores that sum to 1 in {int(like.sum())} of {len(like)} states only, so it "
                "cannot be seen if they are probabilities. Pass output_kind='probabilities' or 'logits'."
            )
        return bool(like.all()) if self.kind is None else self.kind == "probabilities"

    def __repr__(self) -> str:
        return f"classifier_from_afabench({name_of(self.classifier)})"


def _labels(named: Any) -> list[Any]:
    """Return the labels as a list of different numbers or texts."""
    labels = check_list("classes", named.tolist() if isinstance(named, np.ndarray) else named, "labels")
    odd = [label for label in labels if not isinstance(label, str | bool | int | float | np.generic)]
    if odd or len(labels) < 2 or len({repr(label) for label in labels}) < len(labels):
        raise ValueError(f"'classes' must be at least two different labels, texts or numbers, but are {shown(labels)}.")
    return labels


def _code_of_column(labels: list[Any], data: Retrospective) -> Ints:
    """Return the label code of each column of scores, (K,)."""
    known = data.classes.tolist()
    if sorted(map(repr, labels)) != sorted(map(repr, known)):
        raise ValueError(
            f"'classes' must be the labels of the data, one per column of scores, {shown(known)}, but are {shown(labels)}. "
            "List all labels in 'classes' of the Problem."
        )
    codes = {repr(label): code for code, label in enumerate(known)}
    return np.array([codes[repr(label)] for label in labels], dtype=np.intp)


def _columns(features: list[str | int], data: Retrospective | None) -> Ints:
    if data is not None:
        return columns_of(features, data.columns)
    for feature in features:
        if isinstance(feature, bool) or not isinstance(feature, int | np.integer) or not 0 <= feature < 2**31:
            raise ValueError(f"'features' must be column names or indices, but has {shown(feature)}.")
    if len(set(features)) < len(features):
        raise ValueError(f"'features' must name each column once, but is {shown(features)}.")
    return np.array(features, dtype=np.intp)
