"""Checks of text columns: numbers stored as text, texts that look like blanks, and very many levels."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays import Ints
from ..warnings import BlankTextWarning, LookalikeLevelsWarning, ManyLevelsWarning, warn

__all__ = [
    "check_counted_text",
    "check_text",
    "looks_blank",
    "odd_words",
    "warn_of_counted_levels",
    "warn_of_lookalikes",
    "warn_of_many_levels",
]

_BLANKS = {"", "nan", "na", "n/a", "#n/a", "null", "?", "."}  # in lower case
_COMMA = re.compile(r"[-+]?(\d+|\d{1,3}(\.\d{3})+),\d+")
_CODE = re.compile(r"[-+]?0\d+")  # "02139" is a code; as a number it would lose its zero
_MEASURED = re.compile(r"[<>≤≥=~]*\s*[-+]?\d+([.,]\d+)?\s*([^\W\d_]|[%°/µ^²³])*")
_MEASUREMENTS = 10  # with fewer different texts, "5 mg" and "10 mg" may be the levels of a category
_MOST_LEVELS = 50


def looks_blank(text: str) -> bool:
    """True for texts such as "NA" and "?"."""
    return text.strip().lower() in _BLANKS


def check_text(name: str, values: NDArray[Any]) -> None:
    """Raise an error if most texts are numbers, which would become levels; warn about texts that look like blanks."""
    check_counted_text(name, *np.unique(values.astype(str), return_counts=True))


def check_counted_text(name: str, texts: NDArray[Any], count: Ints) -> None:
    """Do the checks of `check_text` on the different texts and their counts."""
    known = np.array([not looks_blank(t) for t in texts], dtype=bool)
    for what, like, conversion in _KINDS:
        numbers = known & [like(t.strip()) for t in texts]
        if like is _is_measured and numbers.sum() <= _MEASUREMENTS:
            continue
        if 2 * count[numbers].sum() > count[known].sum() and not any(_CODE.fullmatch(t.strip()) for t in texts):
            share = f"{int(count[numbers].sum())} of its {int(count.sum())} entries"
            raise ValueError(
                f"Column {name!r} is text, but {share} are {what}{_odd_words(texts, count)}. Each text would become a level. "
                f"Make them numbers, with NaN if nothing was recorded: {conversion.format(repr(name))}. If a blank "
                "has a meaning, declare it in 'blank_means' of the Problem; if the column is a category, pass "
                f"categories={{{name!r}: None}}."
            )
    _warn_of_blanks(name, texts, count)
    warn_of_lookalikes(name, texts.tolist())


def _warn_of_blanks(name: str, texts: NDArray[Any], count: NDArray[Any]) -> None:
    blank = np.array([looks_blank(t) for t in texts], dtype=bool)
    if blank.any():
        listed = ", ".join(f"{t!r} in {c}" for t, c in zip(texts[blank].tolist(), count[blank].tolist(), strict=True))
        warn(
            f"Column {name!r} has the text {listed} rows, which counts as a level. If it means that nothing was recorded, make "
            f"it null; if it is a level, list it in 'categories' of the Problem.",
            BlankTextWarning,
        )


def warn_of_lookalikes(name: str, levels: list[Any]) -> None:
    """Warn about levels or labels that differ only in capitals or in blanks around them."""
    alike: dict[str, list[str]] = {}
    for level in levels:
        if isinstance(level, str):
            alike.setdefault(" ".join(level.casefold().split()), []).append(level)
    doubled = [found for found in alike.values() if len(found) > 1]
    if doubled:
        warn(
            f"Column {name!r} has {len(doubled)} levels in several spellings, such as {doubled[0]}, which count as different. "
            f"If they are the same, unify them: frame[{name!r}] = frame[{name!r}].str.strip().str.lower().",
            LookalikeLevelsWarning,
        )


def warn_of_many_levels(name: str, values: NDArray[Any], n_levels: int) -> None:
    """Warn if a category has so many levels, each a column of its own, that most of them have few rows."""
    if n_levels <= _MOST_LEVELS:
        return
    warn_of_counted_levels(name, np.unique(values.astype(str), return_counts=True)[1], n_levels)


def warn_of_counted_levels(name: str, count: Ints, n_levels: int | None = None) -> None:
    """Warn as `warn_of_many_levels` does, from the counts of the texts."""
    n_levels = len(count) if n_levels is None else n_levels
    if n_levels <= _MOST_LEVELS:
        return
    rare = n_levels - int((count >= 30).sum())
    warn(
        f"Column {name!r} has {n_levels} levels, and each becomes a column; {rare} of them have fewer than 30 rows, from which "
        f"little can be learned. Group rare levels: counts = frame[{name!r}].map(frame[{name!r}].value_counts()); "
        f"frame[{name!r}] = frame[{name!r}].mask(counts < 30, 'other'). Leave the column out if it identifies rows. If all "
        "levels matter, list them in 'categories' of the Problem.",
        ManyLevelsWarning,
    )


def odd_words(values: NDArray[Any]) -> str:
    """List the texts among numbers, with their counts."""
    return _odd_words(*np.unique([v for v in values if isinstance(v, str)], return_counts=True))


def _odd_words(texts: NDArray[Any], count: Ints) -> str:
    odd = np.array([not _is_number(t) for t in texts], dtype=bool)
    texts, count = texts[odd], count[odd]
    listed = ", ".join(
        f"{t!r} ({c})" for t, c in sorted(zip(texts.tolist(), count.tolist(), strict=True), key=lambda p: -p[1])[:5]
    )
    return f"; the texts are {listed}" if listed else ""


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def _has_comma(text: str) -> bool:
    return _is_number(text) or bool(_COMMA.fullmatch(text))


def _is_measured(text: str) -> bool:
    return bool(_MEASURED.fullmatch(text))


_KINDS = (
    ("numbers", _is_number, "frame[{0}] = pandas.to_numeric(frame[{0}], errors='coerce')"),
    (
        "numbers, some with a decimal comma",
        _has_comma,
        "read the file with decimal=',', or frame[{0}] = frame[{0}].str.replace(',', '.').astype(float)",
    ),
    (
        "numbers with a sign or a unit",
        _is_measured,
        "frame[{0}] = frame[{0}].str.extract('([-+]?[0-9.]+)')[0].astype(float), if all units agree",
    ),
)
