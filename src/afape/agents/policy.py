"""What a policy is, and the check of what one returns."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from ..arrays import Bools, Floats, Ints, any_of, every
from ..classifiers import check_not_training
from ..data import Problem

__all__ = ["Policy", "ask_policy", "bind", "check_policy"]

_SUM_TOLERANCE = 1e-6


@runtime_checkable
class Policy(Protocol):
    """An agent: which group to acquire next, or to stop.

    A policy may also have ``bind(problem)``, called once before the first question, which returns the policy
    that knows groups and prices by name. The built-in policies do.
    """

    def probabilities(self, values: Floats, acquired: Bools) -> Floats:
        """Probability of each action.

        Parameters
        ----------
        values : ndarray of shape (n, d)
            NaN outside the acquired groups.
        acquired : ndarray of bool, shape (n, G)
            Groups acquired so far, free ones included.

        Returns
        -------
        ndarray of shape (n, G + 1)
            One column per group, in group order, and the last for stopping.
        """
        ...


def bind(policy: Any, problem: Problem, argument: str = "policy") -> Policy:
    """The policy, told about the problem if it wants to know."""
    checked = check_policy(policy, argument)
    bound = policy.bind(problem) if hasattr(policy, "bind") else checked
    return check_policy(bound, argument)


def check_policy(policy: Any, argument: str = "policy") -> Policy:
    """Refuse what cannot be a policy, before any work."""
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
    check_not_training(policy, argument)
    return policy  # type: ignore[no-any-return]


def ask_policy(policy: Policy, values: Floats, acquired: Bools, rows: Ints) -> Floats:
    """Probabilities of the actions in these states, checked; ``rows`` name the rows in an error."""
    n, n_groups = acquired.shape
    # Copies: a policy that imputes in place must not change what the classifier sees or where the walk goes.
    answer = policy.probabilities(values.copy(), acquired.copy())
    try:
        p = np.asarray(answer, dtype=float)
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
    # One pass decides whether all is well; only then, if not, find out what is wrong and where.
    on_acquired = any_of((p[:, :n_groups] != 0) & acquired)
    with np.errstate(invalid="ignore"):
        total = p.sum(axis=1)
    if not (abs(total - 1) <= _SUM_TOLERANCE).all() or (p < 0).any() or on_acquired.any():
        _complain(policy, p, total, on_acquired, rows)
    return p


def _complain(
    policy: Policy,
    p: Floats,
    total: Floats,
    on_acquired: Bools,
    rows: Ints,
) -> None:
    rules = [
        (~every(np.isfinite(p)), "finite probabilities"),
        (any_of(p < 0), "probabilities that are not negative"),
        (on_acquired, "no probability on a group that is acquired already"),
        (~(abs(total - 1) <= _SUM_TOLERANCE), f"probabilities that sum to 1 within {_SUM_TOLERANCE:g}"),
    ]
    for bad, rule in rules:
        if bad.any():
            first = int(np.flatnonzero(bad)[0])
            raise ValueError(
                f"The policy {_named(policy)} must return {rule}, but {int(bad.sum())} of {len(p)} states do not "
                f"hold to it, the first in row {int(rows[first])}: {np.array2string(p[first], precision=6)}."
            )


def _named(thing: Any) -> str:
    return thing.__name__ if isinstance(thing, type) else type(thing).__name__
