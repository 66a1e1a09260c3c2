"""Regressors of action values, and presets of them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor
from sklearn.preprocessing import StandardScaler

from .._arguments import check_flag, shown
from .._arrays import Floats
from .._models import repeated_rows
from .ridge import PooledRidge, QuadraticRidge

__all__ = [
    "DEFAULT_VALUES",
    "PRESETS",
    "LearnedValues",
    "PaperNetwork",
    "ValueRegressor",
    "as_regressor",
]


@dataclass(frozen=True)
class ValueRegressor:
    """A scikit-learn regressor, and how its inputs are arranged.

    Parameters
    ----------
    estimator : scikit-learn regressor
        Cloned before each fit.
    pooled : bool
        True: one model per depth for all sets and actions. Its inputs are the values, NaN if not acquired, and indicators
        of set, action and (if used) label. False: one model per set and action. Its inputs are the values known there.
    multi_output : bool
        True if the regressor can learn several targets in one fit.
    """

    estimator: Any
    pooled: bool = True
    multi_output: bool = False

    @property
    def linear(self) -> bool:
        """True if predictions are linear in the targets, so that predicted parts add up to the predicted cost."""
        return isinstance(self.estimator, QuadraticRidge)

    @property
    def of_cases(self) -> ValueRegressor:
        """The regressor for rows that stand for several cases."""
        return replace(self, estimator=clone(self.estimator).set_params(cases=True)) if self.linear else self


class PaperNetwork(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """The paper's network: two hidden layers of 16, ReLU, learning rate 0.001.

    Inputs and targets are standardised. NaN becomes the mean; indicators of the set are inputs too. With fewer than ``least``
    rows it predicts the mean.
    """

    def __init__(self, max_iter: int = 200, least: int = 20, random_state: int | None = 0) -> None:
        self.max_iter, self.least, self.random_state = max_iter, least, random_state

    def fit(self, X: Floats, y: Floats, sample_weight: Floats | None = None) -> PaperNetwork:
        """Fit; y has shape (m,) or (m, V)."""
        rows = np.arange(len(X))
        if sample_weight is not None:
            rows = repeated_rows(np.asarray(sample_weight, dtype=float))
        X, target = X[rows], y[rows]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # training for max_iter epochs is the intention
            self.inputs_ = StandardScaler().fit(X)
            self.centre_, spread = target.mean(axis=0), target.std(axis=0)
            self.spread_ = np.where(spread > 0, spread, 1.0)
            self.network_ = None
            if len(X) >= self.least:
                network = MLPRegressor(
                    hidden_layer_sizes=(16, 16),
                    learning_rate_init=0.001,
                    max_iter=self.max_iter,
                    random_state=self.random_state,
                )
                self.network_ = network.fit(self._scaled(X), (target - self.centre_) / self.spread_)
        return self

    def predict(self, X: Floats) -> Floats:
        """Predict all targets."""
        if self.network_ is None:
            return np.asarray(np.broadcast_to(self.centre_, (len(X), *np.shape(self.centre_))))
        return np.asarray(self.network_.predict(self._scaled(X)) * self.spread_ + self.centre_)

    def _scaled(self, X: Floats) -> Floats:
        return np.asarray(np.nan_to_num(self.inputs_.transform(X), nan=0.0))


def _boosting() -> Any:
    return HistGradientBoostingRegressor(
        max_iter=60, learning_rate=0.1, max_leaf_nodes=8, min_samples_leaf=20, early_stopping=False, random_state=0
    )


PRESETS = {
    "quadratic": lambda: ValueRegressor(QuadraticRidge(), pooled=False, multi_output=True),
    "pooled": lambda: ValueRegressor(PooledRidge(), multi_output=True),
    "boosting": lambda: ValueRegressor(_boosting()),
    "network": lambda: ValueRegressor(PaperNetwork(), multi_output=True),
}


def as_regressor(regressor: Any, argument: str = "values") -> ValueRegressor:
    """Return a `ValueRegressor` from the name of a preset, a `ValueRegressor`, or a scikit-learn regressor."""
    if isinstance(regressor, ValueRegressor):
        return regressor
    if isinstance(regressor, str):
        if regressor not in PRESETS:
            raise ValueError(f"{argument!r} must be one of {list(PRESETS)} or a regressor, but is {regressor!r}.")
        return PRESETS[regressor]()
    if isinstance(regressor, type) or not (hasattr(regressor, "fit") and hasattr(regressor, "predict")):
        raise TypeError(
            f"{argument!r} must be a preset ({list(PRESETS)}), an instance of a scikit-learn regressor, a ValueRegressor, "
            f"LearnedValues or KnownValues, not {shown(regressor)}."
        )
    return ValueRegressor(regressor)


@dataclass(frozen=True)
class LearnedValues:
    """How action values are learned.

    Parameters
    ----------
    regressor : str or regressor
        "quadratic" (ridge regression on squares and products, one per set and action; one per depth if there are more than 64
        pairs of set and action with fewer than 20 lines on average), "pooled" (one ridge regression per depth: faster and more
        stable if a policy reaches hundreds of sets), "boosting", "network" (as in the paper), any scikit-learn regressor that
        accepts NaN, or a `ValueRegressor`.
    augment_label : bool
        True if action values may also condition on the label. The agent never sees the label, but the estimator may use it.
        This usually lowers the variance. Estimates change, but stay consistent, because the label is always recorded. If
        recording depends on the label, action values always condition on it.
    """

    regressor: Any = "quadratic"
    augment_label: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "regressor", as_regressor(self.regressor, "regressor"))
        check_flag("augment_label", self.augment_label)

    @property
    def of_parts(self) -> LearnedValues:
        """Settings for action values of the parts: always ridge regression, so that parts add up to costs."""
        return self if self.regressor.linear else LearnedValues("quadratic", self.augment_label)


DEFAULT_VALUES = LearnedValues()
