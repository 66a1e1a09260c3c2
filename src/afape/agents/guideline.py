"""Policies from guidelines: rules in plain text."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from .._arguments import check_file, check_texts
from .._arrays import Bools, Floats, any_of, every
from ..data.problem import Problem
from .guideline_text import Branch, ColumnTest, Condition, GuidelineError, parse_guideline
from .policy import Policy, not_bound, one_hot_actions
from .row_reader import RowReader, level_text
from .state import AgentState

__all__ = ["Guideline", "GuidelineError"]

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}


class Guideline:
    """A policy from rules in plain text.

    Each line is a rule: an optional condition, then the groups to acquire one after the other::

        # chest pain
        if age > 65: lactate, then troponin if lactate > 2
        else if sex = female and bp < 100: lactate
        else: stop
        cbc if temperature >= 38

    Lines are read from the top. The agent acquires the first requested group that is not acquired yet. It stops at ``stop``,
    and when no line requests a group. ``else`` belongs to the ``if`` above it and applies if no earlier line of that chain
    applies. Lines without ``else`` are independent: several may apply. A condition on an unknown value is not true, and
    neither is its ``not``. Put names with blanks, and names like ``if``, in quotes.

    Parameters
    ----------
    text : str
        The rules.
    columns : sequence of str, optional
        ``data.columns``; needed if a text column has no declared categories in the problem.

    Raises
    ------
    GuidelineError
        With line and column. Syntax errors are raised at once, unknown names in `bind`.

    Examples
    --------
    >>> print(Guideline("if age > 65: lactate, then troponin if lactate > 2"))
    guideline
    └─ if age > 65
       ├─ lactate
       └─ troponin, if lactate > 2
    """

    def __init__(self, text: str, columns: Sequence[str] | None = None) -> None:
        if not isinstance(text, str):
            raise TypeError(
                f"'text' must be the rules as text, not {type(text).__name__}. Use Guideline.from_file(path)."
            )
        self.text = text
        self.columns = None if columns is None else check_texts("columns", columns, "column names, data.columns")
        self.branches = parse_guideline(text)

    @classmethod
    def from_file(cls, path: str | Path, columns: Sequence[str] | None = None) -> Self:
        """Read the rules from a text file (UTF-8)."""
        file = check_file("path", path, "a text file with the rules")
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"'path' must be a text file in UTF-8, but {str(file)!r} is not: {error}.") from error
        return cls(text, columns)

    def bind(self, problem: Problem) -> Policy:
        """Look up groups and columns by name."""
        return _BoundGuideline(self.branches, RowReader(problem, self.columns))

    def probabilities(self, values: Floats, acquired: Bools) -> Floats:
        """Raise an error: the policy needs ``bind`` first, to look up the names."""
        raise not_bound(self)

    def describe(self) -> str:
        """Return the rules as a tree in text."""
        lines = ["guideline"]
        for i, branch in enumerate(self.branches):
            end = i == len(self.branches) - 1
            word = "else" if branch.chained else ""
            title = " ".join([word, *([] if branch.condition is None else [f"if {branch.condition}"])]).strip()
            lines.append(f"{'└─' if end else '├─'} {title or 'always'}")
            for j, instruction in enumerate(branch.instructions):
                corner = "└─" if j == len(branch.instructions) - 1 else "├─"
                lines.append(f"{'   ' if end else '│  '}{corner} {instruction}")
        return "\n".join(lines)

    def state(self) -> AgentState:
        """Return the text and the columns."""
        return AgentState({"text": self.text, "columns": self.columns})

    @classmethod
    def from_state(cls, state: AgentState) -> Self:
        """Restore the guideline."""
        return cls(**state.settings)

    def __str__(self) -> str:
        return self.describe()

    def __repr__(self) -> str:
        return f"Guideline({self.text!r})"


class _Truth(NamedTuple):
    """Rows in which a condition is known to be true, and rows in which it is known to be false."""

    holds: Bools  # (n,)
    fails: Bools  # (n,)


class _BoundGuideline:
    def __init__(self, branches: list[Branch], reader: RowReader) -> None:
        self.branches, self.reader = branches, reader
        for branch in branches:
            self._check(branch.condition)
            for instruction in branch.instructions:
                if instruction.group is not None and instruction.group.text not in reader.problem.groups:
                    raise instruction.group.unknown("group", reader.problem.group_names)
                self._check(instruction.condition)

    def _check(self, condition: Condition | None) -> None:
        if isinstance(condition, ColumnTest):
            self._check_test(condition)
        elif condition is not None:
            for inner in condition.conditions:
                self._check(inner)

    def _check_test(self, test: ColumnTest) -> None:
        column, value = test.column, test.value
        if column.text not in self.reader.places:
            raise column.unknown("column", tuple(self.reader.places))
        levels = self.reader.levels.get(column.text)
        if levels is None and value.kind != "number":
            hint = (
                "" if self.reader.given else " If it holds text, pass columns=data.columns or declare its 'categories'."
            )
            raise value.error(f"column {column.text!r} holds numbers and cannot be compared with {value.text!r}.{hint}")
        if levels is not None:
            if test.sign not in ("=", "!="):
                raise column.error(f"column {column.text!r} holds categories; compare them with '=' or '!='.")
            texts = [level_text(level) for level in levels]
            if value.text not in texts:
                raise value.unknown(f"level of {column.text!r}", texts)

    def probabilities(self, values: Floats, acquired: Bools) -> Floats:
        values = np.asarray(values, dtype=float)
        self.reader.check_width(values)
        n, n_groups = acquired.shape
        action = np.full(n, -1, dtype=np.intp)
        names = self.reader.problem.group_names
        left = np.ones(n, dtype=bool)  # rows to which no earlier line of the chain applies
        for branch in self.branches:
            if not branch.chained:
                left = np.ones(n, dtype=bool)
            applies = left & self._holds(branch.condition, values)
            left &= ~applies
            for instruction in branch.instructions:
                due = applies & (action < 0) & self._holds(instruction.condition, values)
                if instruction.group is None:
                    action[due] = n_groups
                else:
                    group = names.index(instruction.group.text)
                    action[due & ~acquired[:, group]] = group
        action[action < 0] = n_groups
        return one_hot_actions(action, n_groups)

    def _holds(self, condition: Condition | None, values: Floats) -> Bools:
        return np.ones(len(values), dtype=bool) if condition is None else self._truth(condition, values).holds

    def _truth(self, condition: Condition, values: Floats) -> _Truth:
        if isinstance(condition, ColumnTest):
            return self._tested(condition, values)
        inner = [self._truth(each, values) for each in condition.conditions]
        if condition.word == "not":
            return _Truth(inner[0].fails, inner[0].holds)
        holds, fails = np.stack([t.holds for t in inner], axis=1), np.stack([t.fails for t in inner], axis=1)
        if condition.word == "and":
            return _Truth(every(holds), any_of(fails))
        return _Truth(any_of(holds), every(fails))

    def _tested(self, test: ColumnTest, values: Floats) -> _Truth:
        column = self.reader.read(test.column.text, values)
        compare = _COMPARE[test.sign]
        if test.column.text in self.reader.levels:
            known = np.array([level is not None for level in column], dtype=bool)
            found = np.array([compare(level_text(level), test.value.text) for level in column], dtype=bool)
        else:
            known = ~np.isnan(column)
            with np.errstate(invalid="ignore"):
                found = compare(column, float(test.value.text))
        return _Truth(known & found, known & ~found)
