"""Drawings behind the ``plot`` methods of results: `Comparison`, `Frontier`, `PricePlane` and `Calibration`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..estimators.estimate import Bounds
from ..results.price_plane import ERRORS
from .style import BLUE, GREY, axes, colour, finished

if TYPE_CHECKING:
    from ..results.budget_curve import BudgetCurve
    from ..results.calibration import Calibration
    from ..results.comparison import Comparison
    from ..results.frontier import Frontier
    from ..results.price_plane import PricePlane

__all__ = ["draw_budget_curve", "draw_calibration", "draw_comparison", "draw_frontier", "draw_price_plane"]


def draw_comparison(found: Comparison, estimator: str, target: str, ax: Any = None) -> Any:
    """Draw the estimate of every policy with its interval, the cheapest at the top.

    Bounds are grey lines; an open circle marks the estimate that holds if the models may be extrapolated.
    """
    estimates = found.estimates(estimator, target)
    ends = {name: e.interval(found.confidence) for name, e in estimates.items()}
    order = sorted(estimates, key=lambda name: -sum(ends[name]))
    ax = axes(ax, 6.0, 0.8 + 0.4 * len(order))
    for y, name in enumerate(order):
        estimate = estimates[name]
        ax.plot(ends[name], [y, y], color=GREY if isinstance(estimate, Bounds) else BLUE)
        if isinstance(estimate, Bounds):
            if estimate.extrapolated is not None:
                ax.plot([estimate.extrapolated.value], [y], "o", color=GREY, fillstyle="none")
        else:
            ax.plot([estimate.value], [y], "o", color=BLUE)
    ax.set_yticks(range(len(order)), order)
    ax.set_xlabel(f"{target} cost by {estimator}, {100 * found.confidence:g} % intervals")
    return finished(ax)


def draw_budget_curve(found: BudgetCurve, quantity: str, ax: Any = None) -> Any:
    """Draw one quantity against the budget; the band holds for all budgets at once, and grey bars are bounds."""
    ax, table = axes(ax, 6.0, 4.0), found[quantity]
    ax.fill_between(table["budget"], table["lower"], table["upper"], color=BLUE, alpha=0.15)
    ax.plot(table["budget"], table["estimate"], "o-", color=BLUE)
    ax.vlines(table["budget"], table["bound_lower"], table["bound_upper"], color=GREY)
    names = {"cost": "largest cost of acquisition", "steps": "largest number of acquisitions", "soft": "soft budget"}
    ax.set_xlabel(names[found.kind])
    cost = quantity in ("total", "acquisition", "misclassification")
    what = f"{quantity} cost per case" if cost else quantity.replace("_", " ")
    ax.set_ylabel(f"{what} by {found.estimator}, {100 * found.confidence:g} % for all budgets")
    return finished(ax)


def draw_frontier(found: Frontier, ax: Any = None) -> Any:
    """Draw the cost of acquisition against the share of cases found, with intervals; a line joins the frontier."""
    ax, table = axes(ax, 6.0, 4.0), found.table
    x, y = table["cost"], table["found"]
    across = np.abs(np.array([x - table["cost_lower"], table["cost_upper"] - x]))
    along = np.abs(np.array([y - table["found_lower"], table["found_upper"] - y]))
    ax.errorbar(x, y, xerr=across, yerr=along, fmt="o", color=GREY, ecolor="0.8")
    on = table[table["on_frontier"]]
    ax.plot(on["cost"], on["found"], "o-", color=BLUE, zorder=3)
    for line in table.to_dict("records"):
        ax.annotate(str(line["policy"]), (line["cost"], line["found"]), xytext=(5, 5), textcoords="offset points")
    ax.set_xlabel("cost of acquisition per case")
    ax.set_ylabel(f"share of all cases: {found.effect}")
    return finished(ax)


def draw_price_plane(found: PricePlane, ax: Any = None) -> Any:
    """Draw total costs against one price, or the cheapest policy over two prices; uncertain regions are marked."""
    ax = axes(ax, 6.0, 4.0)
    if len(found.prices) == 1:
        _draw_costs_over_price(found, ax)
    else:
        _draw_cheapest(found, ax)
    return finished(ax)


def _draw_costs_over_price(found: PricePlane, ax: Any) -> None:
    x = found.table[found.prices[0]].to_numpy()
    for j, name in enumerate(found.policies):
        total, half = found.totals[:, j], 1.96 * found.std_errors[:, j]
        ax.plot(x, total, color=colour(j), label=name)
        ax.fill_between(x, total - half, total + half, color=colour(j), alpha=0.15)
    for start, stop in _runs(found.table["uncertain"].to_numpy()):
        ax.axvspan(x[start], x[stop], color="0.9", zorder=0)
    ax.set_xlabel(_price_label(found.prices[0]))
    ax.set_ylabel("total cost per case")
    ax.legend(fontsize="small")


def _draw_cheapest(found: PricePlane, ax: Any) -> None:
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    first, second = (np.unique(found.table[price]) for price in found.prices)
    shape, n = (len(first), len(second)), len(found.policies)
    best = np.array([found.policies.index(name) for name in found.table["cheapest"]]).reshape(shape)
    uncertain = found.table["uncertain"].to_numpy().reshape(shape)
    colours = [colour(j) for j in range(n)]
    options: dict[str, Any] = {"cmap": ListedColormap(colours), "vmin": -0.5, "vmax": n - 0.5, "alpha": 0.6}
    ax.pcolormesh(first, second, best.T, shading="nearest", **options)
    if uncertain.any():
        ax.contourf(first, second, uncertain.T.astype(float), levels=[0.5, 1.5], colors="none", hatches=["///"])
    handles = [Patch(color=colours[j], alpha=0.6, label=found.policies[j]) for j in np.unique(best)]
    handles += [Patch(fill=False, hatch="///", label="uncertain")] if uncertain.any() else []
    ax.legend(handles=handles, fontsize="small")
    ax.set_xlabel(_price_label(found.prices[0]))
    ax.set_ylabel(_price_label(found.prices[1]))


def _price_label(price: str) -> str:
    return "cost of an error" if price == ERRORS else f"price of {price}"


def _runs(flags: np.ndarray) -> list[tuple[int, int]]:
    """First and last index of each run of true flags."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(int), [0]])))
    return [(int(a), int(b) - 1) for a, b in edges.reshape(-1, 2)]


def draw_calibration(found: Calibration, ax: Any = None) -> Any:
    """Draw the observed share of the class against the predicted one, with intervals."""
    ax = axes(ax, 4.5, 4.5)
    table = found.table.dropna(subset=["observed"])
    x, y = table["predicted"], table["observed"]
    ends = [y - table["lower"].fillna(y), table["upper"].fillna(y) - y]
    ax.plot([0, 1], [0, 1], color="0.7", linewidth=1)
    ax.errorbar(x, y, yerr=np.clip(np.array(ends), 0.0, None), fmt="o", color=BLUE)
    ax.set_xlabel(f"predicted ({found.score})")
    ax.set_ylabel(f"observed share of {found.label!r}")
    return finished(ax)
