"""Checks of arguments. An error names the argument, the rule, the value and the solution."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np

from ._arrays import Floats, Ints

__all__ = [
    "LARGEST_SEED",
    "check_between",
    "check_callable",
    "check_choice",
    "check_class",
    "check_confidence",
    "check_count",
    "check_different_texts",
    "check_estimator",
    "check_file",
    "check_flag",
    "check_folder",
    "check_jobs",
    "check_number",
    "check_path",
    "check_seed",
    "check_target",
    "check_texts",
    "did_you_mean",
    "in_order_of_rows",
    "numbers_per_row",
    "positions_of",
]

LARGEST_SEED = 2**32 - 1  # of scikit-learn


def check_confidence(confidence: Any, argument: str = "confidence") -> float:
    """Return a confidence level in (0, 1)."""
    return check_number(argument, confidence, "lie strictly between 0 and 1", lambda level: 0 < level < 1)


def check_number(argument: str, value: Any, rule: str, holds: Callable[[Any], bool]) -> float:
    """Return a number for which ``holds`` is True, described by ``rule``; True and False are not numbers."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real) or not holds(value):
        raise ValueError(f"{argument!r} must {rule}, but is {value!r}.")
    return float(value)


def check_count(argument: str, value: Any, least: int, most: int | None = None) -> int:
    """Return a whole number from ``least`` to ``most``; True and False are not numbers."""
    whole = isinstance(value, Integral) and not isinstance(value, bool | np.bool_)
    if not whole or value < least or (most is not None and value > most):
        limit = "" if most is None else f" and at most {most}"
        raise ValueError(f"{argument!r} must be a whole number of at least {least}{limit}, but is {value!r}.")
    return int(value)


def check_flag(argument: str, value: Any) -> bool:
    """Return True or False; other objects raise an error, because Python counts the text "False" as True."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{argument!r} must be True or False, but is {value!r}.")
    return bool(value)


def check_seed(value: Any, argument: str = "random_state", most: int | None = None) -> int | None:
    """Return a seed: None for a random one, or a whole number from 0 to ``most``."""
    if value is None:
        return None
    whole = isinstance(value, Integral) and not isinstance(value, bool | np.bool_)
    if not whole or value < 0 or (most is not None and value > most):
        limit = "" if most is None else f" and at most {most}"
        raise ValueError(
            f"{argument!r} must be a whole number of at least 0{limit}, or None for a random seed, but is {value!r}."
        )
    return int(value)


def in_order_of_rows(answer: Any) -> Any:
    """Return a pandas object whose index is another order of 0, 1, ... sorted by it; return anything else unchanged."""
    if not hasattr(answer, "sort_index") or not hasattr(answer, "index"):
        return answer
    index = np.asarray(answer.index)
    if index.dtype.kind not in "iu" or (index == np.arange(len(index))).all():
        return answer
    return answer.sort_index() if (np.sort(index) == np.arange(len(index))).all() else answer


def numbers_per_row(values: Any, n_rows: int, must: str) -> Floats:
    """Return an array with one number per row; ``must`` is the start of the error message, such as "'x' must have"."""
    rule = f"{must} one number per row, shape ({n_rows},)"
    try:
        found = np.asarray(in_order_of_rows(values), dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{rule}, but some values are not numbers: {error}.") from error
    if found.shape != (n_rows,):
        raise ValueError(f"{rule}, but the shape is {found.shape}.")
    return found


def check_jobs(value: Any, argument: str = "n_jobs") -> int | None:
    """Return a number of processes, or None; negative numbers have the meaning of scikit-learn."""
    whole = isinstance(value, Integral) and not isinstance(value, bool | np.bool_)
    if value is not None and (not whole or value == 0):
        raise ValueError(
            f"{argument!r} must be None, a number of processes, or -1 for all processors, but is {value!r}."
        )
    return None if value is None else int(value)


def positions_of(names: Sequence[str], known: Sequence[str], argument: str) -> Ints:
    """Return the positions of group names among the known ones; an error message names ``argument``."""
    if isinstance(names, str):
        raise TypeError(f"{argument!r} must be a list of group names, but is the text {names!r}.")
    if not isinstance(names, Iterable):
        raise TypeError(f"{argument!r} must be a list of group names, but is {names!r}.")
    names = list(names)
    for name in names:
        if name not in known:
            raise ValueError(
                f"{argument!r} must name groups, but {name!r} is not a group. The groups are {list(known)}."
            )
    if len(set(names)) < len(names):
        raise ValueError(f"{argument!r} must name each group once, but has duplicates: {list(names)}.")
    return np.array([list(known).index(name) for name in names], dtype=np.intp)


def check_between(argument: str, value: Any, least: float, most: float = float("inf"), *, above: bool = False) -> float:
    """Return a finite number from ``least`` to ``most``; with ``above``, greater than ``least``."""
    start = f"above {least:g}" if above else f"of at least {least:g}"
    rule = f"be a finite number {start}" if most == float("inf") else f"lie in [{least:g}, {most:g}]"
    return check_number(
        argument, value, rule, lambda v: (v > least if above else v >= least) and v <= most and v != float("inf")
    )


def check_different_texts(argument: str, names: Iterable[Any]) -> None:
    """Raise an error for names such as 1 and "1", which differ but look the same, in tables and in files."""
    by_text: dict[str, Any] = {}
    for name in names:
        if (other := by_text.setdefault(str(name), name)) is not name and other != name:
            raise ValueError(
                f"{argument!r} must not have two names that look the same, but has {other!r} and {name!r}. Use one of them."
            )


def check_choice(argument: str, value: Any, choices: Sequence[str]) -> str:
    """Return one of these names."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{argument!r} must be one of {list(choices)}, but is {value!r}.")
    return value


def check_estimator(value: Any, argument: str = "estimator") -> str:
    """Return a text; the result checks later that it has an estimator of this name."""
    if not isinstance(value, str):
        raise TypeError(f"{argument!r} must be the name of an estimator, or None for the best, but is {value!r}.")
    return value


def did_you_mean(name: Any, known: Iterable[str]) -> str:
    """Return a question that suggests the most similar known name, or an empty text."""
    near = get_close_matches(str(name), list(known), 1)
    return f" Did you mean {near[0]!r}?" if near else ""


def check_class(argument: str, value: Any, classes: Sequence[Any]) -> int:
    """Return the code of one of these classes; True is not the class 1."""
    flag = isinstance(value, bool | np.bool_)
    alike = [flag == isinstance(known, bool | np.bool_) and np.ndim(value) == 0 for known in classes]
    found = [code for code, known in enumerate(classes) if alike[code] and value == known]
    if not found:
        raise ValueError(f"{argument!r} must be one of the classes {list(classes)}, but is {value!r}.")
    return found[0]


def check_texts(argument: str, value: Any, what: str) -> list[str]:
    """Return a list of texts; a single text raises an error."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise TypeError(f"{argument!r} must be a list of {what}, but is {value!r}.")
    found = list(value)
    if odd := [entry for entry in found if not isinstance(entry, str)]:
        raise TypeError(f"{argument!r} must be a list of {what}, but contains {odd[0]!r}, which is not text.")
    return found


def check_callable(argument: str, value: Any, what: str) -> None:
    """Raise an error if the value is not callable; ``what`` describes it."""
    if not callable(value):
        raise TypeError(f"{argument!r} must be {what}, but is {type(value).__name__}.")


def check_path(argument: str, value: Any, what: str = "the path of a file") -> Path:
    """Return a path, given as text or as a path object."""
    if not isinstance(value, str | os.PathLike) or not isinstance(os.fspath(value), str):
        raise TypeError(f"{argument!r} must be {what}, but is {value!r}.")
    if not os.fspath(value):
        raise ValueError(f"{argument!r} must be {what}, but is empty.")
    return Path(value)


def check_folder(argument: str, value: Any) -> Path:
    """Return the path of a folder, which need not exist."""
    path = check_path(argument, value, "the path of a folder")
    if path.exists() and not path.is_dir():
        raise ValueError(f"{argument!r} must be the path of a folder, but {str(path)!r} is a file. Name a folder.")
    return path


def check_file(argument: str, value: Any, what: str) -> Path:
    """Return the path of a file that exists."""
    path = check_path(argument, value, what)
    if path.is_dir():
        raise ValueError(f"{argument!r} must be {what}, but {str(path)!r} is a folder. Name the file in it.")
    if not path.exists():
        raise FileNotFoundError(f"{argument!r} must be {what}, but there is no file {str(path)!r}.")
    return path


def check_target(argument: str, value: Any) -> Path:
    """Return the path of a file to write: its folder must exist, and it must not be a folder."""
    path = check_path(argument, value)
    if path.is_dir():
        raise ValueError(f"{argument!r} must be the path of a file, but {str(path)!r} is a folder. Name a file in it.")
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(
            f"{argument!r} must be in a folder that exists, but there is no {str(path.absolute().parent)!r}. Create it first."
        )
    return path
