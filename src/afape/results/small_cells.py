"""What pages and summaries do not show: values of single rows, numbers of rows, and levels, patterns and subgroups of few."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from ..data.row_counts import RowCounts
from .comparison import Comparison
from .evaluation import Evaluation

__all__ = ["shown_patterns", "vague", "without_small"]

_OF_ONE_ROW = ("smallest_propensity", "largest_weight")  # a least or largest value belongs to one person
_COUNTS = {
    "rows_recorded": ("rows_recorded", "share_recorded"),
    "rows_wanting": ("rows_wanting",),
}  # and what tells them


def without_small(found: Comparison, data: RowCounts, min_cell: int) -> Comparison:
    """Return the results without what describes single rows, and without counts below ``min_cell`` and what has so few rows."""
    rare = {column for column, rows in data.levels.items() if rows < min_cell}
    kept = {name: _without(evaluation, rare, min_cell) for name, evaluation in found.evaluations.items()}
    return replace(found, evaluations=kept)


def _without(evaluation: Evaluation, rare: set[str], min_cell: int) -> Evaluation:
    support = evaluation.support
    balance = support.balance
    if "column" in balance:
        balance = balance[~balance["column"].isin(rare)]
    subgroups = {level: e for level, e in evaluation.subgroups.items() if e.support.n_rows >= min_cell}
    tables: dict[str, Any] = {
        name: _coarse(getattr(support, name), min_cell)
        for name in ("sets", "groups", "estimators", "violations", "undecided")
    }
    texts: dict[str, Any] = {
        name: tuple(vague(t, min_cell) for t in getattr(support, name)) for name in ("warnings", "heavy", "advice")
    }
    hidden = replace(support, balance=balance, heaviest=support.heaviest.iloc[:0], **tables, **texts)
    return replace(evaluation, subgroups=subgroups, support=hidden)


def _coarse(table: pd.DataFrame, min_cell: int) -> pd.DataFrame:
    """Return a table without extreme values and small counts."""
    out = table.copy()
    for column in set(_OF_ONE_ROW) & set(out):
        out[column] = np.nan
    for count in set(_COUNTS) & set(table):
        few = table[count].between(1, min_cell - 1)
        for column in set(_COUNTS[count]) & set(table):
            out[column] = table[column].astype(float).mask(few)
    return out


def vague(text: str, min_cell: int) -> str:
    """Return a sentence in which small numbers of rows, as in ``3 of 40 rows``, are not given."""

    def words(found: re.Match[str]) -> str:
        return found.group() if not 0 < int(found.group(1)) < min_cell else f"fewer than {min_cell}{found.group(2)}"

    return re.sub(r"\b(\d+)( of (?:the |\d+ )?rows\b)", words, text)


def shown_patterns(counts: np.ndarray, most: int, min_cell: int) -> int:
    """Return how many of the most frequent patterns are shown: at most ``most``, and only those with enough rows."""
    return min(most, int((counts >= max(min_cell, 1)).sum()))
