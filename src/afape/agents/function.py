"""Policies from a function of one row, or of whole columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._arguments import check_callable, check_takes, check_texts, did_you_mean
from .._arrays import Bools, Floats, lines_of, unique_sets
from ..data.problem import Problem
from .policy import Policy, not_bound, one_hot_actions
from .row_reader import RowReader

__all__ = ["ColumnPolicy", "FunctionPolicy", "from_columns", "from_function"]

Rule = Callable[[dict[str, Any]], str | None]


def from_function(function: Rule, columns: Sequence[str] | None = None) -> FunctionPolicy:
    """Make a policy from a function of one row.

    This is simple but slower than `from_columns`. ``function`` gets a dict of the columns that are known so far. It returns
    the name of the group to acquire, or None to stop. It is called once per distinct state.

    Parameters
    ----------
    function : callable
        ``function(row)``; ``row`` maps column names to numbers or to levels of categorical columns. A column that is not
        acquired is absent, so ``"lactate" in row`` is True if lactate is known. If the function names a group that is
        already acquired, the run stops.
    columns : sequence of str, optional
        ``data.columns``; needed if a text column has no declared categories in the problem.

    Returns
    -------
    FunctionPolicy

    Examples
    --------
    >>> import numpy as np
    >>> from afape import Problem
    >>> problem = Problem({"age": ["age"], "lactate": ["lactate"]}, {"lactate": 12.0}, "died", 500.0)
    >>> rule = from_function(lambda row: "lactate" if row["age"] > 65 else None)
    >>> rule.bind(problem).probabilities(np.array([[70.0, np.nan], [50.0, np.nan]]), np.array([[True, False]] * 2))
    array([[0., 1., 0.],
           [0., 0., 1.]])
    """
    return FunctionPolicy(function, columns)


class _Bound(ABC):
    """A function together with the names of columns and groups."""

    def __init__(self, function: Callable[..., Any], reader: RowReader, name: str) -> None:
        self.function, self.reader, self.name = function, reader, name

    def columns(self, values: Floats) -> dict[str, NDArray[Any]]:
        """Return the columns by name, each of shape (n,)."""
        return {name: self.reader.read(name, values) for name in self.reader.places}

    @abstractmethod
    def probabilities(self, values: Floats, acquired: Bools) -> Floats:
        """Return the answers of the function as probabilities (n, G + 1)."""


class _Unbound:
    """A function before `bind`, which supplies the names of columns and groups."""

    maker: ClassVar[str]
    bound: ClassVar[type[_Bound]]

    def __init__(self, function: Callable[..., Any], columns: Sequence[str] | None = None) -> None:
        check_callable("function", function, "callable")
        check_takes("function", function, "columns")
        self.function = function
        self.columns = None if columns is None else check_texts("columns", columns, "column names, data.columns")

    def bind(self, problem: Problem) -> Policy:
        """Look up the columns of each group."""
        return self.bound(self.function, RowReader(problem, self.columns), repr(self))

    def probabilities(self, values: Floats, acquired: Bools) -> Floats:
        """Raise an error: the policy needs ``bind`` first, to know the names of the columns."""
        raise not_bound(self)

    def __repr__(self) -> str:
        return f"{self.maker}({getattr(self.function, '__name__', type(self.function).__name__)})"


class _BoundFunction(_Bound):
    def probabilities(self, values: Floats, acquired: Bools) -> Floats:
        values = np.asarray(values, dtype=float)
        self.reader.check_width(values)
        n_groups = acquired.shape[1]
        if not len(values):
            return np.zeros((0, n_groups + 1))
        columns = self.columns(values)
        known = np.column_stack(
            [_is_known(column) & acquired[:, self.reader.group[c]] for c, column in columns.items()]
        )
        action = np.empty(len(values), dtype=np.intp)
        # States with the same known columns differ in the values of these alone, so their dicts are made together.
        patterns, index = unique_sets(np.column_stack([known, acquired]))
        for k, rows in enumerate(lines_of(index, len(patterns))):
            names = [c for c, is_known in zip(columns, patterns[k], strict=False) if is_known]
            action[rows] = self._ask(
                [columns[c][rows].tolist() for c in names], names, patterns[k, len(columns) :], len(rows)
            )
        return one_hot_actions(action, n_groups)

    def _ask(self, columns: list[list[Any]], names: list[str], acquired: Bools, n: int) -> list[int]:
        """Return the actions of n states with these known columns, by one call per distinct state."""
        place = {name: g for g, name in enumerate(self.reader.problem.group_names)}
        place = {name: len(place) if acquired[g] else g for name, g in place.items()}
        found: dict[tuple[Any, ...], int] = {}
        actions = []
        for state in zip(*columns, strict=True) if columns else [()] * n:
            action = found.get(state)
            if action is None:
                action = found[state] = self._action(dict(zip(names, state, strict=True)), place)
            actions.append(action)
        return actions

    def _action(self, known: dict[str, Any], place: dict[str, int]) -> int:
        try:
            answer = self.function(known)
        except KeyError as error:
            raise ValueError(
                f"The function of {self.name} asked for {error.args[0]!r}, but the columns known here are {list(known)}. A "
                'column that is not acquired is absent: test with "name" in row.'
            ) from error
        if answer is None:
            return len(place)
        if not isinstance(answer, str) or answer not in place:
            raise ValueError(
                f"The function of {self.name} must return a group or None, but returned {answer!r} for {known}."
                f"{did_you_mean(answer, place)} The groups are {list(place)}."
            )
        return place[answer]


def _is_known(column: NDArray[Any]) -> Bools:
    """Return True where a column has a value; a free group may have gaps, so "acquired" alone does not make it known."""
    if column.dtype.kind == "O":
        return np.array([value is not None and value == value for value in column.tolist()], dtype=bool)
    return np.asarray(column == column)


class FunctionPolicy(_Unbound):
    """A policy from a function of one row; see `from_function`."""

    maker = "from_function"
    bound = _BoundFunction


def from_columns(
    function: Callable[[dict[str, NDArray[Any]]], ArrayLike], columns: Sequence[str] | None = None
) -> ColumnPolicy:
    """Make a policy from a function of whole columns.

    This is faster than `from_function`. ``function`` gets a mapping from column names to arrays, one value per row. It
    returns an array with the name of the group that each row acquires next, or None (or "") to stop.

    Parameters
    ----------
    function : callable
        ``function(columns)``. In a column that is not acquired, numbers are NaN and levels of categories are None. If the
        function names a group that is already acquired, the run stops.
    columns : sequence of str, optional
        ``data.columns``; needed if a text column has no declared categories in the problem.

    Returns
    -------
    ColumnPolicy

    Examples
    --------
    >>> import numpy as np
    >>> from afape import Problem
    >>> problem = Problem({"age": ["age"], "lactate": ["lactate"]}, {"lactate": 12.0}, "died", 500.0)
    >>> rule = from_columns(lambda row: np.where(row["age"] > 65, "lactate", None))
    >>> rule.bind(problem).probabilities(np.array([[70.0, np.nan], [50.0, np.nan]]), np.array([[True, False]] * 2))
    array([[0., 1., 0.],
           [0., 0., 1.]])
    """
    return ColumnPolicy(function, columns)


class _BoundColumns(_Bound):
    def probabilities(self, values: Floats, acquired: Bools) -> Floats:
        values = np.asarray(values, dtype=float)
        self.reader.check_width(values)
        n, n_groups = acquired.shape
        if not n:
            return np.zeros((0, n_groups + 1))
        answer = np.asarray(self.function(self.columns(values)), dtype=object)
        if answer.shape != (n,):
            raise ValueError(
                f"The function of {self.name} must return one name per row, shape ({n},), but returned shape {answer.shape}."
            )
        names = self.reader.problem.group_names
        place = {name: g for g, name in enumerate(names)} | {None: n_groups, "": n_groups}
        action = np.empty(n, dtype=np.intp)
        for named in set(answer.tolist()):
            if named not in place:
                raise ValueError(
                    f"The function of {self.name} must return names of groups, or None to stop, but returned {named!r}. The "
                    f"groups are {list(names)}."
                )
            action[[a == named for a in answer]] = place[named]
        rows = np.arange(n)
        again = np.column_stack([acquired, np.zeros(n, dtype=bool)])[rows, action]
        return one_hot_actions(np.where(again, n_groups, action), n_groups)


class ColumnPolicy(_Unbound):
    """A policy from a function of whole columns; see `from_columns`."""

    maker = "from_columns"
    bound = _BoundColumns
