"""Files of records: listed, checked by their footers or first lines, and read batch by batch."""

from __future__ import annotations

import csv
import fnmatch
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from .._arguments import shown
from ..files.errors import TableError

__all__ = ["FileBatch", "RecordFile", "common_schema", "files_of", "located", "require_pyarrow"]

_TEXT, _BINARY = (".csv", ".tsv"), (".parquet", ".pq")
_BATCH_ROWS, _CHUNK_BYTES = 65_536, 2**24
_SIGNS = "*?["


def require_pyarrow() -> Any:
    """Return pyarrow; raise an error that says how to install it."""
    try:
        import pyarrow
    except ImportError as error:
        raise ModuleNotFoundError("Scans need pyarrow: pip install 'afape[scale]'.") from error
    return pyarrow


def located(path: Any, argument: str) -> tuple[Any, str]:
    """Return the file system of pyarrow and the path in it; a text with ``://`` is a URI, such as ``s3://bucket/folder``."""
    require_pyarrow()
    from pyarrow import fs

    if not isinstance(path, str | Path) or not str(path):
        raise TypeError(f"{argument!r} must be the path of a file or folder, but is {shown(path)}.")
    if "://" not in str(path):
        return fs.LocalFileSystem(), str(Path(path).expanduser().absolute())
    head, *rest = str(path).split("*", 1)
    system, place = fs.FileSystem.from_uri(head)
    return system, f"{place}*{rest[0]}" if rest else place


@dataclass(frozen=True, eq=False)
class FileBatch:
    """Some rows of a file: a table of the columns in use, and the number of the first row in the file."""

    table: Any
    start: int
    file: RecordFile


@dataclass(frozen=True, eq=False)
class RecordFile:
    """One file of records.

    Attributes
    ----------
    system, path
        Where it is.
    name : str
        Its path below the folder that was scanned. Rows are dealt to blocks by this name and their number.
    kind : str
        Ending in lower case.
    schema : pyarrow.Schema
        Types of its columns; texts in a CSV file.
    n_rows : int
        Number of rows; in a CSV file, the number of lines after the first.
    size, changed
        Number of bytes, and time of the last change.
    separator : str
        Separator of a CSV file.
    """

    system: Any
    path: str
    name: str
    kind: str
    schema: Any
    n_rows: int
    size: int
    changed: Any
    separator: str = ","

    def batches(self, columns: Sequence[str], blanks: Sequence[str]) -> Iterator[FileBatch]:
        """Yield these columns, batch by batch, in the order of the file."""
        found = self._of_parquet(columns) if self.kind in _BINARY else self._of_text(columns, blanks)
        start = 0
        for table in found:
            yield FileBatch(table, start, self)
            start += len(table)

    def _of_parquet(self, columns: Sequence[str]) -> Iterator[Any]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        with self.system.open_input_file(self.path) as opened:
            file = pq.ParquetFile(opened, pre_buffer=False)
            for group in range(file.num_row_groups):  # so that an error names the row group
                try:
                    for batch in file.iter_batches(_BATCH_ROWS, row_groups=[group], columns=list(columns)):
                        yield pa.Table.from_batches([batch]).select(list(columns))
                except (pa.ArrowException, OSError) as error:
                    raise TableError(f"{self.path!r} is damaged in row group {group}: {error}.") from error

    def _of_text(self, columns: Sequence[str], blanks: Sequence[str]) -> Iterator[Any]:
        import pyarrow as pa
        from pyarrow import csv as text

        convert = text.ConvertOptions(
            include_columns=list(columns),
            column_types=dict.fromkeys(columns, pa.large_string()),
            null_values=["", *blanks],
            strings_can_be_null=True,
            quoted_strings_can_be_null=True,
        )
        try:
            with self.system.open_input_stream(self.path) as opened:
                reader = text.open_csv(
                    opened,
                    read_options=text.ReadOptions(block_size=_CHUNK_BYTES, use_threads=False),
                    parse_options=text.ParseOptions(delimiter=self.separator, newlines_in_values=True),
                    convert_options=convert,
                )
                for batch in reader:
                    yield pa.Table.from_batches([batch])
        except (pa.ArrowException, OSError) as error:
            raise TableError(f"{self.path!r} cannot be read as a table: {error}.") from error


def files_of(paths: Any) -> list[RecordFile]:
    """List the files of a folder, of a pattern such as ``records/*.parquet``, or of a list of files, sorted by name."""
    listed = paths if isinstance(paths, list | tuple) else [paths]
    if not listed:
        raise ValueError("'files' must name at least one file, but is empty.")
    found = [one for path in listed for one in _infos(path, several=len(listed) > 1)]
    names = [name for _, _, name in found]
    if doubled := [name for name in names if names.count(name) > 1]:
        raise ValueError(
            f"'files' must have different names, but {doubled[0]!r} is there twice. Scan the folder above them."
        )
    return [_opened(system, info, name) for system, info, name in sorted(found, key=lambda one: one[2])]


def _infos(path: Any, several: bool) -> list[tuple[Any, Any, str]]:
    from pyarrow import fs

    system, place = located(path, "files")
    if not any(sign in place for sign in _SIGNS):
        info = system.get_file_info(place)
        if info.type == fs.FileType.File:
            return [(system, info, place if several else PurePosixPath(place).name)]
        if info.type == fs.FileType.NotFound:
            raise TableError(f"There is no file or folder {str(path)!r}.")
    folder = place
    while any(sign in folder for sign in _SIGNS):
        folder = str(PurePosixPath(folder).parent)
    pattern = place if folder != place else f"{place.rstrip('/')}/*"
    infos = system.get_file_info(fs.FileSelector(folder, recursive=True, allow_not_found=True))
    files = [i for i in infos if i.type == fs.FileType.File and fnmatch.fnmatchcase(i.path, pattern)]
    kept = [
        i
        for i in files
        if PurePosixPath(i.path).suffix.lower() in (*_TEXT, *_BINARY) and not i.base_name.startswith((".", "_"))
    ]
    if not kept:
        raise TableError(f"{str(path)!r} has no files that end in {', '.join((*_BINARY, *_TEXT))}.")
    return [(system, i, str(PurePosixPath(i.path).relative_to(folder))) for i in kept]


def _opened(system: Any, info: Any, name: str) -> RecordFile:
    kind = PurePosixPath(info.path).suffix.lower()
    if kind not in (*_TEXT, *_BINARY):
        raise TableError(f"The data file must end in {', '.join((*_BINARY, *_TEXT))}, but {info.path!r} does not.")
    if info.size == 0:
        raise TableError(f"{info.path!r} is empty. Remove it, or write it again.")
    return (_parquet if kind in _BINARY else _text)(system, info, name, kind)


def _parquet(system: Any, info: Any, name: str, kind: str) -> RecordFile:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with system.open_input_file(info.path) as opened:
            file = pq.ParquetFile(opened)
            schema, n_rows = file.schema_arrow, file.metadata.num_rows
    except (pa.ArrowException, OSError) as error:
        raise TableError(f"{info.path!r} is damaged, or no Parquet file: {error}. Write it again.") from error
    return RecordFile(system, info.path, name, kind, schema, n_rows, info.size, info.mtime)


def _text(system: Any, info: Any, name: str, kind: str) -> RecordFile:
    import pyarrow as pa

    n_lines = 0
    with system.open_input_stream(info.path) as opened:
        first = opened.read(_CHUNK_BYTES)
        chunk, last = first, b"\n"
        while chunk:
            n_lines, last = n_lines + chunk.count(b"\n"), chunk[-1:]
            chunk = opened.read(_CHUNK_BYTES)
    try:
        header = first.decode("utf-8-sig", "strict" if len(first) == info.size else "ignore").splitlines()[0]
    except (UnicodeDecodeError, IndexError) as error:
        raise TableError(f"{info.path!r} is no UTF-8 text: {error}. Save it as UTF-8.") from error
    separator = max(("\t" if kind == ".tsv" else ",", *",;\t|"), key=header.count)
    names = next(csv.reader([header], delimiter=separator), [])
    if doubled := [c for c in names if names.count(c) > 1]:
        raise TableError(
            f"The first line of {info.path!r} must name each column once, but has {doubled[0]!r} twice or more."
        )
    schema = pa.schema([(c, pa.large_string()) for c in names])
    n_rows = n_lines - 1 + (last != b"\n")
    return RecordFile(system, info.path, name, kind, schema, n_rows, info.size, info.mtime, separator)


def common_schema(files: Sequence[RecordFile], columns: Sequence[str]) -> Any:
    """Return types that hold these columns of all files; raise an error that names the file if there are none."""
    import pyarrow as pa

    found: dict[str, Any] = {}
    home: dict[str, RecordFile] = {}
    for file in files:
        for name in columns:
            index = file.schema.get_field_index(name)
            if index < 0:
                raise TableError(
                    f"{file.path!r} has no column {name!r}, but the problem names it. Its columns are {file.schema.names[:20]}. "
                    "Add the column, with nulls where nothing was recorded, or leave out the file."
                )
            kind = _plain(file.schema.field(index).type)
            merged = _merged(found.get(name, kind), kind)
            if merged is None:
                raise TableError(
                    f"Column {name!r} has type {found[name]} in {home[name].path!r}, but {kind} in {file.path!r}. Write all "
                    "files with one type."
                )
            if name not in found or merged != found[name]:
                found[name], home[name] = merged, file
    return pa.schema([(name, found[name]) for name in columns])


def _plain(kind: Any) -> Any:
    """Return the type of a column: texts have one type, whatever their encoding."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return pa.large_string() if str(kind) in ("string", "large_string", "string_view") else kind


def _merged(a: Any, b: Any) -> Any:
    """Return the type that holds both; None if one is text or boolean and the other a number."""
    import pyarrow as pa

    if a == b or pa.types.is_null(b):
        return a
    if pa.types.is_null(a):
        return b
    numbers = [pa.types.is_integer(k) or pa.types.is_floating(k) or pa.types.is_decimal(k) for k in (a, b)]
    if not all(numbers):
        return None
    whole = all(pa.types.is_integer(k) for k in (a, b))
    return pa.int64() if whole else pa.float64()
