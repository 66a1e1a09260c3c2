"""Mechanisms that hide groups of complete data and know their own superset probability."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.special import expit

from ..arrays import Bools, Floats
from ..data import Retrospective
from ..nuisance.propensity.known import KnownPropensity

__all__ = ["IndependentMechanism", "LogisticMechanism"]


class LogisticMechanism:
    r"""Record each group by a coin of its own, its odds log-linear in always recorded columns.

    .. math:: P(R_g = 1 \mid x) = \sigma\Big(b_g + \sum_c w_{gc} x_c\Big)

    Parameters
    ----------
    intercepts : mapping from group name to b_g
        Groups that are named nowhere are always recorded.
    weights : mapping from group name to a mapping from column to w_gc
        The columns must belong to groups that the mechanism never hides.

    Examples
    --------
    >>> mechanism = LogisticMechanism({"x1": -0.3}, {"x1": {"X0": 0.5}})
    """

    def __init__(
        self, intercepts: Mapping[str, float], weights: Mapping[str, Mapping[str, float]] | None = None
    ) -> None:
        self.intercepts = dict(intercepts)
        self.weights = {group: dict(by_column) for group, by_column in (weights or {}).items()}

    def probabilities(self, data: Retrospective, values: Floats | None = None) -> Floats:
        """P(R_g = 1 | x) of each group in each row, shape (n, G)."""
        problem = data.problem
        values = data.values if values is None else values
        out = np.ones((len(values), problem.n_groups))
        hidden = {*self.intercepts, *self.weights}
        problem.group_index(sorted(self.intercepts), "intercepts")
        problem.group_index(sorted(self.weights), "weights")
        for group in hidden:
            if not np.isfinite(self.intercepts.get(group, 0.0)):
                raise ValueError(f"'intercepts' must be finite, but {group!r} has {self.intercepts[group]!r}.")
            if not all(np.isfinite(v) for v in self.weights.get(group, {}).values()):
                raise ValueError(f"'weights' must be finite, but {group!r} has {self.weights[group]!r}.")
        for group in hidden:
            odds = np.full(len(values), float(self.intercepts.get(group, 0.0)))
            for column, weight in self.weights.get(group, {}).items():
                if column not in data.columns:
                    raise ValueError(
                        f"'weights' must name columns of the data, but {column!r} is none. They are {list(data.columns)}."
                    )
                j = data.columns.index(column)
                owner = problem.group_names[data.column_group[j]]
                if owner in hidden:
                    raise ValueError(
                        f"'weights' must name columns that are never hidden, but {column!r} belongs to {owner!r}, which "
                        "this mechanism hides: the data would be missing not at random."
                    )
                gaps = int(np.isnan(values[:, j]).sum())
                if gaps:
                    raise ValueError(
                        f"'weights' must name columns that are always recorded, but {column!r} is missing in {gaps} of "
                        f"{len(values)} rows. Start from complete data."
                    )
                odds += weight * values[:, j]
            out[:, problem.group_names.index(group)] = expit(odds)
        return out

    def hide(self, data: Retrospective, random_state: int | None = 0) -> Retrospective:
        """Hide groups at random."""
        return data.hide(np.random.default_rng(random_state).random(data.recorded.shape) < self.probabilities(data))

    def propensity(self, data: Retrospective) -> KnownPropensity:
        """The true P(R >= S | given); ``data`` tells which columns there are."""

        def product_of_groups(values: Floats, required: Bools) -> Floats:
            return np.asarray(np.where(required, self.probabilities(data, values), 1.0).prod(axis=1))

        return KnownPropensity(product_of_groups)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.intercepts}, {self.weights})"


class IndependentMechanism(LogisticMechanism):
    """Record each group with a probability of its own, whatever the values.

    Parameters
    ----------
    shares : mapping from group name to probability
        Groups that are not named are always recorded.
    """

    def __init__(self, shares: Mapping[str, float]) -> None:
        for group, share in shares.items():
            if not 0 < share <= 1:
                raise ValueError(f"'shares' must lie in (0, 1], but {group!r} has {share!r}.")
        super().__init__({})
        self.shares = dict(shares)

    def probabilities(self, data: Retrospective, values: Floats | None = None) -> Floats:
        """P(R_g = 1) of each group in each row, shape (n, G)."""
        n_rows = len(data.values if values is None else values)
        out = np.ones((n_rows, data.problem.n_groups))
        out[:, data.problem.group_index(list(self.shares), "shares")] = list(self.shares.values())
        return out

    def __repr__(self) -> str:
        return f"IndependentMechanism({self.shares})"
