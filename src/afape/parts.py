"""Parts of a policy's cost: how often it acquires each group, whom it classifies as what, under any prices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from .arrays import Floats
from .data import Problem, Retrospective
from .estimators import TARGETS, Bounds, Estimate, LinearParts
from .outcomes import OwnOutcomes
from .plain import plain_records
from .walk import PartColumns

__all__ = ["PartSums", "Parts", "Tariff"]


@dataclass(frozen=True, eq=False)
class PartSums:
    """Parts as an estimator found them.

    Attributes
    ----------
    linear : LinearParts or None
        Values of all columns; None where there are none.
    columns : PartColumns
        What the columns are.
    unsupported : float
        Share of the policy's runs that want unsupported sets.
    reason : str
        Why there are none.
    """

    linear: LinearParts | None
    columns: PartColumns
    unsupported: float = 0.0
    reason: str = ""

    def estimate(self, least: Floats, largest: Floats, limits: tuple[float, float]) -> Estimate:
        """Linear combination of the columns; bounds where runs into unsupported sets may come to the least or the largest."""
        assert self.linear is not None
        if not self.columns.open:
            return replace(self.linear.combine(least), limits=limits)
        nothing = np.zeros_like(least)  # parts of the least stand beside those of the largest
        low = self.linear.combine(np.concatenate([least, nothing]))
        high = self.linear.combine(np.concatenate([nothing, largest]))
        return Bounds.between(replace(low, limits=limits), replace(high, limits=limits), self.unsupported)


@dataclass(frozen=True, eq=False)
class Tariff:
    """Prices of groups and costs of errors, with the names that they go by.

    Attributes
    ----------
    problem : Problem
        The problem as it was evaluated.
    groups : tuple of str
        Costly groups.
    classes : tuple
        Labels, in the order of their codes.
    prices : ndarray of shape (Gc,)
        Price of each costly group.
    costs : ndarray of shape (K, K)
        Cost of each true and predicted label.
    own : OwnOutcomes
        Outcomes of the user's own.
    """

    problem: Problem
    groups: tuple[str, ...]
    classes: tuple[Any, ...]
    prices: Floats
    costs: Floats
    own: OwnOutcomes

    @staticmethod
    def of(data: Retrospective, own: OwnOutcomes) -> Tariff:
        """The prices and costs of the problem."""
        problem = data.problem
        names = tuple(name for name, free in zip(problem.group_names, problem.free, strict=True) if not free)
        return Tariff(problem, names, tuple(data.classes.tolist()), problem.prices[~problem.free], data.costs, own)

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of what is estimated."""
        return (*TARGETS, *self.own.names)

    @property
    def limits(self) -> dict[str, tuple[float, float]]:
        """Least and largest possible value of each target, which intervals never leave."""
        paid, wrong = float(self.prices.sum()), (float(self.costs.min()), float(self.costs.max()))
        costs = {"acquisition": (0.0, paid), "misclassification": wrong, "total": (wrong[0], paid + wrong[1])}
        return costs | {name: self.own.limits(name) for name in self.own.names}

    def coefficients(self, target: str, columns: PartColumns, largest: bool = False) -> Floats:
        """Weights of the columns in a target, with runs into unsupported sets at their least or largest."""
        out = np.zeros(columns.width)
        if target in ("acquisition", "total"):
            out += columns.priced(self.prices, largest)
        if target in ("misclassification", "total"):
            out += columns.judged(self.costs, largest)
        if target in self.own.names:
            out[columns.own.start + self.own.names.index(target)] = 1.0
            if columns.open:
                out[columns.ended] += self.own.limits(target)[int(largest)]
        return out

    def estimate(self, parts: PartSums, target: str) -> Estimate:
        """The estimate of a target that these parts add up to."""
        if parts.columns.open and not np.isfinite(self.limits[target]).all():  # an outcome that may be anything there
            low, high = (Estimate(end, None, limits=self.limits[target]) for end in self.limits[target])
            return Bounds.between(low, high, parts.unsupported)
        least, largest = (self.coefficients(target, parts.columns, flag) for flag in (False, True))
        return parts.estimate(least, largest, self.limits[target])

    def repriced(self, costs: Any = None, misclassification_cost: Any = None) -> Tariff:
        """Other prices of the same groups, other costs of the same labels."""
        prices = self.prices if costs is None else self._checked_prices(costs)
        if misclassification_cost is None:
            return replace(self, prices=prices)
        # The checks, and the order of labelled matrices, are those of a problem.
        asked = Problem(self.problem.groups, self.problem.costs, self.problem.label, misclassification_cost)
        return replace(self, prices=prices, costs=asked.cost_matrix(len(self.classes), list(self.classes)))

    def _checked_prices(self, costs: Any) -> Floats:
        if not isinstance(costs, Mapping):
            raise TypeError(f"'costs' must be a mapping from group name to price, not {type(costs).__name__}.")
        free = [name for name in self.problem.group_names if name not in self.groups]
        for name, price in costs.items():
            if name in free:
                raise ValueError(
                    f"'costs' must name groups that the policy had to acquire, but {name!r} is free: it was revealed before the "
                    f"first decision. Prices can change for {list(self.groups)}."
                )
            if name not in self.groups:
                raise ValueError(f"'costs' must name groups, but {name!r} is none. The groups are {list(self.groups)}.")
            number = isinstance(price, Real) and not isinstance(price, bool | np.bool_)
            if not number or not np.isfinite(float(price)) or price < 0:
                raise ValueError(
                    f"'costs' must be finite and not negative, but the price of {name!r} is {price!r}. A price of 0 is fine."
                )
        lacking = [name for name in self.groups if name not in costs]
        if lacking:
            raise ValueError(
                f"'costs' must have a price for every group that has one, but leaves out {lacking}. Prices so far: "
                f"{dict(zip(self.groups, self.prices.tolist(), strict=True))}."
            )
        return np.array([float(costs[name]) for name in self.groups])


@dataclass(frozen=True, eq=False)
class Parts:
    """What an estimator says that a policy does.

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
        Name -> `Estimate` of an outcome of the user's own.
    names : tuple
        Order of the linear vector: groups, then pairs of true and predicted label.
    values : ndarray of shape (P,)
        The linear vector; NaN where there are only bounds.
    influence : ndarray of shape (n, P), or None
        Its influence values, where there is one per row.
    covariance : ndarray of shape (P, P)
        Its joint covariance, of clusters where there are some; by Rubin's rules for `mi`, from replicates where errors
        come from the bootstrap, NaN where there are none.
    table : DataFrame
        One line per part.
    """

    estimator: str
    sums: PartSums
    tariff: Tariff
    confidence: float

    def _one(self, start: int, position: int, more: slice | int | None = None) -> Estimate:
        """A column; where there are bounds, these columns may come on top."""
        least = np.zeros(self.sums.columns.width)
        least[start + position] = 1.0
        largest = least.copy()
        if more is not None and self.sums.columns.open:
            largest[more] = 1.0
        return self.sums.estimate(least, largest, (0.0, 1.0))

    @cached_property
    def rates(self) -> dict[str, Estimate]:
        """Share of cases in which each group is acquired."""
        left = self.sums.columns.left.start
        return {name: self._one(0, g, left + g) for g, name in enumerate(self.tariff.groups)}

    @cached_property
    def confusion(self) -> dict[tuple[Any, Any], Estimate]:
        """Share of cases by true and predicted label."""
        classes, columns = self.tariff.classes, self.sums.columns
        return {
            (true, predicted): self._one(columns.cells.start, y * len(classes) + k, columns.ended.start + y)
            for y, true in enumerate(classes)
            for k, predicted in enumerate(classes)
        }

    @cached_property
    def acquisitions(self) -> Estimate:
        """Mean number of groups acquired: the sum of the rates."""
        columns = self.sums.columns
        least = np.zeros(columns.width)
        least[: len(self.tariff.groups)] = 1.0
        largest = least.copy()
        largest[columns.left] = 1.0
        return self.sums.estimate(least, largest, (0.0, float(len(self.tariff.groups))))

    @cached_property
    def counts(self) -> dict[int, Estimate]:
        """Share of cases by the number of groups acquired."""
        columns = self.sums.columns
        return {k: self._one(columns.counts.start, k, columns.ended) for k in range(len(self.tariff.groups) + 1)}

    @cached_property
    def outcomes(self) -> dict[str, Estimate]:
        """Outcomes of the user's own."""
        return {name: self.tariff.estimate(self.sums, name) for name in self.tariff.own.names}

    @property
    def names(self) -> tuple[Any, ...]:
        """Order of the linear vector."""
        return (*self.tariff.groups, *self.confusion)

    @property
    def values(self) -> Floats:
        """Values of the linear vector; NaN where there are only bounds."""
        linear, n = self._linear, self.sums.columns.cells.stop
        return np.full(n, np.nan) if self.sums.columns.open else linear.values[:n]

    @property
    def influence(self) -> Floats | None:
        """Influence values of the linear vector, (n, P)."""
        found = None if self.sums.columns.open else self._linear.influence
        return None if found is None else found[:, : self.sums.columns.cells.stop]

    @property
    def covariance(self) -> Floats:
        """Joint covariance of the linear vector."""
        n = self.sums.columns.cells.stop
        return np.full((n, n), np.nan) if self.sums.columns.open else self._linear.covariance[:n, :n]

    @property
    def _linear(self) -> LinearParts:
        assert self.sums.linear is not None
        return self.sums.linear

    def combine(self, coefficients: Floats) -> Estimate:
        """Estimate of a linear combination of the linear vector; not where there are only bounds."""
        if self.sums.columns.open:
            raise ValueError("Parts of which the records give only bounds have no linear combinations.")
        whole = np.zeros(self.sums.columns.width)
        whole[: len(coefficients)] = coefficients
        return self._linear.combine(whole)

    @cached_property
    def table(self) -> pd.DataFrame:
        """One line per part: what kind it is, its name, estimate, standard error and interval."""
        lines: list[tuple[str, str, Estimate]] = [("rate", name, e) for name, e in self.rates.items()]
        lines += [("confusion", f"{true} predicted {k}", e) for (true, k), e in self.confusion.items()]
        lines += [("acquisitions", "mean", self.acquisitions)]
        lines += [("acquisitions", str(k), e) for k, e in self.counts.items()]
        lines += [("outcome", name, e) for name, e in self.outcomes.items()]
        return pd.DataFrame([{"kind": kind, "part": part, **_numbers(e, self.confidence)} for kind, part, e in lines])

    def to_dict(self) -> dict[str, Any]:
        """The table as plain numbers and text, ready for JSON."""
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
