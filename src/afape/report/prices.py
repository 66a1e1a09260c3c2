"""What the page needs to follow changed prices: rates of everything that costs, and their covariance."""

from __future__ import annotations

from typing import Any

from ..comparison import Comparison

__all__ = ["prices_of"]


def prices_of(found: Comparison, estimator: str) -> dict[str, Any] | None:
    """Rates, covariance and prices of all policies."""
    return None
