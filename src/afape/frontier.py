"""Cost-effectiveness: the cost of acquisition of every policy against the cases that it finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .arguments import check_class
from .arrays import Bools, Floats
from .estimators import Estimate
from .estimators.joint import covariance_of, draws
from .parts import Parts
from .plain import plain_records
from .plotting import axes_of

__all__ = ["Frontier", "frontier_of", "on_frontier"]

_DRAWS = 4000


@dataclass(frozen=True, eq=False)
class Frontier:
    """Policies by what they cost and what they find.

    Attributes
    ----------
    table : DataFrame
        One line per policy, cheapest first: cost of acquisition (``cost``) and share of all cases that are found
        (``found``), each with its interval; ``on_frontier``, whether no policy, and no mixture of two, finds as many for less;
        ``cost_per_case``, what one more case found costs beyond the policy before it on the frontier; ``probability``, how
        probable it is to be on the frontier, by the joint normal law of the estimates.
    effect : str
        What counts as found.
    """

    table: pd.DataFrame
    effect: str
    confidence: float

    def plot(self, ax: Any = None) -> Any:
        """Draw cost against cases found, with intervals, and the frontier; needs matplotlib."""
        ax, table = axes_of(ax), self.table
        x, y = table["cost"], table["found"]
        across = np.abs(np.array([x - table["cost_lower"], table["cost_upper"] - x]))
        along = np.abs(np.array([y - table["found_lower"], table["found_upper"] - y]))
        ax.errorbar(x, y, xerr=across, yerr=along, fmt="o", color="0.5", ecolor="0.8")
        on = table[table["on_frontier"]]
        ax.plot(on["cost"], on["found"], "o-", color="C0")
        for line in table.to_dict("records"):
            ax.annotate(str(line["policy"]), (line["cost"], line["found"]), xytext=(5, 5), textcoords="offset points")
        ax.set_xlabel("cost of acquisition per case")
        ax.set_ylabel(f"share of cases {self.effect}")
        return ax

    def to_dict(self) -> dict[str, Any]:
        """The table as plain numbers and text, ready for JSON."""
        return {"effect": self.effect, "confidence": self.confidence, "policies": plain_records(self.table)}

    def __repr__(self) -> str:
        return f"Cost of acquisition and share of cases {self.effect}\n{self.table.round(4).to_string(index=False)}"


def on_frontier(cost: Floats, found: Floats) -> Bools:
    r"""Which policies are on the frontier; costs and effects of shape (..., L).

    A policy is on it if some price :math:`\lambda \ge 0` of a case found makes it the best,
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
    """The frontier of these policies; ``label`` is the class to find, None for every right prediction."""
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
    return Frontier(table, "classified rightly" if label is None else f"of {label!r} found", confidence)


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
