"""Cost-effectiveness: the cost of acquisition and the share of cases found, for every policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .._arguments import check_class
from .._arrays import Bools, Floats
from .._copies import HandsOutCopies
from ..estimators.differences import covariance_of, draws
from ..estimators.estimate import Estimate
from ..files.writing import plain_records
from .parts import Parts

__all__ = ["Frontier", "frontier_of", "on_frontier"]

_DRAWS = 4000


@dataclass(frozen=True, eq=False)
class Frontier(HandsOutCopies):
    """Cost of acquisition and share of cases found, for several policies.

    Attributes
    ----------
    table : DataFrame
        One line per policy, cheapest first: cost of acquisition (``cost``) and share of all cases that are found
        (``found``), each with its interval; ``on_frontier``, True if no other policy and no mixture of two finds as many cases
        at a lower cost; ``cost_per_case``, the cost of one more case found, compared with the previous policy on the frontier;
        ``probability`` of being on the frontier, under the joint normal distribution of the estimates.
    effect : str
        Which cases count as found.
    """

    table: pd.DataFrame
    effect: str
    confidence: float

    def plot(self, ax: Any = None) -> Any:
        """Draw cost against cases found, with intervals and the frontier; needs matplotlib."""
        from ..plots.results import draw_frontier

        return draw_frontier(self, ax)

    def to_dict(self) -> dict[str, Any]:
        """Return the table as plain numbers and text, ready for JSON."""
        return {"effect": self.effect, "confidence": self.confidence, "policies": plain_records(self.table)}

    def __repr__(self) -> str:
        return (
            f"Cost of acquisition and share of all cases: {self.effect}\n{self.table.round(4).to_string(index=False)}"
        )


def on_frontier(cost: Floats, found: Floats) -> Bools:
    r"""Return True for the policies on the frontier; costs, effects and result have shape (..., L).

    A policy is on the frontier if it is the best for some value :math:`\lambda \ge 0` of a case found,
    :math:`\lambda e_i - c_i \ge \lambda e_j - c_j` for all j.
    """
    dearer = cost[..., :, None] - cost[..., None, :]  # c_i - c_j
    better = found[..., :, None] - found[..., None, :]  # e_i - e_j
    ratio = np.divide(dearer, better, out=np.zeros_like(dearer), where=better != 0)
    least = np.where(better > 0, ratio, -np.inf).max(axis=-1)
    largest = np.where(better < 0, ratio, np.inf).min(axis=-1)
    beaten = ((better == 0) & (dearer > 0)).any(axis=-1)
    return np.asarray((np.maximum(least, 0.0) <= largest) & ~beaten)


def frontier_of(parts: Mapping[str, Parts], label: Any, confidence: float) -> Frontier:
    """Compute the frontier of these policies; ``label`` is the class to find, None for every right prediction."""
    first = next(iter(parts.values()))
    classes, n_groups = first.tariff.classes, len(first.tariff.groups)
    cells = np.eye(len(classes))
    if label is not None:
        cells = np.diag(np.eye(len(classes))[check_class("label", label, classes)])
    cost, found = {}, {}
    for name, part in parts.items():
        paid = np.concatenate([part.tariff.prices, np.zeros(len(classes) ** 2)])
        cost[name] = part.combine(paid)
        found[name] = part.combine(np.concatenate([np.zeros(n_groups), cells.ravel()]))
    table = _table(cost, found, confidence)
    return Frontier(table, "classified correctly" if label is None else f"{label!r} and predicted so", confidence)


def _table(cost: dict[str, Estimate], found: dict[str, Estimate], confidence: float) -> pd.DataFrame:
    names, n = list(cost), len(cost)
    both = [*cost.values(), *found.values()]
    value = np.array([e.value for e in both])
    drawn = value + draws(covariance_of(both))[:_DRAWS]
    probability = on_frontier(drawn[:, :n], drawn[:, n:]).mean(axis=0)
    on = on_frontier(value[:n], value[n:])
    lines = []
    before: tuple[float, float] | None = None
    for i in np.lexsort((-value[n:], value[:n])):
        low, high = cost[names[i]].interval(confidence)
        least, largest = found[names[i]].interval(confidence)
        step = np.nan
        if on[i]:
            if before is not None and value[n + i] > before[1]:
                step = (value[i] - before[0]) / (value[n + i] - before[1])
            before = (float(value[i]), float(value[n + i]))
        lines.append(
            {
                "policy": names[i],
                "cost": value[i],
                "cost_lower": max(low, 0.0),
                "cost_upper": high,
                "found": value[n + i],
                "found_lower": max(least, 0.0),
                "found_upper": min(largest, 1.0),
                "on_frontier": bool(on[i]),
                "cost_per_case": step,
                "probability": probability[i],
            }
        )
    return pd.DataFrame(lines)
