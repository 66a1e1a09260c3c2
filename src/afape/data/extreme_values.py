"""Values so far from all others that one of them would decide a regression, such as typing errors."""

from __future__ import annotations

import numpy as np

from .._arrays import Bools, Floats, Ints

__all__ = ["limit_extreme_values"]

_FAR = 20  # median distances from the median; for a normal law, 13 standard deviations
_APART = 5  # times as far from the median as the next value
_SHARE = 0.01  # more rows than this share are no exception


def limit_extreme_values(values: Floats) -> tuple[Floats, Ints]:
    r"""Move extreme values of each column to the nearest value that is not extreme.

    With m the median and s the median of the nonzero distances :math:`|x - m|`, a value is extreme if its distance is above
    20 s and at least 5 times that of the next value, or larger than such a value. At most 1 % of the values (at least one) can
    be extreme. So the tails of skewed laws are not extreme, as long as they have no wide gap.

    Parameters
    ----------
    values : ndarray of shape (n, d)
        NaN where nothing was recorded.

    Returns
    -------
    limited : ndarray of shape (n, d)
        The given array if no value is extreme.
    count : ndarray of int, shape (d,)
        Number of extreme values of each column.
    """
    limited, count = values, np.zeros(values.shape[1], dtype=np.intp)
    for j in range(values.shape[1]):
        rows = np.flatnonzero(~np.isnan(values[:, j]))
        x = values[rows, j]
        extreme = _extreme(x)
        if not extreme.any():
            continue
        limited = limited.copy() if limited is values else limited
        usual = x[~extreme]
        limited[rows[extreme], j] = x[extreme].clip(usual.min(), usual.max())
        count[j] = extreme.sum()
    return limited, count


def _extreme(x: Floats) -> Bools:
    """True for extreme values of a column without gaps, (m,)."""
    nothing = np.zeros(len(x), dtype=bool)
    if not len(x):
        return nothing
    with np.errstate(over="ignore"):  # an infinite distance is far
        distance = np.abs(x - np.median(x))
    apart = distance[distance > 0]
    if not len(apart) or distance.max() <= _FAR * np.median(apart):
        return nothing
    least = _FAR * np.median(apart)
    most = max(int(_SHARE * len(x)), 1)
    last = np.sort(np.partition(distance, len(x) - most - 1)[-most - 1 :]) if len(x) > most else np.sort(distance)
    gaps = np.flatnonzero((last[1:] > least) & (last[1:] >= _APART * last[:-1]))
    return nothing if not len(gaps) else np.asarray(distance >= last[1 + gaps[0]])
