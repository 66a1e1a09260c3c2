"""Sentences and numbers of the report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..missingness import MAR, MCAR

__all__ = ["assumption_words", "interval_words", "listed", "number", "percent", "plain_assumptions"]

_STANDING = (
    "Values are measured without noise, and measuring changes neither them nor the label.",
    "What was recorded is what anybody would have measured; one case does not affect another; orders are carried out.",
    "Every set of groups that the policy would acquire was recorded for somebody like the case at hand.",
    "Neither the policy nor the classifier was trained on the rows that it is judged on.",
)


def number(value: float | None) -> str:
    """Four significant digits, without exponents where that is readable; the page's script does the same."""
    if value is None or value != value:
        return "–"
    if abs(value) == float("inf"):
        return "∞" if value > 0 else "−∞"
    if value != 0 and (abs(value) >= 1e7 or abs(value) < 1e-4):
        text = f"{value:.3e}"
    elif abs(value) >= 1000:
        text = f"{value:,.0f}"
    else:
        text = f"{value:.4g}"
    return text.replace("-", "−") if value < 0 else text


def percent(share: float | None, digits: int = 1) -> str:
    """A share in percent."""
    return "–" if share is None or share != share else f"{100 * share:.{digits}f} %".replace("-", "−")


def interval_words(lower: float, upper: float, confidence: float) -> str:
    """An interval in brackets."""
    if lower != lower:
        return "(no interval)"
    return f"({100 * confidence:g} % interval {number(lower)} to {number(upper)})"


def listed(names: Sequence[str], most: int = 6) -> str:
    """Names in quotes, joined by commas."""
    shown = ", ".join(f"“{n}”" for n in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def assumption_words(missingness: Any, label: str) -> str:
    """The assumption as one would say it to a physician."""
    if isinstance(missingness, MCAR):
        return (
            "Whether something was recorded is taken to depend on nothing: neither on any value, recorded or not, nor on "
            f"“{label}”. It is as if a coin had decided."
        )
    if isinstance(missingness, MAR):
        given = listed(list(missingness.given), 8)
        if missingness.label:
            given = f"{given} and “{label}”" if given else f"“{label}”"
        return (
            f"Two cases that agree in {given} are taken to have had the same chance of having everything else recorded. Nothing "
            "else decided what was recorded: above all not the missing values themselves."
        )
    return (
        "Whether something was recorded is taken to depend on what the graph below shows, on nothing else, and in particular not "
        "on anything that is not drawn."
    )


def plain_assumptions() -> tuple[str, ...]:
    """What every estimate here assumes, whatever the reason for gaps."""
    return _STANDING
