"""The Income table."""

from __future__ import annotations

import os

import pandas as pd

from .._arguments import check_choice
from .public import PublicTable, in_teacher_xai, read_public

__all__ = ["INCOME", "load_income"]

_NUMBERS = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
_COLUMNS = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship", "race",
    "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "income",
)  # fmt: skip

INCOME = PublicTable(
    name="Income",
    files=("income.csv", "adult.csv"),
    package=("teacher-xai", "paper"),
    packaged=lambda: in_teacher_xai("adult.csv"),
    openml=1590,
    columns=_COLUMNS,
    n_rows=32_561,
    label="income",
    label_counts={"<=50K": 24_720, ">50K": 7_841},
    sums={"age": 1_256_257, "hours-per-week": 1_316_684, "capital-gain": 35_089_324},
    renamed={"class": "income"},
)

_UNKNOWN = ("level", "missing", "drop")


def load_income(path: str | os.PathLike[str] | None = None, *, unknown: str = "level") -> pd.DataFrame:
    """Census records (UCI "Adult", "Census Income"), the 32,561 rows of the training file.

    Parameters
    ----------
    path : file or folder, optional
        The CSV file with a header, or a folder with ``income.csv`` or ``adult.csv``. Default: the folder in the environment
        variable ``AFAPE_DATA``, else the copy in the package ``teacher-xai`` (extra ``paper``), else OpenML (the first
        32,561 of its 48,842 rows are the training file).
    unknown : {"level", "missing", "drop"}
        The table has "?" in ``workclass`` (1,836 rows), ``occupation`` (1,843) and ``native-country`` (583). "level" makes it
        the additional level "not stated", so every row is complete, for experiments that hide values themselves.
        "missing" makes it blank. "drop" drops the 2,399 rows that have one.

    Returns
    -------
    DataFrame
        14 features and the label ``income``.

    Notes
    -----
    The file is checked by its shape, its labels and the sums of three columns. Other or incomplete files raise an error.
    """
    check_choice("unknown", unknown, _UNKNOWN)
    table = read_public(INCOME, path).astype(dict.fromkeys(_NUMBERS, float))
    words = [c for c in _COLUMNS if c not in _NUMBERS]
    texts = table[words].astype(str).astype(object)
    asked = texts == "?"
    if unknown == "level":
        texts = texts.mask(asked, "not stated")
    elif unknown == "missing":
        texts = texts.mask(asked, None)
    found = table.assign(**{c: texts[c] for c in words})
    return found[~asked.any(axis=1)].reset_index(drop=True) if unknown == "drop" else found
