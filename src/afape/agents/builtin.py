"""Built-in policies: baselines, and policies from a function of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from .._arguments import check_number, check_takes, check_texts, shown
from .._arrays import Bools, Floats, Ints
from ..data.problem import Problem
from .policy import Policy, not_bound, one_hot_actions
from .state import AgentState

__all__ = ["AcquireAll", "AcquireNone", "DecisionRule", "FixedOrder", "RandomSubset"]


class _Arguments:
    """Base of policies that are saved by the arguments of their constructor."""

    def state(self) -> AgentState:
        """Return the arguments."""
        return AgentState(dict(vars(self)))

    @classmethod
    def from_state(cls, state: AgentState) -> Self:
        """Restore the policy."""
        return cls(**state.settings)


class RandomSubset(_Arguments):
    r"""Acquire each costly group with probability p, in group order.

    The policy has no memory. If h is the last costly group that was acquired, the next one is group g > h with
    probability :math:`p (1-p)^k`, where k costly groups lie between them. The policy stops with probability
    :math:`(1-p)^m`, where m costly groups are left. So every costly group is in the final set with probability p,
    independently of the others.

    Parameters
    ----------
    p : float
        Probability of each costly group, in [0, 1].
    """

    ignores_values = True

    def __init__(self, p: float) -> None:
        self.p: float = check_number("p", p, "lie in [0, 1]", lambda share: 0 <= share <= 1)

    def bind(self, problem: Problem) -> Policy:
        """Look up which groups are costly."""
        return _BoundRandomSubset(self.p, ~problem.free)

    def probabilities(self, values: Floats, acquired: Bools) -> Floats:
        """Raise an error: the policy needs ``bind`` first, to know which groups are costly."""
        raise not_bound(self)

    def __repr__(self) -> str:
        return f"RandomSubset({self.p:g})"


class _BoundRandomSubset:
    ignores_values = True

    def __init__(self, p: float, costly: Bools) -> None:
        self.p, self.costly = p, np.flatnonzero(costly)

    def probabilities(self, values: Floats, acquired: Bools) -> Floats:
        taken = acquired[:, self.costly]
        m = len(self.costly)
        # passed[i, j]: the j-th costly group or a later one is acquired, so j is no longer up for decision
        passed = np.logical_or.accumulate(taken[:, ::-1], axis=1)[:, ::-1]
        ahead = np.cumsum(~passed, axis=1)  # 1, 2, ... over the groups still up for decision
        out = np.zeros((len(acquired), acquired.shape[1] + 1))
        out[:, self.costly] = np.where(passed, 0.0, self.p * (1 - self.p) ** np.maximum(ahead - 1, 0))
        out[:, -1] = (1 - self.p) ** (ahead[:, -1] if m else np.zeros(len(acquired)))
        return out


class FixedOrder(_Arguments):
    """Acquire these groups one after the other, then stop.

    Parameters
    ----------
    groups : sequence of str
        Names of the groups, in the order of acquisition.
    """

    ignores_values = True

    def __init__(self, groups: Sequence[str]) -> None:
        if isinstance(groups, set | frozenset):
            raise TypeError(f"'groups' must be a list of group names, in order, but is {shown(groups)}.")
        self.groups = check_texts("groups", groups, "group names")

    def bind(self, problem: Problem) -> Policy:
        """Look up the groups by name."""
        return _BoundFixedOrder(problem.group_index(self.groups, "groups"))

    def probabilities(self, values: Floats, acquired: Bools) -> Floats:
        """Raise an error: the policy needs ``bind`` first, to look up the names."""
        raise not_bound(self)

    def __repr__(self) -> str:
        return f"FixedOrder({self.groups})"


class _BoundFixedOrder:
    ignores_values = True

    def __init__(self, order: Ints) -> None:
        self.order = order

    def probabilities(self, values: Floats, acquired: Bools) -> Floats:
        todo = np.column_stack([~acquired[:, self.order], np.ones(len(acquired), dtype=bool)])
        action = np.append(self.order, acquired.shape[1])[todo.argmax(axis=1)]
        return one_hot_actions(action, acquired.shape[1])


class AcquireAll(_Arguments):
    """Acquire every costly group, in group order."""

    ignores_values = True

    def bind(self, problem: Problem) -> Policy:
        """Look up which groups are costly."""
        return _BoundFixedOrder(np.flatnonzero(~problem.free))

    def probabilities(self, values: Floats, acquired: Bools) -> Floats:
        """Raise an error: the policy needs ``bind`` first, to know which groups are costly."""
        raise not_bound(self)

    def __repr__(self) -> str:
        return "AcquireAll()"


class AcquireNone(_Arguments):
    """Stop at once, with the free groups."""

    ignores_values = True

    def probabilities(self, values: Floats, acquired: Bools) -> Floats:
        """Return probability 1 for stopping."""
        return one_hot_actions(np.full(len(acquired), acquired.shape[1]), acquired.shape[1])

    def __repr__(self) -> str:
        return "AcquireNone()"


class DecisionRule:
    """A deterministic policy from a function of arrays.

    Parameters
    ----------
    function : callable
        ``function(values, acquired)`` returns one action per row: the index of a group, or G to stop.

    Examples
    --------
    >>> import numpy as np
    >>> rule = DecisionRule(lambda values, acquired: np.where(acquired[:, 1], 2, 1))
    >>> rule.probabilities(np.zeros((1, 2)), np.array([[True, False]])).tolist()
    [[0.0, 1.0, 0.0]]
    """

    def __init__(self, function: Callable[[Floats, Bools], ArrayLike]) -> None:
        if not callable(function):
            raise TypeError(f"'function' must be callable, but is {type(function).__name__}.")
        check_takes("function", function, "values, acquired")
        self.function = function

    def probabilities(self, values: Floats, acquired: Bools) -> Floats:
        """Return probability 1 for the action that the function chooses."""
        n, n_groups = acquired.shape
        action = np.asarray(self.function(values, acquired))
        if action.shape != (n,) or not np.issubdtype(action.dtype, np.integer):
            raise ValueError(
                f"The function of {self!r} must return one whole number per row, shape ({n},), but returned "
                f"{action.dtype} of shape {action.shape}."
            )
        if ((action < 0) | (action > n_groups)).any():
            worst = action[(action < 0) | (action > n_groups)][0]
            raise ValueError(
                f"The function of {self!r} must return group indices, or {n_groups} to stop, but returned {worst}."
            )
        return one_hot_actions(action, n_groups)

    def __repr__(self) -> str:
        return f"DecisionRule({getattr(self.function, '__name__', type(self.function).__name__)})"
