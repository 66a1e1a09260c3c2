"""What a policy does: its runs from the free groups down to the sets in which they stop."""

from __future__ import annotations

from typing import Any, NamedTuple

from .._arguments import check_count, check_instance
from ..results.evaluation import Evaluation
from .style import BLUE, DARK, PALE_BLUE, SKY, axes, finished, short, short_names, wrapped

__all__ = ["layout_of_paths", "paths"]

_WIDTH, _COLUMN = 5.4, 1.75  # inches: a drawing, and a set where several stand beside each other
_LINE, _EDGE, _GAP = 0.15, 0.1, 0.42  # inches: a line of text, the frame around it, the step to the next row
_MANY_LAYERS = 4


def paths(found: Evaluation, most: int = 4, layers: int = 8, ax: Any = None) -> Any:
    """Draw the most common acquisitions: sets of groups from top to bottom, joined by lines as thick as their share of runs.

    Where several sets have equally many groups, only the most frequent step to each set is named.

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
    drawing = layout_of_paths(found, most, layers)
    ax = axes(ax, *drawing.size)
    _draw_steps(ax, found, drawing)
    for name, words in drawing.words.items():
        box = {"boxstyle": "round,pad=0.35", "fc": PALE_BLUE, "ec": BLUE}
        ax.text(*drawing.places[name], words, ha="center", va="center", fontsize=9, bbox=box)
    width, height = drawing.size
    ax.set(xlim=(0, width), ylim=(-height, 0))
    ax.set_axis_off()
    return finished(ax)


class PathLayout(NamedTuple):
    """Texts of the sets and their places, in inches from the upper left corner."""

    words: dict[str, str]
    places: dict[str, tuple[float, float]]
    tops: dict[str, float]  # height of the upper end of the row
    size: tuple[float, float]  # width and height
    names: dict[str, str]  # short names of groups
    crowded: bool  # several sets beside each other

    @property
    def large(self) -> bool:
        """True if the drawing needs much room."""
        return self.crowded or len(self.places) > _MANY_LAYERS


def layout_of_paths(found: Evaluation, most: int = 4, layers: int = 8) -> PathLayout:
    """Return the drawing of `paths`: one row per number of groups, the most common set on the left."""
    sets, steps = found.paths.sets, found.paths.steps
    sets = sets[sets["groups"] < layers]
    rows = [part.nlargest(most, "share") for _, part in sets.groupby("groups")]
    names = short_names(list(dict.fromkeys(steps["group"])), 18) if len(steps) else {}
    widest = max((len(row) for row in rows), default=1)
    crowded = widest > 1
    width = max(_WIDTH, _COLUMN * widest) if crowded else _WIDTH
    words: dict[str, str] = {}
    places: dict[str, tuple[float, float]] = {}
    tops: dict[str, float] = {}
    y = 0.0
    for row in rows:
        texts = {str(line["set"]): _words(line, names, crowded) for line in row.to_dict("records")}
        height = _LINE * (1 + max(text.count("\n") for text in texts.values())) + _EDGE
        for k, name in enumerate(texts):
            places[name] = (width * (k + 0.5) / len(texts), y - height / 2)
        words |= texts
        tops |= dict.fromkeys(texts, y)
        y -= height + _GAP
    return PathLayout(words, places, tops, (width, max(-y - _GAP, 0.3) + 0.1), names, crowded)


def _words(line: dict[Any, Any], names: dict[str, str], crowded: bool) -> str:
    """Text of a set: its name, and the shares of runs that reach it and stop there."""
    stops = line["stops"]
    stopping = "next step not recorded" if stops != stops else f"{_percent(stops)} stop"
    whole = " + ".join(names.get(part, short(part, 18)) for part in line["set"].split(" + "))
    name = "start" if line["groups"] == 0 else wrapped(whole, 16 if crowded else 34)
    between = ",\n" if crowded else ", "
    return f"{name}\n{_percent(line['share'])} reach it{between}{stopping}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share == 0 or share >= 0.01 else "< 1 %"


def _draw_steps(ax: Any, found: Evaluation, drawing: PathLayout) -> None:
    steps, places = found.paths.steps, drawing.places
    inside = steps[steps["set"].isin(places) & steps["to"].isin(places)] if len(steps) else steps
    named = set(inside.groupby("to")["share"].idxmax()) if drawing.crowded and len(inside) else set(inside.index)
    for k, line in zip(inside.index, inside.to_dict("records"), strict=True):
        (x0, y0), (x1, y1), share = places[line["set"]], places[line["to"]], line["share"]
        ax.plot([x0, x1], [y0, y1], color=SKY, lw=1 + 11 * share, alpha=0.55, zorder=1, solid_capstyle="round")
        if k in named:
            y = drawing.tops[line["to"]] + (0.3 if drawing.crowded else 0.5) * _GAP
            words = f"{drawing.names[line['group']]} {_percent(share)}"
            x = x0 + (y - y0) / (y1 - y0) * (x1 - x0)
            ax.text(x, y, words, ha="center", va="center", fontsize=8.5, color=DARK, zorder=2)
