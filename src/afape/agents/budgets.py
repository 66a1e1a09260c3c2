"""Budgets: limits on the number or the price of the groups that a policy acquires."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np

from .._arguments import check_between, check_count
from .._arrays import Bools, Floats
from ..data.problem import Problem
from .policy import Policy, bind, check_policy, ignores_values, not_bound
from .state import AgentState

__all__ = ["BoundBudget", "CostBudget", "StepBudget", "within"]

_ROUNDING = 1e-6  # relative: 0.1 + 0.2 is within a budget of 0.3, also in single precision


def within(spent: Floats, limit: float) -> Bools:
    """Return True where what was spent is within the budget, up to rounding."""
    return np.asarray(spent <= limit + _ROUNDING * abs(limit))


class _Budget(ABC):
    """Base of the budgets: a policy, and the amount that each group takes of the budget."""

    limited: ClassVar[str]  # name of the argument and attribute that holds the limit

    def __init__(self, policy: Any) -> None:
        self.policy = check_policy(policy)

    @property
    def ignores_values(self) -> bool:
        """True if the policy does."""
        return ignores_values(self.policy)

    @abstractmethod
    def _amounts(self, problem: Problem) -> Floats:
        """Amount that each group takes of the budget, (G,)."""

    def bind(self, problem: Problem) -> Policy:
        """Bind the policy and look up what each group takes of the budget."""
        return BoundBudget(
            bind(self.policy, problem), self.policy, self._amounts(problem), float(getattr(self, self.limited))
        )

    def probabilities(self, values: Floats, acquired: Bools) -> Floats:
        """Raise an error: the policy needs ``bind`` first, to know which groups are costly."""
        raise not_bound(self)

    def state(self) -> AgentState:
        """Return the budget and the policy."""
        return AgentState({self.limited: getattr(self, self.limited)}, models={"policy": self.policy})

    @classmethod
    def from_state(cls, state: AgentState) -> Self:
        """Restore the policy."""
        return cls(state.models["policy"], **{cls.limited: state.settings[cls.limited]})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.policy!r}, {getattr(self, self.limited):g})"


class StepBudget(_Budget):
    """Limit the number of costly groups that a policy acquires.

    Parameters
    ----------
    policy
        Any policy.
    n_steps : int
        Largest number of costly groups. Where the policy wants more, the run stops.
    """

    limited = "n_steps"

    def __init__(self, policy: Any, n_steps: int) -> None:
        super().__init__(policy)
        self.n_steps = int(check_count("n_steps", n_steps, 0))

    def _amounts(self, problem: Problem) -> Floats:
        return (~problem.free).astype(float)


class CostBudget(_Budget):
    r"""Limit the sum of the prices that a policy pays in a run.

    .. math:: \pi_B(a \mid x_S, S) = \pi(a \mid x_S, S) \, 1\Big(\sum_{g \in S} c_g + c_a \le B\Big)

    The probability of groups that would exceed the budget is added to stopping. AFABench calls this a hard budget.

    Parameters
    ----------
    policy
        Any policy.
    budget : float
        B, the largest sum of prices.
    """

    limited = "budget"

    def __init__(self, policy: Any, budget: float) -> None:
        super().__init__(policy)
        check_between("budget", budget, 0.0)
        self.budget = float(budget)

    def _amounts(self, problem: Problem) -> Floats:
        return problem.prices


class BoundBudget:
    """A budget around a bound policy.

    Attributes
    ----------
    policy : Policy
        The bound policy.
    source
        The policy before it was bound: budgets with one source differ in their limit alone.
    amounts : ndarray of shape (G,)
        What each group takes of the budget.
    limit : float
        The budget.
    """

    def __init__(self, policy: Policy, source: Any, amounts: Floats, limit: float) -> None:
        self.policy, self.source, self.amounts, self.limit = policy, source, amounts, limit
        self.ignores_values = ignores_values(policy)

    def alike(self, other: Any) -> bool:
        """Return True for a budget of the same policy that limits the same amounts."""
        return (
            isinstance(other, BoundBudget)
            and other.source is self.source
            and np.array_equal(other.amounts, self.amounts)
        )

    def probabilities(self, values: Floats, acquired: Bools) -> Floats:
        """Return the probabilities of the policy, those of groups beyond the budget added to stopping."""
        spent = (acquired * self.amounts).sum(axis=1)
        beyond = ~acquired & ~within(spent[:, None] + self.amounts, self.limit)
        done = (beyond | acquired).all(axis=1)
        out = np.zeros((len(acquired), acquired.shape[1] + 1))
        out[done, -1] = 1.0
        if not done.all():
            p = np.array(self.policy.probabilities(values[~done], acquired[~done]), dtype=float)
            over = np.where(beyond[~done], p[:, :-1], 0.0)
            p[:, :-1] -= over
            p[:, -1] += over.sum(axis=1)
            out[~done] = p
        return out
