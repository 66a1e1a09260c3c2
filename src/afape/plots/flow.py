"""What a policy does: its runs from the free groups down to the sets in which they stop."""

from __future__ import annotations

from typing import Any

import pandas as pd

from .._arguments import check_count, check_instance
from ..results.evaluation import Evaluation
from .style import BLUE, DARK, PALE_BLUE, SKY, axes, finished, short, short_names, wrapped

__all__ = ["paths"]


def paths(found: Evaluation, most: int = 4, layers: int = 8, ax: Any = None) -> Any:
    """Draw the most common acquisitions: sets of groups from top to bottom, joined by lines as thick as their share of runs.

    Parameters
    ----------
    found : Evaluation
        Result of `evaluate`.
    most : int
        Number of sets to show per number of groups.
    layers : int
        Show sets of fewer groups than this.
    ax : matplotlib Axes, optional
        Where to draw; default a new figure.

    Returns
    -------
    matplotlib Axes
    """
    check_instance("found", found, Evaluation, "a result of afape.evaluate")
    check_count("most", most, 1)
    check_count("layers", layers, 1)
    sets = found.paths.sets
    sets = sets[sets["groups"] < layers]
    shown = pd.concat([part.nlargest(most, "share") for _, part in sets.groupby("groups")]) if len(sets) else sets
    depth = int(shown["groups"].max()) + 1 if len(shown) else 1
    ax = axes(ax, 7.0, 0.3 + 0.85 * depth)
    place = _places(shown)
    steps = found.paths.steps
    named = short_names(list(dict.fromkeys(steps["group"])), 18) if len(steps) else {}
    inside = steps[steps["set"].isin(place) & steps["to"].isin(place)] if len(steps) else steps
    for line in inside.to_dict("records"):
        text = f"{named[line['group']]} {_percent(line['share'])}"
        _draw_step(ax, place[line["set"]], place[line["to"]], text, line["share"])
    for line in shown.to_dict("records"):
        x, y = place[line["set"]]
        stops = line["stops"]
        stopping = "next step not recorded" if stops != stops else f"{_percent(stops)} stop"
        name = "start" if line["groups"] == 0 else _set_name(line["set"], named)
        box = {"boxstyle": "round,pad=0.35", "fc": PALE_BLUE, "ec": BLUE}
        text = f"{name}\n{_percent(line['share'])} reach it, {stopping}"
        ax.text(x, y, text, ha="center", va="center", fontsize=9, bbox=box)
    lines = max((_set_name(name, named).count("\n") for name in place), default=0)
    ax.set(xlim=(-0.05, 1.05), ylim=(-depth + 0.6 - 0.12 * lines, 0.4 + 0.12 * lines))
    ax.set_axis_off()
    return finished(ax)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share == 0 or share >= 0.01 else "< 1 %"


def _set_name(name: str, named: dict[str, str]) -> str:
    """Name of a set, on several lines if it is long."""
    return wrapped(" + ".join(named.get(part, short(part, 18)) for part in name.split(" + ")), 26)


def _places(shown: pd.DataFrame) -> dict[str, tuple[float, float]]:
    """Points (x, y) of the sets: one row per number of groups, the most common set on the left."""
    out = {}
    for size, part in shown.groupby("groups"):
        names = list(part.sort_values("share", ascending=False)["set"])
        for k, name in enumerate(names):
            out[str(name)] = ((k + 0.5) / len(names), -float(size))  # type: ignore[arg-type]
    return out


def _draw_step(ax: Any, start: tuple[float, float], end: tuple[float, float], words: str, share: float) -> None:
    line = {"color": SKY, "lw": 1 + 11 * share, "alpha": 0.55, "zorder": 1, "solid_capstyle": "round"}
    ax.plot([start[0], end[0]], [start[1], end[1]], **line)
    middle = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
    ax.text(*middle, words, ha="center", va="center", fontsize=8.5, color=DARK, zorder=2)
