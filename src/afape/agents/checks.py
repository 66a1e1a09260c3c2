"""Numbers that agents take as arguments, refused where they are out of range."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

__all__ = ["check_choice", "check_number", "check_seed", "check_whole"]


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


def check_number(name: str, value: Any, least: float, most: float = float("inf"), *, above: bool = False) -> None:
    """Refuse what is not a finite number from ``least`` to ``most``, or ``above`` the least."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    inside = number and (value > least if above else value >= least) and value <= most and value != float("inf")
    if not inside:
        start = f"above {least:g}" if above else f"of at least {least:g}"
        rule = f"be a finite number {start}" if most == float("inf") else f"lie in [{least:g}, {most:g}]"
        raise ValueError(f"{name!r} must {rule}, but is {value!r}. Choose a number in this range.")


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """Refuse what is none of the choices."""
    if value not in choices:
        raise ValueError(f"{name!r} must be one of {list(choices)}, but is {value!r}. Choose one of these.")
