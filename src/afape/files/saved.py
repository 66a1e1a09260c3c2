"""save() and load(): agents and classifiers as a zip of a JSON manifest, numpy arrays and scikit-learn models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from .._arguments import check_file, check_flag, check_target, check_texts
from ..agents.policy import Policy
from ..classifiers import Classifier
from ..data.problem import Problem
from .archive import Reader, packed
from .errors import StorageError
from .kinds import try_out
from .writing import atomic_write

__all__ = ["load", "save"]


def save(thing: Policy | Classifier, path: str | Path, problem: Problem, *, unsafe: bool = False) -> None:
    """Save an agent or a classifier to a file.

    The file is a zip of ``manifest.json``, arrays (``.npy``) and scikit-learn models (``.skops``). It contains no code.

    Parameters
    ----------
    thing
        A built-in policy, a `Guideline`, a trained agent of `afape.agents`, or an `ImputedClassifier`.
    path : str or Path
        The file. If saving fails, an existing file is not changed.
    problem : Problem
        The problem of the agent or classifier; `load` compares it.
    unsafe : bool
        True to pickle objects of other types. Such a file can run any code when it is loaded.
    """
    if not isinstance(problem, Problem):
        raise TypeError(f"'problem' must be an afape.Problem, not {type(problem).__name__}.")
    target = check_target("path", path)
    content = packed(thing, _problem_to_json(problem), check_flag("unsafe", unsafe))
    with atomic_write(target) as temporary:
        temporary.write_bytes(content)


def load(
    path: str | Path,
    problem: Problem | None = None,
    *,
    trusted: Sequence[str] = (),
    check_versions: bool = True,
    unsafe: bool = False,
) -> Any:
    """Load an agent or a classifier from a file that `save` wrote.

    Parameters
    ----------
    path : str or Path
        The file.
    problem : Problem, optional
        The current problem. If the file was saved for another one, an error lists the differences. None skips this check,
        for example to evaluate an agent with other prices.
    trusted : sequence of str
        Types inside scikit-learn models that you trust, beyond scikit-learn's own, such as your own transformers.
    check_versions : bool
        True to refuse models of another minor version of scikit-learn, which may behave differently.
    unsafe : bool
        True to load pickled objects too. This can run any code: use it only for files from a source that you trust.

    Returns
    -------
    policy or classifier
    """
    if problem is not None and not isinstance(problem, Problem):
        raise TypeError(f"'problem' must be an afape.Problem or None, not {type(problem).__name__}.")
    file = check_file("path", path, "a file that afape.save wrote")
    trusted = check_texts("trusted", trusted, "names of types")
    check_flag("check_versions", check_versions)
    check_flag("unsafe", unsafe)
    with _damaged(f"{str(path)!r} was not written by afape.save"):
        reader = Reader.opened(file.read_bytes(), trusted, check_versions, unsafe)
    if problem is not None:
        found = _differences(reader.manifest["problem"], _problem_to_json(problem))
        if found:
            raise StorageError(
                f"{str(path)!r} was saved for a different problem: {'; '.join(found)}. Load it with its own problem, or "
                "without 'problem' to skip this check."
            )
    with _damaged(f"{str(path)!r} is damaged"):
        thing = reader.thing()
        if not unsafe:
            try_out(thing)
    return thing


@contextmanager
def _damaged(words: str) -> Iterator[None]:
    """Turn every error into a `StorageError` that starts with these words: a damaged file can cause any of them."""
    try:
        yield
    except StorageError:
        raise
    except Exception as error:
        raise StorageError(f"{words} ({type(error).__name__}: {error}).") from error


def _problem_to_json(problem: Problem) -> dict[str, Any]:
    """Return the problem as lists; labels and levels are written so that 1 and "1" differ."""
    return {
        "groups": [[name, list(columns)] for name, columns in problem.groups.items()],
        "prices": problem.prices.tolist(),
        "label": problem.label,
        "misclassification_cost": np.asarray(problem.misclassification_cost).tolist(),
        "classes": None if problem.classes is None else [_text(c) for c in problem.classes],
        "categories": {c: None if v is None else [_text(x) for x in v] for c, v in problem.categories.items()},
        "blank_means": {column: _text(value) for column, value in problem.blank_means.items()},
    }


def _differences(stored: dict[str, Any], given: dict[str, Any]) -> list[str]:
    """Describe the differences of two problems."""
    return [
        f"{name}: {stored.get(name)!r} in the file, {given[name]!r} here"
        for name in given
        if stored.get(name) != given[name]
    ]


def _text(value: Any) -> str:
    return repr(value.item() if isinstance(value, np.generic) else value)
