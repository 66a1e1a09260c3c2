"""Action values that the user knows or has fitted elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._arguments import check_arrays, check_takes, real_array, shown
from .._arrays import Bools, Floats, Ints, lines_of
from ..data.retrospective import Retrospective
from ..walk.columns import Columns, CostColumns, PartColumns, added, dense
from ..walk.table import FREE, WalkTable
from ..warnings import KnownValuesWarning, warn
from .learning_errors import ValueSlopes

__all__ = ["BoundKnownValues", "KnownValues"]

_MARGIN, _OFTEN = 0.1, 0.05  # values this far outside the range, in its widths; share of values that gives a warning
_OFF, _SURELY = 0.5, 5.0  # difference of means that gives a warning, as a share and in standard errors

Function = Callable[[Floats, Bools, Ints], ArrayLike]
RootFunction = Callable[[Floats, Ints], ArrayLike]


class KnownValues:
    """Known action values Q(x_S, S, a, given), for example fitted elsewhere.

    Parameters
    ----------
    function : callable
        ``function(values, acquired, labels)`` with values of shape (m, d), NaN where neither acquired nor given,
        acquired groups (m, G) and label codes (m,). It returns (m, G + 1, 2): the expected acquisition and
        misclassification cost to go after each action, including the price of the action. The last action
        stops. Entries for actions that the policy does not want are ignored and may be NaN. If a free group is not
        always recorded, the function is also called for states with nothing acquired, and these results are ignored.
    root : callable, optional
        ``root(values, labels)`` returns (m, 2), the expected costs before the free groups are revealed. It is needed only
        if a free group is not always recorded.
    parts, root_parts : callable, optional
        Like ``function`` and ``root``, for the parts of the costs: (m, G + 1, P) and (m, P). The parts are the rate of each
        costly group, the pairs of true and predicted label row by row, the number of costly groups at the stop (0, 1, ...),
        and outcomes of the user. Without these functions, estimators that use known values have costs but no parts.
    """

    def __init__(
        self,
        function: Function,
        root: RootFunction | None = None,
        parts: Function | None = None,
        root_parts: RootFunction | None = None,
    ) -> None:
        given = (root, parts, root_parts)
        if not callable(function) or any(f is not None and not callable(f) for f in given):
            kinds = [type(f).__name__ for f in (function, *given)]
            raise TypeError(
                f"'function', 'root', 'parts' and 'root_parts' of KnownValues must be callable, but have types {kinds}."
            )
        for argument, of_states in (("function", function), ("parts", parts)):
            if of_states is not None:
                check_takes(argument, of_states, "values, acquired, labels")
        for argument, of_roots in (("root", root), ("root_parts", root_parts)):
            if of_roots is not None:
                check_takes(argument, of_roots, "values, labels")
        self.function, self.root, self.parts, self.root_parts = function, root, parts, root_parts

    @staticmethod
    def from_arrays(arrays: Mapping[str | tuple[str, ...], ArrayLike], root: ArrayLike | None = None) -> KnownValues:
        """Return known action values that are given as arrays.

        Parameters
        ----------
        arrays : mapping from acquired groups to ndarray of shape (n, G + 1, 2)
            For each set that the policy reaches, the result of ``function`` for every row of the data. The keys are names of
            costly groups, ``()`` for none.
        root : ndarray of shape (n, 2), optional
            The result of ``root`` for every row.
        """
        return _ValueArrays(arrays, root)

    @property
    def has_parts(self) -> bool:
        """True if the action values of the parts are known too."""
        return self.parts is not None

    def ask(self, asked: _Asked, columns: Columns) -> Floats:
        """Call the user's function for every state; returns action values in these columns, (m, G + 1, w)."""
        function = self.function if isinstance(columns, CostColumns) else self.parts
        assert function is not None
        answer = function(asked.seen.copy(), asked.acquired.copy(), asked.labels.copy())
        return _checked(answer, asked.shape(columns))

    def ask_root(self, asked: _Asked, columns: Columns) -> Floats:
        """Return the expected amounts before the free groups are revealed, (m, w)."""
        function = self.root if isinstance(columns, CostColumns) else self.root_parts
        if function is None:
            name = "root" if isinstance(columns, CostColumns) else "root_parts"
            raise ValueError(
                f"KnownValues needs {name!r} if a free group is not always recorded, as here, but it is None. Give a function "
                "that returns the expected costs before the free groups are revealed."
            )
        return _checked(function(asked.seen.copy(), asked.labels.copy()), asked.shape(columns)[::2])

    def bind(
        self, data: Retrospective, table: WalkTable, given_columns: Ints, columns: Columns, lost: Bools | None
    ) -> BoundKnownValues:
        """Compute the known action values of all edges and stops of the table.

        Parameters
        ----------
        data, table, given_columns
            Records, the walk over them, and the columns of X_o.
        columns : Columns
            `CostColumns` without outcomes of the user, or `PartColumns`.
        lost : ndarray of bool, shape (e,), optional
            Edges into unsupported sets, where runs end.
        """
        n_groups = data.problem.n_groups
        known = table.acquired[:, data.column_group] | np.isin(np.arange(len(data.columns)), given_columns)
        seen = np.where(known, data.values[table.row], np.nan)
        asked = _Asked(data, table, seen, table.acquired, data.labels[table.row], table.row)
        q = self.ask(asked, columns)
        width, n_edges = q.shape[2], len(table.edge_state)
        edge = np.zeros((n_edges, columns.width))
        edge[:, :width] = q[table.edge_state, np.where(table.edge_group == FREE, n_groups, table.edge_group)]
        edge -= dense(columns.taken(table, np.arange(n_edges)))
        forced = np.flatnonzero(table.edge_group == FREE)
        if len(forced):
            edge[forced, :width] = self.ask_root(asked.at(table.edge_state[forced]), columns)
        if lost is not None:
            left, stop = columns.lost(table, np.flatnonzero(lost))
            edge[lost] = dense(added(left, stop))
        stop_values = np.zeros((len(seen), columns.width))
        stop_values[:, :width] = np.where((table.stop > 0)[:, None], q[:, n_groups], 0.0)
        if not (np.isfinite(edge).all() and np.isfinite(stop_values).all()):
            raise ValueError(
                "KnownValues must return finite numbers for every action that the policy wants, but some are NaN or infinite."
            )
        if isinstance(columns, CostColumns):
            stop_values[:, 0] = 0.0  # a stop acquires nothing
            stops = np.flatnonzero((table.stop > 0) & np.isfinite(table.cost))
            _warn_of_range(data, edge if lost is None else edge[~lost], stop_values[stops])
            _warn_of_scale(stop_values[stops, 1], table.cost[stops])
        return BoundKnownValues(edge, stop_values)


class _Asked(NamedTuple):
    """States for which known values are needed."""

    data: Retrospective
    table: WalkTable
    seen: Floats  # (m, d)
    acquired: Bools  # (m, G)
    labels: Ints  # (m,)
    rows: Ints  # (m,)

    def at(self, lines: Ints) -> _Asked:
        """Return some of the states."""
        return self._replace(
            seen=self.seen[lines], acquired=self.acquired[lines], labels=self.labels[lines], rows=self.rows[lines]
        )

    def shape(self, columns: Columns) -> tuple[int, int, int]:
        """Return the shape that the result in these columns must have."""
        width = columns.own.stop if isinstance(columns, PartColumns) else columns.width
        return len(self.seen), self.data.problem.n_groups + 1, width


def _warn_of_range(data: Retrospective, edge: Floats, stop: Floats) -> None:
    """Warn if known values, (m, 2) after edges without their prices and (k, 2) at stops, are often not possible costs."""
    costs = np.concatenate([edge[:, :2], stop[:, :2]])
    limits = ((0.0, float(data.problem.prices.sum())), (float(data.costs.min()), float(data.costs.max())))
    for found, (least, largest), name in zip(costs.T, limits, ("acquisition", "misclassification"), strict=True):
        margin = _MARGIN * (largest - least)
        outside = (found < least - margin) | (found > largest + margin)
        if outside.mean() > _OFTEN:
            warn(
                f"KnownValues gives a {name} cost to go from {found.min():.4g} to {found.max():.4g}, but possible costs are from "
                f"{least:.4g} to {largest:.4g}; {int(outside.sum())} of {len(found)} values lie outside. Costs are positive and "
                "in the unit of the problem, and values include the price of the action: change the sign of rewards, and undo "
                "any scaling.",
                KnownValuesWarning,
            )


def _warn_of_scale(known: Floats, actual: Floats) -> None:
    """Warn if known values of stopping, (k,), have another mean than the misclassification costs of these stops."""
    if len(known) < 2:
        return
    gap = known - actual
    mean, error = float(gap.mean()), float(gap.std(ddof=1) / np.sqrt(len(gap)))
    larger = max(abs(float(known.mean())), abs(float(actual.mean())))
    if abs(mean) > _SURELY * error and abs(mean) > _OFF * larger:
        warn(
            f"KnownValues gives a misclassification cost of {known.mean():.4g} where runs stop, on average over states, but it "
            f"is {actual.mean():.4g} in the records. Give it in the unit of the problem.",
            KnownValuesWarning,
        )


def _checked(answer: ArrayLike, shape: tuple[int, ...]) -> Floats:
    try:
        found = real_array(answer)
    except Exception as error:
        raise ValueError(f"KnownValues must return numbers of shape {shape}, but returned {shown(answer)}.") from error
    if found.shape != shape:
        raise ValueError(f"KnownValues must return shape {shape}, but returned {found.shape}.")
    return found


@dataclass(frozen=True, eq=False)
class BoundKnownValues:
    """Known action values, evaluated for every edge and every stop of a walk table; one column per amount."""

    edge: Floats  # (e, P)
    stop: Floats  # (s, P)

    def extended(self, other: BoundKnownValues, matrix: Floats) -> BoundKnownValues:
        """Return these values with linear combinations of others as further columns."""
        edge, stop = (
            np.column_stack([self.edge, other.edge @ matrix]),
            np.column_stack([self.stop, other.stop @ matrix]),
        )
        return BoundKnownValues(edge, stop)

    @property
    def learned(self) -> bool:
        """False: nothing was learned."""
        return False

    def errors(self, slopes: ValueSlopes) -> None:
        """None: nothing was learned."""
        return None

    def edges(self, edges: Ints) -> Floats:
        """Return the expected amounts after these edges, (m, P)."""
        return np.asarray(self.edge[edges])

    def stops(self, states: Ints) -> Floats | None:
        """Return the expected amounts of stopping in these states, (m, P)."""
        return np.asarray(self.stop[states])


class _ValueArrays(KnownValues):
    def __init__(self, arrays: Mapping[str | tuple[str, ...], ArrayLike], root: ArrayLike | None) -> None:
        self.arrays = check_arrays("arrays", arrays, "from acquired groups to arrays")
        self.root_array = None if root is None else check_arrays("root", {"root": root}, "")["root",]
        self.root = self.parts = self.root_parts = None

    def ask(self, asked: _Asked, columns: Columns) -> Floats:
        """Look up the arrays of every set."""
        problem, table = asked.data.problem, asked.table
        by_set: dict[bytes, Floats] = {}
        for names, values in self.arrays.items():
            acquired = problem.free.copy()
            acquired[problem.group_index(names, "arrays")] = True
            if acquired.tobytes() in by_set:
                raise ValueError(
                    f"'arrays' must have one array per set of groups, but {names} is a set that another key has too. Free "
                    "groups, and the order of groups, do not matter."
                )
            shape = (len(asked.data), problem.n_groups + 1, 2)
            if values.shape != shape:
                raise ValueError(f"'arrays' must have shape {shape} for {names}, but the shape is {values.shape}.")
            by_set[acquired.tobytes()] = values
        out = np.full((len(table.row), problem.n_groups + 1, 2), np.nan)
        for acquired, lines in zip(table.sets, lines_of(table.set_index, len(table.sets)), strict=True):
            found = by_set.get(acquired.tobytes())
            if found is not None:
                out[lines] = found[table.row[lines]]
            elif acquired.any() or not problem.free.any():
                lacking = [problem.group_names[g] for g in np.flatnonzero(acquired & ~problem.free)]
                raise ValueError(
                    f"'arrays' must cover every set that the policy reaches, but {tuple(lacking)} is missing. Add its array."
                )
        return out

    def ask_root(self, asked: _Asked, columns: Columns) -> Floats:
        """Look up the array of the root."""
        if self.root_array is None:
            return super().ask_root(asked, columns)
        if self.root_array.shape != (len(asked.data), 2):
            raise ValueError(
                f"'root' must have shape {(len(asked.data), 2)}, but the shape is {self.root_array.shape}."
            )
        return np.asarray(self.root_array[asked.rows])
