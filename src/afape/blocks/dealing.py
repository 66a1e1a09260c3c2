"""Deal rows to blocks at random, in one pass over the files."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib.externals.loky.backend.reduction import dumps

from ..data.row_order import mixed_bits
from .column_types import ColumnTypes
from .scratch import Scratch, _full

if TYPE_CHECKING:
    from .scanning import Scan

__all__ = ["block_name", "deal"]

_DEALT, _TYPES = "dealt.json", "types.pickle"
_BUDGET = 400_000  # rows that wait in memory, all blocks together
_TURN = np.uint64(0x5851F42D4C957F2D)  # so that blocks and splits of one seed are independent


def block_name(k: int) -> str:
    """Name of the file with the rows of a block."""
    return f"rows/block-{k:05d}.parquet"


def deal(
    scan: Scan, seed: int, scratch: Scratch, report: Callable[[], None] = lambda: None
) -> tuple[list[int], ColumnTypes]:
    """Deal the rows to blocks; return the number of rows of each block, and what the files say about the columns.

    A row's block is a hash of the seed and of its cluster (or of file and row number), so it depends on nothing else. If the
    scratch folder has the blocks already, they are used.
    """
    if scratch.has(_DEALT):
        scratch.trusted()
        return json.loads(scratch.read(_DEALT)), pickle.loads(scratch.read(_TYPES))
    types, n_blocks = ColumnTypes(scan.schema, scan), scan.n_blocks
    counts = np.zeros(n_blocks, dtype=int)
    try:
        with _writers(scratch, n_blocks, scan.schema) as put:
            for batch, kept in scan.batches():
                table = types.seen(batch, kept)
                unit = scan.units(batch, seed)[kept]
                block = (mixed_bits(unit ^ _TURN) % np.uint64(n_blocks)).astype(np.intp)
                counts += np.bincount(block, minlength=n_blocks)
                put(table, block)
                report()
    except OSError as error:
        raise (
            error if type(error) is not OSError or "scratch" in str(error) else _full(scratch.path, error)
        ) from error
    scratch.write(_TYPES, dumps(types))
    scratch.write(_DEALT, json.dumps(counts.tolist()).encode())  # last: now the dealing is complete
    return counts.tolist(), types


@contextmanager
def _writers(scratch: Scratch, n_blocks: int, schema: Any) -> Iterator[Callable[[Any, Any], None]]:
    """Give a function that adds rows to blocks; they are written when enough have come together."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with ExitStack() as stack:
        writers = [
            stack.enter_context(pq.ParquetWriter(stack.enter_context(scratch.writing(block_name(k))), schema))
            for k in range(n_blocks)
        ]
        waiting: list[tuple[Any, Any]] = []
        size = 0

        def flush() -> None:
            nonlocal size
            table = pa.concat_tables([t for t, _ in waiting])
            block = np.concatenate([b for _, b in waiting])
            order = np.argsort(block, kind="stable")
            ends = np.concatenate([[0], np.cumsum(np.bincount(block, minlength=n_blocks))])
            ordered = table.take(pa.array(order))
            for k in np.flatnonzero(np.diff(ends)):
                writers[k].write_table(ordered.slice(ends[k], ends[k + 1] - ends[k]))
            waiting.clear()
            size = 0

        def put(table: Any, block: Any) -> None:
            nonlocal size
            waiting.append((table, block))
            size += len(table)
            if size >= _BUDGET:
                flush()

        yield put
        if waiting:
            flush()
