"""Checks of arguments. An error names the argument, the rule, the value and the solution."""

from __future__ import annotations

import inspect
import os
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from math import inf, isfinite
from numbers import Integral, Number, Real
from pathlib import Path
from typing import Any

import numpy as np

from ._arrays import Floats, Ints

__all__ = [
    "LARGEST_SEED",
    "as_float",
    "check_arrays",
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
    "check_instance",
    "check_jobs",
    "check_list",
    "check_mapping",
    "check_number",
    "check_numbers",
    "check_path",
    "check_seed",
    "check_takes",
    "check_target",
    "check_texts",
    "check_weights",
    "did_you_mean",
    "in_order_of_rows",
    "is_number",
    "numbers_per_row",
    "positions_of",
    "real_array",
    "shown",
]

LARGEST_SEED = 2**32 - 1  # of scikit-learn


_LARGEST_COUNT = 2**53  # whole numbers up to here are exact as floats


class _Short(reprlib.Repr):
    """Short texts of values; lists and dicts show all their first entries."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = self.maxlong = 200
        self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdict = 30

    def repr_instance(self, x: Any, level: int) -> str:
        """Show tables and arrays by type and shape: their texts have many lines."""
        shape = getattr(type(x), "shape", None) and x.shape
        if shape:
            return f"{type(x).__name__} of shape {shape}"
        return f"<{x!r}>"[1:-1] if len(repr(x)) <= self.maxother else type(x).__name__


def shown(value: Any) -> str:
    """Return a text of any value for error messages: short, on one line, and without errors of its own."""
    try:
        text = _SHORT.repr(value)
        return text if "\n" not in text else type(value).__name__
    except Exception:  # repr() is code of the user; numbers of more than 4,300 digits have no text
        return type(value).__name__


_SHORT = _Short()


def is_number(value: Any) -> bool:
    """Return True for real numbers; True, False and blanks are not numbers."""
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_)


def as_float(value: Any) -> float:
    """Return a number as float; infinity for whole numbers that are too large for one."""
    try:
        return float(value)
    except OverflowError:
        return inf


def check_confidence(confidence: Any, argument: str = "confidence") -> float:
    """Return a confidence level in (0, 1)."""
    return check_number(argument, confidence, "lie strictly between 0 and 1", lambda level: 0 < level < 1)


def check_number(argument: str, value: Any, rule: str, holds: Callable[[Any], bool]) -> float:
    """Return a number for which ``holds`` is True, described by ``rule``; True and False are not numbers."""
    if not is_number(value) or not holds(as_float(value)):
        raise ValueError(f"{argument!r} must {rule}, but is {shown(value)}.")
    return float(value)


def _is_whole(value: Any, least: int, most: int | None) -> bool:
    whole = isinstance(value, Integral) and not isinstance(value, bool | np.bool_)
    return whole and value >= least and (most is None or value <= most)


def check_count(argument: str, value: Any, least: int, most: int | None = None) -> int:
    """Return a whole number from ``least`` to ``most``; True and False are not numbers."""
    if not _is_whole(value, least, _LARGEST_COUNT if most is None else most):
        limit = "" if most is None else f" and at most {most}"
        raise ValueError(f"{argument!r} must be a whole number of at least {least}{limit}, but is {shown(value)}.")
    return int(value)


def check_flag(argument: str, value: Any) -> bool:
    """Return True or False; other objects raise an error, because Python counts the text "False" as True."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{argument!r} must be True or False, but is {shown(value)}.")
    return bool(value)


def check_seed(value: Any, argument: str = "random_state", most: int | None = None) -> int | None:
    """Return a seed: None for a random one, or a whole number from 0 to ``most``."""
    if value is not None and not _is_whole(value, 0, most):
        limit = "" if most is None else f" and at most {most}"
        raise ValueError(
            f"{argument!r} must be a whole number of at least 0{limit}, or None for a random seed, but is {shown(value)}."
        )
    return None if value is None else int(value)


def check_instance(argument: str, value: Any, types: type | tuple[type, ...], what: str) -> None:
    """Raise an error if the value is not of one of these types; ``what`` describes them."""
    if not isinstance(value, types):
        kind = f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__
        raise TypeError(f"{argument!r} must be {what}, not {kind}.")


def check_mapping(argument: str, value: Any, what: str, *, empty: bool = False, texts: bool = True) -> dict[Any, Any]:
    """Return a mapping as a dict; ``what`` describes it. Its keys are texts, unless ``texts`` is False."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{argument!r} must be a mapping {what}, but is {shown(value)}.")
    if not value and not empty:
        raise ValueError(f"{argument!r} must be a mapping {what}, but is empty.")
    if texts and (odd := [key for key in value if not isinstance(key, str) or not key.strip()]):
        raise TypeError(f"{argument!r} must be a mapping {what}, with texts as names, but one name is {shown(odd[0])}.")
    return dict(value)


def check_numbers(argument: str, value: Any, what: str, *, optional: bool = False) -> dict[str, float]:
    """Return a mapping from texts to finite numbers; ``what`` describes it. If ``optional``, None is an empty one."""
    by_name = {} if value is None and optional else check_mapping(argument, value, what, empty=True)
    for name, number in by_name.items():
        if not is_number(number) or not isfinite(as_float(number)):
            raise ValueError(f"{argument!r} must be finite numbers, but {name!r} has {shown(number)}.")
    return {name: float(number) for name, number in by_name.items()}


def check_weights(argument: str, value: Any, what: str) -> dict[str, dict[str, float]]:
    """Return a mapping from texts to mappings from texts to finite numbers. None is an empty one."""
    by_name = {} if value is None else check_mapping(argument, value, what, empty=True)
    return {name: check_numbers(argument, inner, what) for name, inner in by_name.items()}


def check_arrays(argument: str, value: Any, what: str) -> dict[tuple[str, ...], Floats]:
    """Return a mapping from a name or a tuple of names to arrays of numbers, which are copied."""
    found: dict[tuple[str, ...], Floats] = {}
    for key, array in check_mapping(argument, value, what, texts=False).items():
        names = (key,) if isinstance(key, str) else key
        if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
            raise TypeError(f"{argument!r} must have a name or a tuple of names as each key, but one is {shown(key)}.")
        try:
            numbers = real_array(in_order_of_rows(array))
        except Exception as error:  # numpy calls the user's objects
            raise ValueError(f"{argument!r} must have arrays of numbers, but {key!r} has {shown(array)}.") from error
        if not np.array_equal(found.setdefault(names, numbers), numbers, equal_nan=True):
            raise ValueError(f"{argument!r} must have one array per set of groups, but {names} has two that differ.")
    return found


def in_order_of_rows(answer: Any) -> Any:
    """Return a pandas object whose index is another order of 0, 1, ... sorted by it; return anything else unchanged."""
    if not hasattr(answer, "sort_index") or not hasattr(answer, "index"):
        return answer
    index = np.asarray(answer.index)
    if index.dtype.kind not in "iu" or (index == np.arange(len(index))).all():
        return answer
    return answer.sort_index() if (np.sort(index) == np.arange(len(index))).all() else answer


def real_array(values: Any) -> Floats:
    """Return a copy as an array of numbers; raise TypeError for complex numbers, of which numpy would keep the real part."""
    if np.iscomplexobj(np.asarray(values)):
        raise TypeError("complex numbers")
    return np.array(values, dtype=float)


def numbers_per_row(values: Any, n_rows: int, must: str) -> Floats:
    """Return an array with one number per row; ``must`` is the start of the error message, such as "'x' must have"."""
    rule = f"{must} one number per row, shape ({n_rows},)"
    try:
        found = real_array(in_order_of_rows(values))
    except Exception as error:  # numpy calls the user's objects
        raise ValueError(f"{rule}, but is {shown(values)}, and some of it is not a number.") from error
    if found.shape != (n_rows,):
        raise ValueError(f"{rule}, but the shape is {found.shape}.")
    return found


def check_jobs(value: Any, argument: str = "n_jobs") -> int | None:
    """Return a number of processes, or None; negative numbers have the meaning of scikit-learn."""
    if value is not None and (not _is_whole(value, -_LARGEST_COUNT, _LARGEST_COUNT) or value == 0):
        raise ValueError(
            f"{argument!r} must be None, a number of processes, or -1 for all processors, but is {shown(value)}."
        )
    return None if value is None else int(value)


def positions_of(names: Sequence[str], known: Sequence[str], argument: str) -> Ints:
    """Return the positions of group names among the known ones; an error message names ``argument``."""
    names = check_texts(argument, names, "group names")
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
        raise ValueError(f"{argument!r} must be one of {list(choices)}, but is {shown(value)}.")
    return value


def check_estimator(value: Any, argument: str = "estimator") -> str:
    """Return a text; the result checks later that it has an estimator of this name."""
    if not isinstance(value, str):
        raise TypeError(f"{argument!r} must be the name of an estimator, or None for the best, but is {shown(value)}.")
    return value


def did_you_mean(name: Any, known: Iterable[str]) -> str:
    """Return a question that suggests the most similar known name, or an empty text."""
    near = get_close_matches(name, list(known), 1) if isinstance(name, str) else []
    return f" Did you mean {near[0]!r}?" if near else ""


def check_class(argument: str, value: Any, classes: Sequence[Any]) -> int:
    """Return the code of one of these classes; True is not the class 1."""
    flag, plain = isinstance(value, bool | np.bool_), isinstance(value, str | Number | np.generic)
    alike = [plain and flag == isinstance(known, bool | np.bool_) for known in classes]
    found = [code for code, known in enumerate(classes) if alike[code] and value == known]
    if not found:
        raise ValueError(f"{argument!r} must be one of the classes {list(classes)}, but is {shown(value)}.")
    return found[0]


def check_list(argument: str, value: Any, what: str) -> list[Any]:
    """Return the entries of a list, a tuple, an array or a generator; texts and mappings are not lists."""
    if isinstance(value, str | bytes | Mapping) or hasattr(value, "columns") or not isinstance(value, Iterable):
        raise TypeError(f"{argument!r} must be a list of {what}, but is {shown(value)}.")
    try:
        return list(value)
    except Exception as error:  # the user's iterator, or an array without dimensions
        raise TypeError(f"{argument!r} must be a list of {what}, but is {shown(value)}.") from error


def check_texts(argument: str, value: Any, what: str) -> list[str]:
    """Return a list of texts; a single text raises an error."""
    found = check_list(argument, value, what)
    if odd := [entry for entry in found if not isinstance(entry, str)]:
        raise TypeError(f"{argument!r} must be a list of {what}, but contains {shown(odd[0])}, which is not text.")
    return found


def check_callable(argument: str, value: Any, what: str) -> None:
    """Raise an error if the value is not callable; ``what`` describes it."""
    if not callable(value):
        raise TypeError(f"{argument!r} must be {what}, but is {type(value).__name__}.")


def check_takes(argument: str, function: Any, takes: str, *, by_name: bool = False) -> None:
    """Raise an error if a function cannot be called with these arguments; ``takes`` names them, separated by commas.

    With ``by_name``, they are given by name, perhaps among others.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # functions written in C have none
        return
    try:
        if by_name:
            signature.bind_partial(**dict.fromkeys(takes.split(", ")))
        else:
            signature.bind(*takes.split(", "))
    except TypeError:
        has = ", ".join(signature.parameters) or "nothing"
        name = getattr(function, "__qualname__", type(function).__qualname__).rsplit(".", 1)[-1]
        raise TypeError(f"{argument!r} must take ({takes}), but {name} takes {has}.") from None


def check_path(argument: str, value: Any, what: str = "the path of a file") -> Path:
    """Return a path, given as text or as a path object."""
    if not isinstance(value, str | os.PathLike) or not isinstance(os.fspath(value), str):
        raise TypeError(f"{argument!r} must be {what}, but is {shown(value)}.")
    if not os.fspath(value) or "\0" in os.fspath(value):
        raise ValueError(f"{argument!r} must be {what}, but is {os.fspath(value)!r}.")
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
