"""Problem files: what can be acquired, at which price and why values are missing, written down in TOML."""

from .drafting import draft_problem
from .reading import ProblemFile, read_problem
from .refusal import ProblemFileError, TableError
from .tables import read_table

__all__ = ["ProblemFile", "ProblemFileError", "TableError", "draft_problem", "read_problem", "read_table"]
