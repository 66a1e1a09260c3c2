"""Numbers that agents take as arguments, refused where they are out of range."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

__all__ = ["check_number", "check_seed", "check_whole"]


def check_whole(name: str, value: Any, least: int) -> None:
    """Refuse what is not a whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name!r} must be a whole number of at least {least}, but is {value!r}. Raise it to {least}.")


def check_seed(value: Any) -> None:
    """Refuse what is no seed."""
    if value is not None and (
        isinstance(value, bool) or not isinstance(value, Integral) or not 0 <= int(value) < 2**32
    ):
        raise ValueError(
            f"'random_state' must be None or a whole number from 0 to 2**32 - 1, but is {value!r}. Pass 0."
        )


def check_number(name: str, value: Any, least: float, most: float = float("inf")) -> None:
    """Refuse what is not a finite number from ``least`` to ``most``."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not least <= value <= most or value == float("inf"):
        rule = f"be a finite number of at least {least:g}" if most == float("inf") else f"lie in [{least:g}, {most:g}]"
        raise ValueError(f"{name!r} must {rule}, but is {value!r}. Choose a number in this range.")
