"""One table of a TOML file: reads typed keys and refuses unknown ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .._arguments import did_you_mean

__all__ = ["DescriptionError", "Section"]

_NEEDED = object()


class DescriptionError(ValueError):
    """The description of an experiment has a mistake."""


@dataclass
class Section:
    """One table of a TOML file.

    Every method that reads a key notes it in ``asked``. At the end, `finish` refuses all other keys.
    """

    file: str
    name: str
    content: Mapping[str, Any]
    asked: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.file}: {self.name}"

    def anything(self, key: str, default: Any = _NEEDED) -> Any:
        """Return the value of a key, of any type."""
        self.asked.append(key)
        if key in self.content:
            return self.content[key]
        if default is _NEEDED:
            raise DescriptionError(f"{self} must have a key {key!r}, but has {list(self.content)}.")
        return default

    def text(self, key: str, default: Any = _NEEDED) -> str:
        """Return a text."""
        value = self.anything(key, default)
        if not isinstance(value, str):
            raise DescriptionError(f"{self}: {key!r} must be a text, but is {value!r}.")
        return value

    def flag(self, key: str, default: Any = _NEEDED) -> bool:
        """Return true or false."""
        value = self.anything(key, default)
        if not isinstance(value, bool):
            raise DescriptionError(f"{self}: {key!r} must be true or false, but is {value!r}.")
        return value

    def as_number(self, key: str, value: Any) -> float:
        """Return the value as a float; refuse what is not a number."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise DescriptionError(f"{self}: {key!r} must be a number, but is {value!r}.")
        return float(value)

    def number(self, key: str, default: Any = _NEEDED) -> float:
        """Return a number."""
        return self.as_number(key, self.anything(key, default))

    def whole(self, key: str, default: Any = _NEEDED) -> int:
        """Return a whole number of at least 1."""
        return self._as_whole(key, self.anything(key, default))

    def _as_whole(self, key: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise DescriptionError(f"{self}: {key!r} must be a whole number of at least 1, but is {value!r}.")
        return value

    def wholes(self, key: str, default: Any = _NEEDED) -> tuple[int, ...]:
        """Return one or several whole numbers of at least 1."""
        value = self.anything(key, default)
        values = value if isinstance(value, list | tuple) else [value]
        if not values:
            raise DescriptionError(f"{self}: {key!r} must list whole numbers, but is empty.")
        return tuple(self._as_whole(key, v) for v in values)

    def texts_of(self, key: str, name: str, value: Any) -> list[str]:
        """Return a list of texts, which is the entry ``name`` of a table."""
        if not isinstance(value, Sequence) or isinstance(value, str) or not all(isinstance(v, str) for v in value):
            raise DescriptionError(f"{self}: {key!r} must give lists of texts, but {name!r} is {value!r}.")
        return list(value)

    def texts(self, key: str, default: Any = _NEEDED) -> tuple[str, ...]:
        """Return a list of texts."""
        return tuple(self.texts_of(key, key, self.anything(key, default)))

    def mapping(self, key: str, optional: bool = False) -> Mapping[str, Any]:
        """Return a table without checking its keys."""
        value = self.anything(key, {} if optional else _NEEDED)
        if not isinstance(value, Mapping):
            raise DescriptionError(f"{self}: {key!r} must be a table, but is {value!r}.")
        return value

    def texts_by_name(self, key: str) -> dict[str, str]:
        """Return a table whose values are texts; it must not be empty."""
        found = self.mapping(key)
        for name, value in found.items():
            if not isinstance(value, str):
                raise DescriptionError(f"{self}: {key!r} must be a table of texts, but {name!r} is {value!r}.")
        if not found:
            raise DescriptionError(f"{self}: {key!r} must not be empty.")
        return dict(found)

    def section(self, key: str, optional: bool = False) -> Section:
        """Return a table whose keys are checked."""
        return Section(self.file, f"[{key}]", self.mapping(key, optional))

    def sections(self, key: str, optional: bool = False) -> list[Section]:
        """Return a list of tables whose keys are checked."""
        value = self.anything(key, [] if optional else _NEEDED)
        if not isinstance(value, list) or not all(isinstance(v, Mapping) for v in value) or not (value or optional):
            raise DescriptionError(f"{self} must have tables [[{key}]], but {key!r} is {value!r}.")
        return [Section(self.file, f"[[{key}]] number {k + 1}", part) for k, part in enumerate(value)]

    def require(self, key: str, value: str, allowed: Sequence[str]) -> None:
        """Refuse a value that is not allowed."""
        if value not in allowed:
            raise DescriptionError(f"{self}: {key!r} must be among {list(allowed)}, but is {value!r}.")

    def finish(self, also: Sequence[str] = ()) -> None:
        """Refuse keys that were not read and are not among ``also``."""
        known = [*dict.fromkeys([*self.asked, *also])]
        for key in self.content:
            if key not in known:
                raise DescriptionError(
                    f"{self} has no key {key!r}.{did_you_mean(key, known)} Its keys are {sorted(known)}."
                )
