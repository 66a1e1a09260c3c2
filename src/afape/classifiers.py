"""Classifiers that predict from whatever was acquired: the protocol, its checks, impute-then-regress."""

from __future__ import annotations

import inspect
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GroupKFold

from .arguments import check_flag, check_number, check_seed
from .arrays import Bools, Floats, Ints
from .data import Retrospective
from .notices import SeenRowsWarning, UnrecordedColumnWarning, warn

__all__ = ["Classifier", "ImputedClassifier", "ask_classifier", "check_classifier", "check_not_training"]

# Rows of separately built tables are recognised by their values. Where values are few, equal rows are no
# sign of one and the same case, so a small share of look-alikes is not worth a warning.
_LOOKALIKE_SHARE = 0.01


@runtime_checkable
class Classifier(Protocol):
    """Anything that predicts a label code from what was acquired.

    A classifier may also have ``classes_``, the labels or codes that it can predict, and ``seen(data)``,
    which counts the rows of ``data`` that it was trained on; `evaluate` looks at both.
    """

    def predict(self, values: Floats, acquired: Bools) -> NDArray[Any]:
        """Label codes of shape (n,) from values of shape (n, d), NaN outside the acquired groups (n, G)."""
        ...


class ImputedClassifier(BaseEstimator):  # type: ignore[misc]
    r"""Impute unconditional means, then classify.

    Trained on the recorded data and on a second copy in which each costly group is dropped with probability
    ``drop_probability``, so that it meets the small sets an agent stops with.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        Default: random forest of 50 trees, depth 10.
    drop_probability : float
        Chance of each costly group to be dropped from the second copy.
    random_state : int or None
        Seed of the dropping and of the default forest.
    decide : {"likely", "cost"}
        Predict the most likely class, or the class of least expected cost,
        :math:`\arg\min_k \sum_c p_c C_{ck}` with C the misclassification cost of the problem.
    calibrate : bool, optional
        Learn on held-out folds how often a class occurs where it is predicted with a given probability (Platt's sigmoid), and
        use that. Default: with ``decide="cost"``, where probabilities matter.

    Attributes
    ----------
    classes_ : ndarray
        Labels met in training.
    means_ : ndarray of shape (d,)
        Means of the recorded values.
    """

    def __init__(
        self,
        estimator: Any = None,
        drop_probability: float = 0.5,
        random_state: int | None = 0,
        decide: str = "likely",
        calibrate: bool | None = None,
    ) -> None:
        self.estimator = estimator
        self.drop_probability = drop_probability
        self.random_state = random_state
        self.decide = decide
        self.calibrate = calibrate

    def fit(self, data: Retrospective) -> ImputedClassifier:
        """Train on these records."""
        self._check(data)
        rng = np.random.default_rng(self.random_state)
        kept = data.problem.free | (rng.random(data.recorded.shape) >= self.drop_probability)
        thinned = np.where(kept[:, data.column_group], data.values, np.nan)
        self.means_ = column_means(data)
        self.column_group_, self.columns_ = data.column_group, data.columns
        self.groups_, self.costs_, self.codes_ = dict(data.problem.groups), data.costs, np.unique(data.labels)
        X = np.concatenate([self._impute(data.values), self._impute(thinned)])
        y = np.concatenate([data.labels, data.labels])
        model = self.estimator
        if model is None:
            model = RandomForestClassifier(n_estimators=50, max_depth=10, random_state=self.random_state)
        self.estimator_ = self._fitted(clone(model), X, y)
        self.classes_ = data.classes[np.unique(data.labels)]
        self.label_classes_ = data.classes
        self._source, self._positions = data.source, data.positions
        self._fingerprints = data.fingerprints()
        return self

    def _check(self, data: Any) -> None:
        if not isinstance(data, Retrospective):
            raise TypeError(f"'data' must be an afape.Retrospective, not {type(data).__name__}.")
        check_number("drop_probability", self.drop_probability, "lie in [0, 1)", lambda v: 0 <= v < 1)
        check_seed(self.random_state)
        if self.decide not in ("likely", "cost"):
            raise ValueError(f"'decide' must be 'likely' or 'cost', but is {self.decide!r}.")
        if self.calibrate is not None:
            check_flag("calibrate", self.calibrate)
        model = self.estimator
        if isinstance(model, type):
            raise TypeError(f"'estimator' must be an instance, but is the class {model.__name__}.")
        if isinstance(model, BaseEstimator) and is_regressor(model):
            raise TypeError(
                f"'estimator' must be a classifier, but {type(model).__name__} is a regressor: 0.9 would become class 0."
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
                f"'decide' cost needs probabilities, but {type(model).__name__} gives none. Leave 'calibrate' on."
            )

    def _fitted(self, model: Any, X: Floats, y: Ints) -> Any:
        """The model on these rows, of which the second half repeats the first; calibrated where that is wanted."""
        calibrate = self.decide == "cost" if self.calibrate is None else self.calibrate
        if calibrate:
            row = np.tile(np.arange(len(y) // 2), 2)  # both copies of a row go into one fold
            folds = int(min(5, np.bincount(y)[np.unique(y)].min() // 2))
            if folds < 2:
                raise ValueError(
                    "'calibrate' needs at least two rows of every class, but one has fewer. Pass calibrate=False."
                )
            model = CalibratedClassifierCV(model, cv=list(GroupKFold(folds).split(X, y, row)), method="sigmoid")
        try:
            return model.fit(X, y)
        except Exception as error:
            raise ValueError(
                f"'estimator' {type(self.estimator).__name__} could not be trained on {len(X)} rows and {X.shape[1]} columns: "
                f"{error}"
            ) from error

    def predict_proba(self, values: Floats, acquired: Bools) -> Floats:
        """Probability of every class of the data, shape (n, K), from the acquired groups alone; 0 for classes never met."""
        X = self._inputs(values, acquired)
        if not hasattr(self.estimator_, "predict_proba"):
            raise TypeError(
                f"{type(self.estimator_).__name__} gives no probabilities. Use ImputedClassifier(..., calibrate=True)."
            )
        out = np.zeros((len(X), len(self.label_classes_)))
        out[:, np.asarray(self.estimator_.classes_, dtype=np.intp)] = self.estimator_.predict_proba(X)
        return out

    def predict(self, values: Floats, acquired: Bools) -> Ints:
        """Predict label codes from the acquired groups alone."""
        if self.decide == "cost":
            return np.asarray((self.predict_proba(values, acquired) @ self.costs_).argmin(axis=1), dtype=np.intp)
        X = self._inputs(values, acquired)
        return np.asarray(self.estimator_.predict(X), dtype=np.intp)

    def _inputs(self, values: Floats, acquired: Bools) -> Floats:
        """What the model is asked about: acquired values, and means elsewhere."""
        if not hasattr(self, "estimator_"):
            raise RuntimeError("This ImputedClassifier is not fitted yet; call fit(training_data) first.")
        values = np.asarray(values, dtype=float)
        if values.ndim != 2 or values.shape[1] != len(self.means_):
            raise ValueError(
                f"'values' must have the {len(self.means_)} columns of training, but has shape {values.shape}."
            )
        seen = np.where(np.asarray(acquired)[:, self.column_group_], values, np.nan)
        return self._impute(seen)

    def seen(self, data: Retrospective) -> int:
        """Count rows of ``data`` that this classifier was trained on.

        Rows of one table are known by their place in it, rows of another by their values and label.
        """
        if not hasattr(self, "estimator_"):
            raise RuntimeError("This ImputedClassifier is not fitted yet; call fit(training_data) first.")
        if data.source == self._source:
            return int(np.isin(data.positions, self._positions).sum())
        ours, place, count = np.unique(self._fingerprints, return_inverse=True, return_counts=True)
        # A row of training finds its like among the others as often as a new row does: exchangeable but for one.
        chance = float((count[place] > 1).mean())
        alike = float(np.isin(data.fingerprints(), ours).mean())
        error = np.sqrt(chance * (1 - chance) * (1 / len(data) + 1 / len(place)))
        if alike - chance <= _LOOKALIKE_SHARE + 4 * error:
            return 0
        return round((alike - chance) / (1 - chance) * len(data))

    def _impute(self, values: Floats) -> Floats:
        return np.where(np.isnan(values), self.means_, values)


def column_means(data: Retrospective) -> Floats:
    """Mean of the recorded values of each column; 0, with a warning, where there are none."""
    count = (~np.isnan(data.values)).sum(axis=0)
    if (count == 0).any():
        names = [data.columns[j] for j in np.flatnonzero(count == 0)]
        warn(
            f"No row records {names}, so there is no mean to impute and 0 is used. Leave the group out of the "
            "problem if nobody ever measured it.",
            UnrecordedColumnWarning,
        )
    return np.asarray(np.nansum(data.values, axis=0) / np.maximum(count, 1))


def check_classifier(classifier: Any, data: Retrospective) -> Classifier:
    """Refuse what cannot classify these records, and warn of rows seen in training."""
    name = type(classifier).__name__
    if isinstance(classifier, type):
        raise TypeError(f"'classifier' must be an instance, but is the class {classifier.__name__} itself.")
    if isinstance(classifier, ClassifierMixin):
        try:
            inspect.signature(classifier.predict).bind(None, None)
        except TypeError as error:
            raise TypeError(
                f"'classifier' must have a method predict(values, acquired), but {name} takes values alone. Use "
                f"afape.ImputedClassifier({name}(...)).fit(training_data)."
            ) from error
    if (
        isinstance(classifier, BaseEstimator)
        and not isinstance(classifier, ImputedClassifier)
        and is_regressor(classifier)
    ):
        raise TypeError(f"'classifier' must predict label codes, but {name} is a regressor.")
    if not callable(getattr(classifier, "predict", None)):
        raise TypeError(f"'classifier' must have a method predict(values, acquired), but {name} has none.")
    if isinstance(classifier, ImputedClassifier) and not hasattr(classifier, "estimator_"):
        raise RuntimeError("'classifier' is not fitted yet; call classifier.fit(training_data) first.")
    known = getattr(classifier, "classes_", None)
    if known is not None:
        _check_known_classes(name, np.asarray(known), data)
    coded = getattr(classifier, "label_classes_", None)
    if coded is not None and list(coded) != list(data.classes):
        raise ValueError(
            f"The classifier {name} codes the labels {np.asarray(coded).tolist()}, the data {data.classes.tolist()}, so "
            "equal codes mean different labels. List all labels in 'classes' of the Problem and build both tables with it."
        )
    columns = getattr(classifier, "columns_", None)
    if columns is not None and tuple(columns) != data.columns:
        raise ValueError(
            f"The classifier {name} was trained on the columns {list(columns)}, the data have {list(data.columns)}. Declare "
            "'categories' in the Problem and build both tables with it."
        )
    groups = getattr(classifier, "groups_", None)
    if isinstance(groups, dict) and groups != dict(data.problem.groups):
        raise ValueError(
            f"The classifier {name} was trained with the groups {groups}, the data have {dict(data.problem.groups)}. Build both "
            "tables with one Problem."
        )
    check_not_training(classifier, "classifier")
    seen = classifier.seen(data) if callable(getattr(classifier, "seen", None)) else 0
    if seen:
        warn(
            f"The classifier {name} was trained on {seen} of the {len(data)} rows that it is judged on, so its "
            "misclassification cost will look too low. Hold out rows: train, test = data.split([0.5, 0.5]).",
            SeenRowsWarning,
        )
    return classifier  # type: ignore[no-any-return]


def check_not_training(model: Any, argument: str) -> None:
    """Refuse a network left in training mode, itself or as an attribute: with dropout, two calls disagree."""
    inside = list(vars(model).values()) if hasattr(model, "__dict__") else []
    for part in (model, *inside):
        if getattr(part, "training", False) is True and callable(getattr(part, "eval", None)):
            raise ValueError(
                f"{argument!r} must answer the same question in the same way, but {type(part).__name__} is in training mode, in "
                "which layers such as dropout draw at random. Call its eval() first."
            )


def _check_known_classes(name: str, known: NDArray[Any], data: Retrospective) -> None:
    present = np.unique(data.labels)
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
    """Predicted codes for these states, checked; ``rows`` name the rows in an error."""
    name = type(classifier).__name__
    answer = classifier.predict(values, acquired.copy())  # a copy, as for the policy
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
            f"The classifier {name} must return label codes 0..{n_classes - 1}, but {int(bad.sum())} of {len(codes)} "
            f"states do not hold to it, the first in row {int(rows[first])}: {codes[first]}."
        )
    return codes
