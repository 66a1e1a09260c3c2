"""ImputedClassifier: imputes means, then classifies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import Pipeline

from .._arguments import LARGEST_SEED, check_choice, check_flag, check_number, check_seed
from .._arrays import Bools, Floats, Ints
from .._models import repeated_rows, takes_weights
from ..data.retrospective import Retrospective, check_records
from ..warnings import UnrecordedColumnWarning, warn
from .training_rows import TrainingRows

__all__ = ["ImputedClassifier", "column_means"]

_FEWEST = 4  # rows of the rarest class with which probabilities are calibrated by default


class ImputedClassifier(BaseEstimator):  # type: ignore[misc]
    r"""Impute unconditional means, then classify.

    The classifier is trained on the recorded data and on further copies in which each costly group is dropped with
    probability ``drop_probability``. So it also learns from the small sets that agents stop with. Row weights of the records are
    passed to the estimator. If it takes none, or is a pipeline, rows are repeated as often as their weights say.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        Default: random forest of 50 trees, depth 10.
    drop_probability : float or sequence of float
        Probability that a costly group is dropped from a row of the second copy. Several numbers give several copies; in a
        copy with probability 1 only the free groups are left.
    random_state : int or None
        Seed of the dropping and of the default forest.
    decide : {"label", "cost"}, optional
        Predict the most likely label, or the label of least expected cost,
        :math:`\arg\min_k \sum_c p_c C_{ck}`, where C is the misclassification cost of the problem. Default: "cost" if
        errors have different costs, else "label".
    calibrate : bool, optional
        Calibrate the probabilities on held-out folds with Platt's sigmoid. Default: True if the classifier decides by cost and
        every class has at least four rows.
    impute : bool
        False passes NaN to the estimator where a value is not acquired. The estimator must accept NaN.

    Attributes
    ----------
    classes_ : ndarray
        Labels that occur in the training data.
    decide_ : str
        How the classifier decides: "label" or "cost".
    means_ : ndarray of shape (d,)
        Means of the recorded values.
    """

    def __init__(
        self,
        estimator: Any = None,
        drop_probability: float | Sequence[float] = 0.5,
        random_state: int | None = 0,
        decide: str | None = None,
        calibrate: bool | None = None,
        impute: bool = True,
    ) -> None:
        self.estimator = estimator
        self.drop_probability = drop_probability
        self.random_state = random_state
        self.decide = decide
        self.calibrate = calibrate
        self.impute = impute

    def fit(self, data: Retrospective) -> ImputedClassifier:
        """Train on the rows of these records that have a label."""
        self._check(data)
        data = data.with_labels()
        self.means_ = column_means(data)
        self.column_group_, self.columns_ = data.column_group, data.columns
        self.groups_, self.costs_ = dict(data.problem.groups), data.costs
        self.decide_ = self.decide or ("cost" if _costs_differ(data.costs) else "label")
        copies = [data.values, *self._thinned(data)]
        X = np.concatenate([self._filled(values) for values in copies])
        y = np.tile(data.labels, len(copies))
        model = self.estimator
        if model is None:
            model = RandomForestClassifier(n_estimators=50, max_depth=10, random_state=self.random_state)
        weight = None if data.weight is None else np.tile(data.weight, len(copies))
        self.estimator_ = self._fitted(clone(model), X, y, len(copies), weight)
        self.classes_ = data.classes[np.unique(data.labels)]
        self.label_classes_ = data.classes
        self.rows_ = TrainingRows.of(data)
        return self

    @property
    def _shares(self) -> list[Any]:
        """Drop probabilities of the copies."""
        given = self.drop_probability
        several = isinstance(given, list | tuple) or (isinstance(given, np.ndarray) and given.ndim == 1)
        return list(given) if several else [given]  # type: ignore[arg-type]

    def _thinned(self, data: Retrospective) -> list[Floats]:
        """Return copies of the values (n, d) in which costly groups are dropped at random."""
        rng = np.random.default_rng(self.random_state)
        kept = [data.problem.free | (rng.random(data.recorded.shape) >= share) for share in self._shares]
        return [np.where(k[:, data.column_group], data.values, np.nan) for k in kept]

    def _check(self, data: Any) -> None:
        check_records(data)
        for share in self._shares:
            check_number("drop_probability", share, "lie in [0, 1]", lambda v: 0 <= v <= 1)
        check_seed(self.random_state, most=LARGEST_SEED)
        if self.decide is not None:
            check_choice("decide", self.decide, ("label", "cost"))
        check_flag("impute", self.impute)
        if self.calibrate is not None:
            check_flag("calibrate", self.calibrate)
        model = self.estimator
        if isinstance(model, type):
            raise TypeError(f"'estimator' must be an instance, but is the class {model.__name__}.")
        if isinstance(model, BaseEstimator) and is_regressor(model):
            raise TypeError(
                f"'estimator' must be a classifier, but {type(model).__name__} is a regressor: "
                "a prediction of 0.9 would become class 0."
            )
        lacking = [m for m in ("fit", "predict") if model is not None and not hasattr(model, m)]
        if lacking:
            raise TypeError(
                f"'estimator' must be a scikit-learn classifier, but {type(model).__name__} lacks {lacking[0]}."
            )
        if (
            model is not None
            and self.decide == "cost"
            and not hasattr(model, "predict_proba")
            and self.calibrate is False
        ):
            raise TypeError(
                f"decide='cost' needs probabilities, but {type(model).__name__} gives none. Do not pass calibrate=False."
            )

    def _fitted(self, model: Any, X: Floats, y: Ints, n_copies: int, weight: Floats | None) -> Any:
        """Fit the model, calibrated if requested. ``n_copies`` rows in X are copies of one case.

        If the model takes no weights, rows are repeated as often as their weights say.
        """
        n_folds = int(min(5, np.bincount(y)[np.unique(y)].min() // n_copies))
        calibrate = self.calibrate
        if calibrate is None:
            calibrate = self.decide_ == "cost" and n_folds >= _FEWEST
        row = np.tile(np.arange(len(y) // n_copies), n_copies)  # all copies of a case go into one fold
        if weight is not None and (not takes_weights(model) or isinstance(model, Pipeline)):
            repeated = repeated_rows(weight)
            X, y, row, weight = X[repeated], y[repeated], row[repeated], None
        if calibrate:
            if n_folds < 2:
                raise ValueError(
                    "'calibrate' needs at least two rows of every class, but one class has fewer. Pass calibrate=False."
                )
            folds = list(GroupKFold(n_folds).split(X, y, row))
            model = CalibratedClassifierCV(model, cv=folds, method="sigmoid", ensemble=False)
        try:
            return model.fit(X, y) if weight is None else model.fit(X, y, sample_weight=weight)
        except Exception as error:
            raise ValueError(
                f"'estimator' {type(self.estimator).__name__} could not be trained on {len(X)} rows and {X.shape[1]} columns: "
                f"{error}"
            ) from error

    def predict_proba(self, values: Floats, acquired: Bools) -> Floats:
        """Probability of every class, shape (n, K), from the acquired groups; 0 for classes without training rows."""
        X = self._inputs(values, acquired)
        if not hasattr(self.estimator_, "predict_proba"):
            raise TypeError(
                f"{type(self.estimator_).__name__} gives no probabilities. Use ImputedClassifier(..., calibrate=True)."
            )
        out = np.zeros((len(X), len(self.label_classes_)))
        out[:, np.asarray(self.estimator_.classes_, dtype=np.intp)] = self.estimator_.predict_proba(X)
        return out

    def predict(self, values: Floats, acquired: Bools) -> Ints:
        """Predict label codes, shape (n,), from the acquired groups."""
        if getattr(self, "decide_", "") == "cost":
            return np.asarray((self.predict_proba(values, acquired) @ self.costs_).argmin(axis=1), dtype=np.intp)
        X = self._inputs(values, acquired)
        return np.asarray(self.estimator_.predict(X), dtype=np.intp)

    def _inputs(self, values: Floats, acquired: Bools) -> Floats:
        """Inputs of the model, shape (n, d): acquired values, and means or NaN elsewhere."""
        if not hasattr(self, "estimator_"):
            raise RuntimeError("This ImputedClassifier is not fitted yet; call fit(training_data) first.")
        values = np.asarray(values, dtype=float)
        if values.ndim != 2 or values.shape[1] != len(self.means_):
            raise ValueError(
                f"'values' must have the {len(self.means_)} columns of training, but has shape {values.shape}."
            )
        seen = np.where(np.asarray(acquired)[:, self.column_group_], values, np.nan)
        return self._filled(seen)

    def seen(self, data: Retrospective) -> int:
        """Count the rows of ``data`` that this classifier was trained on.

        Rows of the training table are recognised by their position, rows of another table by their values and label.
        """
        if not hasattr(self, "estimator_"):
            raise RuntimeError("This ImputedClassifier is not fitted yet; call fit(training_data) first.")
        return self.rows_.count_in(data)

    def _filled(self, values: Floats) -> Floats:
        return np.where(np.isnan(values), self.means_, values) if self.impute else values


def _costs_differ(costs: Floats) -> bool:
    """Return True if the label of least expected cost may differ from the most likely label.

    Only the extra cost of an error matters, :math:`C_{ck} - C_{cc}`.
    """
    extra = (costs - np.diag(costs)[:, None])[~np.eye(len(costs), dtype=bool)]
    return bool(len(extra)) and not np.allclose(extra, extra[0], rtol=1e-12, atol=0)


def column_means(data: Retrospective) -> Floats:
    """Mean of the recorded values of each column, shape (d,); 0 with a warning if a column has no value."""
    count = (~np.isnan(data.values)).sum(axis=0)
    if (count == 0).any():
        names = [data.columns[j] for j in np.flatnonzero(count == 0)]
        warn(
            f"No row records {names}, so there is no mean to impute and 0 is used. Leave the group out of the "
            "problem if it is never measured.",
            UnrecordedColumnWarning,
        )
    if data.weight is not None:
        cases = data.weight @ ~np.isnan(data.values)
        return np.asarray(data.weight @ np.nan_to_num(data.values) / np.where(count > 0, cases, 1.0))
    return np.asarray(np.nansum(data.values, axis=0) / np.maximum(count, 1))
