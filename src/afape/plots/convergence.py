"""How an estimate changes as rows are added."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

import numpy as np
import pandas as pd

from .._arguments import check_between, check_instance, check_mapping
from ..estimators.estimate import Estimate
from .style import DARK, GRID, axes, colour, counts_on_log, finished, short

__all__ = ["convergence"]

_COLUMNS = ("rows", "estimator", "estimate", "lower", "upper")


def convergence(found: Mapping[str, Estimate] | pd.DataFrame, truth: float | None = None, ax: Any = None) -> Any:
    """Draw estimates and their intervals over the number of rows.

    Parameters
    ----------
    found : mapping from name to Estimate, or DataFrame
        For an `Estimate`, the estimate from the first k rows is approximated by the value plus the mean of their k
        influence values. A table holds evaluations on different numbers of rows, in the columns ``rows``,
        ``estimator``, ``estimate``, ``lower`` and ``upper``.
    truth : float, optional
        Known cost, drawn as a line.
    ax : matplotlib Axes, optional
        Where to draw; default a new figure.

    Returns
    -------
    matplotlib Axes
    """
    if truth is not None:
        check_between("truth", truth, -inf)
    table = found if isinstance(found, pd.DataFrame) else _running(found)
    lacking = [c for c in _COLUMNS if c not in table.columns]
    if lacking:
        raise ValueError(
            f"'found' must be estimates by name or a table with the columns {list(_COLUMNS)}, but lacks {lacking[0]!r}."
        )
    if table.empty:
        raise ValueError("'found' must have lines, but is empty.")
    ax = axes(ax, 7.0, 3.6)
    for k, (name, lines) in enumerate(table.groupby("estimator", sort=False)):
        lines = lines.sort_values("rows")
        ax.plot(lines["rows"], lines["estimate"], color=colour(k), lw=1.8, label=short(str(name)))
        ax.fill_between(lines["rows"], lines["lower"], lines["upper"], color=colour(k), alpha=0.15, lw=0)
    if truth is not None:
        ax.axhline(truth, color=DARK, lw=1, ls="--", label="truth")
    ax.set_xscale("log")
    counts_on_log(ax.xaxis)
    ax.set_xlabel("rows")
    ax.set_ylabel("cost of a run")
    ax.grid(color=GRID)
    ax.legend(frameon=False, fontsize=9)
    return finished(ax)


def _running(estimates: Mapping[str, Estimate]) -> pd.DataFrame:
    """Table of estimates from the first k rows, for about 60 values of k."""
    parts = []
    for name, estimate in check_mapping("found", estimates, "from names to estimates, or a table").items():
        check_instance("found", estimate, Estimate, "a mapping to afape.Estimate, or a table")
        if estimate.influence is None:
            raise ValueError(
                f"'found' must hold estimates with influence values, but {name!r} has none. Choose another estimator, or pass "
                "a table of evaluations on different numbers of rows."
            )
        phi = estimate.influence
        n = np.unique(np.geomspace(min(30, len(phi)), len(phi), 60).astype(int))
        mean = estimate.value + np.cumsum(phi)[n - 1] / n
        half = (estimate.upper - estimate.lower) / 2 * np.sqrt(len(phi) / n)
        parts.append(
            pd.DataFrame({"rows": n, "estimator": name, "estimate": mean, "lower": mean - half, "upper": mean + half})
        )
    return pd.concat(parts, ignore_index=True)
