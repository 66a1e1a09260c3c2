"""scan(): records in files that are too large, or too many, to be read at once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._arguments import (
    as_float,
    check_choice,
    check_count,
    check_flag,
    check_list,
    check_seed,
    check_texts,
    is_number,
    shown,
)
from .._arrays import Bools
from ..data.problem import Problem, check_column, label_text
from ..data.retrospective import Retrospective
from ..data.row_order import mixed_bits
from ..files.errors import TableError
from .files import FileBatch, RecordFile, common_schema, files_of, require_pyarrow

__all__ = ["Scan", "scan"]

_MOST_ROWS, _LEAST_ROWS, _VALUES = 100_000, 20_000, 2_000_000  # of a block; `benchmarks/scale.py memory` measures them
_UNITS = 2.0**64


def scan(
    files: Any,
    problem: Problem,
    *,
    cluster: str | None = None,
    weight: str | None = None,
    missing_labels: str = "raise",
    blanks: Sequence[str] = (),
    block_rows: int | None = None,
    scratch: Any = None,
    keep: bool = False,
) -> Scan:
    """Describe records in files, without reading their rows.

    `evaluate`, `compare`, `check_support` and `check_missingness` take the result in place of a `Retrospective`. They deal the
    rows to blocks at random (by cluster, if there are clusters), evaluate each block as a table of its own, and combine values
    and covariances. Memory is that of one block, however many rows there are.

    Parameters
    ----------
    files : str, Path or list of them
        A folder, a pattern such as ``"records/*.parquet"``, or files: Parquet or CSV. A text with ``://`` is a URI that pyarrow
        knows, such as ``s3://bucket/records``.
    problem : Problem
        Groups of columns, their prices and the label column. Other columns are not read.
    cluster, weight, missing_labels
        As in `Retrospective`. Rows of one cluster may be in several files.
    blanks : sequence of str
        Texts in CSV files that mean "never recorded". Empty cells always do.
    block_rows : int, optional
        Rows of a block, about. Default: 100,000, and fewer if the table is wide. Blocks of 100,000 rows or more hardly change
        an estimate; with less than 10,000, errors of learned models become visible.
    scratch : str or Path, optional
        Folder for the blocks and for what is finished of them: any path that pyarrow can write to. All workers must see it. It
        must be new, empty, or the folder of the same run, which is then continued. Default: a temporary folder.
    keep : bool
        True to keep the scratch folder at the end. It contains the rows.

    Returns
    -------
    Scan
    """
    if not isinstance(problem, Problem):
        raise TypeError(f"'problem' must be an afape.Problem, not {type(problem).__name__}.")
    cluster = None if cluster is None else check_column("cluster", cluster)
    weight = None if weight is None else check_column("weight", weight)
    check_choice("missing_labels", missing_labels, ("raise", "drop", "weigh"))
    blanks = tuple(check_texts("blanks", blanks, "texts"))
    if block_rows is not None:
        check_count("block_rows", block_rows, 1)
    check_flag("keep", keep)
    if keep and scratch is None:
        raise ValueError("'keep' needs 'scratch': name the folder that is kept.")
    require_pyarrow()
    found = files_of(files)
    columns = list(dict.fromkeys([*problem.feature_columns, problem.label, *(c for c in (cluster, weight) if c)]))
    made = Scan(tuple(found), problem, common_schema(found, columns), cluster, weight, missing_labels, blanks,
                block_rows or _default_rows(len(columns)), scratch, keep)  # fmt: skip
    if made.n_rows == 0:
        raise TableError(f"The {len(found)} files have no rows.")
    return made


def _default_rows(n_columns: int) -> int:
    return int(np.clip(_VALUES // n_columns, _LEAST_ROWS, _MOST_ROWS))


@dataclass(frozen=True, eq=False)
class Scan:
    """Records in files, whose rows are not read yet; see `afape.scan`.

    Attributes
    ----------
    files : tuple of RecordFile
        The files, sorted by name.
    problem : Problem
        The problem.
    schema : pyarrow.Schema
        Types of the columns in use; texts in CSV files.
    block_rows : int
        Rows of a block, about.
    """

    files: tuple[RecordFile, ...]
    problem: Problem
    schema: Any
    cluster: str | None
    weight: str | None
    missing_labels: str
    blanks: tuple[str, ...]
    block_rows: int
    scratch: Any = None
    keep: bool = False
    part: tuple[float, float] = (0.0, 1.0)  # units whose hash lies in this range
    split_seed: int = 0
    label_names: Mapping[str, str] = field(default_factory=dict)  # names that replace the labels of the files

    @property
    def n_rows(self) -> int:
        """Number of rows of all files; of a split, about. A CSV file counts with its lines."""
        return round(sum(f.n_rows for f in self.files) * (self.part[1] - self.part[0]))

    @property
    def n_blocks(self) -> int:
        """Number of blocks that the rows are dealt to."""
        return max(1, -(-self.n_rows // self.block_rows))

    def __repr__(self) -> str:
        return (
            f"Scan({len(self.files)} files, {self.n_rows:,} rows, {self.n_blocks} blocks; label {self.problem.label!r})"
        )

    def split(self, shares: Sequence[float], random_state: int | None = 0) -> list[Scan]:
        """Split the rows at random into scans with about these shares; rows of one cluster stay together.

        Parameters
        ----------
        shares : sequence of float
            Positive numbers that sum to 1.
        random_state : int or None
            Seed.
        """
        check_seed(random_state)
        shares = check_list("shares", shares, "numbers")
        sizes = np.array([as_float(share) if is_number(share) else np.nan for share in shares])
        if not len(sizes) or not (sizes > 0).all() or not abs(sizes.sum() - 1) <= 1e-9:
            raise ValueError(f"'shares' must be positive and sum to 1, but is {shown(shares)}.")
        if self.part != (0.0, 1.0):
            raise ValueError("'shares' must be given at once: a split of a scan cannot be split again.")
        seed = int(np.random.SeedSequence(random_state).generate_state(1, np.uint64)[0])
        ends = [0.0, *np.cumsum(sizes)[:-1].tolist(), 1.0]
        return [replace(self, part=(a, b), split_seed=seed) for a, b in pairwise(ends)]

    def read(self, most: int | None = None) -> Retrospective:
        """Read the rows into memory, as `Retrospective`; with ``most``, a random part of about so many rows, by cluster."""
        part = self
        if most is not None and check_count("most", most, 1) < self.n_rows:
            low, high = self.part
            part = replace(self, part=(low, low + (high - low) * most / self.n_rows))
        return part._read()

    def _read(self) -> Retrospective:
        import pyarrow as pa

        from .column_types import ColumnTypes

        types = ColumnTypes(self.schema, self)
        found = types.typed(pa.concat_tables([types.seen(batch, kept) for batch, kept in self.batches()]))
        if not len(found):
            raise ValueError("No row is left. Read more rows, or split by larger shares.")
        return self.records(found.to_pandas(), types.problem())

    def records(self, frame: pd.DataFrame, problem: Problem | None = None) -> Retrospective:
        """Return a frame with the columns of this scan as records."""
        if self.label_names:
            frame = self._with_names(frame)
        return Retrospective(
            frame, problem or self.problem, cluster=self.cluster, missing_labels=self.missing_labels, weight=self.weight
        )

    def _with_names(self, frame: pd.DataFrame) -> pd.DataFrame:
        texts = frame[self.problem.label].map(label_text, na_action="ignore")
        lacking = sorted(set(texts.dropna()) - set(self.label_names))
        if lacking:
            raise ValueError(
                f"'classes' must name every label, but lacks {lacking[0]!r}. It names {list(self.label_names)}."
            )
        return frame.assign(**{self.problem.label: texts.map(self.label_names)})

    def batches(self) -> Iterator[tuple[FileBatch, Bools]]:
        """Yield all batches, and which of their rows belong to this scan."""
        low, high = (np.float64(end) for end in self.part)
        for file in self.files:
            for batch in file.batches(self.schema.names, self.blanks):
                if self.part == (0.0, 1.0):
                    yield batch, np.ones(len(batch.table), dtype=bool)
                else:
                    place = self.units(batch, self.split_seed) / _UNITS
                    yield batch, (place >= low) & ((place < high) | (high >= 1.0))

    def units(self, batch: FileBatch, seed: int) -> NDArray[np.uint64]:
        """Hash of the cluster of each row, or of file and row number, and of the seed; uniform on 64 bits."""
        if self.cluster is None:
            name = int.from_bytes(hashlib.sha256(batch.file.name.encode()).digest()[:8], "little")
            rows = np.arange(batch.start, batch.start + len(batch.table), dtype=np.uint64)
            code = mixed_bits(rows) ^ np.uint64(name)
        else:
            code = _hashed(batch, self.cluster, self.schema.field(self.cluster).type)
        return mixed_bits(mixed_bits(code) ^ mixed_bits(np.array([seed], dtype=np.uint64)))

    @property
    def fingerprint(self) -> dict[str, str]:
        """What a run depends on apart from policies and options, as texts that can be compared."""
        files = [(f.name, f.n_rows, f.size, str(f.changed)) for f in self.files]
        problem = {
            f: repr(getattr(self.problem, f))
            for f in ("groups", "costs", "label", "classes", "categories", "blank_means")
        }
        problem["costs of errors"] = repr(np.asarray(self.problem.misclassification_cost).tolist())
        rows = [
            self.cluster,
            self.weight,
            self.missing_labels,
            self.blanks,
            self.part,
            self.split_seed,
            dict(self.label_names),
        ]
        return {
            "files": _digest(files),
            "problem": _digest(problem),
            "cluster, weight, labels, blanks or split": _digest(rows),
            "block_rows": str(self.block_rows),
        }


def _hashed(batch: FileBatch, cluster: str, kind: Any) -> NDArray[np.uint64]:
    import pyarrow as pa

    column = batch.table[cluster]
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if column.null_count:
        raise ValueError(
            f"The cluster column {cluster!r} is blank in {column.null_count} of {len(column)} rows of {batch.file.path!r}, from "
            f"row {batch.start} on. Give every row a cluster; a single row gets its own cluster."
        )
    values = column.cast(kind).to_numpy()
    return np.asarray(pd.util.hash_array(values if values.dtype != object else values.astype(object), categorize=True))


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, default=str).encode()).hexdigest()[:16]
