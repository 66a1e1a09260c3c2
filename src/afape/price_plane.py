"""One or two prices varied: which policy is the cheapest where, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from .arguments import check_count
from .arrays import Floats
from .estimators.joint import covariance_of, draws
from .parts import Parts
from .plotting import axes_of

__all__ = ["ERRORS", "PricePlane", "price_plane_of"]

ERRORS = "misclassification"  # the name under which the cost of an error is varied
_DRAWS = 4000


@dataclass(frozen=True, eq=False)
class PricePlane:
    """Total costs of the same policies under prices on a grid.

    Attributes
    ----------
    table : DataFrame
        One line per point of the grid: the prices; the policy that is estimated to be the cheapest and its total cost;
        ``probability``, how probable it is to be the cheapest, by the joint normal law of the estimates; ``uncertain``, whether
        that is less than the level of confidence.
    totals : ndarray of shape (points, policies)
        Total cost of every policy at every point.
    std_errors : ndarray of shape (points, policies)
        Their standard errors.
    policies, prices : tuple of str
        Names of the columns of ``totals``, and of what is varied.
    """

    table: pd.DataFrame
    totals: Floats
    std_errors: Floats
    policies: tuple[str, ...]
    prices: tuple[str, ...]
    confidence: float

    def plot(self, ax: Any = None) -> Any:
        """Draw total costs against a price, or the cheapest policy in the plane of two; uncertain regions are hatched."""
        ax = axes_of(ax)
        if len(self.prices) == 1:
            self._lines(ax)
        else:
            self._regions(ax)
        return ax

    def _lines(self, ax: Any) -> None:
        x = self.table[self.prices[0]].to_numpy()
        for j, name in enumerate(self.policies):
            ax.plot(x, self.totals[:, j], color=f"C{j}", label=name)
            low, high = (self.totals[:, j] + sign * 1.96 * self.std_errors[:, j] for sign in (-1, 1))
            ax.fill_between(x, low, high, color=f"C{j}", alpha=0.15)
        for start, stop in _runs(self.table["uncertain"].to_numpy()):
            ax.axvspan(x[start], x[stop], color="0.9", zorder=0)
        ax.set_xlabel(_words(self.prices[0]))
        ax.set_ylabel("total cost per case")
        ax.legend(fontsize="small")

    def _regions(self, ax: Any) -> None:
        from matplotlib.colors import ListedColormap
        from matplotlib.patches import Patch

        first, second = (np.unique(self.table[price]) for price in self.prices)
        shape = (len(first), len(second))
        place = [self.policies.index(name) for name in self.table["cheapest"]]
        best, uncertain = np.array(place).reshape(shape), self.table["uncertain"].to_numpy().reshape(shape)
        colours = ListedColormap([f"C{j}" for j in range(len(self.policies))])
        ax.pcolormesh(
            first, second, best.T, cmap=colours, vmin=-0.5, vmax=len(self.policies) - 0.5, alpha=0.6, shading="nearest"
        )
        if uncertain.any():
            ax.contourf(first, second, uncertain.T.astype(float), levels=[0.5, 1.5], colors="none", hatches=["///"])
        handles = [Patch(color=f"C{j}", alpha=0.6, label=self.policies[j]) for j in np.unique(best)]
        handles += [Patch(fill=False, hatch="///", label="uncertain")] if uncertain.any() else []
        ax.legend(handles=handles, fontsize="small")
        ax.set_xlabel(_words(self.prices[0]))
        ax.set_ylabel(_words(self.prices[1]))

    def to_dict(self) -> dict[str, Any]:
        """The table and the totals as plain numbers and text, ready for JSON."""
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
        told = ", ".join(f"{name} in {100 * part:.0f} %" for name, part in share.items())
        unsure = 100 * self.table["uncertain"].mean()
        return f"Prices of {' and '.join(self.prices)}: cheapest is {told} of {len(self.table)} points; {unsure:.0f} % uncertain"


def _words(price: str) -> str:
    return "cost of an error" if price == ERRORS else f"price of {price}"


def _runs(flags: Any) -> list[tuple[int, int]]:
    """First and last index of each run of true flags."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], np.asarray(flags, dtype=int), [0]])))
    return [(int(a), int(b) - 1) for a, b in edges.reshape(-1, 2)]


def price_plane_of(parts: Mapping[str, Parts], prices: Any, points: int, confidence: float) -> PricePlane:
    """Vary one or two prices over ranges; everything else stays as it is."""
    first = next(iter(parts.values()))
    axes = _axes(prices, first, check_count("points", points, 2))
    varied = list(axes)
    # A total is linear in the prices: what does not vary, and what each price is multiplied by.
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
            f"'prices' must map one or two groups to the range of their price, but is {prices!r}. Write {{'lactate': (0, 50)}}, "
            f"say; {ERRORS!r} stands for the cost of an error."
        )
    out = {}
    for name, limits in prices.items():
        if name != ERRORS and name not in parts.tariff.groups:
            raise ValueError(
                f"'prices' must name groups that have a price, or {ERRORS!r}, but {name!r} is none. They are "
                f"{list(parts.tariff.groups)}."
            )
        ends = list(limits) if isinstance(limits, Iterable) else []
        if len(ends) != 2 or not all(isinstance(end, Real) and not isinstance(end, bool | np.bool_) for end in ends):
            raise ValueError(f"'prices' must give {name!r} a range (least, largest), but has {limits!r}.")
        low, high = (float(end) for end in ends)
        if not (0 <= low < high < np.inf):
            raise ValueError(f"'prices' must give {name!r} a range with 0 <= least < largest, but has {limits!r}.")
        out[str(name)] = np.linspace(low, high, points)
    return out


def _pieces(parts: Parts, varied: list[str]) -> list[Floats]:
    """Coefficients of what stays, and of what each varied price is multiplied by."""
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
