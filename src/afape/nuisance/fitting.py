"""Fitting scikit-learn models with row weights, whether or not they take any, and how many threads our work takes."""

from __future__ import annotations

import inspect
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from ..arrays import Floats

__all__ = ["NotFittedError", "fit_alone", "fit_weighted", "one_thread", "takes_weights"]


def takes_weights(model: Any) -> bool:
    """Whether the model's fit, or that of a pipeline's last step, has ``sample_weight``."""
    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    return "sample_weight" in inspect.signature(last.fit).parameters


def fit_weighted(estimator: Any, X: Floats, y: Any, weight: Floats | None) -> Any:
    """Fit a clone with row weights, or, where it takes none, on rows repeated as often as they weigh."""
    model = clone(estimator)
    if weight is None:
        return fit_alone(model, X, y)
    if takes_weights(model):
        name = f"{model.steps[-1][0]}__sample_weight" if isinstance(model, Pipeline) else "sample_weight"
        return fit_alone(model, X, y, **{name: weight})
    repeated = np.repeat(np.arange(len(X)), weight.astype(int))
    return fit_alone(model, X[repeated], y[repeated])


def fit_alone(model: Any, X: Floats, y: Any, **arguments: Any) -> Any:
    """Fit, on one thread of OpenMP unless the model says otherwise; a model that cannot is named.

    Our fits are many and small. On a busy machine, threads that wait for each other take a hundred times the work.
    """
    try:
        with _controller().limit(limits=1, user_api="openmp"):
            return model.fit(X, y, **arguments)
    except Exception as error:
        raise NotFittedError(
            f"The model {type(model).__name__} could not be fitted on {len(X)} rows and {X.shape[1]} columns: {error}"
        ) from error


def one_thread() -> AbstractContextManager[Any]:
    """Small products of matrices, thousands of them, on one thread: shared out, they take a multiple of the work."""
    limited: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limited


class NotFittedError(ValueError):
    """A model of the user's choice could not be fitted; the message has its own words."""


@cache
def _controller() -> ThreadpoolController:
    """Finds the thread pools of this process, once: looking for them takes longer than a small fit."""
    return ThreadpoolController()
