"""What a method makes of the fitted object."""

from __future__ import annotations

from typing import Protocol

from .estimate import TARGETS, Outcome
from .linear import LinearParts

__all__ = ["Reduced", "nothing"]


class Reduced(Protocol):
    """The answer of a method: values at once, estimates with influence values when they are asked for."""

    @property
    def values(self) -> dict[str, float]:
        """Value of each target; NaN where there is no answer."""
        ...

    def outcome(self, rows: str, confidence: float) -> Outcome:
        """Estimates of each target, or the reason why there are none."""
        ...

    def parts(self, rows: str, confidence: float) -> LinearParts | None:
        """The parts that the costs are made of, where there is an answer; None where they are not known."""
        ...


def nothing() -> dict[str, float]:
    """No value of any target."""
    return dict.fromkeys(TARGETS, float("nan"))
