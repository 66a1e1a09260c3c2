"""A TOML text with the lines of its keys, and the checks of types that every key needs."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .positions import Path as KeyPath
from .positions import positions_in
from .refusal import ProblemFileError, nearest

__all__ = ["Source"]


@dataclass(frozen=True, eq=False)
class Source:
    """A problem file as read.

    Attributes
    ----------
    name : str
        The file, as errors name it.
    content : str
        What it holds.
    data : dict
        The same, parsed.
    lines : dict
        Line of every key.
    """

    name: str
    content: str
    data: dict[str, Any]
    lines: dict[KeyPath, int]

    @staticmethod
    def of(path: str | Path) -> Source:
        """Read and parse a file."""
        file = Path(path)
        try:
            text = file.read_text(encoding="utf-8-sig").replace("\r\n", "\n")
        except FileNotFoundError:
            raise ProblemFileError(
                f"There is no problem file {str(file)!r}. `afape init DATA --out {file.name}` drafts one."
            ) from None
        except OSError as error:
            raise ProblemFileError(f"The problem file {str(file)!r} cannot be read: {error.strerror}.") from error
        except UnicodeDecodeError as error:
            raise ProblemFileError(f"The problem file {str(file)!r} is no UTF-8 text: {error.reason}.") from error
        try:
            data = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            found = re.search(r"line (\d+)", str(error))
            line = int(found.group(1)) if found else text.count("\n") + 1
            words = re.sub(r" \(at (line \d+, )?(column \d+|end of document)\)", "", str(error))
            raise _located(file.name, text, line, f"this is no TOML: {words[:1].lower()}{words[1:]}.") from error
        return Source(file.name, text, data, positions_in(text))

    def error(self, path: KeyPath, message: str) -> ProblemFileError:
        """An error at the line of a key, or of the nearest key above it."""
        while path and path not in self.lines:
            path = path[:-1]
        return _located(self.name, self.content, self.lines.get(path), message)

    def value(self, path: KeyPath) -> Any:
        """What stands under a path, None where nothing does."""
        found: Any = self.data
        for part in path:
            found = found.get(part) if isinstance(found, dict) else None
        return found

    def known(self, path: KeyPath, keys: Sequence[str]) -> None:
        """Refuse keys of a table that nobody reads."""
        for key in self.value(path) if path else self.data:
            if key not in keys:
                raise self.error((*path, key), f"there is no key {key!r} here. {nearest(key, keys, most=12)}")

    def table(self, path: KeyPath) -> dict[str, Any]:
        """A table."""
        found = self.value(path)
        if not isinstance(found, dict):
            raise self.error(
                path, f"{path[-1]!r} must be a table, as [{'.'.join(map(str, path))}] opens one, but is {found!r}."
            )
        return found

    def texts(self, path: KeyPath) -> list[str]:
        """A list of texts."""
        found = self.value(path)
        if not isinstance(found, list):
            raise self.error(path, f'{path[-1]!r} must be a list of texts, such as ["age", "sex"], but is {found!r}.')
        for i, text in enumerate(found):
            if not isinstance(text, str):
                raise self.error(
                    (*path, i), f"{path[-1]!r} must be a list of texts, but {text!r} is none. Put it in quotes."
                )
        return found

    def text(self, key: str, default: str | None = None) -> str:
        """A text at the top of the file."""
        return self.nested_text((key,), default)

    def nested_text(self, path: KeyPath, default: str | None = None) -> str:
        """A text anywhere."""
        found = self.value(path)
        found = default if found is None else found
        if not isinstance(found, str) or not found.strip():
            raise self.error(path, f"{path[-1]!r} must be a text in quotes, but is {found!r}.")
        return found

    def flag(self, path: KeyPath) -> bool:
        """True or false; false where nothing is said."""
        found = self.value(path)
        if found not in (None, True, False) or (isinstance(found, int) and not isinstance(found, bool)):
            raise self.error(path, f"{path[-1]!r} must be true or false, but is {found!r}.")
        return bool(found)


def _located(name: str, text: str, line: int | None, message: str) -> ProblemFileError:
    if line is None:
        return ProblemFileError(f"{name}: {message}")
    shown = text.split("\n")[line - 1].strip() if line <= text.count("\n") + 1 else ""
    return ProblemFileError(f"{name}, line {line}: {message}\n    {line} | {shown[:120]}", line)
