"""Numbers that look like codes for a missing value, such as -999."""

from __future__ import annotations

import numpy as np

from .._arrays import Floats, Ints

__all__ = ["missing_codes"]

_MOST_CODES = 4  # per column
_DISTINCT = 5  # a column with fewer other values is a scale or a flag, and -1 may be one of its values
_SHARE, _SMALL_SHARE = 0.05, 0.01  # of the recorded values: next to other values, and apart from them
_SPIKE, _TWICE = 10, 2  # a code next to other values is this many times as frequent as they are
_ENDINGS = ("96", "97", "98")


def missing_codes(values: Floats) -> dict[float, int]:
    """Return the numbers of a column that look like codes for a missing value, with their counts.

    A code is the least or the largest value, and one of these:

    - a negative digit (-2 to -9) in at least 1 % of the rows, if all other values are 0 or larger;
    - -1 in at least 5 % of the rows, if all other values are 0 or larger and the least of them is half as frequent at most;
    - a number such as -99, 999, 998 or 888 in at least 1 % of the rows, farther from all others than half of their range;
    - such a positive number in at least 5 % of the rows, ten times as frequent as others are in the median.

    Parameters
    ----------
    values : ndarray of shape (n,)
        NaN where nothing was recorded.
    """
    recorded = values[~np.isnan(values)]
    codes: list[float] = []
    rest = recorded
    while len(codes) < _MOST_CODES and len(rest):
        ends = (float(rest.min()), float(rest.max()))
        code = next((v for v in ends if _digit(v) or _long(v)), None)
        if code is None:
            break
        codes.append(code)
        rest = rest[rest != code]
    if len(recorded) - len(rest) < _SMALL_SHARE * len(recorded) or not codes:
        return {}
    others, counts = np.unique(rest, return_counts=True)
    found = {code: int((recorded == code).sum()) for code in codes}
    for code in reversed(codes):  # a number that is no code is one of the others
        if len(others) < _DISTINCT or not _is_code(code, found, len(recorded), others, counts):
            place = np.searchsorted(others, code)
            others, counts = np.insert(others, place, code), np.insert(counts, place, found.pop(code))
    return found


def _is_code(code: float, found: dict[float, int], n: int, others: Floats, counts: Ints) -> bool:
    """True if a number is a code beside these other values; ``found`` are all numbers that may be codes of the column."""
    count, share = found[code], sum(found.values()) / n
    if share < _SMALL_SHARE:
        return False
    if _long(code) and _distance(code, others) >= np.ptp(others) / 2:
        return True
    if code < 0:
        frequent = code < -1 or (share >= _SHARE and count >= _TWICE * counts[0])
        return bool(others[0] >= 0 and frequent)
    return bool(share >= _SHARE and count >= _SPIKE * np.median(counts))


def _distance(code: float, others: Floats) -> float:
    return float(np.abs(others - code).min())


def _digit(value: float) -> bool:
    return value in range(-9, 0)


def _long(value: float) -> bool:
    """True for numbers such as 99, -999, 998 and 8888."""
    if not float(value).is_integer() or not 66 <= abs(value) < 1e7:
        return False
    text = str(int(abs(value)))
    same = len(set(text)) == 1 and text[0] in "6789"
    return same or (set(text[:-2]) <= {"9"} and text[-2:] in _ENDINGS)
