"""Fitting scikit-learn models with row weights, whether or not they take any."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from ..arrays import Floats

__all__ = ["fit_weighted", "takes_weights"]


def takes_weights(model: Any) -> bool:
    """Whether the model's fit, or that of a pipeline's last step, has ``sample_weight``."""
    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    return "sample_weight" in inspect.signature(last.fit).parameters


def fit_weighted(estimator: Any, X: Floats, y: Any, weight: Floats | None) -> Any:
    """Fit a clone with row weights, or, where it takes none, on rows repeated as often as they weigh."""
    model = clone(estimator)
    if weight is None:
        return model.fit(X, y)
    if takes_weights(model):
        name = f"{model.steps[-1][0]}__sample_weight" if isinstance(model, Pipeline) else "sample_weight"
        return model.fit(X, y, **{name: weight})
    repeated = np.repeat(np.arange(len(X)), weight.astype(int))
    return model.fit(X[repeated], y[repeated])
