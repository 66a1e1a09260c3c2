"""Row weights: how many cases of the population a row stands for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._arguments import as_float, check_mapping, is_number, numbers_per_row, shown
from .._arrays import Floats, Ints
from .problem import label_text

__all__ = ["checked_weights", "in_units_of_rows", "label_shares", "sharing_weights"]

_MOST_PARTS, _MOST_ROWS = 12, 20.0  # a unit is at least a twelfth of the least weight; counts are at most 20 on average
_ROUNDING = 1e-9


def checked_weights(weights: Any, argument: str, n_rows: int) -> Floats:
    """Return the weights as an array (n,); raise an error that names the argument if they cannot be weights."""
    found = numbers_per_row(weights, n_rows, f"{argument} must be")
    for wrong, what in ((np.isnan(found), "blank"), (np.isinf(found), "infinite"), (found < 0, "negative")):
        if wrong.any():
            raise ValueError(
                f"{argument} must be finite and not negative, but is {what} in {int(wrong.sum())} of {n_rows} rows, the "
                f"first at position {int(wrong.argmax())}. Correct these weights, or remove these rows."
            )
    if not (found > 0).any():
        raise ValueError(f"{argument} must be positive in some row, but is 0 in all {n_rows} rows.")
    return found


def in_units_of_rows(weight: Floats) -> Floats | None:
    """Return positive weights in a unit that does not depend on their scale; None if all weights are equal.

    Weights that are small multiples of one number count rows: whole numbers without a common divisor. Such weights mean the
    same as repeated rows, also where an estimate depends on the number of rows, as in a correction for small samples. Other
    weights have mean 1.
    """
    ratio = weight / weight.min()
    if np.ptp(ratio) <= _ROUNDING:
        return None
    for parts in range(1, _MOST_PARTS + 1):
        counts = np.round(ratio * parts)
        if counts.mean() > _MOST_ROWS:
            break
        if np.abs(ratio * parts - counts).max() <= _ROUNDING * counts.max():
            return np.asarray(counts)
    return np.asarray(weight / weight.mean())


def label_shares(shares: Any, classes: list[Any], label: str) -> Floats:
    """Return the share of every class in the population, (K,). With two classes, one share is enough."""
    named = check_mapping("shares", shares, "from labels to their shares in the population", texts=False)
    places = {label_text(c): k for k, c in enumerate(classes)}
    out = np.full(len(classes), np.nan)
    for name, share in named.items():
        place = places.get(label_text(name))
        if place is None and label_text(name) == label and len(classes) == 2:
            place = 1  # the column itself: the share of its second class, as in {"died": 0.02} for classes 0 and 1
        if place is None:
            raise ValueError(f"'shares' must name labels, but {shown(name)} is not one. The labels are {classes}.")
        number = as_float(share) if is_number(share) else np.nan
        if not 0 < number < 1:
            raise ValueError(
                f"'shares' must lie strictly between 0 and 1, but that of {shown(name)} is {shown(share)}."
            )
        out[place] = number
    unknown = np.flatnonzero(np.isnan(out))
    if len(unknown) == 1:
        out[unknown] = 1 - np.nansum(out)
    if np.isnan(out).any() or (out <= 0).any() or abs(out.sum() - 1) > _ROUNDING:
        raise ValueError(
            f"'shares' must give every label of {classes} a positive share, and the shares must sum to 1 (one may be left "
            f"out), but is {shown(shares)}."
        )
    return out


def sharing_weights(weight: Floats, labels: Ints, shares: Mapping[int, float] | Floats) -> Floats:
    """Scale the weights (n,) within every label, so that each label has its share of their sum; the sum does not change."""
    sums = np.bincount(labels, weights=weight, minlength=len(shares))
    factor = np.divide(np.asarray(shares) * weight.sum(), sums, out=np.zeros(len(sums)), where=sums > 0)
    return np.asarray(weight * factor[labels])
