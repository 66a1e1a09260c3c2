"""BudgetCurve: cost, error rate and acquisitions against the budget, with intervals that hold for all budgets at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from typing import Any

import numpy as np
import pandas as pd

from .._arguments import check_choice
from .._copies import HandsOutCopies
from ..estimators.differences import simultaneous_intervals
from ..estimators.estimate import Bounds, Estimate
from ..files.writing import plain_records
from .parts import Parts
from .provenance import Provenance

__all__ = ["TARGETS", "BudgetCurve"]

TARGETS = ("total", "acquisition", "misclassification")
QUANTITIES = (*TARGETS, "error_rate", "acquisitions")


@dataclass(frozen=True, eq=False)
class BudgetCurve(HandsOutCopies):
    """Costs of one policy under several budgets.

    ``curve["error_rate"]`` returns the lines of one quantity.

    Attributes
    ----------
    budgets : tuple of float
        The budgets, smallest first.
    costs : sequence of dict from target to Estimate
        Estimated costs, one dict per budget.
    parts : sequence of Parts
        Parts of the costs, one per budget.
    estimator : str
        Estimator of all numbers; "truth" for complete data.
    kind : str
        Kind of budget, as in `budget_curve`.
    confidence : float
        Level of the intervals.
    provenance : Provenance or None
        What the curve was made from; None for complete data.
    """

    budgets: tuple[float, ...]
    costs: Sequence[Mapping[str, Estimate]]
    parts: Sequence[Parts]
    estimator: str
    kind: str
    confidence: float
    provenance: Provenance | None = None

    @cached_property
    def table(self) -> pd.DataFrame:
        """One line per budget and quantity: estimate, standard error, bounds and interval.

        The quantities are the costs ``total``, ``acquisition`` and ``misclassification``, the share of wrong predictions
        (``error_rate``) and the mean number of groups acquired (``acquisitions``). The intervals ``lower`` to ``upper`` of one
        quantity hold for all budgets at once.
        """
        lines: list[dict[str, Any]] = []
        for quantity in QUANTITIES:
            estimates = self.estimates(quantity)
            intervals = simultaneous_intervals(estimates, self.confidence)
            for budget, e, (low, high) in zip(self.budgets, estimates, intervals, strict=True):
                bounds = (e.bound_lower, e.bound_upper) if isinstance(e, Bounds) else (np.nan, np.nan)
                numbers = {"estimate": e.value, "std_error": e.std_error, "lower": low, "upper": high}
                ends = {"bound_lower": bounds[0], "bound_upper": bounds[1]}
                lines.append({"budget": budget, "quantity": quantity, **numbers, **ends})
        return pd.DataFrame(lines)

    def __getitem__(self, quantity: str) -> pd.DataFrame:
        check_choice("quantity", quantity, QUANTITIES)
        table = self.table
        return table[table["quantity"] == quantity].drop(columns="quantity").reset_index(drop=True)

    def estimates(self, quantity: str = "total") -> list[Estimate]:
        """Return the estimates of one quantity, one per budget; differences of two of them are paired."""
        check_choice("quantity", quantity, QUANTITIES)
        if quantity in TARGETS:
            return [costs[quantity] for costs in self.costs]
        return [p.acquisitions if quantity == "acquisitions" else _error_rate(p) for p in self.parts]

    def plot(self, quantity: str = "total", ax: Any = None) -> Any:
        """Draw one quantity against the budget, with its joint intervals; needs matplotlib."""
        from ..plots.results import draw_budget_curve

        check_choice("quantity", quantity, QUANTITIES)
        return draw_budget_curve(self, quantity, ax)

    def to_dict(self) -> dict[str, Any]:
        """Return the table as plain numbers and text, ready for JSON."""
        return {
            "kind": self.kind,
            "estimator": self.estimator,
            "confidence": self.confidence,
            "table": plain_records(self.table),
            "provenance": None if self.provenance is None else self.provenance.to_dict(),
        }

    def __repr__(self) -> str:
        wide = self.table.pivot(index="budget", columns="quantity", values="estimate")[list(QUANTITIES)]
        return f"{self.kind} budgets, estimates by {self.estimator}\n{wide.round(4).to_string()}"


def _error_rate(parts: Parts) -> Estimate:
    """Return the share of cases whose predicted label is wrong."""
    wrong = {pair: e for pair, e in parts.confusion.items() if pair[0] != pair[1]}
    if parts.bounded:
        return reduce(add, wrong.values())
    n_classes = len(parts.tariff.classes)
    errors = (1 - np.eye(n_classes)).ravel()
    return parts.combine(np.concatenate([np.zeros(len(parts.values) - n_classes**2), errors]))
