"""Policies as a command line names them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .inputs import PICKLES, imported_object, read_object
from .screen import UserError

if TYPE_CHECKING:
    from ..data.retrospective import Retrospective

__all__ = ["HELP", "named_policies"]

HELP = (
    "A policy: none, all, random:0.1, fixed:cbc,lactate, a saved agent (.afape), a guideline (.txt), guideline:RULES, or "
    "module:object. NAME=... gives it a name."
)
_BUILT_IN = "none, all, random:P, fixed:GROUP,GROUP, guideline:RULES"


def named_policies(texts: list[str], data: Retrospective, allow_pickle: bool) -> dict[str, Any]:
    """Return the policies by name, checked against the problem; a repeated name gets a number."""
    from ..agents.policy import bind_to_records

    out: dict[str, Any] = {}
    for text in texts:
        name, described = _split_name(text)
        unique, count = name, 2
        while unique in out:
            unique, count = f"{name} ({count})", count + 1
        out[unique] = _policy(described, data, allow_pickle)
        bind_to_records(out[unique], data, f"--policy {described}")
    return out


def _split_name(text: str) -> tuple[str, str]:
    """Split ``NAME=...``; without a name, a file is called by its stem and anything else by its text."""
    found = re.fullmatch(r"([^:=/\\]+)=(.+)", text, re.DOTALL)
    if found and not Path(text).exists():
        return found.group(1).strip(), found.group(2)
    return Path(text).stem if Path(text).exists() else text, text


def _policy(text: str, data: Retrospective, allow_pickle: bool) -> Any:
    from .. import agents

    kind, _, rest = text.partition(":")
    if kind in ("none", "all") and not rest:
        return agents.AcquireNone() if kind == "none" else agents.AcquireAll()
    if kind == "random":
        return agents.RandomSubset(_number(rest, text))
    if kind == "fixed":
        return agents.FixedOrder(_groups(rest, data))
    if kind == "guideline":
        return agents.Guideline(rest, data.columns)
    path = Path(text)
    if path.exists() or path.suffix.lower() in (".afape", ".txt", *PICKLES):
        return read_object(path, data, allow_pickle)
    if rest:
        return imported_object(text, "--policy", f"{_BUILT_IN} or a file")
    raise UserError(f"--policy must be built-in ({_BUILT_IN}), a file, or module:object, but is {text!r}.")


def _number(rest: str, text: str) -> float:
    try:
        return float(rest)
    except ValueError:
        raise UserError(f"--policy random must give a probability, as in random:0.1, but is {text!r}.") from None


def _groups(rest: str, data: Retrospective) -> list[str]:
    from ..files.errors import nearest

    known = data.problem.group_names
    names = [name.strip() for name in rest.split(",") if name.strip()]
    for name in names:
        if name not in known:
            raise UserError(f"--policy fixed: there is no group {name!r}. {nearest(name, known)}")
    return names
