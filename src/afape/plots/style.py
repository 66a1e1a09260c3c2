"""What all pictures share: axes, colours, names that are too long."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

__all__ = [
    "ACQUISITION",
    "BAD",
    "COLOURS",
    "DARK",
    "ERRORS",
    "GREY",
    "axes",
    "counts_on_log",
    "finished",
    "require_matplotlib",
    "short",
    "short_names",
]

# Okabe and Ito's colours; black and yellow left out.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
ACQUISITION, ERRORS, GREY, DARK, BAD = "#56B4E9", "#E69F00", "#8c8c8c", "#222222", "#B3261E"


def require_matplotlib() -> None:
    """Say what to install where matplotlib is not there."""
    if find_spec("matplotlib") is None:
        raise ModuleNotFoundError("Plots need matplotlib, which is not installed: pip install 'afape[plot]'.")


def axes(ax: Any, width: float, height: float) -> Any:
    """The given axes, or those of a new figure of this size in inches."""
    require_matplotlib()
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def short(name: str, most: int = 34) -> str:
    """A name of at most so many characters; the middle is left out."""
    text = " ".join(str(name).split()) or "(blank)"
    end = min(11, most // 3)
    return text if len(text) <= most else f"{text[: most - end - 1]}…{text[-end:]}"


def short_names(names: Sequence[str], most: int = 20) -> dict[str, str]:
    """Short names that still differ: of names that would be cut to the same, what all share is left out."""
    out = {name: short(name, most) for name in names}
    for cut in {c for c in out.values() if list(out.values()).count(c) > 1}:
        alike = [name for name in names if out[name] == cut]
        start, end = _shared(alike), _shared([name[::-1] for name in alike])
        for k, name in enumerate(alike):
            own = name[start : max(len(name) - end, start)] or str(k + 1)
            late = f"…{name[start:]}"  # only the start left out, where that is short enough
            out[name] = late if 1 < len(late) <= most else short(f"…{own}{'…' if end else ''}", most)
    return out


def _shared(texts: Sequence[str]) -> int:
    """How many signs all texts begin with alike."""
    first, last = min(texts), max(texts)
    return next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))


def counts_on_log(axis: Any) -> None:
    """Whole numbers at the ticks of a logarithmic axis."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axis.set_minor_formatter(NullFormatter())


def finished(ax: Any) -> Any:
    """Names of columns are text, never formulas: a dollar sign stays a dollar sign."""
    from matplotlib.text import Text

    for text in ax.findobj(Text):
        text.set_parse_math(False)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.set_axisbelow(True)
    return ax
