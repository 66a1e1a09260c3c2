"""From action values to a policy: the cheapest action that is left, or any with probability epsilon."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import Bools, Floats
from ..data import Problem

__all__ = ["check_groups", "checked_states", "epsilon_greedy", "not_fitted"]


def epsilon_greedy(action_values: Floats, left: Bools, epsilon: float) -> Floats:
    r"""Probabilities of the actions.

    .. math:: \pi(a \mid x_S, S) = (1 - \varepsilon)\, 1\{a = \arg\min_b Q(x_S, S, b)\} + \varepsilon / m

    with b over the m actions that are left, stopping included.

    Parameters
    ----------
    action_values : ndarray of shape (n, G + 1)
        Q, expected cost to go; the last column is for stopping.
    left : ndarray of bool, shape (n, G)
        Groups that may still be acquired.
    epsilon : float
        Probability of an action at random.
    """
    allowed = np.column_stack([left, np.ones(len(left), dtype=bool)])
    best = np.where(allowed, action_values, np.inf).argmin(axis=1)
    p = epsilon * allowed / allowed.sum(axis=1, keepdims=True)
    p[np.arange(len(p)), best] += 1 - epsilon
    return np.asarray(p)


def checked_states(agent: Any, values: Any, acquired: Any, n_columns: int, n_groups: int) -> tuple[Floats, Bools]:
    """States as arrays; refuses numbers of rows or columns other than those of training."""
    x, taken = np.asarray(values, dtype=float), np.asarray(acquired, dtype=bool)
    name = type(agent).__name__
    for argument, array, wanted, what in (("values", x, n_columns, "columns"), ("acquired", taken, n_groups, "groups")):
        if array.ndim != 2 or array.shape[1] != wanted:
            raise ValueError(
                f"{argument!r} must have the {wanted} {what} that this {name} was trained with, shape (n, {wanted}), but has "
                f"shape {array.shape}. Build the data with the Problem of training."
            )
    if len(x) != len(taken):
        raise ValueError(
            f"'values' and 'acquired' must have one line per state each, but have {len(x)} and {len(taken)} lines. Pass both "
            "for the same states."
        )
    return x, taken


def check_groups(agent: Any, groups: tuple[str, ...], problem: Problem) -> None:
    """Refuse a problem with other groups than those of training."""
    if problem.group_names != groups:
        raise ValueError(
            f"This {type(agent).__name__} was trained for the groups {list(groups)}, but the problem has "
            f"{list(problem.group_names)}. Train an agent for this problem."
        )


def not_fitted(agent: Any, arguments: str) -> RuntimeError:
    """What an untrained agent answers."""
    return RuntimeError(f"This {type(agent).__name__} is not trained yet; call fit({arguments}) first.")
