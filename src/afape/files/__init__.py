"""Files: problem files in TOML, tables, saved agents and classifiers."""

from typing import TYPE_CHECKING, Any

from .errors import ProblemFileError, StorageError, TableError

if TYPE_CHECKING:
    from .problem_file import ProblemFile

__all__ = ["ProblemFile", "ProblemFileError", "StorageError", "TableError"]


def __getattr__(name: str) -> Any:
    """Import `ProblemFile` when it is first used: the command line must not wait for numpy and pandas."""
    if name == "ProblemFile":
        from .problem_file import ProblemFile

        return ProblemFile
    raise AttributeError(f"module 'afape.files' has no attribute {name!r}")
