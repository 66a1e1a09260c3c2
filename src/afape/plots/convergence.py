"""How an estimate settles as rows are added."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ..estimators import Estimate
from .style import COLOURS, DARK, axes, counts_on_log, finished, short

__all__ = ["convergence"]

_COLUMNS = ("rows", "estimator", "estimate", "lower", "upper")


def convergence(found: Mapping[str, Estimate] | pd.DataFrame, truth: float | None = None, ax: Any = None) -> Any:
    """Estimates and their intervals over the number of rows.

    Parameters
    ----------
    found : mapping from name to Estimate, or DataFrame
        Of an `Estimate`, what its first k rows say is its value plus the mean of their influence values: a linear
        approximation, for a look at how it settles. A table has columns ``rows``, ``estimator``, ``estimate``, ``lower`` and
        ``upper``, from evaluations on so many rows.
    truth : float, optional
        Drawn as a line where it is known.
    ax : matplotlib Axes, optional
        Where to draw; default a new figure.

    Returns
    -------
    matplotlib Axes
    """
    table = found if isinstance(found, pd.DataFrame) else _running(found)
    lacking = [c for c in _COLUMNS if c not in table.columns]
    if lacking:
        raise ValueError(
            f"'found' must be estimates by name or a table with the columns {list(_COLUMNS)}, but lacks {lacking[0]!r}."
        )
    ax = axes(ax, 7.0, 3.6)
    for k, (name, lines) in enumerate(table.groupby("estimator", sort=False)):
        lines = lines.sort_values("rows")
        colour = COLOURS[k % len(COLOURS)]
        ax.plot(lines["rows"], lines["estimate"], color=colour, lw=1.8, label=short(str(name)))
        ax.fill_between(lines["rows"], lines["lower"], lines["upper"], color=colour, alpha=0.15, lw=0)
    if truth is not None:
        ax.axhline(truth, color=DARK, lw=1, ls="--", label="truth")
    ax.set_xscale("log")
    counts_on_log(ax.xaxis)
    ax.set_xlabel("rows")
    ax.set_ylabel("cost of a run")
    ax.grid(color="0.92")
    ax.legend(frameon=False, fontsize=9)
    return finished(ax)


def _running(estimates: Mapping[str, Estimate]) -> pd.DataFrame:
    parts = []
    for name, estimate in estimates.items():
        if estimate.influence is None:
            raise ValueError(f"{name!r} has no influence values, so that a part of its rows says nothing.")
        phi = estimate.influence
        n = np.unique(np.geomspace(min(30, len(phi)), len(phi), 60).astype(int))
        mean = estimate.value + np.cumsum(phi)[n - 1] / n
        half = (estimate.upper - estimate.lower) / 2 * np.sqrt(len(phi) / n)
        parts.append(
            pd.DataFrame({"rows": n, "estimator": name, "estimate": mean, "lower": mean - half, "upper": mean + half})
        )
    return pd.concat(parts, ignore_index=True)
