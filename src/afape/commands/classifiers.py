"""Classifiers as a command line names them: trained on held-out rows, saved, or imported."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .inputs import PICKLES, imported_object, read_object
from .screen import UserError

if TYPE_CHECKING:
    from ..blocks.scanning import Scan
    from ..classifiers import Classifier, ImputedClassifier
    from ..data.retrospective import Retrospective

__all__ = [
    "BEST",
    "TRAINED",
    "check_decide",
    "classifier_for",
    "classifier_for_scan",
    "existing_classifier",
    "train_named",
]

BEST = "best"
_TRAINED_ON, _SAMPLE = 200_000, 10_000  # rows of a scan that a classifier is trained on, or that names are checked with
TRAINED = (BEST, "forest", "logistic", "boosting")


def train_named(kind: str, data: Retrospective, decide: str | None, seed: int) -> tuple[ImputedClassifier, str]:
    """Train a classifier of one of the kinds in `TRAINED`; return it with a sentence about it."""
    from ..classifiers.training import KINDS, train_classifier, untrained

    if kind != BEST:
        classifier = untrained(kind, seed, decide).fit(data)
        return classifier, f"{KINDS[kind]}, {_DECIDES[classifier.decide_]}."
    found = train_classifier(data, decide=decide, random_state=seed)
    listed = "; ".join(f"{line['classifier']} {line['mean']:.4g}" for line in found.costs.to_dict("records"))
    text = f"{KINDS[found.kind]}, {_DECIDES[found.classifier.decide_]}. Cost of errors on held-out rows: {listed}."
    return found.classifier, text


_DECIDES = {"cost": "predicts the label of least expected cost", "label": "predicts the most likely label"}


def existing_classifier(text: str, data: Retrospective, allow_pickle: bool) -> Classifier:
    """Return the classifier that a file or ``module:object`` holds."""
    path = Path(text)
    if path.exists() or path.suffix.lower() in (".afape", *PICKLES):
        found = read_object(path, data, allow_pickle)
    elif ":" in text:
        found = imported_object(text, "--classifier", "best, forest, logistic, boosting or a file")
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
    text: str | None, data: Retrospective, share: float, decide: str | None, seed: int, allow_pickle: bool
) -> tuple[Classifier, Retrospective, str]:
    """Return the classifier, the rows to evaluate on, and sentences about both.

    A classifier that is trained first takes a ``share`` of the rows; the other rows are returned.
    """
    kind = text or BEST
    check_decide(decide, kind)
    if kind not in TRAINED:
        return existing_classifier(kind, data, allow_pickle), data, f"Classifier, as given: {kind}."
    train, rest = data.split([share, 1 - share], random_state=seed)
    classifier, about = train_named(kind, train, decide, seed)
    note = (
        f"The classifier was trained here, on {len(train):,} random rows ({100 * share:g} % of the data): {about} The costs "
        f"below are estimated on the other {len(rest):,} rows."
    )
    return classifier, rest, note


def classifier_for_scan(
    text: str | None, scan: Scan, share: float, decide: str | None, seed: int, allow_pickle: bool
) -> tuple[Classifier, Scan, Retrospective, str]:
    """Return the classifier, the scan to evaluate on, some of its rows in memory, and sentences about the classifier."""
    kind = text or BEST
    check_decide(decide, kind)
    if kind not in TRAINED:
        rows = scan.read(_SAMPLE)
        return existing_classifier(kind, rows, allow_pickle), scan, rows, f"Classifier, as given: {kind}."
    train, rest = scan.split([share, 1 - share], random_state=seed)
    rows = train.read(_TRAINED_ON)
    classifier, about = train_named(kind, rows, decide, seed)
    note = (
        f"The classifier was trained here, on {len(rows):,} random rows: {about} The costs below are estimated on about "
        f"{rest.n_rows:,} other rows, in {rest.n_blocks} blocks."
    )
    return classifier, rest, rows, note


def check_decide(decide: str | None, classifier: str) -> None:
    """Refuse an unknown ``--decide``, and ``--decide`` for a classifier that was trained elsewhere."""
    if decide not in (None, *_DECIDES):
        raise UserError(f"--decide must be one of {', '.join(_DECIDES)}, but is {decide!r}.")
    if decide is not None and classifier not in TRAINED:
        raise UserError(
            f"--decide changes classifiers that are trained here ({', '.join(TRAINED)}), but --classifier is {classifier!r}. "
            "Leave out one of the two options."
        )
