"""Action values that the user brings along."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Bools, Floats, Ints, tally
from ..data import Retrospective
from ..walk import FREE, WalkTable
from .values import ACQUISITION, MISCLASSIFICATION, TableValues

__all__ = ["KnownValues"]


class KnownValues:
    """Q(x_S, S, a, given), fitted elsewhere or known.

    Parameters
    ----------
    function : callable
        ``function(values, acquired, labels)`` with values of shape (m, d), NaN where neither acquired nor given,
        acquired groups (m, G) and label codes (m,); returns (m, G + 1, 2): expected acquisition and
        misclassification cost from here on when each action is taken, its own price included. The last action
        stops. Entries for actions that the policy does not want are ignored and may be NaN.
    root : callable, optional
        ``root(values, labels)`` returns (m, 2), the expected costs before the free groups are revealed; needed only
        where a free group is not always recorded.
    """

    def __init__(
        self,
        function: Callable[[Floats, Bools, Ints], ArrayLike],
        root: Callable[[Floats, Ints], ArrayLike] | None = None,
    ) -> None:
        if not callable(function) or (root is not None and not callable(root)):
            raise TypeError("'function' and 'root' of KnownValues must be callable.")
        self.function, self.root = function, root

    def values(self, data: Retrospective, table: WalkTable, given: Ints) -> TableValues:
        """Ask about every state of the table."""
        n_groups, m = data.problem.n_groups, len(table.row)
        known = table.acquired[:, data.column_group] | np.isin(np.arange(len(data.columns)), given)
        seen = np.where(known, data.values[table.row], np.nan)
        labels = data.labels[table.row]
        q = self._checked(self.function(seen, table.acquired.copy(), labels), (m, n_groups + 1, 2))
        edge = q[table.edge_state, np.where(table.edge_group == FREE, n_groups, table.edge_group)]
        edge[:, ACQUISITION] -= np.where(table.edge_group == FREE, 0.0, data.problem.prices[table.edge_group])
        forced = table.edge_group == FREE
        if forced.any():
            if self.root is None:
                raise ValueError(
                    "KnownValues needs 'root' here, because a free group is not always recorded: the expected costs before "
                    "the free groups are revealed."
                )
            at = table.edge_state[forced]
            edge[forced] = self._checked(self.root(seen[at], labels[at]), (len(at), 2))
        stop = np.where(table.stop > 0, q[:, n_groups, MISCLASSIFICATION], 0.0)
        if not (np.isfinite(edge).all() and np.isfinite(stop).all()):
            raise ValueError("KnownValues must be finite for every action that the policy wants, but some are not.")
        state = np.zeros((m, 2))
        for target in (ACQUISITION, MISCLASSIFICATION):
            state[:, target] = tally(table.edge_state, table.edge_probability * edge[:, target], m)
        state[:, ACQUISITION] += table.price
        state[:, MISCLASSIFICATION] += table.stop * stop
        return TableValues(edge, stop, state)

    @staticmethod
    def _checked(answer: ArrayLike, shape: tuple[int, ...]) -> Floats:
        found = np.asarray(answer, dtype=float)
        if found.shape != shape:
            raise ValueError(f"KnownValues must return shape {shape}, but returned {found.shape}.")
        return found
