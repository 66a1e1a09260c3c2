"""Fits of scikit-learn models with row weights, and limits on the number of threads."""

from __future__ import annotations

import inspect
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from ._arrays import Floats, Ints

__all__ = ["NotFittedError", "fit_alone", "fit_weighted", "one_thread", "repeated_rows", "takes_weights"]


_MOST_COPIES = 8.0  # copies of a row of weight 1, for models that take no weights


def takes_weights(model: Any) -> bool:
    """Return True if ``fit`` of the model, or of the last step of a pipeline, has ``sample_weight``."""
    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    return "sample_weight" in inspect.signature(last.fit).parameters


def fit_weighted(estimator: Any, X: Floats, y: Any, weight: Floats | None) -> Any:
    """Fit a clone with row weights. If the model takes no weights, repeat the rows, with rounded weights as counts."""
    model = clone(estimator)
    if weight is None:
        return fit_alone(model, X, y)
    if takes_weights(model):
        name = f"{model.steps[-1][0]}__sample_weight" if isinstance(model, Pipeline) else "sample_weight"
        return fit_alone(model, X, y, **{name: weight})
    repeated = repeated_rows(weight)
    return fit_alone(model, X[repeated], y[repeated])


def repeated_rows(weight: Floats) -> Ints:
    """Row numbers, repeated as often as the weights say.

    Weights that are no whole numbers are multiplied, so that few rows of small weight are lost, and rounded up or down in turn.
    """
    count = weight
    if not np.array_equal(weight, np.round(weight)):
        factor = np.clip(1 / weight[weight > 0].min(), 1.0, _MOST_COPIES)
        count = np.diff(np.floor(np.cumsum(factor * weight) + 0.5), prepend=0.0)
    return np.repeat(np.arange(len(weight)), count.astype(int))


def fit_alone(model: Any, X: Floats, y: Any, **arguments: Any) -> Any:
    """Fit a model on copies of the data and on one OpenMP thread; an error names the model.

    Fits here are many and small. On a busy machine, several threads can take a hundred times as long.
    """
    try:
        with _controller().limit(limits=1, user_api="openmp"):
            return model.fit(np.array(X), np.array(y), **arguments)
    except Exception as error:
        raise NotFittedError(
            f"The model {type(model).__name__} could not be fitted on {len(X)} rows and {X.shape[1]} columns: {error}"
        ) from error


def one_thread() -> AbstractContextManager[Any]:
    """Limit BLAS to one thread, which is faster for many small matrix products."""
    limited: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limited


class NotFittedError(ValueError):
    """The user's model could not be fitted; the message contains its error."""


@cache
def _controller() -> ThreadpoolController:
    """Find the thread pools of this process once: this takes longer than a small fit."""
    return ThreadpoolController()
