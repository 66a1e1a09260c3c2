"""A parsed TOML file that reports errors with line numbers and checks the types of its values."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._arguments import check_path
from .errors import ProblemFileError, nearest
from .toml_positions import KeyPath, positions_in

__all__ = ["TomlSource"]


@dataclass(frozen=True, eq=False)
class TomlSource:
    """A problem file as TOML.

    Attributes
    ----------
    name : str
        Name of the file, for errors.
    content : str
        Its text.
    data : dict
        The parsed text.
    lines : dict
        Line of every key.
    """

    name: str
    content: str
    data: dict[str, Any]
    lines: dict[KeyPath, int]

    @staticmethod
    def of(path: str | Path) -> TomlSource:
        """Read and parse a file."""
        file = check_path("path", path)
        try:
            text = file.read_text(encoding="utf-8-sig").replace("\r\n", "\n")
        except FileNotFoundError:
            raise ProblemFileError(
                f"There is no problem file {str(file)!r}. `afape init DATA --out {file.name}` drafts one."
            ) from None
        except OSError as error:
            raise ProblemFileError(f"The problem file {str(file)!r} cannot be read: {error.strerror}.") from error
        except UnicodeDecodeError as error:
            raise ProblemFileError(f"The problem file {str(file)!r} is not UTF-8 text: {error.reason}.") from error
        try:
            data = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            found = re.search(r"line (\d+)", str(error))
            line = int(found.group(1)) if found else text.count("\n") + 1
            words = re.sub(r" \(at (line \d+, )?(column \d+|end of document)\)", "", str(error))
            way = "Often a quotation mark, a comma or a bracket is missing."
            if words == "Cannot overwrite a value":
                way = "This key stands twice: remove one of the lines."
            said = f"this is not TOML: {words[:1].lower()}{words[1:]}. {way}"
            raise _located(file.name, text, line, said) from error
        return TomlSource(file.name, text, data, positions_in(text))

    def error(self, path: KeyPath, message: str) -> ProblemFileError:
        """Return an error at the line of this key, or of the key that contains it."""
        while path and path not in self.lines:
            path = path[:-1]
        return _located(self.name, self.content, self.lines.get(path), message)

    def value(self, path: KeyPath) -> Any:
        """Return the value at this path, None if there is none."""
        found: Any = self.data
        for key in path:
            found = found.get(key) if isinstance(found, dict) else None
        return found

    def known(self, path: KeyPath, keys: Sequence[str]) -> None:
        """Raise an error if the table at this path has other keys."""
        for key in self.value(path) if path else self.data:
            if key not in keys:
                raise self.error((*path, key), f"there is no key {key!r} here. {nearest(key, keys, most=12)}")

    def table(self, path: KeyPath) -> dict[str, Any]:
        """Return the table at this path."""
        found = self.value(path)
        if not isinstance(found, dict):
            raise self.error(
                path, f"{path[-1]!r} must be a table that starts with [{'.'.join(map(str, path))}], but is {found!r}."
            )
        return found

    def texts(self, path: KeyPath) -> list[str]:
        """Return the list of texts at this path."""
        found = self.value(path)
        if not isinstance(found, list):
            raise self.error(path, f'{path[-1]!r} must be a list of texts, such as ["age", "sex"], but is {found!r}.')
        for i, text in enumerate(found):
            if not isinstance(text, str):
                raise self.error(
                    (*path, i), f"{path[-1]!r} must be a list of texts, but {text!r} is not text. Put it in quotes."
                )
        return found

    def text(self, path: KeyPath, default: str | None = None) -> str:
        """Return the text at this path."""
        found = self.value(path)
        found = default if found is None else found
        if not isinstance(found, str) or not found.strip():
            raise self.error(path, f"{path[-1]!r} must be a text in quotes, but is {found!r}.")
        return found

    def flag(self, path: KeyPath) -> bool:
        """Return the boolean at this path, False if there is none."""
        found = self.value(path)
        if found not in (None, True, False) or (isinstance(found, int) and not isinstance(found, bool)):
            raise self.error(path, f"{path[-1]!r} must be true or false, but is {found!r}.")
        return bool(found)


def _located(name: str, text: str, line: int | None, message: str) -> ProblemFileError:
    if line is None:
        return ProblemFileError(f"{name}: {message}")
    shown = text.split("\n")[line - 1].strip() if line <= text.count("\n") + 1 else ""
    return ProblemFileError(f"{name}, line {line}: {message}\n    {line} | {shown[:120]}", line)
