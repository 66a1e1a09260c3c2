"""Where figures are drawn: matplotlib, if it is there."""

from __future__ import annotations

from typing import Any

__all__ = ["axes_of"]


def axes_of(ax: Any = None, size: tuple[float, float] = (6.0, 4.0)) -> Any:
    """The given axes, or those of a new figure."""
    if ax is not None:
        if not hasattr(ax, "plot") or not hasattr(ax, "set_xlabel"):
            raise TypeError(f"'ax' must be matplotlib Axes or None for a new figure, but is {type(ax).__name__}.")
        return ax
    try:
        from matplotlib import pyplot
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("Plots need matplotlib: pip install 'afape[plot]'.") from error
    return pyplot.figure(figsize=size).add_subplot()
