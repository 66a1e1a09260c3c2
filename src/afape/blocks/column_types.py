"""What all files together say about the columns: types of CSV columns, levels of text columns, classes of the label."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from .._arrays import Bools
from ..data.problem import Problem
from ..data.text_columns import check_counted_text, warn_of_counted_levels, warn_of_lookalikes
from ..files.errors import TableError
from .files import FileBatch

if TYPE_CHECKING:
    from .scanning import Scan

__all__ = ["ColumnTypes"]

_MOST_LEVELS = 100_000  # of a text column
_TRUTH = {"True", "TRUE", "true", "False", "FALSE", "false"}
_ORDER = ("empty", "int64", "double", "text")  # of CSV columns: each type holds the ones before


class ColumnTypes:
    """Types and levels of the columns, as seen so far.

    A CSV column is a number if all its texts are numbers, in every file. Levels and classes are those of all files, so that all
    blocks have the same columns.
    """

    def __init__(self, schema: Any, scan: Scan) -> None:
        import pyarrow as pa

        self.schema, self.scan = schema, scan
        self.text = {f.name for f in schema if pa.types.is_large_string(f.type)}
        csv = any(f.kind in (".csv", ".tsv") for f in scan.files)
        self.kinds = dict.fromkeys(schema.names, "empty") if csv else {}
        self.levels: dict[str, Counter[Any]] = {name: Counter() for name in self._levelled()}
        self.declared: dict[str, list[str] | None] = {}  # levels of categories, if all files declare the same

    def _levelled(self) -> list[str]:
        """Columns whose values are counted: texts, numbers that are categories, and the label."""
        problem = self.scan.problem
        features = [c for c in problem.feature_columns if c in self.text or c in problem.categories]
        return list(dict.fromkeys([*features, problem.label]))

    def seen(self, batch: FileBatch, kept: Bools) -> Any:
        """Note what a batch says, and return its rows that are kept, in the types of all files.

        Rows that are not kept count too, so that both splits of a scan have the same columns.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        columns = []
        for field in self.schema:
            column = batch.table[field.name]
            if pa.types.is_dictionary(column.type) and (field.name != self.scan.problem.label or column.type.ordered):
                self._declare(field.name, column)
            try:
                columns.append(column.cast(field.type))
            except pa.ArrowException as error:
                raise TableError(
                    f"Column {field.name!r} of {batch.file.path!r} cannot be read as {field.type}: {error}."
                ) from error
            if field.name in self.kinds:
                self._sharpen(field.name, columns[-1])
            if field.name in self.levels:
                self._count(field.name, pc.value_counts(columns[-1].drop_null().combine_chunks()), batch)
        table = pa.Table.from_arrays(columns, schema=self.schema)
        return table if kept.all() else table.filter(pa.array(kept))

    def _declare(self, name: str, column: Any) -> None:
        for chunk in column.chunks:
            levels = [str(v) for v in chunk.dictionary.to_pylist()]
            if self.declared.setdefault(name, levels) != levels:
                self.declared[name] = None

    def _count(self, name: str, found: Any, batch: FileBatch) -> None:
        self.levels[name].update(dict(zip(found.field(0).to_pylist(), found.field(1).to_pylist(), strict=True)))
        if len(self.levels[name]) > _MOST_LEVELS:
            raise TableError(
                f"The text column {name!r} has more than {_MOST_LEVELS:,} different texts by {batch.file.path!r}. Each would "
                "become a level. Leave it out of the groups, or write numbers as numbers."
            )

    def _sharpen(self, name: str, column: Any) -> None:
        """Widen the type of a CSV column until it holds these texts."""
        import pyarrow as pa

        column = column.drop_null()
        if not len(column) or self.kinds[name] == "text":
            return
        if self.kinds[name] in ("empty", "bool") and set(column.unique().to_pylist()) <= _TRUTH:
            self.kinds[name] = "bool"
            return
        start = "text" if self.kinds[name] == "bool" else self.kinds[name]
        for kind in _ORDER[max(1, _ORDER.index(start)) :]:
            if kind == "text":
                break
            try:
                column.cast(kind)
            except pa.ArrowInvalid:
                continue
            break
        self.kinds[name] = kind

    def typed(self, table: Any) -> Any:
        """Return a table with CSV columns in their types."""
        import pyarrow as pa

        types = {"int64": pa.int64(), "double": pa.float64(), "bool": pa.bool_(), "empty": pa.null()}
        for index, field in enumerate(self.schema):
            kind = types.get(self.kinds.get(field.name, ""))
            if kind is not None and kind != field.type:
                column = table[field.name] if kind != pa.null() else pa.nulls(len(table))
                table = table.set_column(index, field.name, column.cast(kind))
        return table

    def numeric(self, name: str) -> bool:
        """True if a column holds numbers."""
        import pyarrow as pa

        kind = self.schema.field(name).type
        if name in self.text:
            return self.kinds.get(name) in ("int64", "double")
        return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))

    def problem(self) -> Problem:
        """Return the problem with the levels and classes of all files, after the checks of texts that a table gets."""
        problem, categories = self.scan.problem, dict(self.scan.problem.categories)
        for name, counts in self.levels.items():
            if name == problem.label or categories.get(name) is not None:
                continue
            if self.kinds.get(name) in ("bool", "empty") or (name not in categories and self.numeric(name)):
                continue
            if (levels := self._levels_of(name, counts)) is not None:
                categories[name] = levels
        cost: Any = problem.misclassification_cost
        if problem.cost_labels is not None:  # a matrix that has labels keeps them
            cost = pd.DataFrame(cost, index=list(problem.cost_labels), columns=list(problem.cost_labels))
        classes = problem.classes or (None if self.scan.label_names else self._classes())
        return replace(problem, categories=categories, classes=classes, misclassification_cost=cost)

    def _levels_of(self, name: str, counts: Counter[Any]) -> list[Any] | None:
        problem = self.scan.problem
        if not counts:
            return None
        levels: list[Any]
        if self.declared.get(name) is not None:
            levels = list(self.declared[name] or ())
        elif self.numeric(name):
            levels = sorted({float(v) for v in counts})
        else:
            levels = sorted(counts)
            if name not in problem.categories:
                texts = np.array(levels, dtype=object)
                check_counted_text(name, texts, np.array([counts[t] for t in levels]))
                warn_of_counted_levels(name, np.array([counts[t] for t in levels]))
        meaning = problem.blank_means.get(name)
        if meaning is not None and meaning not in levels:
            levels = sorted([*levels, meaning]) if self.declared.get(name) is None else [*levels, meaning]
        return levels

    def _classes(self) -> list[Any] | None:
        """Return the labels of all files, sorted; None if there are too few for a problem, which the records then say."""
        name = self.scan.problem.label
        found = self.levels[name]
        if self.kinds.get(name) in ("int64", "double"):
            whole = self.kinds[name] == "int64"
            found = Counter({(int(v) if whole else float(v)): 1 for v in found})
        elif self.kinds.get(name) == "bool":
            found = Counter({v.lower() == "true": 1 for v in found})
        if self.declared.get(name) is not None:
            return [level for level in self.declared[name] or () if level in found]
        if len(found) < 2:
            return None
        ordered = sorted(found)
        warn_of_lookalikes(name, ordered)
        return list(pd.unique(pd.Series(ordered, dtype=object)))
