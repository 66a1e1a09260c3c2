"""What commands read: tables, problem files, and objects from files or modules."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .screen import UserError

if TYPE_CHECKING:
    import pandas as pd

    from ..blocks.scanning import Scan
    from ..data.retrospective import Retrospective
    from ..files.problem_file import ProblemFile

__all__ = [
    "PICKLES",
    "imported_object",
    "is_scan",
    "read_files",
    "read_object",
    "read_records",
    "scan_records",
]

PICKLES = (".pkl", ".pickle", ".joblib", ".pt", ".pth", ".dill")
_PICKLE_SIGNS = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")


def read_records(data: Path, problem: Path) -> tuple[ProblemFile, Retrospective]:
    """Read the problem file, and the table as records of this problem."""
    problem_file, frame = read_files(data, problem)
    return problem_file, problem_file.records(frame)


def scan_records(data: Path, problem: Path, block_rows: int | None, scratch: Path | None) -> tuple[ProblemFile, Scan]:
    """Read the problem file, and describe the files of a folder or pattern as records of this problem."""
    from ..files.problem_file import read_problem

    problem_file = read_problem(problem)
    return problem_file, _scan_of(problem_file, data, block_rows=block_rows, scratch=scratch)


def is_scan(data: Path) -> bool:
    """True for a folder, and for a pattern such as ``records/*.parquet``."""
    return data.is_dir() or any(sign in str(data) for sign in "*?[")


def _scan_of(problem_file: ProblemFile, data: Path, **settings: Any) -> Scan:
    """Scan the files as the problem file says."""
    from dataclasses import replace

    from ..blocks.scanning import scan

    p = problem_file
    found = scan(data, p.problem, cluster=p.cluster, weight=p.weight, missing_labels=p.missing_labels, blanks=p.blanks,
                 **settings)  # fmt: skip
    return replace(found, label_names=dict(p.class_names))


def read_files(data: Path, problem: Path) -> tuple[ProblemFile, pd.DataFrame]:
    """Read the problem file, and the table as a frame."""
    from ..files.problem_file import read_problem
    from ..files.tables import read_table

    if data.suffix.lower() == ".toml" and problem.suffix.lower() != ".toml":
        raise UserError(f"DATA is {str(data)!r} and --problem is {str(problem)!r}: please exchange them.")
    problem_file = read_problem(problem)
    return problem_file, read_table(data, problem_file.blanks)


def read_object(path: Path, data: Retrospective, allow_pickle: bool) -> Any:
    """Read a saved agent or classifier, a guideline, or a pickle if that is allowed."""
    if path.is_dir():
        raise UserError(f"{str(path)!r} must be the file of an agent or classifier, but is a folder.")
    if not path.exists():
        raise UserError(f"There is no file {str(path)!r}.")
    with path.open("rb") as opened:
        first = opened.read(8)
    if first.startswith(_PICKLE_SIGNS) or path.suffix.lower() in PICKLES:
        return _unpickled(path, allow_pickle)
    if first.startswith(b"PK") or path.suffix.lower() == ".afape":
        from ..files.saved import load

        return load(path, data.problem, unsafe=allow_pickle)
    from ..agents.guideline import Guideline, GuidelineError

    try:
        return Guideline.from_file(path, data.columns)
    except GuidelineError as error:
        raise UserError(f"{path.name}: {error}") from error
    except ValueError:
        raise UserError(f"{str(path)!r} is neither a saved agent nor a guideline in plain text.") from None


def _unpickled(path: Path, allow_pickle: bool) -> Any:
    if not allow_pickle:
        raise UserError(
            f"{str(path)!r} is a pickle, which can run any code when it is loaded. Save the object with afape.save, or pass "
            "--allow-pickle if you trust the file."
        )
    import pickle

    try:
        with path.open("rb") as opened:
            return pickle.load(opened)
    except Exception as error:  # unpickling runs foreign code, which may raise anything
        raise UserError(f"{str(path)!r} cannot be unpickled: {type(error).__name__}: {error}") from error


def imported_object(text: str, option: str, others: str) -> Any:
    """Import ``module:object``, from the current folder too; ``others`` says in the error what else the option takes."""
    module, _, name = text.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0] and error.name != module:
            raise UserError(f"{option} {text!r} cannot be imported: {type(error).__name__}: {error}") from error
        raise UserError(
            f"{option} {text!r} would be the object {name!r} of a module {module!r}, but there is no such module. The option "
            f"also takes {others}."
        ) from error
    except Exception as error:  # importing runs the user's code, which may raise anything
        raise UserError(f"{option} {text!r} cannot be imported: {type(error).__name__}: {error}") from error
    for attribute in name.split("."):
        if not hasattr(found, attribute):
            from ..files.errors import nearest

            known = [n for n in dir(found) if not n.startswith("_")]
            raise UserError(f"{option} {text!r}: {module!r} has no {attribute!r}. {nearest(attribute, known)}")
        found = getattr(found, attribute)
    return found
