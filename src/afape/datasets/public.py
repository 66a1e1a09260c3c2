"""Public tables: where their files may be, and the facts that are checked."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pandas as pd

__all__ = ["DataNotFoundError", "PublicTable", "WrongTableError", "in_teacher_xai", "read_public"]

VARIABLE = "AFAPE_DATA"
_SECONDS = 30.0  # timeout of the network


class DataNotFoundError(FileNotFoundError):
    """No source has the table."""


class WrongTableError(ValueError):
    """The file is not the public table, or is incomplete."""


@dataclass(frozen=True)
class PublicTable:
    """Name, sources and facts of a public table.

    Parameters
    ----------
    name : str
        Name in messages.
    files : tuple of str
        Names that its file may have in a folder.
    package : tuple of (str, str)
        The package that contains it, and the extra of afape that installs this package.
    packaged : callable
        Reads it from that package. Returns the table and its source, or None if the package is not installed.
    columns : tuple of str
        Its columns, in any order.
    n_rows : int
        Number of rows.
    label : str
        The label column.
    label_counts : mapping
        Number of rows of each label.
    sums : mapping
        Sums of some numeric columns.
    renamed : mapping
        Other names of columns in some copies.
    gaps : mapping
        Number of empty cells of the columns in ``sums`` that have any.
    openml : int or None
        Its number at OpenML, if it is there.
    """

    name: str
    files: tuple[str, ...]
    package: tuple[str, str]
    packaged: Callable[[], tuple[pd.DataFrame, str] | None]
    columns: tuple[str, ...]
    n_rows: int
    label: str
    label_counts: Mapping[str, int]
    sums: Mapping[str, int]
    renamed: Mapping[str, str] = field(default_factory=dict)
    gaps: Mapping[str, int] = field(default_factory=dict)
    openml: int | None = None

    def check(self, table: pd.DataFrame, source: str) -> None:
        """Raise an error with the difference if this is not the table."""
        absent = [c for c in self.columns if c not in table.columns]
        if absent:
            raise WrongTableError(
                f"{source} is not the {self.name} table: it has no column {absent[0]!r} ({len(absent)} of "
                f"{len(self.columns)} columns are absent). Its columns are {[str(c) for c in table.columns[:8]]}."
            )
        if len(table) != self.n_rows:
            cut = " It looks incomplete: download it again." if len(table) < self.n_rows else ""
            raise WrongTableError(
                f"{source} is not the public {self.name} table, which has {self.n_rows:,} rows: it has {len(table):,}.{cut}"
            )
        counts = {str(k): int(v) for k, v in table[self.label].value_counts().items()}
        if counts != dict(self.label_counts):
            raise WrongTableError(
                f"{source} is not the public {self.name} table: column {self.label!r} must hold {dict(self.label_counts)}, "
                f"but holds {dict(list(counts.items())[:5])}."
            )
        for column, expected in self.sums.items():
            numbers = pd.to_numeric(table[column], errors="coerce")
            if numbers.isna().sum() != self.gaps.get(column, 0) or round(float(numbers.sum())) != expected:
                raise WrongTableError(
                    f"{source} is not the public {self.name} table: column {column!r} must sum to {expected:,} with "
                    f"{self.gaps.get(column, 0):,} gaps, but sums to "
                    f"{float(numbers.sum()):,.0f} with {int(numbers.isna().sum()):,} gaps. Some values have been changed."
                )


def read_public(table: PublicTable, path: str | os.PathLike[str] | None) -> pd.DataFrame:
    """Read the table from the first source that has it, and check it.

    The sources are the user's file or folder, the folder in ``AFAPE_DATA``, the copy in an installed package, and OpenML, in
    this order.
    """
    file = _named(table, path) or _in_folder_of_variable(table)
    found, source = (_read(file), str(file)) if file is not None else (table.packaged() or _downloaded(table))
    found = found.rename(columns=dict(table.renamed))
    table.check(found, source)
    return found[list(table.columns)].reset_index(drop=True)


def _named(table: PublicTable, path: str | os.PathLike[str] | None) -> Path | None:
    if path is None:
        return None
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"'path' must be a file, a folder or None, but is {type(path).__name__}.")
    place = Path(path)
    if place.is_file():
        return place
    if found := _inside(table, place):
        return found
    what = f"has none of {list(table.files)}" if place.is_dir() else "does not exist"
    raise DataNotFoundError(
        f"'path' must be the {table.name} table or a folder with it, but {place} {what}. {_ways(table)}"
    )


def _in_folder_of_variable(table: PublicTable) -> Path | None:
    folder = os.environ.get(VARIABLE)
    if not folder:
        return None
    if not Path(folder).is_dir():
        raise DataNotFoundError(f"{VARIABLE} must name a folder, but {folder} is not one. {_ways(table)}")
    return _inside(table, Path(folder))


def _inside(table: PublicTable, folder: Path) -> Path | None:
    return next((folder / name for name in table.files if (folder / name).is_file()), None)


def in_teacher_xai(name: str) -> tuple[pd.DataFrame, str] | None:
    """Read a CSV file of the package ``teacher-xai``, without importing this package; None if there is none."""
    try:
        file = Path(str(distribution("teacher-xai").locate_file(f"teacher/datasets/data/{name}")))
    except PackageNotFoundError:
        return None
    return (_read(file), str(file)) if file.is_file() else None


def _read(file: Path) -> pd.DataFrame:
    try:
        return pd.read_csv(file, skipinitialspace=True, keep_default_na=False)
    except (UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise WrongTableError(f"{file} cannot be read as CSV: {error}") from error


def _downloaded(table: PublicTable) -> tuple[pd.DataFrame, str]:
    if table.openml is None:
        raise DataNotFoundError(f"The {table.name} table was not found. {_ways(table)}")
    from sklearn.datasets import fetch_openml

    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(_SECONDS)
    try:
        found: pd.DataFrame = fetch_openml(data_id=table.openml, as_frame=True, parser="auto", n_retries=1).frame
    except Exception as error:  # errors of network, proxy, server and parser all have the same solution
        raise DataNotFoundError(
            f"The {table.name} table was not found, and OpenML did not answer ({type(error).__name__}: {error}). "
            f"{_ways(table)}"
        ) from error
    finally:
        socket.setdefaulttimeout(before)
    for column in found.columns[found.dtypes == "category"]:
        found[column] = found[column].astype(object).where(found[column].notna(), "?")
    return found.iloc[: table.n_rows], f"OpenML {table.openml}"  # at OpenML the test rows follow


def _ways(table: PublicTable) -> str:
    package, extra = table.package
    ways = [
        f"pass the file as 'path' (on the command line --data), or put {table.files[0]} into a folder and set {VARIABLE} to it",
        f"pip install 'afape[{extra}]', which installs {package} with a copy",
    ]
    if table.openml is not None:
        ways.append(f"connect to the network to download it from OpenML (data set {table.openml})")
    return f"There are {'three' if len(ways) == 3 else 'two'} ways to supply it: {'; or '.join(ways)}."
