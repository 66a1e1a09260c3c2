"""The protocol of a classifier, and the checks of a classifier and of its predictions."""

from __future__ import annotations

import inspect
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_regressor

from .._arguments import check_takes, in_order_of_rows
from .._arrays import Bools, Floats, Ints
from ..data.retrospective import Retrospective
from ..warnings import SeenRowsWarning, warn
from .imputed_classifier import ImputedClassifier
from .trained_on import check_columns

__all__ = ["Classifier", "ask_classifier", "check_classifier", "check_not_training"]


@runtime_checkable
class Classifier(Protocol):
    """Predicts the label code from the acquired groups.

    A classifier may also have ``classes_``, the labels or codes that it can predict, and ``seen(data)``, the number of rows
    of ``data`` that it was trained on. `evaluate` checks both. If it has ``check_records(data)``, this is called once before
    the evaluation, and may raise an error.
    """

    def predict(self, values: Floats, acquired: Bools) -> NDArray[Any]:
        """Label codes of shape (n,) from values of shape (n, d), NaN outside the acquired groups (n, G)."""
        ...


def check_classifier(classifier: Any, data: Retrospective) -> Classifier:
    """Raise an error if this object cannot classify these records; warn if it was trained on some of them."""
    name = type(classifier).__name__
    if isinstance(classifier, type):
        raise TypeError(f"'classifier' must be an instance, but is the class {classifier.__name__} itself.")
    if (
        isinstance(classifier, BaseEstimator)
        and not isinstance(classifier, ImputedClassifier)
        and is_regressor(classifier)
    ):
        raise TypeError(f"'classifier' must predict label codes, but {name} is a regressor.")
    if isinstance(classifier, BaseEstimator) and hasattr(classifier, "predict"):
        try:
            inspect.signature(classifier.predict).bind(None, None)
        except TypeError as error:
            raise TypeError(
                f"'classifier' must have a method predict(values, acquired), but {name} takes values alone. Use "
                f"afape.ImputedClassifier({name}(...)).fit(training_data)."
            ) from error
    if not callable(getattr(classifier, "predict", None)):
        raise TypeError(f"'classifier' must have a method predict(values, acquired), but {name} has none.")
    check_takes("classifier", classifier.predict, "values, acquired")
    if isinstance(classifier, ImputedClassifier) and not hasattr(classifier, "estimator_"):
        raise RuntimeError("'classifier' is not fitted yet; call classifier.fit(training_data) first.")
    known = getattr(classifier, "classes_", None)
    if known is not None:
        _check_known_classes(name, np.asarray(known), data)
    coded = getattr(classifier, "label_classes_", None)
    if coded is not None and list(coded) != list(data.classes):
        raise ValueError(
            f"The classifier {name} has the labels {np.asarray(coded).tolist()}, but the data have {data.classes.tolist()}, so "
            "equal codes mean different labels. List all labels in 'classes' of the Problem and build both tables with it."
        )
    check_columns(classifier, f"The classifier {name}", data)
    groups = getattr(classifier, "groups_", None)
    if isinstance(groups, dict) and groups != dict(data.problem.groups):
        raise ValueError(
            f"The classifier {name} was trained with the groups {groups}, but the data have {dict(data.problem.groups)}. "
            "Build both tables with one Problem."
        )
    check_not_training(classifier, "classifier")
    if callable(getattr(classifier, "check_records", None)):
        classifier.check_records(data)
    seen = classifier.seen(data) if callable(getattr(classifier, "seen", None)) else 0
    if seen:
        warn(
            f"The classifier {name} was trained on {seen} of the {len(data)} rows that it is evaluated on, so its "
            "misclassification cost will look too low. Hold out rows: train, test = data.split([0.5, 0.5]).",
            SeenRowsWarning,
        )
    return classifier  # type: ignore[no-any-return]


def check_not_training(model: Any, argument: str) -> None:
    """Raise an error if the model, or one of its attributes, is a torch network in training mode."""
    inside = list(vars(model).values()) if hasattr(model, "__dict__") else []
    for network in (model, *inside):
        if getattr(network, "training", False) is True and callable(getattr(network, "eval", None)):
            raise ValueError(
                f"{argument!r} must give equal answers for equal inputs, but {type(network).__name__} is in training mode, in "
                "which layers such as dropout are random. Call its eval() first."
            )


def _check_known_classes(name: str, known: NDArray[Any], data: Retrospective) -> None:
    present = np.unique(data.labels[data.labelled])
    by_label = [k for k in present if data.classes[k] not in known.tolist()]
    by_code = [k for k in present if int(k) not in known.tolist()]
    unseen = min(by_label, by_code, key=len)
    if unseen:
        labels = [data.classes.tolist()[k] for k in unseen]
        raise ValueError(
            f"The classifier {name} never saw the classes {labels}, which {int(np.isin(data.labels, unseen).sum())} of "
            f"{len(data)} rows have; it knows {known.tolist()}. Train it on data with every class."
        )


def ask_classifier(
    classifier: Classifier,
    values: Floats,
    acquired: Bools,
    rows: Ints,
    n_classes: int,
) -> Ints:
    """Ask the classifier about these states and check its label codes, shape (n,).

    ``rows`` are the rows of the states, for the error message.
    """
    name = type(classifier).__name__
    answer = in_order_of_rows(classifier.predict(values.copy(), acquired.copy()))  # copies, as for the policy
    try:
        codes = np.asarray(answer)
    except ValueError as error:
        raise ValueError(
            f"The classifier {name} must return one label code per row, shape ({len(values)},)."
        ) from error
    if codes.shape != (len(values),):
        raise ValueError(
            f"The classifier {name} must return one label code per row, shape ({len(values)},), but returned {codes.shape}."
        )
    if codes.dtype.kind not in "iub":
        odd = [not isinstance(c, (int, float)) or c != c or c != c // 1 for c in codes.tolist()]
        if any(odd) or codes.dtype.kind != "f":
            first = odd.index(True) if any(odd) else 0
            raise ValueError(
                f"The classifier {name} must return label codes 0..{n_classes - 1}, but returned {codes.dtype} such as "
                f"{codes.tolist()[first]!r} for row {int(rows[first])}. Map labels to codes through data.classes."
            )
    codes = codes.astype(np.intp)
    bad = (codes < 0) | (codes >= n_classes)
    if bad.any():
        first = int(np.flatnonzero(bad)[0])
        raise ValueError(
            f"The classifier {name} must return label codes 0..{n_classes - 1}, but breaks this rule in {int(bad.sum())} of "
            f"{len(codes)} states, first in row {int(rows[first])}: {codes[first]}."
        )
    return codes
