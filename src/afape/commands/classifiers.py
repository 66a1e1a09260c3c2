"""Classifiers as a command line names them: trained on held-out rows, saved, or imported."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .inputs import PICKLES, imported_object, read_object
from .screen import UserError

if TYPE_CHECKING:
    from ..classifiers import Classifier, ImputedClassifier
    from ..data.retrospective import Retrospective

__all__ = ["TRAINED", "classifier_for", "existing_classifier", "untrained"]

TRAINED = {
    "forest": "random forest",
    "logistic": "logistic regression",
    "boosting": "gradient-boosted trees",
}


def untrained(kind: str, seed: int) -> ImputedClassifier:
    """Return a classifier of one of the kinds in `TRAINED`, not yet trained."""
    from ..classifiers import ImputedClassifier

    if kind == "forest":
        return ImputedClassifier(random_state=seed)
    if kind == "logistic":
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        return ImputedClassifier(make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)), random_state=seed)
    from sklearn.ensemble import HistGradientBoostingClassifier

    return ImputedClassifier(HistGradientBoostingClassifier(random_state=seed), random_state=seed)


def existing_classifier(text: str, data: Retrospective, allow_pickle: bool) -> Classifier:
    """Return the classifier that a file or ``module:object`` holds."""
    path = Path(text)
    if path.exists() or path.suffix.lower() in (".afape", *PICKLES):
        found = read_object(path, data, allow_pickle)
    elif ":" in text:
        found = imported_object(text, "--classifier")
    else:
        from ..files.errors import nearest

        raise UserError(
            f"--classifier must be one of {', '.join(TRAINED)}, a file, or module:object, but is {text!r}. "
            f"{nearest(text, TRAINED)}"
        )
    if not callable(getattr(found, "predict", None)):
        raise UserError(
            f"--classifier must have a method predict(values, acquired), but {text!r} is a {type(found).__name__}, which "
            "has none."
        )
    classifier: Classifier = found
    return classifier


def classifier_for(
    text: str | None, data: Retrospective, share: float, seed: int, allow_pickle: bool
) -> tuple[Classifier, Retrospective, str]:
    """Return the classifier, the rows to evaluate on, and a sentence about both.

    A classifier that is trained first takes a ``share`` of the rows; the other rows are returned.
    """
    kind = text or next(iter(TRAINED))
    if kind not in TRAINED:
        return existing_classifier(kind, data, allow_pickle), data, f"Classifier, as given: {kind}."
    train, rest = data.split([share, 1 - share], random_state=seed)
    note = (
        f"The classifier was trained here ({TRAINED[kind]} on mean-imputed values), on {len(train):,} random rows "
        f"({100 * share:g} % of the data). The costs below are estimated on the other {len(rest):,} rows."
    )
    return untrained(kind, seed).fit(train), rest, note
