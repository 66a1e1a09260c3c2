"""Action values: the expected cost to go after an action, learned by backward induction or given by the user."""

from .known import KnownValues
from .models import LearnedValues, ValueRegressor

__all__ = ["KnownValues", "LearnedValues", "ValueRegressor"]
