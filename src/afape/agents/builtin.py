"""Policies that come with the package: baselines, and a face for plain functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arguments import check_number
from ..arrays import Bools, Floats, Ints
from ..data import Problem
from .policy import Policy
from .state import AgentState

__all__ = ["AcquireAll", "AcquireNone", "DecisionRule", "FixedOrder", "RandomSubset"]


class _Plain:
    """A policy that is nothing but its arguments, which its attributes hold."""

    def state(self) -> AgentState:
        """The arguments."""
        return AgentState(dict(vars(self)))

    @classmethod
    def from_state(cls, state: AgentState) -> Self:
        """The same policy again."""
        return cls(**state.settings)


class RandomSubset(_Plain):
    r"""Acquire each costly group with probability p, in group order.

    Memoryless: with h the last costly group acquired, the next one is group g > h with probability
    :math:`p (1-p)^k`, k being the costly groups skipped between them, and the policy stops with
    :math:`(1-p)^m`, m the costly groups left. So the final set is an independent draw: every costly group is
    in it with probability p.

    Parameters
    ----------
    p : float
        Probability of each costly group, in [0, 1].
    """

    def __init__(self, p: float) -> None:
        self.p: float = check_number("p", p, "lie in [0, 1]", lambda share: 0 <= share <= 1)

    def bind(self, problem: Problem) -> Policy:
        """Tell the policy which groups are costly."""
        return _BoundRandomSubset(self.p, ~problem.free)

    def probabilities(self, values: Floats, acquired: Bools) -> Floats:
        """Not before ``bind``: without a problem nobody knows which groups are costly."""
        raise _unbound(self)

    def __repr__(self) -> str:
        return f"RandomSubset({self.p:g})"


class _BoundRandomSubset:
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


class FixedOrder(_Plain):
    """Acquire these groups one after the other, then stop.

    Parameters
    ----------
    groups : sequence of str
        Names of the groups, in the order of acquisition.
    """

    def __init__(self, groups: Sequence[str]) -> None:
        if isinstance(groups, str):
            raise TypeError(f"'groups' must be a list of group names, but is the text {groups!r}.")
        if isinstance(groups, set | frozenset) or not isinstance(groups, Iterable):
            raise TypeError(f"'groups' must be a list of group names, in order, but is {groups!r}.")
        self.groups = list(groups)

    def bind(self, problem: Problem) -> Policy:
        """Find the groups of the problem by name."""
        return _BoundFixedOrder(problem.group_index(self.groups, "groups"))

    def probabilities(self, values: Floats, acquired: Bools) -> Floats:
        """Not before ``bind``: names are looked up in the problem."""
        raise _unbound(self)

    def __repr__(self) -> str:
        return f"FixedOrder({self.groups})"


class _BoundFixedOrder:
    def __init__(self, order: Ints) -> None:
        self.order = order

    def probabilities(self, values: Floats, acquired: Bools) -> Floats:
        todo = np.column_stack([~acquired[:, self.order], np.ones(len(acquired), dtype=bool)])
        action = np.append(self.order, acquired.shape[1])[todo.argmax(axis=1)]
        return one_hot_actions(action, acquired.shape[1])


class AcquireAll(_Plain):
    """Acquire every costly group, in group order."""

    def bind(self, problem: Problem) -> Policy:
        """Find out which groups are costly."""
        return _BoundFixedOrder(np.flatnonzero(~problem.free))

    def probabilities(self, values: Floats, acquired: Bools) -> Floats:
        """Not before ``bind``: without a problem nobody knows which groups are costly."""
        raise _unbound(self)

    def __repr__(self) -> str:
        return "AcquireAll()"


class AcquireNone(_Plain):
    """Stop at once, with what is free."""

    def probabilities(self, values: Floats, acquired: Bools) -> Floats:
        """All probability on stopping."""
        return one_hot_actions(np.full(len(acquired), acquired.shape[1]), acquired.shape[1])

    def __repr__(self) -> str:
        return "AcquireNone()"


class DecisionRule:
    """A deterministic policy from a function.

    Parameters
    ----------
    function : callable
        ``function(values, acquired)`` returns one action a row: the index of a group, or G to stop.

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
        self.function = function

    def probabilities(self, values: Floats, acquired: Bools) -> Floats:
        """All probability on the action that the function names."""
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


def one_hot_actions(action: NDArray[Any], n_groups: int) -> Floats:
    """Probability 1 on each row's action."""
    out = np.zeros((len(action), n_groups + 1))
    out[np.arange(len(action)), action] = 1.0
    return out


def _unbound(policy: Any) -> RuntimeError:
    return RuntimeError(
        f"{policy!r} does not know the problem yet. afape.evaluate tells it; to ask it yourself, call "
        "policy.bind(problem).probabilities(values, acquired)."
    )
