"""What a trained agent is made of, so that it can be written to a file and read back without running foreign code."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, Self, runtime_checkable

from ..arrays import Floats

__all__ = ["AgentState", "Storable"]


@dataclass(frozen=True, eq=False)
class AgentState:
    """Settings, arrays and scikit-learn models of a trained agent.

    Parameters
    ----------
    settings : dict
        Plain numbers, text, lists and dicts: whatever JSON holds.
    arrays : dict from name to ndarray
        Weights of networks, means, tables.
    models : dict from name to fitted scikit-learn estimator
        What scikit-learn has learned.
    """

    settings: dict[str, Any]
    arrays: dict[str, Floats] = field(default_factory=dict)
    models: dict[str, Any] = field(default_factory=dict)


@runtime_checkable
class Storable(Protocol):
    """An agent (or classifier) that can be taken apart and put together again, bit for bit."""

    def state(self) -> AgentState:
        """Everything that `from_state` needs."""
        ...

    @classmethod
    def from_state(cls, state: AgentState) -> Self:
        """The same agent again."""
        ...
