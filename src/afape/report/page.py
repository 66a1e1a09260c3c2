"""write_report(): fill the template of the page and write it."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .._arguments import check_count, check_flag, check_instance, check_target, shown
from ..blocks.sites import Sites
from ..files.writing import atomic_write, plain_value
from ..results.comparison import Comparison
from ..results.evaluation import Evaluation
from ..results.numbers import cost, number
from ..results.small_cells import without_small
from ..sensitivity_analysis.analysis import Sensitivity
from .figures import figures_of
from .price_fields import prices_of
from .sensitivity import sensitivity_of, starting_from_answer
from .sentences import chance, interval_words, percent
from .summary import check_content, origin_of, page_estimator, summarize

__all__ = ["render", "require_report", "write_report"]


def require_report() -> None:
    """Raise an error that says what to install if the page cannot be made."""
    lacking = [name for name in ("jinja2", "matplotlib") if find_spec(name) is None]
    if lacking:
        raise ModuleNotFoundError(f"A report needs {' and '.join(lacking)}: pip install 'afape[report]'.")


def write_report(
    found: Comparison | Evaluation | Sites,
    path: str | Path,
    *,
    sensitivity: Sensitivity | bool | None = None,
    notes: Sequence[str] = (),
    details: Mapping[str, Any] | None = None,
    min_cell: int = 10,
    in_file: bool = False,
) -> None:
    """Write a self-contained page: reading it needs no other file, no server and no network.

    Parameters
    ----------
    found : Comparison, Evaluation or Sites
        Result of `compare`, `evaluate` or `combine`.
    path : str or Path
        The file. It is written completely or not at all.
    sensitivity : Sensitivity or bool, optional
        Result of `afape.sensitivity` for these policies. None computes one, False leaves it out.
    notes : sequence of str
        Sentences at the top of the page.
    details : mapping, optional
        Shown under the details, such as command, files and seed; ``classifier`` is also shown at the top.
    min_cell : int
        Patterns of recording, subgroups and numbers of rows below this are left out of the page.
    in_file : bool
        True if the assumption stands in a problem file: then advice is in the words of such a file.
    """
    require_report()
    target = check_target("path", path)
    check_instance("found", found, (Comparison, Evaluation, Sites), "a result of afape.compare, evaluate or combine")
    if sensitivity is not None and not isinstance(sensitivity, Sensitivity | bool):
        raise TypeError(
            "'sensitivity' must be a result of afape.sensitivity, None to compute one, or False, but is "
            f"{shown(sensitivity)}."
        )
    check_content(notes, details)
    check_count("min_cell", min_cell, 0)
    check_flag("in_file", in_file)
    with atomic_write(target) as draft:
        draft.write_bytes(b"")  # a path that cannot be written is an error before the work
        draft.write_text(
            render(found, sensitivity=sensitivity, notes=notes, details=details, min_cell=min_cell, in_file=in_file),
            encoding="utf-8",
        )


def render(
    found: Comparison | Evaluation | Sites,
    *,
    sensitivity: Sensitivity | bool | None = None,
    notes: Sequence[str] = (),
    details: Mapping[str, Any] | None = None,
    min_cell: int = 10,
    in_file: bool = False,
) -> str:
    """Return the text of the page."""
    from markupsafe import Markup

    sites = found.page() if isinstance(found, Sites) else None
    found = found.pooled if isinstance(found, Sites) else found
    comparison = found if isinstance(found, Comparison) else Comparison({found.policy: found}, found.confidence)
    comparison = without_small(comparison, origin_of(comparison).counts, min_cell)
    analysis = _analysis(comparison, sensitivity)
    content = summarize(
        comparison, sensitivity=analysis, notes=notes, details=details, min_cell=min_cell, in_file=in_file
    )
    content["sites"] = sites
    prices = prices_of(comparison, content["estimator"])
    script = _file("report.js")
    return str(
        _template().render(
            content=content,
            figures=figures_of(comparison, analysis, min_cell),
            prices=prices,
            embedded=Markup(_json({"content": content, "prices": prices})),
            script=Markup(script),
            style=Markup(_file("report.css")),
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        )
    )


def _analysis(found: Comparison, sensitivity: Sensitivity | bool | None) -> Sensitivity | None:
    """Return the sensitivity analysis of the page, whose bounds start from the estimates of the page."""
    if sensitivity is False:
        return None
    try:
        analysis = sensitivity if isinstance(sensitivity, Sensitivity) else sensitivity_of(found)
    except ValueError:  # not every graph and policy allows it; the page says so
        return None
    return None if analysis is None else starting_from_answer(analysis, found, page_estimator(found))


def _file(name: str) -> str:
    return (files(__package__) / "templates" / name).read_text(encoding="utf-8")


def _json(content: dict[str, Any]) -> str:
    """Return JSON for a script element; no text in it can end the element."""
    text = json.dumps(content, allow_nan=False, default=plain_value)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _template() -> Any:
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {
        "chance": chance,
        "cost": cost,
        "interval_words": interval_words,
        "number": number,
        "percent": percent,
        "svg": Markup,
    }
    environment.globals["max"] = max
    return environment.from_string(_file("report.html"))
