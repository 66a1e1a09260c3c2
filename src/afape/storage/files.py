"""save() and load(): a zip of a JSON manifest, numpy arrays and scikit-learn models."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..agents.policy import Policy
from ..arguments import check_file, check_flag, check_target, check_texts
from ..classifiers import Classifier
from ..data import Problem
from ..files import draft_of
from .archive import Reader, packed
from .problems import differences, problem_to_json
from .refusal import StorageError

__all__ = ["load", "save"]


def save(thing: Policy | Classifier, path: str | Path, problem: Problem, *, unsafe: bool = False) -> None:
    """Write an agent or a classifier to a file.

    The file is a zip of ``manifest.json``, arrays (``.npy``) and scikit-learn models (``.skops``). Nothing in it is code.

    Parameters
    ----------
    thing
        A built-in policy, a `Guideline`, a trained agent of `afape.agents`, or an `ImputedClassifier`.
    path : str or Path
        The file; it appears whole or not at all.
    problem : Problem
        The problem it was made for; `load` compares.
    unsafe : bool
        Store what is none of afape's own by pickle. Such a file can run any code when it is loaded.
    """
    if not isinstance(problem, Problem):
        raise TypeError(f"'problem' must be an afape.Problem, not {type(problem).__name__}.")
    target = check_target("path", path)
    content = packed(thing, problem_to_json(problem), check_flag("unsafe", unsafe))
    with draft_of(target) as draft:
        draft.write_bytes(content)


def load(
    path: str | Path,
    problem: Problem | None = None,
    *,
    trusted: Sequence[str] = (),
    check_versions: bool = True,
    unsafe: bool = False,
) -> Any:
    """Read an agent or a classifier from a file that `save` wrote.

    Parameters
    ----------
    path : str or Path
        The file.
    problem : Problem, optional
        The problem at hand. A file made for another one is refused, with what differs. None takes it as it is, for those
        who judge an agent at other prices on purpose.
    trusted : sequence of str
        Types inside scikit-learn models that you trust, beyond scikit-learn's own, such as those of your own transformers.
    check_versions : bool
        Refuse models of another minor version of scikit-learn, whose insides may mean something else.
    unsafe : bool
        Also load what was pickled. This can run any code: only for files whose origin you trust.
    """
    if problem is not None and not isinstance(problem, Problem):
        raise TypeError(f"'problem' must be an afape.Problem or None, not {type(problem).__name__}.")
    file = check_file("path", path, "a file that afape.save wrote")
    trusted = check_texts("trusted", trusted, "names of types")
    check_flag("check_versions", check_versions)
    check_flag("unsafe", unsafe)
    try:
        reader = Reader.opened(file.read_bytes(), trusted, check_versions, unsafe)
    except (zipfile.BadZipFile, KeyError, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise StorageError(f"{str(path)!r} is no file that afape.save wrote ({error}).") from error
    if problem is not None:
        found = differences(reader.manifest["problem"], problem_to_json(problem))
        if found:
            raise StorageError(
                f"{str(path)!r} was saved for a different problem: {'; '.join(found)}. Load it with its own problem, or "
                "without 'problem' to take it as it is."
            )
    try:
        return reader.thing()
    except (KeyError, TypeError, zipfile.BadZipFile) as error:
        raise StorageError(f"{str(path)!r} is damaged: {type(error).__name__} {error}.") from error
