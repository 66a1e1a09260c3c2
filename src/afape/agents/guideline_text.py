"""Parser of guidelines in plain text, with the position of every error."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import NamedTuple

__all__ = [
    "Branch",
    "ColumnTest",
    "Condition",
    "Connective",
    "GuidelineError",
    "Instruction",
    "Token",
    "parse_guideline",
]

_TOKEN = re.compile(
    r"""(?P<space>\s+|\#.*)
      | (?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)
      | (?P<quoted>"[^"]*"|'[^']*')
      | (?P<word>[^\W\d][\w.\-]*)
      | (?P<sign><=|>=|==|!=|[<>=≤≥≠])
      | (?P<mark>[:,()])""",
    re.VERBOSE,
)
_SIGNS = {"==": "=", "≤": "<=", "≥": ">=", "≠": "!="}
_KEYWORDS = {"if", "else", "elif", "then", "and", "or", "not", "stop", "otherwise"}


class GuidelineError(ValueError):
    """A guideline that cannot be read.

    Attributes
    ----------
    line, column : int
        Position of the error, counted from 1.
    """

    def __init__(self, problem: str, line: int, column: int, source: str) -> None:
        super().__init__(f"Guideline, line {line}, column {column}: {problem}\n    {source}\n    {' ' * (column - 1)}^")
        self.line, self.column = line, column


class Token(NamedTuple):
    """One word, number or sign, with its position."""

    kind: str
    text: str
    line: int
    column: int
    source: str

    def error(self, problem: str) -> GuidelineError:
        """Return an error at this position."""
        return GuidelineError(problem, self.line, self.column, self.source)

    def unknown(self, kind: str, known: Sequence[str]) -> GuidelineError:
        """Return an error that suggests the most similar known name."""
        near = get_close_matches(self.text, known, 1, 0.5)
        hint = f"Did you mean {near[0]!r}? " if near else ""
        return self.error(f"{self.text!r} is not a {kind}. {hint}Known: {list(known)}.")

    def is_word(self, *words: str) -> bool:
        """Return True if this is one of these keywords."""
        return self.kind == "word" and self.text.lower() in words


@dataclass(frozen=True)
class ColumnTest:
    """``column sign value``."""

    column: Token
    sign: str
    value: Token

    def __str__(self) -> str:
        return f"{self.column.text} {self.sign} {self.value.text}"


@dataclass(frozen=True)
class Connective:
    """``and``, ``or`` or ``not`` of conditions."""

    word: str
    conditions: tuple[Condition, ...]

    def __str__(self) -> str:
        inner = [f"({each})" if isinstance(each, Connective) else str(each) for each in self.conditions]
        return f"not {inner[0]}" if self.word == "not" else f" {self.word} ".join(inner)


Condition = ColumnTest | Connective


@dataclass(frozen=True)
class Instruction:
    """Acquire a group if the condition is true. ``group`` None: stop."""

    group: Token | None
    condition: Condition | None

    def __str__(self) -> str:
        name = "stop" if self.group is None else self.group.text
        return name if self.condition is None else f"{name}, if {self.condition}"


@dataclass(frozen=True)
class Branch:
    """One line: its condition and its instructions. A ``chained`` line applies if no earlier line of the chain applies."""

    condition: Condition | None
    instructions: tuple[Instruction, ...]
    chained: bool


def parse_guideline(text: str) -> list[Branch]:
    """Parse the lines of a guideline.

    ::

        line        = ["if" condition ":" | "else" "if" condition ":" | "else" ":"] plan
        plan        = instruction {("," | "then" | ", then") instruction}
        instruction = (group | "stop") ["if" condition]
        condition   = column sign value, joined by "and", "or", "not" and parentheses
    """
    branches: list[Branch] = []
    for number, line in enumerate(text.splitlines(), start=1):
        tokens = _tokens(line, number)
        if len(tokens) > 1:  # the last token marks the end of the line
            branches.append(_Line(tokens).branch(after_if=_chain_is_open(branches)))
    if not branches:
        raise GuidelineError("there is no rule. Write one such as 'if age > 65: lactate'.", 1, 1, "")
    return branches


def _chain_is_open(branches: list[Branch]) -> bool:
    return bool(branches) and branches[-1].condition is not None


def _tokens(line: str, number: int) -> list[Token]:
    tokens, place = [], 0
    while place < len(line):
        found = _TOKEN.match(line, place)
        if found is None:
            raise GuidelineError(f"{line[place]!r} cannot be read here.", number, place + 1, line)
        kind, text = str(found.lastgroup), found.group()
        if kind == "quoted":
            text = text[1:-1]
        if kind != "space":
            tokens.append(Token(kind, _SIGNS.get(text, text) if kind == "sign" else text, number, place + 1, line))
        place = found.end()
    return [*tokens, Token("end", "the end of the line", number, len(line.rstrip()) + 1, line)]


class _Line:
    """Parses one line from left to right."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens, self.place = tokens, 0

    @property
    def next(self) -> Token:
        return self.tokens[self.place]

    def take(self) -> Token:
        token = self.next
        self.place += token.kind != "end"
        return token

    def skip(self, *words: str) -> bool:
        found = self.next.is_word(*words) or (self.next.kind == "mark" and self.next.text in words)
        self.place += found
        return found

    def expect(self, mark: str) -> None:
        if not self.skip(mark):
            raise self.next.error(f"expected {mark!r}, but found {self.next.text!r}.")

    def branch(self, after_if: bool) -> Branch:
        start = self.next
        condition, chained = None, False
        if self.skip("else", "elif", "otherwise"):
            chained = True
            if not after_if:
                raise start.error(f"{start.text!r} needs a line with 'if' above it.")
        if self.skip("if") or start.is_word("elif"):
            condition = self.disjunction()
        if chained or condition is not None:
            self.expect(":")
        instructions = [self.instruction()]
        while self.next.kind != "end":
            if not (self.skip(",") | self.skip("then")):
                raise self.next.error(f"expected ', then' and another group, but found {self.next.text!r}.")
            instructions.append(self.instruction())
        return Branch(condition, tuple(instructions), chained)

    def instruction(self) -> Instruction:
        token = self.take()
        stops = token.is_word("stop")
        if not stops and (token.kind not in ("word", "quoted") or token.is_word(*_KEYWORDS)):
            raise token.error(f"expected the name of a group or 'stop', but found {token.text!r}.")
        return Instruction(None if stops else token, self.disjunction() if self.skip("if") else None)

    def disjunction(self) -> Condition:
        return self._joined("or", lambda: self._joined("and", self.negation))

    def _joined(self, word: str, parse: Callable[[], Condition]) -> Condition:
        conditions = [parse()]
        while self.skip(word):
            conditions.append(parse())
        return conditions[0] if len(conditions) == 1 else Connective(word, tuple(conditions))

    def negation(self) -> Condition:
        if self.skip("not"):
            return Connective("not", (self.negation(),))
        if self.skip("("):
            inside = self.disjunction()
            self.expect(")")
            return inside
        return self.column_test()

    def column_test(self) -> ColumnTest:
        column = self.take()
        if column.kind not in ("word", "quoted") or column.is_word(*_KEYWORDS):
            raise column.error(f"expected the name of a column, but found {column.text!r}.")
        sign = self.take()
        if sign.kind != "sign":
            raise sign.error(f"expected one of < <= = != >= >, but found {sign.text!r}.")
        value = self.take()
        if value.kind not in ("number", "word", "quoted") or value.is_word(*_KEYWORDS):
            raise value.error(f"expected a number or a level, but found {value.text!r}.")
        return ColumnTest(column, sign.text, value)
