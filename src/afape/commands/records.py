"""Data, problem and classifier of one command, read and put together."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .screen import UserError
from .specs import TRAINED, classifier_from

if TYPE_CHECKING:
    import pandas as pd

    from ..data import Retrospective
    from ..problem_file import ProblemFile

__all__ = ["Judge", "classifier_for", "read_files", "read_records", "untrained"]


def read_records(data: Path, problem: Path) -> tuple[ProblemFile, Retrospective]:
    """The problem file, and the table as its records."""
    said, frame = read_files(data, problem)
    return said, said.records(frame)


def read_files(data: Path, problem: Path) -> tuple[ProblemFile, pd.DataFrame]:
    """The problem file, and the table as it is."""
    from ..problem_file import read_problem, read_table

    if data.suffix.lower() == ".toml" and problem.suffix.lower() != ".toml":
        raise UserError(f"DATA is {str(data)!r} and --problem is {str(problem)!r}: they seem to be exchanged.")
    said = read_problem(problem)
    return said, read_table(data, said.blanks)


@dataclass(frozen=True, eq=False)
class Judge:
    """What predicts when an agent stops, the rows to judge on, and how both came about."""

    classifier: Any
    data: Retrospective
    words: str


def untrained(kind: str, seed: int) -> Any:
    """A classifier of this kind, not yet trained."""
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


def classifier_for(spec: str | None, data: Retrospective, share: float, seed: int, allow_pickle: bool) -> Judge:
    """A classifier that exists, or one that is trained on held-out rows, which are then not judged on."""
    kind = spec or TRAINED[0]
    if kind not in TRAINED:
        return Judge(classifier_from(kind, data, allow_pickle), data, f"The classifier came with the command: {kind}.")
    train, rest = data.split([share, 1 - share], random_state=seed)
    fitted = untrained(kind, seed).fit(train)
    words = (
        f"No classifier was given, so that one was trained ({_TOLD[kind]}) on {len(train):,} rows drawn at random "
        f"({100 * share:g} % of the data). The costs below are those of the other {len(rest):,} rows."
    )
    return Judge(fitted, rest, words)


_TOLD = {
    "forest": "random forest on mean-imputed values",
    "logistic": "logistic regression on mean-imputed values",
    "boosting": "gradient-boosted trees on mean-imputed values",
}
