"""Policies and classifiers as a command line names them."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .screen import UserError

if TYPE_CHECKING:
    from ..data import Retrospective

__all__ = ["HELP", "TRAINED", "classifier_from", "named_policies", "policy_from"]

HELP = (
    "A policy: none, all, random:0.1, fixed:cbc,lactate, a saved agent (.afape), a guideline (.txt), guideline:RULES, or "
    "module:object. NAME=... gives it a name."
)
TRAINED = ("forest", "logistic", "boosting")
_PICKLES = (".pkl", ".pickle", ".joblib", ".pt", ".pth", ".dill")
_PICKLE_SIGNS = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
_BUILT_IN = "none, all, random:P, fixed:GROUP,GROUP"


def named_policies(specs: list[str], data: Retrospective, allow_pickle: bool) -> dict[str, Any]:
    """Policies by name; a name that occurs twice is counted."""
    out: dict[str, Any] = {}
    for spec in specs:
        name, text = _name_of(spec)
        unique, count = name, 2
        while unique in out:
            unique, count = f"{name} ({count})", count + 1
        out[unique] = policy_from(text, data, allow_pickle)
    return out


def _name_of(spec: str) -> tuple[str, str]:
    found = re.fullmatch(r"([^:=/\\]+)=(.+)", spec, re.DOTALL)
    if found and not Path(spec).exists():
        return found.group(1).strip(), found.group(2)
    stem = Path(spec).stem if Path(spec).exists() else spec
    return stem, spec


def policy_from(text: str, data: Retrospective, allow_pickle: bool = False) -> Any:
    """The policy that a text names, checked against the problem."""
    from ..agents.policy import bind

    policy = _policy(text, data, allow_pickle)
    bind(policy, data.problem, f"--policy {text}")
    return policy


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
    if path.exists() or path.suffix.lower() in (".afape", ".txt", *_PICKLES):
        return _from_file(path, data, allow_pickle)
    if rest:
        return _imported(text, "--policy")
    raise UserError(f"--policy {text!r} is neither a built-in ({_BUILT_IN}), nor a file, nor module:object.")


def _number(rest: str, text: str) -> float:
    try:
        return float(rest)
    except ValueError:
        raise UserError(f"--policy {text!r} must give a probability, as in random:0.1.") from None


def _groups(rest: str, data: Retrospective) -> list[str]:
    from ..problem_file.refusal import nearest

    known = data.problem.group_names
    names = [part.strip() for part in rest.split(",") if part.strip()]
    for name in names:
        if name not in known:
            raise UserError(f"--policy fixed: there is no group {name!r}. {nearest(name, known)}")
    return names


def _first_bytes(path: Path) -> bytes:
    if path.is_dir():
        raise UserError(f"{str(path)!r} is a folder, not an agent.")
    if not path.exists():
        raise UserError(f"There is no file {str(path)!r}.")
    with path.open("rb") as opened:
        return opened.read(8)


def _from_file(path: Path, data: Retrospective, allow_pickle: bool) -> Any:
    """A saved agent or classifier, a guideline, or a pickle if that is allowed."""
    first = _first_bytes(path)
    if first.startswith(_PICKLE_SIGNS) or path.suffix.lower() in _PICKLES:
        return _unpickled(path, allow_pickle)
    if first.startswith(b"PK") or path.suffix.lower() == ".afape":
        from ..storage import load

        return load(path, data.problem, unsafe=allow_pickle)
    from ..agents import Guideline, GuidelineError

    try:
        return Guideline.from_file(path, data.columns)
    except GuidelineError as error:
        raise UserError(f"{path.name}: {error}") from error
    except ValueError:
        raise UserError(f"{str(path)!r} is neither a saved agent nor a guideline in plain text.") from None


def _unpickled(path: Path, allow_pickle: bool) -> Any:
    if not allow_pickle:
        raise UserError(
            f"{str(path)!r} is a pickle, which can run any code when it is loaded. Save the agent with afape.save, or pass "
            "--allow-pickle if you trust where the file comes from."
        )
    import pickle

    try:
        with path.open("rb") as opened:
            return pickle.load(opened)
    except Exception as error:  # unpickling runs foreign code, which may raise anything
        raise UserError(f"{str(path)!r} cannot be unpickled: {type(error).__name__}: {error}") from error


def _imported(text: str, option: str) -> Any:
    """``module:object``, looked for in the current folder too."""
    module, _, name = text.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = import_module(module)
    except Exception as error:  # importing runs the user's code, which may raise anything
        raise UserError(f"{option} {text!r} cannot be imported: {type(error).__name__}: {error}") from error
    for part in name.split("."):
        if not hasattr(found, part):
            from ..problem_file.refusal import nearest

            known = [n for n in dir(found) if not n.startswith("_")]
            raise UserError(f"{option} {text!r}: {module!r} has no {part!r}. {nearest(part, known)}")
        found = getattr(found, part)
    return found


def classifier_from(text: str, data: Retrospective, allow_pickle: bool) -> Any:
    """A classifier that exists already; those that are trained first have names of their own (`TRAINED`)."""
    path = Path(text)
    if path.exists() or path.suffix.lower() in (".afape", *_PICKLES):
        found = _from_file(path, data, allow_pickle)
    elif ":" in text:
        found = _imported(text, "--classifier")
    else:
        from ..problem_file.refusal import nearest

        raise UserError(
            f"--classifier {text!r} is neither of {', '.join(TRAINED)}, nor a file, nor module:object. {nearest(text, TRAINED)}"
        )
    if not callable(getattr(found, "predict", None)):
        raise UserError(f"--classifier {text!r} is a {type(found).__name__}, which has no predict(values, acquired).")
    return found
