"""Classifiers that predict from whatever was acquired: the protocol, its checks, impute-then-regress."""

from __future__ import annotations

import inspect
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import RandomForestClassifier

from .arrays import Bools, Floats, Ints
from .data import Retrospective
from .notices import SeenRowsWarning, UnrecordedColumnWarning, warn

__all__ = ["Classifier", "ImputedClassifier", "ask_classifier", "check_classifier"]

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
    """Impute unconditional means, then classify.

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

    Attributes
    ----------
    classes_ : ndarray
        Labels met in training.
    means_ : ndarray of shape (d,)
        Means of the recorded values.
    """

    def __init__(self, estimator: Any = None, drop_probability: float = 0.5, random_state: int | None = 0) -> None:
        self.estimator = estimator
        self.drop_probability = drop_probability
        self.random_state = random_state

    def fit(self, data: Retrospective) -> ImputedClassifier:
        """Train on these records."""
        if not 0 <= self.drop_probability < 1:
            raise ValueError(f"'drop_probability' must lie in [0, 1), but is {self.drop_probability!r}.")
        rng = np.random.default_rng(self.random_state)
        kept = data.problem.free | (rng.random(data.recorded.shape) >= self.drop_probability)
        thinned = np.where(kept[:, data.column_group], data.values, np.nan)
        self.means_ = column_means(data)
        self.column_group_, self.columns_ = data.column_group, data.columns
        X = np.concatenate([self._impute(data.values), self._impute(thinned)])
        y = np.concatenate([data.labels, data.labels])
        model = self.estimator
        if model is None:
            model = RandomForestClassifier(n_estimators=50, max_depth=10, random_state=self.random_state)
        self.estimator_ = clone(model).fit(X, y)
        self.classes_ = data.classes[np.unique(data.labels)]
        self.label_classes_ = data.classes
        self._source, self._positions = data.source, data.positions
        self._fingerprints = data.fingerprints()
        return self

    def predict(self, values: Floats, acquired: Bools) -> Ints:
        """Predict label codes from the acquired groups alone."""
        if not hasattr(self, "estimator_"):
            raise RuntimeError("This ImputedClassifier is not fitted yet; call fit(training_data) first.")
        values = np.asarray(values, dtype=float)
        if values.ndim != 2 or values.shape[1] != len(self.means_):
            raise ValueError(
                f"'values' must have the {len(self.means_)} columns of training, but has shape {values.shape}."
            )
        seen = np.where(np.asarray(acquired)[:, self.column_group_], values, np.nan)
        return np.asarray(self.estimator_.predict(self._impute(seen)), dtype=np.intp)

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
    seen = classifier.seen(data) if callable(getattr(classifier, "seen", None)) else 0
    if seen:
        warn(
            f"The classifier {name} was trained on {seen} of the {len(data)} rows that it is judged on, so its "
            "misclassification cost will look too low. Hold out rows: train, test = data.split([0.5, 0.5]).",
            SeenRowsWarning,
        )
    return classifier  # type: ignore[no-any-return]


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
