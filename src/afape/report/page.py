"""write_report(): the page, filled in and written whole."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..arguments import check_target, check_texts
from ..comparison import Comparison
from ..files import draft_of
from ..plain import plain_value
from ..result import Evaluation
from ..sensitivity_analysis import Sensitivity
from .drawn import drawn
from .prices import prices_of
from .strength import asked_strength
from .summary import summarize
from .words import number, percent

__all__ = ["render", "require_report", "write_report"]


def require_report() -> None:
    """Say, before any work, what to install where the page could not be made."""
    lacking = [name for name in ("jinja2", "matplotlib") if find_spec(name) is None]
    if lacking:
        raise ModuleNotFoundError(f"A report needs {' and '.join(lacking)}: pip install 'afape[report]'.")


def write_report(
    found: Comparison | Evaluation,
    path: str | Path,
    *,
    sensitivity: Sensitivity | bool | None = None,
    notes: Sequence[str] = (),
    details: Mapping[str, Any] | None = None,
) -> None:
    """Write a page that stands alone: no file, no server and no network is needed to read it.

    Parameters
    ----------
    found : Comparison or Evaluation
        What `compare` or `evaluate` returned.
    path : str or Path
        The file; it appears whole or not at all.
    sensitivity : Sensitivity or bool, optional
        What unmeasured reasons could do: None asks, False leaves it out.
    notes : sequence of str
        What the reader should know first.
    details : mapping, optional
        How it was made: command, files, seed.
    """
    require_report()
    target = check_target("path", path)
    _check_content(sensitivity, notes, details)
    with draft_of(target) as draft:
        draft.write_bytes(b"")  # an output path that cannot be written is told before the work
        draft.write_text(render(found, sensitivity=sensitivity, notes=notes, details=details), encoding="utf-8")


def _check_content(sensitivity: Any, notes: Any, details: Any) -> None:
    if sensitivity is not None and not isinstance(sensitivity, Sensitivity | bool):
        raise TypeError(
            f"'sensitivity' must be what afape.sensitivity returned, None to ask, or False, but is {sensitivity!r}."
        )
    check_texts("notes", notes, "sentences")
    if details is not None and not isinstance(details, Mapping):
        raise TypeError(f"'details' must be a mapping from names to what is shown beside them, but is {details!r}.")


def render(
    found: Comparison | Evaluation,
    *,
    sensitivity: Sensitivity | bool | None = None,
    notes: Sequence[str] = (),
    details: Mapping[str, Any] | None = None,
) -> str:
    """The text of the page."""
    comparison = found if isinstance(found, Comparison) else Comparison({found.policy: found}, found.confidence)
    strength = _strength(comparison, sensitivity)
    content = summarize(comparison, sensitivity=strength, notes=notes, details=details)
    prices = prices_of(comparison, content["estimator"])
    script, style = _part("report.js"), _part("report.css")
    return str(
        _template().render(
            content=content,
            figures=drawn(comparison, strength),
            prices=prices,
            embedded=_json({"content": content, "prices": prices}),
            script=_Marked(script),
            style=_Marked(style),
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        )
    )


def _strength(found: Comparison, sensitivity: Sensitivity | bool | None) -> Sensitivity | None:
    if isinstance(sensitivity, Sensitivity):
        return sensitivity
    if sensitivity is False:
        return None
    try:
        return asked_strength(found)
    except ValueError:  # not every graph and policy allows it: the page says that there is no answer
        return None


class _Marked(str):
    """Text of ours that goes into the page as it is."""

    __slots__ = ()

    def __html__(self) -> str:
        return str(self)


def _part(name: str) -> str:
    return (files(__package__) / "templates" / name).read_text(encoding="utf-8")


def _json(content: Any) -> _Marked:
    """JSON inside a script element: nothing in it can end the element."""
    text = json.dumps(content, allow_nan=False, default=plain_value)
    return _Marked(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


def _template() -> Any:
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"number": number, "percent": percent, "svg": lambda text: Markup(text)}
    environment.globals["max"] = max
    return environment.from_string(_part("report.html"))
