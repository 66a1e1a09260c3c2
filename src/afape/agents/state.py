"""The content of a trained agent, as it is stored in a file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .._arrays import Floats

__all__ = ["AgentState"]


@dataclass(frozen=True, eq=False)
class AgentState:
    """Settings, arrays and scikit-learn models of a trained agent.

    Every agent that can be saved has ``state()``, which returns this object, and the class method ``from_state(state)``.

    Parameters
    ----------
    settings : dict
        Numbers, text, lists and dicts that JSON can hold.
    arrays : dict from name to ndarray
        Weights of networks, means, tables.
    models : dict from name to object
        Fitted scikit-learn models, policies and classifiers.
    """

    settings: dict[str, Any]
    arrays: dict[str, Floats] = field(default_factory=dict)
    models: dict[str, Any] = field(default_factory=dict)
