"""A test that costs nothing: acquiring nothing costs the same with and without a graph."""

from __future__ import annotations

import numpy as np
from scipy.special import stdtr

from ..estimators.estimate import Estimate, Outcome
from ..nuisance.fitted import Fitted

__all__ = ["gap_between", "plain_mean"]

_DOUBTED = 0.01  # p-value below which the gap is more than chance


def plain_mean(fitted: Fitted) -> Estimate:
    r"""Mean cost of runs that stop where they start, by all rows: :math:`\frac1n \sum_i C_{S_0}(x_i, y_i)`."""
    cost, weight = np.zeros(len(fitted.data)), fitted.row_weight
    for table in fitted.tables:
        start = table.depth == 0
        cost[table.row[start]] = table.cost[start]
    value = float(weight @ cost / weight.sum())
    influence = weight * (cost - value) * (len(weight) / weight.sum())
    return Estimate(value, influence, fitted.data.cluster, fitted.data.identity)


def gap_between(weighted: Outcome, fitted: Fitted) -> tuple[tuple[str, ...], bool]:
    """The difference in words, and whether it is more than chance."""
    if weighted.reason:
        return (), False
    plain = plain_mean(fitted)
    gap = weighted.estimates["total"] - plain
    if not gap.std_error > 0:
        return (), False
    p_value = float(2 * stdtr(gap.degrees_of_freedom, -abs(gap.value) / gap.std_error))
    words = (
        f"Acquiring nothing costs {plain.value:.4g} by all rows, which needs no graph, and "
        f"{plain.value + gap.value:.4g} by the weights that follow from it: a gap of {gap.value:.2g}, standard error "
        f"{gap.std_error:.2g}, p = {p_value:.2g}."
    )
    return (words,), p_value < _DOUBTED
