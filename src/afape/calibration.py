"""Calibration in deployment: predicted against observed, where the policy's runs stop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from .arguments import check_count
from .arrays import Floats
from .estimators.final_scores import FinalScores
from .plotting import axes_of

__all__ = ["Calibration", "calibration_of"]


@dataclass(frozen=True, eq=False)
class Calibration:
    """Mean score and observed share of the class in ranges of the score.

    Attributes
    ----------
    table : DataFrame
        One line per range: its ends ``low`` and ``high``, the ``share`` of cases in it, their mean score (``predicted``) and
        the share of them that are of the class (``observed``), with its interval.
    score, label : str
        The outcome that is the score, and the class.
    """

    table: pd.DataFrame
    score: str
    label: Any
    confidence: float

    def plot(self, ax: Any = None) -> Any:
        """Draw observed against predicted, with intervals; needs matplotlib."""
        ax = axes_of(ax, (4.5, 4.5))
        table = self.table.dropna(subset=["observed"])
        x, y = table["predicted"], table["observed"]
        ends = [y - table["lower"].fillna(y), table["upper"].fillna(y) - y]
        ax.plot([0, 1], [0, 1], color="0.7", linewidth=1)
        ax.errorbar(x, y, yerr=np.clip(np.array(ends), 0.0, None), fmt="o", color="C0")
        ax.set_xlabel(f"predicted ({self.score})")
        ax.set_ylabel(f"observed share of {self.label!r}")
        return ax

    def __repr__(self) -> str:
        return f"Calibration of {self.score!r} for {self.label!r}\n{self.table.round(3).to_string(index=False)}"


def calibration_of(scores: FinalScores, bins: Any, name: str, label: Any) -> Calibration:
    """Calibration in ``bins``: how many of equal width between 0 and 1, or their ends."""
    lines = []
    for found in scores.calibration(_edges(bins)):
        low, high = (np.nan, np.nan) if found.observed is None else found.observed.interval(scores.confidence)
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
    return Calibration(pd.DataFrame(lines), name, label, scores.confidence)


def _edges(bins: Any) -> Floats:
    if isinstance(bins, Iterable) and not isinstance(bins, str | Mapping):
        ends = list(bins)
        numbers = all(isinstance(end, Real) and not isinstance(end, bool | np.bool_) for end in ends)
        if not numbers or len(ends) < 2 or not (np.diff(ends) > 0).all():
            raise ValueError(f"'bins' must be a number of bins or their ends, ascending, but is {ends!r}.")
        return np.asarray(ends, dtype=float)
    return np.linspace(0.0, 1.0, check_count("bins", bins, 1) + 1)
