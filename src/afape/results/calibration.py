"""Calibration in deployment: predicted and observed shares at the states where the policy's runs stop."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .._arguments import as_float, check_count, check_list, is_number, shown
from .._arrays import Floats
from .._copies import HandsOutCopies
from ..estimators.final_scores import FinalScores

__all__ = ["Calibration", "calibration_of"]


@dataclass(frozen=True, eq=False)
class Calibration(HandsOutCopies):
    """Mean score and observed share of the class in ranges of the score.

    Attributes
    ----------
    table : DataFrame
        One line per range of the score: its ends ``low`` and ``high``, the ``share`` of cases in it, their mean score
        (``predicted``) and the share of them in the class (``observed``), with its interval.
    score, label : str
        Name of the outcome that is the score, and the class.
    """

    table: pd.DataFrame
    score: str
    label: Any
    confidence: float

    def plot(self, ax: Any = None) -> Any:
        """Draw observed against predicted shares, with intervals; needs matplotlib."""
        from ..plots.results import draw_calibration

        return draw_calibration(self, ax)

    def __repr__(self) -> str:
        return f"Calibration of {self.score!r} for {self.label!r}\n{self.table.round(3).to_string(index=False)}"


def calibration_of(scores: FinalScores, bins: Any, name: str, label: Any) -> Calibration:
    """Compute the calibration in ``bins``: a number of bins of equal width between 0 and 1, or their ends."""
    lines = []
    for found in scores.calibration(_edges(bins)):
        low, high = (
            (np.nan, np.nan) if found.observed is None else found.observed.interval(scores.evidence.recipe.confidence)
        )
        lines.append(
            {
                "low": found.low,
                "high": found.high,
                "share": found.share,
                "predicted": found.predicted,
                "observed": np.nan if found.observed is None else found.observed.value,
                "lower": low,
                "upper": high,
            }
        )
    return Calibration(pd.DataFrame(lines), name, label, scores.evidence.recipe.confidence)


_MOST_BINS = 10_000


def _edges(bins: Any) -> Floats:
    if is_number(bins) or not isinstance(bins, Iterable):
        return np.linspace(0.0, 1.0, check_count("bins", bins, 1, _MOST_BINS) + 1)
    listed = check_list("bins", bins, "ascending ends of bins")
    ends = np.array([as_float(end) if is_number(end) else np.nan for end in listed])
    if len(ends) < 2 or not (np.diff(ends) > 0).all():
        raise ValueError(f"'bins' must be a number of bins or a list of their ascending ends, but is {shown(bins)}.")
    return ends
