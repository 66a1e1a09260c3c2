"""Guidelines as text: rules that people can read, check and hand over, as a policy."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from ..arguments import check_file, check_texts
from ..arrays import Bools, Floats, any_of, every
from ..data import Problem
from .builtin import one_hot_actions
from .guideline_text import Branch, Comparison, Condition, GuidelineError, parse_guideline
from .policy import Policy
from .rows import RowReader, level_text
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

    Each line is a rule: an optional condition and the groups to acquire one after the other::

        # chest pain
        if age > 65: lactate, then troponin if lactate > 2
        else if sex = female and bp < 100: lactate
        else: stop
        cbc if temperature >= 38

    Lines are read from the top; the first group that a line asks for and that is not acquired yet is acquired. ``else``
    belongs to the ``if`` above it and applies where no line of that chain does. Where no line asks for anything, and at
    ``stop``, the agent stops. A condition on a value that is not known yet does not hold, and neither does its ``not``.
    Names with blanks and names like ``if`` stand in quotes. Lines without ``else`` stand on their own: several may apply.

    Parameters
    ----------
    text : str
        The rules.
    columns : sequence of str, optional
        ``data.columns``; needed where a text column has no declared categories in the problem.

    Raises
    ------
    GuidelineError
        With line and column: at once for a syntax error, in `bind` for a name that the problem does not have.

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
        """Find groups and columns by name."""
        return _BoundGuideline(self.branches, RowReader(problem, self.columns))

    def probabilities(self, values: Floats, acquired: Bools) -> Floats:
        """Not before ``bind``: names are looked up in the problem."""
        raise RuntimeError(
            "This guideline does not know the problem yet. afape.evaluate tells it; to ask it yourself, call "
            "policy.bind(problem).probabilities(values, acquired)."
        )

    def describe(self) -> str:
        """The rules as a tree."""
        lines = ["guideline"]
        for i, branch in enumerate(self.branches):
            end = i == len(self.branches) - 1
            word = "else" if branch.chained else ""
            title = " ".join([word, *([] if branch.condition is None else [f"if {branch.condition}"])]).strip()
            lines.append(f"{'└─' if end else '├─'} {title or 'always'}")
            for j, step in enumerate(branch.steps):
                corner = "└─" if j == len(branch.steps) - 1 else "├─"
                lines.append(f"{'   ' if end else '│  '}{corner} {step}")
        return "\n".join(lines)

    def state(self) -> AgentState:
        """The text and the columns."""
        return AgentState({"text": self.text, "columns": self.columns})

    @classmethod
    def from_state(cls, state: AgentState) -> Self:
        """The same guideline again."""
        return cls(**state.settings)

    def __str__(self) -> str:
        return self.describe()

    def __repr__(self) -> str:
        return f"Guideline({self.text!r})"


class _Truth(NamedTuple):
    """Where a condition is known to hold, and where it is known not to."""

    holds: Bools
    fails: Bools


class _BoundGuideline:
    def __init__(self, branches: list[Branch], reader: RowReader) -> None:
        self.branches, self.reader = branches, reader
        for branch in branches:
            self._check(branch.condition)
            for step in branch.steps:
                if step.group is not None and step.group.text not in reader.problem.groups:
                    raise step.group.unknown("group", reader.problem.group_names)
                self._check(step.condition)

    def _check(self, condition: Condition | None) -> None:
        if isinstance(condition, Comparison):
            self._check_comparison(condition)
        elif condition is not None:
            for part in condition.parts:
                self._check(part)

    def _check_comparison(self, comparison: Comparison) -> None:
        column, value = comparison.column, comparison.value
        if column.text not in self.reader.places:
            raise column.unknown("column", tuple(self.reader.places))
        levels = self.reader.levels.get(column.text)
        if levels is None and value.kind != "number":
            hint = (
                "" if self.reader.given else " If it holds text, pass columns=data.columns or declare its 'categories'."
            )
            raise value.error(f"column {column.text!r} holds numbers and cannot be compared with {value.text!r}.{hint}")
        if levels is not None:
            if comparison.sign not in ("=", "!="):
                raise column.error(f"column {column.text!r} holds categories, which '=' and '!=' compare.")
            texts = [level_text(level) for level in levels]
            if value.text not in texts:
                raise value.unknown(f"level of {column.text!r}", texts)

    def probabilities(self, values: Floats, acquired: Bools) -> Floats:
        values = np.asarray(values, dtype=float)
        self.reader.check_width(values)
        n, n_groups = acquired.shape
        action = np.full(n, -1, dtype=np.intp)
        names = self.reader.problem.group_names
        left = np.ones(n, dtype=bool)  # rows to which no line of the chain has applied
        for branch in self.branches:
            if not branch.chained:
                left = np.ones(n, dtype=bool)
            applies = left & self._holds(branch.condition, values)
            left &= ~applies
            for step in branch.steps:
                due = applies & (action < 0) & self._holds(step.condition, values)
                if step.group is None:
                    action[due] = n_groups
                else:
                    group = names.index(step.group.text)
                    action[due & ~acquired[:, group]] = group
        action[action < 0] = n_groups
        return one_hot_actions(action, n_groups)

    def _holds(self, condition: Condition | None, values: Floats) -> Bools:
        return np.ones(len(values), dtype=bool) if condition is None else self._truth(condition, values).holds

    def _truth(self, condition: Condition, values: Floats) -> _Truth:
        if isinstance(condition, Comparison):
            return self._compared(condition, values)
        parts = [self._truth(part, values) for part in condition.parts]
        if condition.word == "not":
            return _Truth(parts[0].fails, parts[0].holds)
        holds, fails = np.stack([p.holds for p in parts], axis=1), np.stack([p.fails for p in parts], axis=1)
        if condition.word == "and":
            return _Truth(every(holds), any_of(fails))
        return _Truth(any_of(holds), every(fails))

    def _compared(self, comparison: Comparison, values: Floats) -> _Truth:
        column = self.reader.read(comparison.column.text, values)
        compare = _COMPARE[comparison.sign]
        if comparison.column.text in self.reader.levels:
            known = np.array([level is not None for level in column], dtype=bool)
            found = np.array([compare(level_text(level), comparison.value.text) for level in column], dtype=bool)
        else:
            known = ~np.isnan(column)
            with np.errstate(invalid="ignore"):
                found = compare(column, float(comparison.value.text))
        return _Truth(known & found, known & ~found)
