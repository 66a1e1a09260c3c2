"""Parts of a policy's cost: how often it acquires each group, and the rates of true and predicted labels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from .._arguments import numbers_per_row
from .._arrays import Floats
from .._copies import HandsOutCopies
from ..estimators.answer import PartAmounts
from ..estimators.estimate import Bounds, Estimate, certain
from ..files.writing import plain_records
from ..walk.tariff import Tariff

__all__ = ["Parts"]


@dataclass(frozen=True, eq=False)
class Parts(HandsOutCopies):
    """Estimated parts of a policy's cost, by one estimator.

    Attributes
    ----------
    rates : dict
        Group -> `Estimate` of the share of cases in which it is acquired, for groups that have a price.
    confusion : dict
        (true label, predicted label) -> `Estimate` of the share of cases.
    acquisitions : Estimate
        Mean number of groups acquired.
    counts : dict
        k -> `Estimate` of the share of cases in which k groups are acquired.
    outcomes : dict
        Name -> `Estimate` of an outcome of the user.
    names : tuple
        The parts that costs are linear in: groups that have a price, then pairs of true and predicted label.
    values : ndarray of shape (P,)
        Estimates of the parts in ``names``; NaN if there are only bounds.
    influence : ndarray of shape (n, P), or None
        Influence values of ``values``; None if there are none.
    covariance : ndarray of shape (P, P)
        Joint covariance of ``values``: from influence values (summed by cluster), by Rubin's rules for `mi`, or from bootstrap
        replicates; NaN if there are none.
    table : DataFrame
        One line per part.
    """

    estimator: str
    found: PartAmounts
    tariff: Tariff
    confidence: float

    @property
    def bounded(self) -> bool:
        """True if the records give only bounds."""
        return self.found.columns.open

    def _one(self, start: int, position: int, more: slice | int | None = None) -> Estimate:
        """Return the estimate of one column; ``more`` are columns that are added to its upper bound."""
        least = np.zeros(self.found.columns.width)
        least[start + position] = 1.0
        largest = least.copy()
        if more is not None and self.bounded:
            largest[more] = 1.0
        found = self.found.estimate(least, largest, (0.0, 1.0))
        acquisitions = not self.found.columns.cells.start <= start < self.found.columns.cells.stop
        return certain(found) if self.tariff.fixed and acquisitions else found

    @cached_property
    def rates(self) -> dict[str, Estimate]:
        """Share of cases in which each group is acquired."""
        left = self.found.columns.left.start
        return {name: self._one(0, g, left + g) for g, name in enumerate(self.tariff.groups)}

    @cached_property
    def confusion(self) -> dict[tuple[Any, Any], Estimate]:
        """Share of cases by true and predicted label."""
        classes, columns = self.tariff.classes, self.found.columns
        return {
            (true, predicted): self._one(
                columns.cells.start, y * len(classes) + k, columns.ended.start + (0 if columns.paired else y)
            )
            for y, true in enumerate(classes)
            for k, predicted in enumerate(classes)
        }

    @cached_property
    def acquisitions(self) -> Estimate:
        """Mean number of groups acquired: the sum of the rates."""
        columns = self.found.columns
        least = np.zeros(columns.width)
        least[: len(self.tariff.groups)] = 1.0
        largest = least.copy()
        largest[columns.left] = 1.0
        found = self.found.estimate(least, largest, (0.0, float(len(self.tariff.groups))))
        return certain(found) if self.tariff.fixed else found

    @cached_property
    def counts(self) -> dict[int, Estimate]:
        """Share of cases by the number of groups acquired."""
        columns = self.found.columns
        return {k: self._one(columns.counts.start, k, columns.ended) for k in range(len(self.tariff.groups) + 1)}

    @cached_property
    def outcomes(self) -> dict[str, Estimate]:
        """Estimate of each outcome of the user."""
        costs = self.found.priced(self.tariff)
        return {name: costs.estimate(name) for name in self.tariff.own.names}

    @property
    def names(self) -> tuple[Any, ...]:
        """The parts in ``values``: groups that have a price, then pairs of true and predicted label."""
        return (*self.tariff.groups, *self.confusion)

    @property
    def values(self) -> Floats:
        """Estimates of the parts in ``names``, (P,); NaN if there are only bounds."""
        amounts, n = self.found.amounts, self.found.columns.cells.stop
        return np.full(n, np.nan) if self.bounded else amounts.values[:n]

    @property
    def influence(self) -> Floats | None:
        """Influence values of ``values``, (n, P); None if there are none."""
        found = None if self.bounded else self.found.amounts.influence
        return None if found is None else found[:, : self.found.columns.cells.stop]

    @property
    def covariance(self) -> Floats:
        """Joint covariance of ``values``, (P, P)."""
        n = self.found.columns.cells.stop
        return np.full((n, n), np.nan) if self.bounded else self.found.amounts.covariance[:n, :n]

    def combine(self, coefficients: Floats) -> Estimate:
        """Estimate a linear combination of ``values``, with coefficients (P,); not possible for bounds."""
        if self.bounded:
            raise ValueError(
                "Parts can be combined only if they are estimates, but here the records give only bounds. Use the bounds in "
                "'rates' and 'confusion'."
            )
        whole = np.zeros(self.found.columns.width)
        coefficients = numbers_per_row(coefficients, len(self.values), "'coefficients' must have")
        if not np.isfinite(coefficients).all():
            raise ValueError("'coefficients' must be finite, but some are not.")
        whole[: len(coefficients)] = coefficients
        return self.found.amounts.combine(whole)

    @cached_property
    def table(self) -> pd.DataFrame:
        """One line per part: its kind, name, estimate, standard error, bounds and interval."""
        lines: list[tuple[str, str, Estimate]] = [("rate", name, e) for name, e in self.rates.items()]
        lines += [("confusion", f"{true} predicted {k}", e) for (true, k), e in self.confusion.items()]
        lines += [("acquisitions", "mean", self.acquisitions)]
        lines += [("acquisitions", str(k), e) for k, e in self.counts.items()]
        lines += [("outcome", name, e) for name, e in self.outcomes.items()]
        return pd.DataFrame([{"kind": kind, "part": part, **_numbers(e, self.confidence)} for kind, part, e in lines])

    def to_dict(self) -> dict[str, Any]:
        """Return the table as plain numbers and text, ready for JSON."""
        return {"estimator": self.estimator, "confidence": self.confidence, "parts": plain_records(self.table)}

    def _repr_html_(self) -> str:
        return f"<p>Parts by {self.estimator}</p>{self.table.round(4).to_html(index=False, border=0)}"

    def __repr__(self) -> str:
        return f"Parts by {self.estimator}\n{self.table.round(4).to_string(index=False)}"


def _numbers(estimate: Estimate, confidence: float) -> dict[str, float]:
    low, high = estimate.interval(confidence)
    bounds = isinstance(estimate, Bounds)
    return {
        "estimate": estimate.value,
        "std_error": estimate.std_error,
        "bound_lower": estimate.bound_lower if bounds else np.nan,  # type: ignore[attr-defined]
        "bound_upper": estimate.bound_upper if bounds else np.nan,  # type: ignore[attr-defined]
        "lower": low,
        "upper": high,
    }
