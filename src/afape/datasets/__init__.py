"""Public tables, checked when they are loaded: Heloc and Income for experiments, SUPPORT with real gaps."""

from .heloc import load_heloc
from .income import load_income
from .public import DataNotFoundError, WrongTableError
from .support import load_support
from .ward import make_ward

__all__ = ["DataNotFoundError", "WrongTableError", "load_heloc", "load_income", "load_support", "make_ward"]
