"""The protocol of a policy, the check of its probabilities, and functions that make such probabilities."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

import numpy as np

from .._arguments import check_takes, in_order_of_rows, real_array
from .._arrays import Bools, Floats, Ints, any_of, every
from ..classifiers import check_columns, check_not_training
from ..data.problem import Problem
from ..data.retrospective import Retrospective
from .row_reader import RowReader

__all__ = [
    "Policy",
    "ask_policy",
    "bind",
    "bind_to_records",
    "check_policy",
    "drawn_actions",
    "epsilon_greedy",
    "ignores_values",
    "not_bound",
    "one_hot_actions",
    "parts_of",
    "training_rows_in",
]

_SUM_TOLERANCE = 1e-6


@runtime_checkable
class Policy(Protocol):
    """An agent: it chooses the next group to acquire, or stops.

    A policy may also have a method ``bind(problem)``. It is called once, before ``probabilities``, and returns a policy
    that knows the groups and prices of this problem. Most built-in policies need it. If its probabilities do not depend on the
    values, it may have the attribute ``ignores_values = True``: what it acquires is then certain and needs no interval.
    """

    def probabilities(self, values: Floats, acquired: Bools) -> Floats:
        """Probability of each action.

        Parameters
        ----------
        values : ndarray of shape (n, d)
            NaN outside the acquired groups.
        acquired : ndarray of bool, shape (n, G)
            Groups acquired so far, including the free ones.

        Returns
        -------
        ndarray of shape (n, G + 1)
            One column per group, in group order; the last column is for stopping.
        """
        ...


def bind(policy: Any, problem: Problem, argument: str = "policy") -> Policy:
    """Return the policy bound to this problem, or the policy itself if it has no ``bind``."""
    checked = check_policy(policy, argument)
    bound = policy.bind(problem) if hasattr(policy, "bind") else checked
    return check_policy(bound, argument)


def ignores_values(policy: Any) -> bool:
    """True if the policy says that its probabilities do not depend on the values."""
    return bool(getattr(policy, "ignores_values", False))


def bind_to_records(policy: Any, data: Retrospective, argument: str = "policy") -> Policy:
    """Return the policy bound to the problem of these records; raise an error if it was made for other columns."""
    bound = bind(policy, data.problem, argument)
    for part in parts_of(bound):
        reader = getattr(part, "reader", None)
        if isinstance(reader, RowReader):
            reader.check_columns(data.columns)
        check_columns(part, f"The policy {_named(part)}", data)
    return bound


def training_rows_in(policy: Any, data: Retrospective) -> int:
    """Count the rows of these records that the policy, or a policy inside it, was trained on."""
    counts = [part.seen(data) for part in parts_of(policy) if callable(getattr(part, "seen", None))]
    return int(max(counts, default=0))


def parts_of(policy: Any) -> Iterator[Any]:
    """Yield a policy and the policies that it holds as attributes, such as the policy of a `StepBudget`."""
    waiting, met = [policy], set()
    while waiting:
        part = waiting.pop()
        if id(part) in met:
            continue
        met.add(id(part))
        yield part
        inside = list(vars(part).values()) if hasattr(part, "__dict__") else []
        waiting += [thing for thing in inside if callable(getattr(thing, "probabilities", None))]


def check_policy(policy: Any, argument: str = "policy") -> Policy:
    """Raise an error if this object is not a policy."""
    if isinstance(policy, type) and hasattr(policy, "probabilities"):
        raise TypeError(
            f"{argument!r} must have a method probabilities(values, acquired), but is the class {policy.__name__} "
            "itself: pass an instance."
        )
    if not callable(getattr(policy, "probabilities", None)):
        raise TypeError(
            f"{argument!r} must have a method probabilities(values, acquired), but {_named(policy)} has none. For a "
            "function that returns actions, use afape.DecisionRule(function)."
        )
    check_takes(argument, policy.probabilities, "values, acquired")
    check_not_training(policy, argument)
    return policy  # type: ignore[no-any-return]


def not_bound(policy: Any) -> RuntimeError:
    """Error of a policy that is asked for probabilities before ``bind``."""
    return RuntimeError(
        f"This {type(policy).__name__} is not bound to a problem yet. afape.evaluate binds it; to call it yourself, "
        "use policy.bind(problem).probabilities(values, acquired)."
    )


def ask_policy(policy: Policy, values: Floats, acquired: Bools, rows: Ints) -> Floats:
    """Ask the policy about these states and check its probabilities, shape (n, G + 1).

    ``rows`` are the rows of the states, for the error message.
    """
    n, n_groups = acquired.shape
    # Copies: a policy that imputes in place must not change what the classifier sees or where the walk goes, and one that
    # returns the same array at each call must not change its earlier answers.
    answer = in_order_of_rows(policy.probabilities(values.copy(), acquired.copy()))
    try:
        p = real_array(answer)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"The policy {_named(policy)} must return an array of numbers, here {(n, n_groups + 1)}, but returned "
            f"{type(answer).__name__} that numpy cannot read as one."
        ) from error
    if p.shape != (n, n_groups + 1):
        raise ValueError(
            f"The policy {_named(policy)} must return shape (n, G + 1), here {(n, n_groups + 1)}, the last column "
            f"for stopping, but returned {p.shape}."
        )
    # One quick check of all rules; only if it fails, find out which rule is broken and where.
    on_acquired = any_of((p[:, :n_groups] != 0) & acquired)
    with np.errstate(invalid="ignore"):
        total = p.sum(axis=1)
    if not (abs(total - 1) <= _SUM_TOLERANCE).all() or (p < 0).any() or on_acquired.any():
        _raise_broken_rule(policy, p, total, on_acquired, rows)
    return p


def _raise_broken_rule(policy: Policy, p: Floats, total: Floats, on_acquired: Bools, rows: Ints) -> None:
    rules = [
        (~every(np.isfinite(p)), "finite probabilities"),
        (any_of(p < 0), "probabilities that are not negative"),
        (on_acquired, "probability 0 for every acquired group"),
        (~(abs(total - 1) <= _SUM_TOLERANCE), f"probabilities that sum to 1 within {_SUM_TOLERANCE:g}"),
    ]
    for bad, rule in rules:
        if bad.any():
            first = int(np.flatnonzero(bad)[0])
            raise ValueError(
                f"The policy {_named(policy)} must return {rule}, but breaks this rule in {int(bad.sum())} of {len(p)} "
                f"states, first in row {int(rows[first])}: {np.array2string(p[first], precision=6)}."
            )


def one_hot_actions(action: Ints, n_groups: int) -> Floats:
    """Probabilities (n, G + 1) with 1 for each row's action."""
    out = np.zeros((len(action), n_groups + 1))
    out[np.arange(len(action)), action] = 1.0
    return out


def drawn_actions(p: Floats, rng: np.random.Generator) -> Ints:
    """Draw one action per state from its probabilities (n, G + 1)."""
    drawn = (rng.random((len(p), 1)) >= np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
    return np.asarray(drawn, dtype=np.intp)


def epsilon_greedy(action_values: Floats, left: Bools, epsilon: float) -> Floats:
    r"""Probabilities (n, G + 1) of the epsilon-greedy policy.

    .. math:: \pi(a \mid x_S, S) = (1 - \varepsilon)\, 1\{a = \arg\min_b Q(x_S, S, b)\} + \varepsilon / m

    where b runs over the m actions that are left, including stopping.

    Parameters
    ----------
    action_values : ndarray of shape (n, G + 1)
        Q, expected cost to go; the last column is for stopping.
    left : ndarray of bool, shape (n, G)
        Groups that may still be acquired.
    epsilon : float
        Probability of a random action.
    """
    allowed = np.column_stack([left, np.ones(len(left), dtype=bool)])
    best = np.where(allowed, action_values, np.inf).argmin(axis=1)
    p = epsilon * allowed / allowed.sum(axis=1, keepdims=True)
    p[np.arange(len(p)), best] += 1 - epsilon
    return np.asarray(p)


def _named(thing: Any) -> str:
    return thing.__name__ if isinstance(thing, type) else type(thing).__name__
