"""Shared by all drawings: axes, colours, short names."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

__all__ = [
    "BLUE",
    "DARK",
    "GREY",
    "GRID",
    "ORANGE",
    "PALE_BLUE",
    "PALE_ORANGE",
    "RED",
    "SKY",
    "axes",
    "colour",
    "counts_on_log",
    "finished",
    "require_matplotlib",
    "short",
    "short_names",
    "wrapped",
]

# Okabe and Ito's colours, which colour-blind readers can distinguish; black and yellow are left out.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
BLUE, SKY, ORANGE = _COLOURS[0], _COLOURS[4], _COLOURS[5]
RED, DARK, GREY, GRID, PALE_BLUE, PALE_ORANGE = "#B3261E", "#222222", "#8c8c8c", "0.92", "#dfe7f3", "#f6e2c8"


def colour(k: int) -> str:
    """Colour of the k-th policy or estimator; colours repeat after six."""
    return _COLOURS[k % len(_COLOURS)]


def require_matplotlib() -> None:
    """Raise an error that says what to install if matplotlib is missing."""
    if find_spec("matplotlib") is None:
        raise ModuleNotFoundError("Plots need matplotlib, which is not installed: pip install 'afape[plot]'.")


def axes(ax: Any, width: float, height: float) -> Any:
    """Return the given axes, or the axes of a new figure of this size in inches."""
    require_matplotlib()
    if ax is None:
        import matplotlib.pyplot as plt

        return plt.subplots(figsize=(width, height), layout="constrained")[1]
    if not hasattr(ax, "plot") or not hasattr(ax, "set_xlabel"):
        raise TypeError(f"'ax' must be matplotlib Axes or None for a new figure, but is {type(ax).__name__}.")
    return ax


def short(name: str, most: int = 34) -> str:
    """Shorten a name to at most ``most`` characters by leaving out its middle."""
    text = " ".join(str(name).split()) or "(blank)"
    end = min(11, most // 3)
    return text if len(text) <= most else f"{text[: most - end - 1]}…{text[-end:]}"


def short_names(names: Sequence[str], most: int = 20) -> dict[str, str]:
    """Shorten names so that they still differ: names with the same short form lose their common start and end."""
    out = {name: short(name, most) for name in names}
    for cut in {c for c in out.values() if list(out.values()).count(c) > 1}:
        alike = [name for name in names if out[name] == cut]
        start, end = _shared(alike), _shared([name[::-1] for name in alike])
        for k, name in enumerate(alike):
            own = name[start : max(len(name) - end, start)] or str(k + 1)
            late = f"…{name[start:]}"  # only the start left out, where that is short enough
            out[name] = late if 1 < len(late) <= most else short(f"…{own}{'…' if end else ''}", most)
    return out


def wrapped(name: str, width: int) -> str:
    """Break the name of a set of groups, ``a + b + c``, into lines of about ``width`` characters."""
    lines = [""]
    for part in name.split(" + "):
        longer = f"{lines[-1]} + {part}" if lines[-1] else part
        if lines[-1] and len(longer) > width:
            lines[-1] += " +"
            lines.append(part)
        else:
            lines[-1] = longer
    return "\n".join(short(line, 2 * width) for line in lines)


def _shared(texts: Sequence[str]) -> int:
    """Length of the common start of all texts."""
    first, last = min(texts), max(texts)
    return next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))


def counts_on_log(axis: Any) -> None:
    """Write whole numbers at the ticks of a logarithmic axis."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axis.set_minor_formatter(NullFormatter())


def finished(ax: Any) -> Any:
    """Finish a drawing: dollar signs in names stay dollar signs, no frame at the top and right, grid behind the rest."""
    from matplotlib.text import Text

    for text in ax.findobj(Text):
        text.set_parse_math(False)
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_axisbelow(True)
    return ax
