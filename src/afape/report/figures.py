"""Figures as SVG text that can stand in a page beside others."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any

__all__ = ["svg_of"]

_OPTIONS: Any = {
    "svg.fonttype": "none",  # text stays text: small, searchable, read aloud
    "svg.hashsalt": "afape",
    "font.family": "sans-serif",
    "font.size": 10.0,
    "text.parse_math": False,  # names of columns are no formulas
}


def svg_of(draw: Callable[[Any], Any], name: str, width: float, height: float) -> str:
    """An SVG element drawn by a function of matplotlib axes; identifiers begin with ``name``.

    No figure of the user's is touched: the canvas is made here, without pyplot.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with mpl.rc_context(_OPTIONS):
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasSVG(figure)
        draw(figure.subplots())
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return _embedded(buffer.getvalue(), name)


def _embedded(svg: str, name: str) -> str:
    """The element alone, scalable, its identifiers apart from those of other figures."""
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = re.sub(r'xlink:href="#', f'xlink:href="#{name}-', body)
    body = body.replace("url(#", f"url(#{name}-")
    found = re.match(r"<svg[^>]*>", body)
    assert found is not None
    box = re.search(r'viewBox="([^"]*)"', found.group())
    view = box.group(1) if box else "0 0 100 100"
    width = 1.25 * float(view.split()[2]) * 4 / 3  # points to pixels, and a little larger than in print
    spaces = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    opening = f'<svg {spaces} viewBox="{view}" style="max-width:{width:.0f}px" aria-hidden="true" focusable="false">'
    return opening + body[found.end() :]
