"""Line numbers of the keys of a TOML text, which the standard library does not give."""

from __future__ import annotations

import re
import tomllib
from typing import Any

__all__ = ["KeyPath", "positions_in"]

KeyPath = tuple[str | int, ...]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BLANK = re.compile(r"[ \t]*")
_STRINGS = (
    re.compile(r'"""(?:\\.|[^\\])*?"{3,5}', re.DOTALL),
    re.compile(r"'''.*?'{3,5}", re.DOTALL),
    re.compile(r'"(?:\\.|[^"\\\n])*"'),
    re.compile(r"'[^'\n]*'"),
)
_SCALAR = re.compile(r"[^,\]\}\n#]+")


def positions_in(text: str) -> dict[KeyPath, int]:
    """Return the line of every key and of every array element, by its path, in a text that ``tomllib`` accepts."""
    return _Scanner(text).scan()


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.lines: dict[KeyPath, int] = {}
        self.tables: dict[KeyPath, int] = {}  # index of the last table in each array of tables

    def scan(self) -> dict[KeyPath, int]:
        """Scan all headers and keys."""
        table: KeyPath = ()
        self._skip(_SPACE)
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                table = self._header()
            else:
                self._pair(table)
            self._skip(_SPACE)
        return self.lines

    def _header(self) -> KeyPath:
        several = self.text.startswith("[[", self.at)
        start = self.at
        self.at += 2 if several else 1
        path: KeyPath = self._key()
        self.at = self.text.index("]", self.at) + (2 if several else 1)
        if several:
            self.tables[path] = self.tables.get(path, -1) + 1
            path = (*path, self.tables[path])
        self._note(path, start)
        return path

    def _pair(self, table: KeyPath) -> None:
        start = self.at
        path = (*table, *self._key())
        self._note(path, start)
        self.at = self.text.index("=", self.at) + 1
        self._skip(_BLANK)
        self._value(path)

    def _key(self) -> tuple[str, ...]:
        keys: list[str] = []
        while True:
            self._skip(_BLANK)
            if self.text[self.at] in "\"'":
                keys.append(str(_parsed(self._string())))
            else:
                found = _BARE.match(self.text, self.at)
                keys.append(found.group() if found else "")
                self.at += len(keys[-1])
            self._skip(_BLANK)
            if not self.text.startswith(".", self.at):
                return tuple(keys)
            self.at += 1

    def _value(self, path: KeyPath) -> None:
        sign = self.text[self.at]
        if sign in "\"'":
            self._string()
        elif sign == "[":
            self._inside("]", path, keyed=False)
        elif sign == "{":
            self._inside("}", path, keyed=True)
        else:
            found = _SCALAR.match(self.text, self.at)
            self.at = found.end() if found else self.at + 1

    def _inside(self, end: str, path: KeyPath, keyed: bool) -> None:
        """Scan the elements of an array, or the pairs of an inline table."""
        self.at += 1
        count = 0
        while True:
            self._skip(_SPACE)
            if self.text[self.at] == end:
                self.at += 1
                return
            if self.text[self.at] == ",":
                self.at += 1
            elif keyed:
                self._pair(path)
            else:
                self._note((*path, count), self.at)
                self._value((*path, count))
                count += 1

    def _string(self) -> str:
        for pattern in _STRINGS:
            if found := pattern.match(self.text, self.at):
                self.at = found.end()
                return found.group()
        raise AssertionError("tomllib accepted a text with an unclosed string")

    def _skip(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self.text, self.at)
        self.at = found.end() if found else self.at

    def _note(self, path: KeyPath, at: int) -> None:
        line = self.text.count("\n", 0, at) + 1
        for length in range(1, len(path) + 1):  # [groups.cbc] also opens groups
            self.lines.setdefault(path[:length], line)
        self.lines[path] = line


def _parsed(text: str) -> Any:
    return tomllib.loads(f"k = {text}")["k"]
