"""train_classifier(): train several classifiers and keep the one whose errors cost least on held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from .._arguments import LARGEST_SEED, check_choice, check_list, check_seed
from .._arrays import Floats, mean_of, units_of
from ..data.retrospective import Retrospective, check_records
from .imputed_classifier import ImputedClassifier

__all__ = ["KINDS", "TrainedClassifier", "train_classifier", "untrained"]

_FOLDS = 3
_MOST = 10_000  # rows that the candidates are compared on
_SHARES = (0.5, 1.0)  # one copy with half of the costly groups, one with the free groups alone


def _forest(seed: int) -> ImputedClassifier:
    return ImputedClassifier(drop_probability=_SHARES, random_state=seed)


def _logistic(seed: int) -> ImputedClassifier:
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return ImputedClassifier(model, _SHARES, random_state=seed)


def _boosting(seed: int) -> ImputedClassifier:
    model = HistGradientBoostingClassifier(
        max_iter=60, max_leaf_nodes=15, l2_regularization=1.0, early_stopping=False, random_state=seed
    )
    return ImputedClassifier(model, _SHARES, random_state=seed, impute=False)


_MAKERS: dict[str, Callable[[int], ImputedClassifier]] = {
    "forest": _forest,
    "logistic": _logistic,
    "boosting": _boosting,
}
KINDS = {
    "forest": "random forest on mean-imputed values",
    "logistic": "logistic regression on mean-imputed values",
    "boosting": "gradient-boosted trees that handle gaps themselves",
}


class TrainedClassifier(NamedTuple):
    """The classifier that was chosen, and what the candidates cost.

    Attributes
    ----------
    classifier : ImputedClassifier
        The chosen classifier, trained on all rows.
    kind : str
        Its kind, one of `KINDS`.
    costs : DataFrame
        Mean misclassification cost on held-out rows. One line per kind, and one line for the best constant answer, which is
        named ``always <label>``. Columns: with the ``free`` groups alone, with ``half`` of the recorded costly groups, with all
        ``recorded`` groups, and their ``mean``.
    """

    classifier: ImputedClassifier
    kind: str
    costs: pd.DataFrame


def untrained(kind: str, random_state: int | None = 0, decide: str | None = None) -> ImputedClassifier:
    """Return a classifier of one of the `KINDS` that is not trained yet."""
    made = _MAKERS[check_choice("kind", kind, tuple(KINDS))](random_state)  # type: ignore[arg-type]
    return made.set_params(decide=decide)  # type: ignore[no-any-return]


def train_classifier(
    data: Retrospective,
    *,
    kinds: Sequence[str] = tuple(KINDS),
    decide: str | None = None,
    random_state: int | None = 0,
) -> TrainedClassifier:
    """Train classifiers of several kinds and keep the one whose errors cost least on held-out rows.

    Every kind is trained on two thirds of the rows and asked about the other third, three times. The classifiers see the
    free groups alone, half of the recorded costly groups, and all recorded groups. The kind with the least mean cost is
    trained again on all rows. Rows of one cluster stay together. With more than 10,000 rows, the kinds are compared on 10,000
    random rows.

    Parameters
    ----------
    data : Retrospective
        Rows to train on. Do not evaluate on them.
    kinds : sequence of str
        Candidates: "forest", "logistic", "boosting".
    decide : {"label", "cost"}, optional
        As in `ImputedClassifier`.
    random_state : int or None
        Seed.

    Examples
    --------
    >>> import numpy as np, pandas as pd, afape
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(size=(2, 300))
    >>> frame = pd.DataFrame({"a": a, "b": np.where(rng.random(300) < 0.7, b, np.nan), "y": (a + b > 1).astype(int)})
    >>> problem = afape.Problem({"a": ["a"], "b": ["b"]}, costs={"b": 1.0}, label="y", misclassification_cost=[[0, 1], [9, 0]])
    >>> found = afape.classifiers.train_classifier(afape.Retrospective(frame, problem))
    >>> list(found.costs["classifier"])
    ['forest', 'logistic', 'boosting', 'always 1']
    """
    data = check_records(data).with_labels()
    check_seed(random_state, most=LARGEST_SEED)
    names = [kinds] if isinstance(kinds, str) else check_list("kinds", kinds, f"kinds out of {list(KINDS)}")
    for name in names:
        check_choice("kinds", name, tuple(KINDS))
    if not names:
        raise ValueError(f"'kinds' must name at least one of {list(KINDS)}, but is empty.")
    made = {name: untrained(name, random_state, decide) for name in names}
    lines = _held_out_costs(data, made, random_state)
    best = min(names, key=lambda name: lines[name]["mean"])
    constant, cost = _constant(data)
    lines[f"always {constant}"] = dict.fromkeys(("free", "half", "recorded", "mean"), cost)
    table = pd.DataFrame([{"classifier": name, **line} for name, line in lines.items()])
    return TrainedClassifier(made[best].fit(data), best, table)


def _constant(data: Retrospective) -> tuple[Any, float]:
    """Return the label that costs least if it is always predicted, and this cost."""
    mean = mean_of(data.costs[data.labels], data.weight)
    return data.classes[int(mean.argmin())], float(mean.min())


def _held_out_costs(
    data: Retrospective, made: dict[str, ImputedClassifier], random_state: int | None
) -> dict[str, dict[str, float]]:
    """Return the mean cost of errors by kind and by what the classifier sees, on held-out rows."""
    rng = np.random.default_rng(random_state)
    unit = units_of(len(data), data.cluster)
    drawn = rng.permutation(int(unit.max()) + 1)[unit]  # a random place for every cluster
    rows = np.flatnonzero(np.argsort(np.argsort(drawn, kind="stable"), kind="stable") < _MOST)
    fold = drawn[rows] % _FOLDS
    half = rng.random((len(rows), data.problem.n_groups)) >= _SHARES[0]
    out: dict[str, dict[str, float]] = {}
    for name, classifier in made.items():
        sums = np.zeros(3)
        for k in range(_FOLDS):
            train, test = data.take(rows[fold != k]), data.take(rows[fold == k])
            if len(test) == 0 or len(np.unique(train.labels)) < len(np.unique(data.labels)):
                raise ValueError(
                    f"'data' must have at least {_FOLDS} rows of every class, spread over at least {_FOLDS} clusters, to compare "
                    "classifiers on held-out rows. Choose one kind, as in kinds=['logistic']."
                )
            fitted = classifier.fit(train)
            free = np.broadcast_to(data.problem.free, test.recorded.shape)
            weight = data.row_weight[rows[fold == k]]
            sums += [_cost(fitted, test, seen, weight) for seen in (free, free | half[fold == k], np.ones_like(free))]
        found = sums / data.row_weight[rows].sum()
        out[name] = dict(zip(("free", "half", "recorded", "mean"), [*found.tolist(), float(found.mean())], strict=True))
    return out


def _cost(classifier: ImputedClassifier, test: Retrospective, seen: Any, weight: Floats) -> float:
    """Sum the costs of errors in these rows, times their weights, if the recorded ones of the ``seen`` groups are acquired."""
    acquired = seen & test.recorded
    values: Floats = np.where(acquired[:, test.column_group], test.values, np.nan)
    return float((weight * test.costs[test.labels, classifier.predict(values, acquired)]).sum())
