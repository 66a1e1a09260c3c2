"""Problem and retrospective records."""

from .problem import Problem
from .retrospective import Retrospective

__all__ = ["Problem", "Retrospective"]
