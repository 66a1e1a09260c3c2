"""Regression models of action values, and presets of them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor
from sklearn.preprocessing import StandardScaler

from .._arrays import Bools, Floats, Ints, lines_of, unique_sets
from .._models import fit_alone, fit_weighted
from .ridge import PooledRidge, QuadraticRidge

__all__ = [
    "DEFAULT_VALUES",
    "PRESETS",
    "DepthModel",
    "Features",
    "LearnedValues",
    "PaperNetwork",
    "ValueRegressor",
    "as_regressor",
]


_MANY_KINDS = 64  # with more pairs of set and action at a depth, one model for all is fitted, unless lines are many
_LINES_PER_KIND = 20  # mean number of lines per pair that counts as many


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
            rows = np.repeat(rows, np.asarray(sample_weight).astype(int))
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


def as_regressor(regressor: Any) -> ValueRegressor:
    """Return a `ValueRegressor` from the name of a preset, a `ValueRegressor`, or a scikit-learn regressor."""
    if isinstance(regressor, ValueRegressor):
        return regressor
    if isinstance(regressor, str):
        if regressor not in PRESETS:
            raise ValueError(f"'values' must be one of {list(PRESETS)} or a regressor, but is {regressor!r}.")
        return PRESETS[regressor]()
    if isinstance(regressor, type) or not (hasattr(regressor, "fit") and hasattr(regressor, "predict")):
        raise TypeError(
            f"'values' must be a preset ({list(PRESETS)}), an instance of a scikit-learn regressor, a ValueRegressor, "
            f"LearnedValues or KnownValues, not {regressor!r}."
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
        object.__setattr__(self, "regressor", as_regressor(self.regressor))
        if not isinstance(self.augment_label, bool | np.bool_):
            raise TypeError(f"'augment_label' must be True or False, but is {self.augment_label!r}.")

    @property
    def of_parts(self) -> LearnedValues:
        """Settings for action values of the parts: always ridge regression, so that parts add up to costs."""
        return self if self.regressor.linear else LearnedValues("quadratic", self.augment_label)


DEFAULT_VALUES = LearnedValues()


class Features(NamedTuple):
    """Inputs of the regressions, one line per state."""

    values: Floats  # (m, d), NaN where neither acquired nor given
    acquired: Bools  # (m, G)
    label: Floats  # (m, K - 1) or (m, 0); one more column, 1 if stopping would be right, if that is known


class DepthModel:
    """Regressions of one depth and one fold: one pooled model, or one model per set and action.

    For a set and action without a model, a fallback model with fewer inputs predicts: the values known in every set of this
    depth, and indicators of the action. Ridge regression uses one penalty for all targets, chosen by the ``unit`` targets.

    Parameters
    ----------
    spec : ValueRegressor
        The regressor.
    features, actions : Features, ndarray of bool
        Inputs of the lines.
    target : ndarray of shape (m, V)
        Targets of the lines.
    weight : ndarray of shape (m,), optional
        Weights of the lines.
    shared : ndarray of bool, shape (d,)
        Columns that are known in every set of this depth.
    unit : ndarray of bool, shape (V,)
        Targets that choose the penalty; all targets if none is marked.
    """

    def __init__(
        self,
        spec: ValueRegressor,
        features: Features,
        actions: Bools,
        target: Floats,
        weight: Floats | None,
        shared: Bools,
        unit: Bools,
    ) -> None:
        self.spec, self.shared, self.unit, self.n_targets = spec, shared, unit, target.shape[1]
        self.models: dict[bytes, tuple[Bools, Any]] = {}
        if len(target) == 0:
            return
        kinds, index = unique_sets(np.column_stack([features.acquired, actions]))
        if spec.linear and len(kinds) > max(_MANY_KINDS, len(target) / _LINES_PER_KIND):
            # Models with one or two lines each would learn nothing.
            self.spec = spec = ValueRegressor(PooledRidge(spec.estimator.alpha), multi_output=True)
        if spec.pooled:
            X = self._pooled(features, actions)
            keep = np.asarray(~np.isnan(X).all(axis=0))  # boosting raises an error for a column without values
            self.models[b""] = keep, self._fit(X[:, keep], target, weight)
            return
        for kind, lines in zip(kinds, lines_of(index, len(kinds)), strict=True):
            known = ~np.isnan(features.values[lines[0]])
            X = np.column_stack([features.values[lines][:, known], features.label[lines]])
            self.models[kind.tobytes()] = known, self._fit(X, target[lines], None if weight is None else weight[lines])
        self.fallback = self._fit(self._fewer(features, actions), target, weight)

    def _fewer(self, features: Features, actions: Bools) -> Floats:
        return np.column_stack([features.values[:, self.shared], features.label, actions])

    @staticmethod
    def _pooled(features: Features, actions: Bools) -> Floats:
        return np.column_stack([features.values, features.acquired, actions, features.label])

    def _fit(self, X: Floats, target: Floats, weight: Floats | None) -> Any:
        if X.shape[1] == 0:  # no inputs: predict the mean
            return np.average(target, axis=0, weights=weight)
        if self.spec.linear:  # our own class: it uses no threads and accepts weights
            by = np.flatnonzero(self.unit) if self.unit.any() else None
            return clone(self.spec.estimator).fit(X, target, sample_weight=weight, by=by)
        if self.spec.multi_output:
            return self._learned(X, target if self.n_targets > 1 else target[:, 0], weight)
        return [self._learned(X, target[:, j], weight) for j in range(self.n_targets)]

    def _learned(self, X: Floats, target: Floats, weight: Floats | None) -> Any:
        if weight is None:
            return fit_alone(clone(self.spec.estimator), X, target)
        return fit_weighted(self.spec.estimator, X, target, weight)

    def count_unknown(self, acquired: Bools, actions: Bools) -> int:
        """Return the number of lines whose set and action have no model."""
        if not self.models:
            return len(actions)
        if self.spec.pooled:
            return 0
        kinds, index = unique_sets(np.column_stack([acquired, actions]))
        known = np.array([kind.tobytes() in self.models for kind in kinds], dtype=bool)
        return int((~known[index]).sum())

    def predict(self, features: Features, actions: Bools, columns: Ints) -> Floats:
        """Predict some targets, (m, len(columns)); NaN if there was no line to learn from."""
        out = np.full((len(actions), len(columns)), np.nan)
        if not self.models:
            return out
        if self.spec.pooled:
            keep, model = self.models[b""]
            return self._ask(model, self._pooled(features, actions)[:, keep], columns)
        kinds, index = unique_sets(np.column_stack([features.acquired, actions]))
        for one, lines in zip(kinds, lines_of(index, len(kinds)), strict=True):
            if (found := self.models.get(one.tobytes())) is None:
                part = Features(features.values[lines], features.acquired[lines], features.label[lines])
                fewer = self._fewer(part, actions[lines])
                if not np.isnan(fewer).any():  # otherwise the shared values are unknown here: NaN
                    out[lines] = self._ask(self.fallback, fewer, columns)
                continue
            known, model = found
            X = np.column_stack([features.values[lines][:, known], features.label[lines]])
            out[lines] = self._ask(model, X, columns)
        return out

    def _ask(self, model: Any, X: Floats, columns: Ints) -> Floats:
        if isinstance(model, np.ndarray):
            return np.broadcast_to(model[columns], (len(X), len(columns)))
        if self.spec.linear:
            return np.asarray(model.predict(X, columns))
        models = model if isinstance(model, list) else [model]
        answers = [np.array(m.predict(X.copy()), dtype=float) for m in models]  # copies: the model may be the user's
        found = np.column_stack(answers) if all(len(a) == len(X) for a in answers) else answers[0]
        if found.shape != (len(X), self.n_targets) or not np.isfinite(found).all():
            raise ValueError(
                f"The regressor {type(self.spec.estimator).__name__} must predict {self.n_targets} finite number(s) per row, "
                f"but returned shape {found.shape} with {int((~np.isfinite(found)).sum())} NaN or infinite."
            )
        return np.asarray(found[:, columns])
