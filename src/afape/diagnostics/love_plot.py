"""A picture of balance: how far weighted rows differ from all rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

__all__ = ["love_plot"]

_LIMIT = 0.1
_BEFORE, _AFTER = "#b2182b", "#2166ac"


def love_plot(balance: pd.DataFrame, ax: Any = None, most: int = 30) -> Any:
    """Absolute differences before and after weighting, one line per set and column, the worst on top."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Drawing needs matplotlib: pip install 'afape[plot]'.") from error
    shown = balance.head(most).iloc[::-1]
    if ax is None:
        _, ax = plt.subplots(figsize=(6.0, 0.28 * len(shown) + 1.2), layout="constrained")
    height = np.arange(len(shown))
    for column, colour, filled in (("before", _BEFORE, "none"), ("after", _AFTER, _AFTER)):
        size = shown[column].abs().to_numpy(dtype=float)
        ax.scatter(size, height, edgecolors=colour, facecolors=filled, label=f"{column} weighting", zorder=3)
    ax.axvline(_LIMIT, color="0.6", linestyle="--", linewidth=1)
    ax.set_yticks(height, [f"{line['column']} ({line['set']})" for line in shown.to_dict("records")])
    ax.set_xlabel("difference, in standard deviations")
    ax.set_xlim(left=0.0)
    ax.grid(axis="y", color="0.92")
    ax.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, frameon=False, fontsize=9)
    return ax
