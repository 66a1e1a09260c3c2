"""User-defined outcomes of the states where runs stop, and scores of predicted probabilities."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._arguments import check_mapping, check_number, check_takes, numbers_per_row, shown
from .._arrays import Bools, Floats, Ints

__all__ = ["NO_OUTCOMES", "OwnOutcomes", "Scored", "brier", "check_outcomes", "log_loss", "score"]

OutcomeFunction = Callable[[Floats, Bools, Ints], ArrayLike]

RESERVED = ("acquisition", "misclassification", "total")


@dataclass(frozen=True, eq=False)
class OwnOutcomes:
    """The user's outcome functions by name; ``f(values, acquired, labels)`` gives one number per state."""

    functions: Mapping[str, OutcomeFunction] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.functions)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the outcomes, in the order of the columns."""
        return tuple(self.functions)

    def limits(self, name: str) -> tuple[float, float]:
        """Smallest and largest possible value, from the function's attribute ``limits``; infinite without it."""
        return getattr(self.functions[name], "limits", (-float("inf"), float("inf")))

    def ask(self, values: Floats, acquired: Bools, labels: Ints, rows: Ints, stops: Bools) -> Floats:
        """Outcomes (m, O) in the states where ``stops`` is True, NaN elsewhere."""
        out = np.full((len(rows), len(self.functions)), np.nan)
        if not self.functions or not stops.any():
            return out
        for j, (name, function) in enumerate(self.functions.items()):
            answer = function(values[stops], acquired[stops], labels[stops])  # copies, by indexing with a mask
            out[stops, j] = _checked(name, answer, rows[stops])
        return out


NO_OUTCOMES = OwnOutcomes()


def _checked(name: str, answer: ArrayLike, rows: Ints) -> Floats:
    found = numbers_per_row(answer, len(rows), f"The outcome {name!r} must return")
    bad = ~np.isfinite(found)
    if bad.any():
        raise ValueError(
            f"The outcome {name!r} must be a finite number wherever a run stops, but {int(bad.sum())} of {len(rows)} states "
            f"have {found[bad][0]}, first in row {int(rows[bad][0])}. Values that were not acquired are NaN: the function must "
            "handle this case."
        )
    return found


def check_outcomes(outcomes: Any) -> OwnOutcomes:
    """Return the outcomes; raise an error if this is not a mapping from names to functions."""
    if outcomes is None:
        return NO_OUTCOMES
    named = check_mapping("outcomes", outcomes, "from names to functions of (values, acquired, labels)", empty=True)
    for name, function in named.items():
        if name in RESERVED:
            raise ValueError(f"'outcomes' must have other names than {list(RESERVED)}, but one is {name!r}.")
        if isinstance(function, type) or not callable(function):
            raise TypeError(
                f"'outcomes' must hold functions of (values, acquired, labels), but {name!r} is {shown(function)}. The Brier "
                "score of a classifier is afape.brier(classifier)."
            )
        check_takes("outcomes", function, "values, acquired, labels")
    return OwnOutcomes(named)


@dataclass(frozen=True, eq=False)
class Scored:
    """An outcome that is a function of the probabilities that a classifier predicts where a run stops.

    Attributes
    ----------
    classifier
        Any object with ``predict_proba(values, acquired) -> (n, K)``.
    of : callable
        ``of(probabilities, labels) -> (n,)``.
    limits : pair of float
        Smallest and largest possible value.
    label : int, optional
        Code of the class, if the outcome is the probability of one class.
    """

    classifier: Any
    of: Callable[[Floats, Ints], Floats]
    limits: tuple[float, float] = (-float("inf"), float("inf"))
    label: int | None = None

    def __post_init__(self) -> None:
        if not callable(getattr(self.classifier, "predict_proba", None)):
            raise TypeError(
                f"'classifier' must have predict_proba(values, acquired), but {type(self.classifier).__name__} has "
                "none. afape.ImputedClassifier has it; any function of (values, acquired, labels) can be an outcome."
            )

    def __call__(self, values: Floats, acquired: Bools, labels: Ints) -> Floats:
        """Return the outcome in these states, shape (n,)."""
        name = type(self.classifier).__name__
        p = np.asarray(self.classifier.predict_proba(values, acquired), dtype=float)
        if p.ndim != 2 or len(p) != len(values):
            raise ValueError(f"{name}.predict_proba must return shape ({len(values)}, K), but returned {p.shape}.")
        if p.shape[1] <= int(labels.max(initial=0)) or (self.label is not None and p.shape[1] <= self.label):
            raise ValueError(f"{name}.predict_proba must have one column per class, but has {p.shape[1]}.")
        if not np.isfinite(p).all() or (p < 0).any() or (p > 1 + 1e-9).any():
            raise ValueError(f"{name}.predict_proba must return probabilities between 0 and 1, but some are not.")
        return self.of(p, labels)


def _brier(p: Floats, labels: Ints) -> Floats:
    right = labels[:, None] == np.arange(p.shape[1])
    squares = ((p - right) ** 2).sum(axis=1)
    return np.asarray(squares / 2 if p.shape[1] == 2 else squares)


def _log_loss(p: Floats, labels: Ints) -> Floats:
    return np.asarray(-np.log(np.clip(p[np.arange(len(p)), labels], 1e-15, 1.0)))


class _Column:
    """The probability of one class."""

    def __init__(self, label: int) -> None:
        self.label = label

    def __call__(self, p: Floats, labels: Ints) -> Floats:
        return np.asarray(p[:, self.label])


def brier(classifier: Any) -> Scored:
    r"""Brier score where a run stops: :math:`(p - y)^2` for two classes, :math:`\sum_k (p_k - 1(y = k))^2` for more."""
    two = len(getattr(classifier, "classes_", ())) == 2
    return Scored(classifier, _brier, (0.0, 1.0 if two else 2.0))


def log_loss(classifier: Any) -> Scored:
    r"""Log loss where a run stops, :math:`-\log p_y`; probabilities below 1e-15 are raised to it."""
    return Scored(classifier, _log_loss, (0.0, float(-np.log(1e-15))))


def _is_code(number: float) -> bool:
    return 0 <= number < 2**31 and number == int(number)


def score(classifier: Any, label: int = 1) -> Scored:
    """Predicted probability of the class with this code where a run stops.

    Its mean is the mean predicted risk. Calibration and the area under the ROC curve are computed from it.
    """
    check_number("label", label, "be the code of a class, a position in data.classes", _is_code)
    return Scored(classifier, _Column(int(label)), (0.0, 1.0), int(label))
