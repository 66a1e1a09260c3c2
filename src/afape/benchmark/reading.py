"""Sections of a description: typed keys, and an error for every key that nobody asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..arguments import did_you_mean

__all__ = ["DescriptionError", "Section"]

_NEEDED = object()


class DescriptionError(ValueError):
    """An experiment is not described as it should be."""


@dataclass
class Section:
    """One table of a TOML file; remembers which keys were asked for."""

    file: str
    name: str
    content: Mapping[str, Any]
    asked: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.file}: {self.name}"

    def anything(self, key: str, default: Any = _NEEDED) -> Any:
        """Whatever the key holds."""
        self.asked.append(key)
        if key in self.content:
            return self.content[key]
        if default is _NEEDED:
            raise DescriptionError(f"{self} must have a key {key!r}, but has {list(self.content)}.")
        return default

    def text(self, key: str, default: Any = _NEEDED) -> str:
        """A text."""
        value = self.anything(key, default)
        if not isinstance(value, str):
            raise DescriptionError(f"{self}: {key!r} must be a text, but is {value!r}.")
        return value

    def flag(self, key: str, default: Any = _NEEDED) -> bool:
        """True or false."""
        value = self.anything(key, default)
        if not isinstance(value, bool):
            raise DescriptionError(f"{self}: {key!r} must be true or false, but is {value!r}.")
        return value

    def as_number(self, key: str, value: Any) -> float:
        """The value, if it is a number."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise DescriptionError(f"{self}: {key!r} must be a number, but is {value!r}.")
        return float(value)

    def number(self, key: str, default: Any = _NEEDED) -> float:
        """A number."""
        return self.as_number(key, self.anything(key, default))

    def whole(self, key: str, default: Any = _NEEDED) -> int:
        """A whole number of at least 1."""
        return self._as_whole(key, self.anything(key, default))

    def _as_whole(self, key: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise DescriptionError(f"{self}: {key!r} must be a whole number of at least 1, but is {value!r}.")
        return value

    def wholes(self, key: str, default: Any = _NEEDED) -> tuple[int, ...]:
        """One or several whole numbers."""
        value = self.anything(key, default)
        values = value if isinstance(value, list | tuple) else [value]
        if not values:
            raise DescriptionError(f"{self}: {key!r} must list whole numbers, but is empty.")
        return tuple(self._as_whole(key, v) for v in values)

    def texts_of(self, key: str, name: str, value: Any) -> list[str]:
        """A list of texts under a name."""
        if not isinstance(value, Sequence) or isinstance(value, str) or not all(isinstance(v, str) for v in value):
            raise DescriptionError(f"{self}: {key!r} must give lists of texts, but {name!r} is {value!r}.")
        return list(value)

    def texts(self, key: str, default: Any = _NEEDED) -> tuple[str, ...]:
        """A list of texts."""
        return tuple(self.texts_of(key, key, self.anything(key, default)))

    def mapping(self, key: str, optional: bool = False) -> Mapping[str, Any]:
        """A table as it is."""
        value = self.anything(key, {} if optional else _NEEDED)
        if not isinstance(value, Mapping):
            raise DescriptionError(f"{self}: {key!r} must be a table, but is {value!r}.")
        return value

    def texts_by_name(self, key: str) -> dict[str, str]:
        """A table of texts."""
        found = self.mapping(key)
        for name, value in found.items():
            if not isinstance(value, str):
                raise DescriptionError(f"{self}: {key!r} must be a table of texts, but {name!r} is {value!r}.")
        if not found:
            raise DescriptionError(f"{self}: {key!r} must not be empty.")
        return dict(found)

    def section(self, key: str, optional: bool = False) -> Section:
        """A table with keys of its own."""
        return Section(self.file, f"[{key}]", self.mapping(key, optional))

    def sections(self, key: str, optional: bool = False) -> list[Section]:
        """A list of tables."""
        value = self.anything(key, [] if optional else _NEEDED)
        if not isinstance(value, list) or not all(isinstance(v, Mapping) for v in value) or not (value or optional):
            raise DescriptionError(f"{self} must have tables [[{key}]], but {key!r} is {value!r}.")
        return [Section(self.file, f"[[{key}]] number {k + 1}", part) for k, part in enumerate(value)]

    def require(self, key: str, value: str, allowed: Sequence[str]) -> None:
        """Refuse a value that is none of these."""
        if value not in allowed:
            raise DescriptionError(f"{self}: {key!r} must be among {list(allowed)}, but is {value!r}.")

    def finish(self, also: Sequence[str] = ()) -> None:
        """Refuse keys that nobody asked for."""
        known = [*dict.fromkeys([*self.asked, *also])]
        for key in self.content:
            if key not in known:
                raise DescriptionError(
                    f"{self} has no key {key!r}.{did_you_mean(key, known)} Its keys are {sorted(known)}."
                )
