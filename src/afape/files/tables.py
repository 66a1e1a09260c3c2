"""read_table(): read CSV and Parquet files, and check that they have the format of their ending."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._arguments import check_path, check_texts
from .errors import TableError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["read_table"]

_TEXT = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
_BINARY = (".parquet", ".pq")
_MOSTLY_NUMBERS = 0.9  # share of numbers in a column; the others may be texts such as "NA"
_SIGNS = {
    b"PAR1": "a Parquet file",
    b"PK\x03\x04": "a zip or Excel file",
    b"\x1f\x8b": "a gzip file",
    b"\x80\x04": "a Python pickle",
    b"\x80\x05": "a Python pickle",
    b"%PDF": "a PDF",
    b"ARROW1": "an Arrow (Feather) file",
    b"<!DOCTYPE": "a web page",
    b"<html": "a web page",
}


def read_table(path: str | Path, blanks: Sequence[str] = ()) -> pd.DataFrame:
    """Read a table from a CSV, TSV or Parquet file.

    Parameters
    ----------
    path : str or Path
        The file; its ending gives the format.
    blanks : sequence of str
        Texts that mean "never recorded", such as "?" or "NA". Empty cells always do.

    Returns
    -------
    DataFrame
    """
    file, blanks = check_path("path", path), check_texts("blanks", blanks, "texts")
    kind = _kind(file)
    return _parquet(file, blanks) if kind in _BINARY else _text(file, blanks, _TEXT[kind])


def _kind(file: Path) -> str:
    """Return the ending of the file, after a check of its first bytes."""
    if file.is_dir():
        raise TableError(f"{str(file)!r} is a folder, not a data file.")
    if not file.exists():
        raise TableError(f"There is no file {str(file)!r} in the folder {str(file.absolute().parent)!r}.")
    ending = file.suffix.lower()
    if ending not in (*_TEXT, *_BINARY):
        raise TableError(
            f"The data file must end in {', '.join((*_TEXT, *_BINARY))}, but {file.name!r} does not. Save the table as CSV "
            "or Parquet."
        )
    try:
        with file.open("rb") as opened:
            first = opened.read(512)
    except OSError as error:
        raise TableError(f"{str(file)!r} cannot be read: {error.strerror}.") from error
    if not first.strip():
        raise TableError(f"{str(file)!r} is empty.")
    found = next((words for sign, words in _SIGNS.items() if first.startswith(sign)), "")
    if ending in _BINARY and found != "a Parquet file":
        raise TableError(
            f"{str(file)!r} ends in {ending!r}, but is {found or 'not a Parquet file'}. Rename or convert it."
        )
    if ending in _TEXT and (found or b"\x00" in first):
        raise TableError(f"{str(file)!r} ends in {ending!r}, but is {found or 'not text'}. Rename or convert it.")
    return ending


def _parquet(file: Path, blanks: Sequence[str]) -> pd.DataFrame:
    import numpy as np
    import pandas as pd

    try:
        frame = pd.read_parquet(file)
    except ImportError as error:
        raise TableError(
            "Reading Parquet needs pyarrow: pip install 'afape[parquet]', or save the table as CSV."
        ) from error
    except Exception as error:  # pyarrow has its own error classes
        raise TableError(f"{str(file)!r} is a damaged Parquet file: {error}.") from error
    numbers = [float(b) for b in blanks if re.fullmatch(r"[-+]?[0-9.]+", b)]
    return frame.replace([*blanks, *numbers], np.nan) if blanks else frame


def _text(file: Path, blanks: Sequence[str], separator: str) -> pd.DataFrame:
    import pandas as pd

    try:
        with file.open(encoding="utf-8-sig", newline="") as opened:
            header = opened.readline()
        # In some languages spreadsheets write CSV files with other separators, and a comma may be part of a name.
        separator = max((separator, *",;\t|"), key=header.count)
        names = next(csv.reader([header], delimiter=separator), [])
        _check_names(file, names)
        frame = _csv(file, separator, blanks)
        if separator != "," and (with_comma := [c for c in frame.columns if _has_decimal_commas(frame[c])]):
            _check_points(file, frame, with_comma[0])
            frame = _csv(file, separator, blanks, decimal=",")
    except UnicodeDecodeError as error:
        raise TableError(
            f"{str(file)!r} is not UTF-8 text ({error.reason} at byte {error.start}). Save it as UTF-8."
        ) from error
    except (pd.errors.ParserError, csv.Error) as error:
        raise TableError(f"{str(file)!r} cannot be read as a table: {error}.") from error
    if isinstance(frame.index, pd.RangeIndex) is False:
        raise TableError(
            f"Every row of {str(file)!r} must have one cell per name in the first line, but some rows have more."
        )
    if not len(frame):
        raise TableError(f"{str(file)!r} has a first line, but no rows.")
    return frame


def _csv(file: Path, separator: str, blanks: Sequence[str], decimal: str = ".") -> pd.DataFrame:
    import pandas as pd

    return pd.read_csv(
        file,
        sep=separator,
        decimal=decimal,
        encoding="utf-8-sig",
        keep_default_na=False,  # "NA" may be a level: the problem file lists the texts that mean a blank
        na_values=["", *blanks],
        low_memory=False,
    )


def _has_decimal_commas(column: pd.Series[Any]) -> bool:
    """True for a text column of numbers, some with a decimal comma, apart from a tenth of other texts."""
    if column.dtype.kind in "iufb":
        return False
    texts = column.dropna().astype(str).str.strip()
    commas = texts.str.fullmatch(r"[-+]?\d+,\d+([eE][-+]?\d+)?")
    return bool(commas.any() and (commas | texts.str.fullmatch(r"[-+]?\d+")).mean() >= _MOSTLY_NUMBERS)


def _check_points(file: Path, frame: pd.DataFrame, with_comma: str) -> None:
    """Raise an error if other columns have decimal points: then a point or a comma may separate thousands."""
    pointed = [c for c in frame.columns if frame[c].dtype.kind == "f" and (frame[c].dropna() % 1 != 0).any()]
    if pointed:
        raise TableError(
            f"{str(file)!r} has numbers with a decimal comma in {with_comma!r}, but numbers with a point in {pointed[0]!r}. Save "
            "the table with one kind of decimal sign."
        )


def _check_names(file: Path, names: list[str]) -> None:
    doubled: list[Any] = [name for name, count in Counter(names).items() if count > 1]
    if doubled:
        raise TableError(
            f"The first line of {str(file)!r} must name each column once, but has {doubled[0]!r} twice or more."
        )
    if len(names) < 2:
        raise TableError(
            f"{str(file)!r} has a single column, {names[0] if names else ''!r}. A table needs features and a label, separated "
            "by commas."
        )
