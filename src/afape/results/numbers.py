"""Numbers as text, for tables and pages."""

from __future__ import annotations

from collections.abc import Iterable
from math import floor, log10

from ..estimators.estimate import Bounds, Estimate

__all__ = ["cost", "decimals_of", "number"]


def number(value: float | None, digits: int = 4) -> str:
    """Return significant digits, without an exponent where that is readable; the script of the page does the same."""
    if value is None or value != value:
        return "–"
    if abs(value) == float("inf"):
        return "∞" if value > 0 else "−∞"
    if value != 0 and (abs(value) >= 1e7 or abs(value) < 1e-4):
        text = f"{value:.3e}"
    elif abs(value) >= 1000:
        text = f"{value:,.0f}"
    else:
        text = f"{value:.{digits}g}"
    return text.replace("-", "−") if value < 0 else text


def decimals_of(totals: Iterable[Estimate]) -> int:
    """Return with how many decimals the page writes costs: the largest total has four digits, and so all costs agree."""
    sizes = [abs(e.bound_upper if isinstance(e, Bounds) else e.value) for e in totals]
    largest = max((size for size in sizes if 0 < size < float("inf")), default=0.0)
    return min(max(3 - floor(log10(largest)), 0), 12) if largest else 0


def cost(value: float | None, decimals: int) -> str:
    """Return a cost with this number of decimals; the script of the page does the same."""
    if value is None or value != value or abs(value) == float("inf"):
        return number(value)
    text = f"{value:,.{decimals}f}"
    return text.removeprefix("-") if not text.strip("-0.,") else text.replace("-", "−")
