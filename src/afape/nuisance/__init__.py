"""What is learned before anything is estimated: propensities, action values, and the object that holds both."""

from .fitted import Evidence, Fitted, Recipe
from .propensity.factor import NotLearnableError
from .propensity.known import KnownPropensity
from .propensity.learned import BoundPropensity, LearnedPropensity
from .values.known import KnownValues
from .values.models import LearnedValues, ValueRegressor
from .weights import Propensities, View, bind_propensity

__all__ = [
    "BoundPropensity",
    "Evidence",
    "Fitted",
    "KnownPropensity",
    "KnownValues",
    "LearnedPropensity",
    "LearnedValues",
    "NotLearnableError",
    "Propensities",
    "Recipe",
    "ValueRegressor",
    "View",
    "bind_propensity",
]
