"""Action values: learned by backward induction, or known."""

from .induction import ActionValues, Lessons, TableValues
from .known import KnownValues
from .models import LearnedValues, ValueRegressor

__all__ = ["ActionValues", "KnownValues", "LearnedValues", "Lessons", "TableValues", "ValueRegressor"]
