"""Rules that a claim can fail: a measured number against a limit, and several judgements together."""

from __future__ import annotations

from collections.abc import Iterable

from .cells import Measured

__all__ = ["AGREES", "DISAGREES", "UNDECIDED", "above", "below", "inside", "together"]

AGREES, UNDECIDED, DISAGREES = "agrees", "undecided", "disagrees"
_FOR, _AGAINST = 2.0, 3.0  # Monte Carlo errors between a number and its limit


def below(found: Measured, limit: float) -> str:
    """Judge whether a number is at most the limit.

    It agrees if the number is below the limit by two Monte Carlo errors, and disagrees if it is above by three, because
    several numbers are judged together and one of them must not fail by chance. In between more data sets are needed.
    """
    if found.value + _FOR * found.error <= limit:
        return AGREES
    return DISAGREES if found.value - _AGAINST * found.error > limit else UNDECIDED


def above(found: Measured, limit: float) -> str:
    """Judge whether a number is at least the limit, in the same way."""
    return below(Measured(-found.value, found.error), -limit)


def inside(lower: float, upper: float, limits: tuple[float, float]) -> str:
    """Judge whether a number with this interval lies between the limits."""
    low, high = limits
    if low <= lower and upper <= high:
        return AGREES
    return DISAGREES if upper < low or lower > high else UNDECIDED


def together(judgements: Iterable[str]) -> str:
    """Return the worst of several judgements: one that disagrees decides, then one that is undecided."""
    found = list(judgements)
    if not found:
        return UNDECIDED
    return max(found, key=(AGREES, UNDECIDED, DISAGREES).index)
