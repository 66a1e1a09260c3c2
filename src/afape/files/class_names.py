"""Names of the labels in a problem file, such as ``classes = { 0 = "survived", 1 = "died" }``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import narwhals.stable.v1 as nw

from ..data.problem import label_text
from .errors import nearest
from .toml_source import TomlSource

__all__ = ["class_names_in", "with_class_names"]


def class_names_in(source: TomlSource) -> dict[str, str]:
    """Return the names of the labels, by label as text; empty if 'classes' is a list or absent."""
    found = source.value(("classes",))
    if not isinstance(found, dict):
        return {}
    for label, name in found.items():
        if not isinstance(name, str) or not name.strip():
            raise source.error(
                ("classes", label), f"the name of the label {label!r} must be a text in quotes, but is {name!r}."
            )
    if len(set(found.values())) < len(found):
        raise source.error(
            ("classes",), f"'classes' must give the labels different names, but has {list(found.values())}."
        )
    return dict(found)


def with_class_names(frame: Any, label: str, names: Mapping[str, str], source: TomlSource) -> Any:
    """Return the table with names in place of labels; labels are compared as text, so 1 and 1.0 are one label."""
    table = nw.from_native(frame, eager_only=True)
    column = table[label].drop_nulls()
    found = {label_text(v): v for v in column.unique().to_list() if v == v}
    lacking = [text for text in found if text not in names]
    if lacking:
        raise source.error(
            ("classes",),
            f"'classes' must name every label, but lacks {lacking[0]!r}. {nearest(lacking[0], list(names))}",
        )
    named: Any = nw.lit(None)
    for text, value in found.items():
        named = nw.when(nw.col(label) == value).then(nw.lit(names[text])).otherwise(named)
    return table.with_columns(named.alias(label)).to_native()
