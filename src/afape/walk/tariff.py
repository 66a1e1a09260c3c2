"""Prices of groups and costs of errors: how targets are made of the parts of a policy's cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._arguments import as_float, check_mapping, is_number, shown
from .._arrays import Floats
from ..data.problem import Problem
from ..data.retrospective import Retrospective
from .outcomes import NO_OUTCOMES, OwnOutcomes

__all__ = ["TARGETS", "Tariff"]

TARGETS = ("acquisition", "misclassification", "total")


@dataclass(frozen=True, eq=False)
class Tariff:
    """Prices of groups, costs of errors and the user's outcomes, with their names.

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
        Outcomes of the user.
    fixed : bool
        True if the policy's decisions do not depend on the values, so that what it acquires is certain.
    shares : ndarray of shape (K,), optional
        Shares of the labels among the cases, if they are known.
    """

    problem: Problem
    groups: tuple[str, ...]
    classes: tuple[Any, ...]
    prices: Floats
    costs: Floats
    own: OwnOutcomes
    fixed: bool = False
    paired: bool = False  # True if what stops predict is the pair of true and predicted label
    shares: Floats | None = None

    @staticmethod
    def of(data: Retrospective, own: OwnOutcomes = NO_OUTCOMES) -> Tariff:
        """Prices and costs of the problem."""
        problem, plain = data.problem, data if data.original is None else data.original
        names = tuple(name for name, costly in zip(problem.group_names, problem.costly, strict=True) if costly)
        classes, prices = tuple(plain.classes.tolist()), problem.prices[problem.costly]
        paired, shares = data.original is not None, data.label_shares
        return Tariff(problem, names, classes, prices, plain.costs, own, paired=paired, shares=shares)

    @property
    def stop_costs(self) -> Floats:
        """Cost by the label of the row and by what the stop predicts: (K, K), or (1, K x K) if it predicts pairs."""
        return self.costs.reshape(1, -1) if self.paired else self.costs

    @property
    def unit(self) -> Tariff:
        """Tariff in which every costly group and every error costs 1, without outcomes of the user."""
        return replace(self, prices=np.ones_like(self.prices), costs=1.0 - np.eye(len(self.classes)), own=NO_OUTCOMES)

    @property
    def of_subgroup(self) -> Tariff:
        """Tariff of a subgroup, in which shares of labels are not known."""
        return replace(self, shares=None)

    @property
    def without_own(self) -> Tariff:
        """Tariff without outcomes of the user."""
        return replace(self, own=NO_OUTCOMES)

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of what is estimated."""
        return (*TARGETS, *self.own.names)

    @property
    def limits(self) -> dict[str, tuple[float, float]]:
        """Least and largest possible value of each target; intervals stay within.

        Where the share of every label is known, so is the share of the cases that can have its costs.
        """
        paid, ends = float(self.prices.sum()), (self.costs.min(axis=1), self.costs.max(axis=1))
        wrong = (float(ends[0].min()), float(ends[1].max()))
        if self.shares is not None:
            wrong = (float(self.shares @ ends[0]), float(self.shares @ ends[1]))
        costs = {"acquisition": (0.0, paid), "misclassification": wrong, "total": (wrong[0], paid + wrong[1])}
        return costs | {name: self.own.limits(name) for name in self.own.names}

    def coefficients(self, target: str) -> Floats:
        """Coefficients of a target in acquisition cost, misclassification cost and the user's outcomes."""
        out = np.zeros(2 + len(self.own))
        out[0] = target in ("acquisition", "total")
        out[1] = target in ("misclassification", "total")
        if target in self.own.names:
            out[2 + self.own.names.index(target)] = 1.0
        return out

    def repriced(self, costs: Any = None, misclassification_cost: Any = None) -> Tariff:
        """Tariff with other prices for the same groups and other costs for the same labels."""
        prices = self.prices if costs is None else self._checked_prices(costs)
        if misclassification_cost is None:
            return replace(self, prices=prices)
        # A problem checks the costs and aligns labelled matrices with the classes.
        asked = Problem(self.problem.groups, self.problem.costs, self.problem.label, misclassification_cost)
        return replace(self, prices=prices, costs=asked.cost_matrix(len(self.classes), list(self.classes)))

    def _checked_prices(self, costs: Any) -> Floats:
        costs = check_mapping("costs", costs, "from group name to price")
        free = [name for name in self.problem.group_names if name not in self.groups]
        for name, price in costs.items():
            if name in free:
                raise ValueError(
                    f"'costs' must name costly groups, but {name!r} is free: it was revealed before the first "
                    f"decision. Prices can change for {list(self.groups)}."
                )
            if name not in self.groups:
                raise ValueError(
                    f"'costs' must name costly groups, but {name!r} is not one. They are {list(self.groups)}."
                )
            if not is_number(price) or not 0 <= as_float(price) < np.inf:
                raise ValueError(
                    f"'costs' must be finite and not negative, but the price of {name!r} is {shown(price)}. A price of 0 is fine."
                )
        kept = dict(zip(self.groups, self.prices.tolist(), strict=True))
        return np.array([float(price) for price in (kept | dict(costs)).values()])
