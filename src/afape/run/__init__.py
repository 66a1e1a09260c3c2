"""The steps of an evaluation, as functions: walk, fit, reduce, warn."""

from .evaluating import answer, run
from .fitting import Views, bind_propensities, fit, views_of
from .walking import Steps, Walked, walk_policies

__all__ = ["Steps", "Views", "Walked", "answer", "bind_propensities", "fit", "run", "views_of", "walk_policies"]
