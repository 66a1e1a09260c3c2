"""Total costs as one or two prices vary: the cheapest policy at every point, and its probability."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .._arguments import as_float, check_count, is_number, shown
from .._arrays import Floats
from .._copies import HandsOutCopies
from ..estimators.differences import covariance_of, draws
from .parts import Parts

__all__ = ["ERRORS", "PricePlane", "price_plane_of"]

ERRORS = "misclassification"  # name of the cost of an error among the prices
_DRAWS = 4000


@dataclass(frozen=True, eq=False)
class PricePlane(HandsOutCopies):
    """Total costs of several policies on a grid of prices.

    Attributes
    ----------
    table : DataFrame
        One line per point of the grid: the prices; the policy with the lowest estimate and its total cost; ``probability``
        that it is the cheapest, under the joint normal distribution of the estimates; ``uncertain``, True if this probability
        is below the confidence level.
    totals : ndarray of shape (points, policies)
        Total cost of every policy at every point.
    std_errors : ndarray of shape (points, policies)
        Their standard errors.
    policies, prices : tuple of str
        Names of the columns of ``totals``, and of the prices that vary.
    """

    table: pd.DataFrame
    totals: Floats
    std_errors: Floats
    policies: tuple[str, ...]
    prices: tuple[str, ...]
    confidence: float

    def plot(self, ax: Any = None) -> Any:
        """Draw total costs against one price, or the cheapest policy against two; uncertain regions are hatched."""
        from ..plots.results import draw_price_plane

        return draw_price_plane(self, ax)

    def to_dict(self) -> dict[str, Any]:
        """Return the table and the totals as plain numbers and text, ready for JSON."""
        return {
            "prices": list(self.prices),
            "policies": list(self.policies),
            "confidence": self.confidence,
            "points": self.table.to_dict("records"),
            "totals": self.totals.tolist(),
            "std_errors": [[None if not np.isfinite(e) else e for e in line] for line in self.std_errors.tolist()],
        }

    def __repr__(self) -> str:
        share = self.table["cheapest"].value_counts(normalize=True)
        found = ", ".join(f"{name} in {100 * part:.0f} %" for name, part in share.items())
        unsure = 100 * self.table["uncertain"].mean()
        return f"Prices of {' and '.join(self.prices)}: cheapest is {found} of {len(self.table)} points; {unsure:.0f} % uncertain"


def price_plane_of(parts: Mapping[str, Parts], prices: Any, points: int, confidence: float) -> PricePlane:
    """Vary one or two prices over their ranges; all other prices stay fixed."""
    first = next(iter(parts.values()))
    axes = _axes(prices, first, check_count("points", points, 2, 1000))
    varied = list(axes)
    # A total is linear in the prices: a fixed part, plus each price times its coefficient.
    pieces = [[part.combine(c) for c in _pieces(part, varied)] for part in parts.values()]
    flat = [estimate for piece in pieces for estimate in piece]
    value = np.array([e.value for e in flat]).reshape(len(parts), -1)
    grid = np.array(np.meshgrid(*axes.values(), indexing="ij")).reshape(len(varied), -1)
    factors = np.vstack([np.ones(grid.shape[1]), grid])  # (1 + v, points)
    totals = (value @ factors).T
    errors, probability = np.full(totals.shape, np.nan), np.ones(len(totals))
    best = totals.argmin(axis=1)
    if len(parts) > 1 or np.isfinite([e.std_error for e in flat]).all():
        covariance = covariance_of(flat)
        blocks = covariance.reshape(len(parts), len(factors), len(parts), len(factors))
        errors = np.sqrt(np.einsum("vp,ivjw,wp->pij", factors, blocks, factors).diagonal(axis1=1, axis2=2).clip(0.0))
        drawn = value + draws(covariance)[:_DRAWS].reshape(-1, *value.shape)
        cheapest = np.array([(drawn @ column).argmin(axis=1) for column in factors.T])
        probability = (cheapest == best[:, None]).mean(axis=1)
    table = pd.DataFrame(
        {
            **{name: grid[k] for k, name in enumerate(varied)},
            "cheapest": [list(parts)[j] for j in best],
            "total": totals[np.arange(len(best)), best],
            "probability": probability,
            "uncertain": probability < confidence,
        }
    )
    return PricePlane(table, totals, errors, tuple(parts), tuple(varied), confidence)


def _axes(prices: Any, parts: Parts, points: int) -> dict[str, Floats]:
    if not isinstance(prices, Mapping) or not 1 <= len(prices) <= 2:
        raise ValueError(
            f"'prices' must map one or two groups to the range of their price, but is {shown(prices)}. Example: "
            f"{{'lactate': (0, 50)}}. The name {ERRORS!r} means the cost of an error."
        )
    out = {}
    for name, limits in prices.items():
        if not isinstance(name, str) or (name != ERRORS and name not in parts.tariff.groups):
            raise ValueError(
                f"'prices' must name groups that have a price, or {ERRORS!r}, but {shown(name)} is neither. The groups are "
                f"{list(parts.tariff.groups)}."
            )
        ends = limits if isinstance(limits, tuple | list | np.ndarray) else ()
        if len(ends) != 2 or not all(map(is_number, ends)):
            raise ValueError(f"'prices' must give {name!r} a range (least, largest), but has {shown(limits)}.")
        low, high = map(as_float, ends)
        if not (0 <= low < high < np.inf):
            raise ValueError(f"'prices' must give {name!r} a range with 0 <= least < largest, but has {shown(limits)}.")
        out[str(name)] = np.linspace(low, high, points)
    return out


def _pieces(parts: Parts, varied: list[str]) -> list[Floats]:
    """Return the coefficients (P,) of the fixed part of the total, and those of each varied price."""
    tariff, n_groups = parts.tariff, len(parts.tariff.groups)
    stays = np.concatenate([tariff.prices, tariff.costs.ravel()])
    out = []
    for name in varied:
        one = np.zeros_like(stays)
        if name == ERRORS:
            one[n_groups:] = (1.0 - np.eye(len(tariff.classes))).ravel()
            stays[n_groups:] = 0.0
        else:
            one[tariff.groups.index(name)] = 1.0
            stays[tariff.groups.index(name)] = 0.0
        out.append(one)
    return [stays, *out]
