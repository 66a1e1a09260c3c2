"""A limit on how many groups any policy may acquire."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ..arguments import check_count
from ..arrays import Bools, Floats
from ..data import Problem
from .policy import Policy, bind, check_policy
from .state import AgentState

__all__ = ["StepBudget"]


class StepBudget:
    """Let a policy acquire so many costly groups at most, then stop it.

    Parameters
    ----------
    policy
        Any policy.
    n_steps : int
        Costly groups that may be acquired.
    """

    def __init__(self, policy: Any, n_steps: int) -> None:
        check_count("n_steps", n_steps, 0)
        self.policy, self.n_steps = check_policy(policy), n_steps

    def bind(self, problem: Problem) -> Policy:
        """Find out which groups are costly, and tell the policy."""
        return _BoundBudget(bind(self.policy, problem), self.n_steps, ~problem.free)

    def probabilities(self, values: Floats, acquired: Bools) -> Floats:
        """Not before ``bind``: without a problem nobody knows which groups are costly."""
        raise RuntimeError(
            f"{self!r} does not know the problem yet. afape.evaluate tells it; to ask it yourself, call "
            "policy.bind(problem).probabilities(values, acquired)."
        )

    def state(self) -> AgentState:
        """The budget and the policy."""
        return AgentState({"n_steps": int(self.n_steps)}, models={"policy": self.policy})

    @classmethod
    def from_state(cls, state: AgentState) -> Self:
        """The same policy again."""
        return cls(state.models["policy"], state.settings["n_steps"])

    def __repr__(self) -> str:
        return f"StepBudget({self.policy!r}, {self.n_steps})"


class _BoundBudget:
    def __init__(self, policy: Policy, n_steps: int, costly: Bools) -> None:
        self.policy, self.n_steps, self.costly = policy, n_steps, costly

    def probabilities(self, values: Floats, acquired: Bools) -> Floats:
        spent = acquired[:, self.costly].sum(axis=1) >= self.n_steps
        out = np.zeros((len(acquired), acquired.shape[1] + 1))
        out[spent, -1] = 1.0
        if not spent.all():
            out[~spent] = self.policy.probabilities(values[~spent], acquired[~spent])
        return out
