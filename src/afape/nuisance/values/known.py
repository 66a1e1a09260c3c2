"""Action values that the user brings along."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import ArrayLike

from ...arrays import Bools, Floats, Ints, lines_of, tally
from ...data import Retrospective
from ...walk import FREE, WalkTable
from .induction import ACQUISITION, MISCLASSIFICATION, TableValues

__all__ = ["KnownValues"]


class KnownValues:
    """Q(x_S, S, a, given), fitted elsewhere or known.

    Parameters
    ----------
    function : callable
        ``function(values, acquired, labels)`` with values of shape (m, d), NaN where neither acquired nor given,
        acquired groups (m, G) and label codes (m,); returns (m, G + 1, 2): expected acquisition and
        misclassification cost from here on when each action is taken, its own price included. The last action
        stops. Entries for actions that the policy does not want are ignored and may be NaN. Where a free group is not
        always recorded, it is also called with nothing acquired, and the answer ignored.
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

    @staticmethod
    def from_arrays(arrays: Mapping[str | tuple[str, ...], ArrayLike], root: ArrayLike | None = None) -> KnownValues:
        """Action values fitted elsewhere, as arrays.

        Parameters
        ----------
        arrays : mapping from acquired groups to ndarray of shape (n, G + 1, 2)
            For each set that the policy reaches, by the names of its costly groups (``()`` for none), what ``function``
            would return for every row of the data.
        root : ndarray of shape (n, 2), optional
            What ``root`` would return.
        """
        return _ValueArrays(arrays, root)

    def _action_values(self, data: Retrospective, table: WalkTable, seen: Floats, labels: Ints) -> Floats:
        shape = (len(table.row), data.problem.n_groups + 1, 2)
        return self._checked(self.function(seen, table.acquired.copy(), labels), shape)

    def _root_values(self, seen: Floats, labels: Ints, rows: Ints) -> Floats:
        if self.root is None:
            raise ValueError(
                "KnownValues needs 'root' here, because a free group is not always recorded: the expected costs before the "
                "free groups are revealed."
            )
        return self._checked(self.root(seen, labels), (len(rows), 2))

    def values(self, data: Retrospective, table: WalkTable, given_columns: Ints) -> TableValues:
        """Ask about every state of the table."""
        n_groups, m = data.problem.n_groups, len(table.row)
        known = table.acquired[:, data.column_group] | np.isin(np.arange(len(data.columns)), given_columns)
        seen = np.where(known, data.values[table.row], np.nan)
        labels = data.labels[table.row]
        q = self._action_values(data, table, seen, labels)
        edge = q[table.edge_state, np.where(table.edge_group == FREE, n_groups, table.edge_group)]
        edge[:, ACQUISITION] -= np.where(table.edge_group == FREE, 0.0, data.problem.prices[table.edge_group])
        forced = table.edge_group == FREE
        if forced.any():
            at = table.edge_state[forced]
            edge[forced] = self._root_values(seen[at], labels[at], table.row[at])
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


class _ValueArrays(KnownValues):
    def __init__(self, arrays: Mapping[str | tuple[str, ...], ArrayLike], root: ArrayLike | None) -> None:
        if not isinstance(arrays, Mapping):
            raise TypeError(f"'arrays' must be a mapping from acquired groups to arrays, not {type(arrays).__name__}.")
        self.arrays, self.root_array = arrays, root
        self.root = None

    def _action_values(self, data: Retrospective, table: WalkTable, seen: Floats, labels: Ints) -> Floats:
        problem = data.problem
        shape = (len(data), problem.n_groups + 1, 2)
        by_set: dict[bytes, Floats] = {}
        for key, values in self.arrays.items():
            names = (key,) if isinstance(key, str) else tuple(key)
            acquired = problem.free.copy()
            acquired[problem.group_index(names, "arrays")] = True
            by_set[acquired.tobytes()] = self._checked(values, shape)
        out = np.full((len(table.row), *shape[1:]), np.nan)
        for acquired, lines in zip(table.sets, lines_of(table.set_index, len(table.sets)), strict=True):
            found = by_set.get(acquired.tobytes())
            if found is not None:
                out[lines] = found[table.row[lines]]
            elif acquired.any() or not problem.free.any():
                lacking = [problem.group_names[g] for g in np.flatnonzero(acquired & ~problem.free)]
                raise ValueError(f"'arrays' must cover every set that the policy reaches, but lack {tuple(lacking)}.")
        return out

    def _root_values(self, seen: Floats, labels: Ints, rows: Ints) -> Floats:
        if self.root_array is None:
            return super()._root_values(seen, labels, rows)
        return np.asarray(self.root_array, dtype=float)[rows]
