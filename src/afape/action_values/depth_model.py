"""Regressions of one depth of the backward induction, and what their errors do to an estimate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from .._arrays import Bools, Floats, Ints, lines_of, unique_sets
from .._models import fit_alone, fit_weighted
from .models import ValueRegressor
from .ridge import PooledRidge

__all__ = ["DepthModel", "Features", "Slopes"]

_MANY_KINDS = 64  # with more pairs of set and action at a depth, one model for all is fitted, unless lines are many
_LINES_PER_KIND = 20  # mean number of lines per pair that counts as many
_MAX_LEVERAGE = 0.95  # larger leverages count as this much
_POOLED, _FALLBACK = b"", b"fallback"  # keys of models that serve several sets and actions

Slopes = dict[bytes, Floats]  # derivatives in the coefficients of each model of a depth


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
    keep : bool
        True if residuals of a ridge regression are kept, for standard errors.
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
        keep: bool = False,
    ) -> None:
        self.spec, self.shared, self.unit, self.n_targets = spec, shared, unit, target.shape[1]
        self.models: dict[bytes, Any] = {}
        self.known: dict[bytes, Bools] = {}  # columns that are inputs of the model of a set and action
        self.residual: Floats | None = None  # (m, V), without the unit targets
        self.leverage = np.zeros(0)  # (m,)
        if len(target) == 0:
            return
        kinds, index = unique_sets(np.column_stack([features.acquired, actions]))
        if spec.linear and len(kinds) > max(_MANY_KINDS, len(target) / _LINES_PER_KIND):
            # Models with one or two lines each would learn nothing.
            self.spec = spec = ValueRegressor(
                PooledRidge(spec.estimator.alpha, spec.estimator.cases), multi_output=True
            )
        if keep and spec.linear:
            self.residual, self.leverage = np.empty((len(target), int((~unit).sum()))), np.zeros(len(target))
        if spec.pooled:  # boosting raises an error for a column without values
            self.known[_POOLED] = np.asarray(~np.isnan(self._pooled(features, actions)).all(axis=0))
        for kind, lines in zip(kinds, lines_of(index, len(kinds)), strict=True) if not spec.pooled else ():
            self.known[kind.tobytes()] = np.asarray(~np.isnan(features.values[lines[0]]))
        for key, lines, X in self._inputs(features, actions):
            self.models[key] = self._fit(X, target[lines], None if weight is None else weight[lines], lines)
        if not spec.pooled:
            self.models[_FALLBACK] = self._fit(self._fewer(features, actions), target, weight)

    def _inputs(self, features: Features, actions: Bools) -> Iterator[tuple[bytes, Ints, Floats]]:
        """Yield every model that predicts some of these lines: its key, the lines and their inputs."""
        if self.spec.pooled:
            yield _POOLED, np.arange(len(actions)), self._pooled(features, actions)[:, self.known[_POOLED]]
            return
        kinds, index = unique_sets(np.column_stack([features.acquired, actions]))
        for kind, lines in zip(kinds, lines_of(index, len(kinds)), strict=True):
            if (known := self.known.get(kind.tobytes())) is not None:
                yield kind.tobytes(), lines, np.column_stack([features.values[lines][:, known], features.label[lines]])
                continue
            part = Features(features.values[lines], features.acquired[lines], features.label[lines])
            fewer = self._fewer(part, actions[lines])
            if not np.isnan(fewer).any():  # otherwise the shared values are unknown here
                yield _FALLBACK, lines, fewer

    def _fewer(self, features: Features, actions: Bools) -> Floats:
        return np.column_stack([features.values[:, self.shared], features.label, actions])

    @staticmethod
    def _pooled(features: Features, actions: Bools) -> Floats:
        return np.column_stack([features.values, features.acquired, actions, features.label])

    def _fit(self, X: Floats, target: Floats, weight: Floats | None, lines: Ints | None = None) -> Any:
        """Fit a model; ``lines`` are the lines whose residuals are kept, if residuals are kept."""
        keep = self.residual is not None and lines is not None
        if X.shape[1] == 0:  # no inputs: predict the mean
            mean = np.average(target, axis=0, weights=weight)
            if keep:
                self.residual[lines] = (target - mean)[:, ~self.unit]  # type: ignore[index]
            return mean
        if self.spec.linear:  # our own class: it uses no threads and accepts weights
            by = np.flatnonzero(self.unit) if self.unit.any() else None
            model = clone(self.spec.estimator).fit(X, target, sample_weight=weight, by=by, keep=keep)
            if keep:
                self.residual[lines] = model.__dict__.pop("residual_")[:, ~self.unit]  # type: ignore[index]
                self.leverage[lines] = model.__dict__.pop("leverage_")
            return model
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
        known = np.array([kind.tobytes() in self.known for kind in kinds], dtype=bool)
        return int((~known[index]).sum())

    def predict(self, features: Features, actions: Bools, columns: Ints) -> Floats:
        """Predict some targets, (m, len(columns)); NaN if there was no line to learn from."""
        out = np.full((len(actions), len(columns)), np.nan)
        for key, lines, X in self._inputs(features, actions) if self.models else ():
            out[lines] = self._ask(self.models[key], X, columns)
        return out

    def slopes(self, features: Features, actions: Bools, amount: Floats) -> tuple[Slopes, Bools]:
        """Return the derivatives of the sum of ``amount`` (m,) times the predictions, by model, and lines without a model."""
        out: Slopes = {}
        unknown = np.ones(len(actions), dtype=bool)
        for key, lines, X in self._inputs(features, actions) if self.models else ():
            model, mine = self.models[key], amount[lines]
            found = np.array([mine.sum()]) if isinstance(model, np.ndarray) else model.slopes(X, mine)
            out[key] = out.get(key, 0.0) + found
            unknown[lines] = False
        return out, unknown

    def errors(
        self, features: Features, actions: Bools, weight: Floats, slopes: Slopes, columns: Ints
    ) -> tuple[Floats, Floats]:
        r"""Return what the lines that were learned from contribute to a sum of predictions with these ``slopes``.

        The first array (m,) are the derivatives in the targets, the second (m, len(columns)) the derivatives in the logarithms
        of the weights, see `QuadraticRidge`. Residuals are divided by :math:`\sqrt{1 - h}` with leverage h (HC2, MacKinnon and
        White 1985), because a regression with many coefficients makes its own residuals small.
        """
        assert self.residual is not None
        share = np.zeros(len(actions))
        for key, lines, X in self._inputs(features, actions):
            if key in slopes:
                share[lines] = _shares(self.models[key], X, weight[lines], slopes[key])
        honest = share / np.sqrt(1 - np.minimum(self.leverage, _MAX_LEVERAGE))
        out = honest[:, None] * self.residual[:, columns]
        if _FALLBACK in slopes:
            model, X = self.models[_FALLBACK], self._fewer(features, actions)
            more = _shares(model, X, weight, slopes[_FALLBACK])
            target = self.residual[:, columns] + self.predict(features, actions, columns)
            out += more[:, None] * (target - self._ask(model, X, columns))
            share += more
        return share, out

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


def _shares(model: Any, X: Floats, weight: Floats, slopes: Floats) -> Floats:
    """Return the derivatives of a sum of predictions in the targets; a model without inputs is a mean."""
    if isinstance(model, np.ndarray):
        return np.asarray(weight * slopes[0] / weight.sum())
    return np.asarray(model.shares(X, weight, slopes))
