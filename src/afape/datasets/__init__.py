"""Public tables for experiments: Heloc and Income, checked when they are loaded."""

from .heloc import load_heloc
from .income import load_income
from .public import DataNotFoundError, WrongTableError

__all__ = ["DataNotFoundError", "WrongTableError", "load_heloc", "load_income"]
