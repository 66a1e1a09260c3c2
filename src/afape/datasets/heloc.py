"""The Heloc table."""

from __future__ import annotations

import os

import pandas as pd

from .._arguments import check_choice
from .public import PublicTable, in_teacher_xai, read_public

__all__ = ["HELOC", "load_heloc"]

_FEATURES = (
    "ExternalRiskEstimate", "MSinceOldestTradeOpen", "MSinceMostRecentTradeOpen", "AverageMInFile",
    "NumSatisfactoryTrades", "NumTrades60Ever2DerogPubRec", "NumTrades90Ever2DerogPubRec", "PercentTradesNeverDelq",
    "MSinceMostRecentDelq", "MaxDelq2PublicRecLast12M", "MaxDelqEver", "NumTotalTrades", "NumTradesOpeninLast12M",
    "PercentInstallTrades", "MSinceMostRecentInqexcl7days", "NumInqLast6M", "NumInqLast6Mexcl7days",
    "NetFractionRevolvingBurden", "NetFractionInstallBurden", "NumRevolvingTradesWBalance", "NumInstallTradesWBalance",
    "NumBank2NatlTradesWHighUtilization", "PercentTradesWBalance",
)  # fmt: skip

HELOC = PublicTable(
    name="Heloc",
    files=("heloc.csv", "heloc_dataset_v1.csv"),
    package=("teacher-xai", "paper"),
    packaged=lambda: in_teacher_xai("heloc_dataset_v1.csv"),
    openml=46932,
    columns=("RiskPerformance", *_FEATURES),
    n_rows=10_459,
    label="RiskPerformance",
    label_counts={"Bad": 5459, "Good": 5000},
    sums={"ExternalRiskEstimate": 705_206, "MSinceOldestTradeOpen": 1_926_604, "PercentTradesWBalance": 649_286},
)

_CODES = {"keep": [], "missing": [-8.0, -9.0], "all-missing": [-7.0, -8.0, -9.0]}
_EMPTY = ("drop", "keep")


def load_heloc(
    path: str | os.PathLike[str] | None = None, *, codes: str = "keep", empty_rows: str = "drop"
) -> pd.DataFrame:
    """Credit applications of home owners (FICO Explainable Machine Learning Challenge, 2018).

    Parameters
    ----------
    path : file or folder, optional
        The CSV file, or a folder with ``heloc.csv`` or ``heloc_dataset_v1.csv``. Default: the folder in the environment
        variable ``AFAPE_DATA``, else the copy in the package ``teacher-xai`` (extra ``paper``), else OpenML.
    codes : {"keep", "missing", "all-missing"}
        In the table, -7 means that a condition is not met (no delinquency, no inquiry: the event never happened), -8 that
        there is no usable trade or inquiry, and -9 that there is no record. "keep" keeps all three as numbers. They are
        below all regular values, so trees can distinguish them, and every row is complete, for experiments that hide
        values themselves. `Retrospective` asks about them with a `CodeValuesWarning`, unless the problem has
        ``blank_means={column: -9 for column in columns}``, which says that they are values. "missing" makes -8 and -9 blank
        and keeps -7, which is information. "all-missing" makes all three blank.
    empty_rows : {"drop", "keep"}
        588 of the 10,459 rows have -9 in all 23 features, so they contain only a label. They are dropped by default, which
        leaves 9,871 rows.

    Returns
    -------
    DataFrame
        Label ``RiskPerformance`` ("Bad": 90 days past due within two years) and 23 numeric features.

    Notes
    -----
    The file is checked by its shape, its labels and the sums of three columns. Other or incomplete files raise an error.
    von Kleist et al. (2023) state 35,562 rows for Heloc; the public file has 10,459.
    """
    check_choice("codes", codes, tuple(_CODES))
    check_choice("empty_rows", empty_rows, _EMPTY)
    table = read_public(HELOC, path)
    features = table[list(_FEATURES)].astype(float)
    if empty_rows == "drop":
        features = features[(features != -9).any(axis=1)]
    features = features.mask(features.isin(_CODES[codes]))
    label = table["RiskPerformance"].astype(str)
    return pd.concat([label[features.index], features], axis=1).reset_index(drop=True)
