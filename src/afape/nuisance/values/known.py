"""Action values that the user brings along."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...arrays import Bools, Floats, Ints, lines_of, tally
from ...data import Retrospective
from ...walk import FREE, PartColumns, WalkTable
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
    parts, root_parts : callable, optional
        The same of the parts of the costs, (m, G + 1, P) and (m, P): how often each costly group will be acquired, the
        pairs of true and predicted label row by row, how many costly groups a run stops with (0, 1, ...), outcomes of your
        own. Without them, estimators that use these values have costs, but no parts.
    """

    parts: Callable[[Floats, Bools, Ints], ArrayLike] | None = None
    root_parts: Callable[[Floats, Ints], ArrayLike] | None = None

    def __init__(
        self,
        function: Callable[[Floats, Bools, Ints], ArrayLike],
        root: Callable[[Floats, Ints], ArrayLike] | None = None,
        parts: Callable[[Floats, Bools, Ints], ArrayLike] | None = None,
        root_parts: Callable[[Floats, Ints], ArrayLike] | None = None,
    ) -> None:
        given = (root, parts, root_parts)
        if not callable(function) or any(f is not None and not callable(f) for f in given):
            raise TypeError("'function', 'root', 'parts' and 'root_parts' of KnownValues must be callable.")
        self.function, self.root, self.parts, self.root_parts = function, root, parts, root_parts

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

    def part_values(
        self, data: Retrospective, table: WalkTable, given_columns: Ints, columns: PartColumns, lost: Bools | None
    ) -> KnownParts | None:
        """Action values of the parts; ``lost`` edges lead to unsupported sets. None where they are not known."""
        if self.parts is None:
            return None
        width = columns.own.stop
        known = table.acquired[:, data.column_group] | np.isin(np.arange(len(data.columns)), given_columns)
        seen, labels = np.where(known, data.values[table.row], np.nan), data.labels[table.row]
        n_groups = data.problem.n_groups
        q = self._checked(self.parts(seen, table.acquired.copy(), labels), (len(seen), n_groups + 1, width))
        forced = np.flatnonzero(table.edge_group == FREE)
        group = np.where(table.edge_group == FREE, n_groups, table.edge_group)
        edge = np.zeros((len(group), columns.width))
        edge[:, :width] = q[table.edge_state, group]
        edge -= columns.taken(table, np.arange(len(group))).toarray()
        if len(forced):
            if self.root_parts is None:
                raise ValueError("KnownValues needs 'root_parts' beside 'root', where a free group has gaps.")
            at = table.edge_state[forced]
            edge[forced, :width] = self._checked(self.root_parts(seen[at], labels[at]), (len(at), width))
        if lost is not None:
            ended = np.flatnonzero(lost)
            left, label = columns.lost(table, ended)
            edge[ended] = (left + label).toarray()
        stop = np.zeros((len(seen), columns.width))
        stop[:, :width] = np.where((table.stop > 0)[:, None], q[:, n_groups], 0.0)
        return KnownParts(edge, stop)

    @staticmethod
    def _checked(answer: ArrayLike, shape: tuple[int, ...]) -> Floats:
        found = np.asarray(answer, dtype=float)
        if found.shape != shape:
            raise ValueError(f"KnownValues must return shape {shape}, but returned {found.shape}.")
        return found


class KnownParts(NamedTuple):
    """Known action values of the parts of the costs."""

    edge: Floats  # (e, P)
    stop: Floats  # (s, P)

    def part_edges(self, edges: Ints) -> Floats:
        """Parts to go after these edges."""
        return np.asarray(self.edge[edges])

    def part_stops(self, states: Ints) -> Floats | None:
        """Expected parts of stopping in these states."""
        return np.asarray(self.stop[states])


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
