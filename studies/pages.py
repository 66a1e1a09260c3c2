"""What the pages of the studies share: the first sentences, tables, figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from afape.benchmark.page import markdown
from studies.simulation import Task

__all__ = ["figure_axes", "formatted", "in_mc_errors", "made_by", "save_figure", "table_of"]


def made_by(study: str, task: Task, problem: str = "the synthetic MAR problem") -> str:
    """Return the sentences that say how a page was made."""
    return (
        f"Made by `python -m studies {study} --draws {task.n_draws} --rows {task.n_rows}`: {task.n_draws:,} data sets of "
        f"{task.n_rows:,} rows, drawn with replacement from the evaluation rows of {problem}; values are hidden anew each "
        "time. The truth is the cost on all evaluation rows, without gaps. `summary.csv` has all numbers.\n\n"
    )


def formatted(values: pd.Series[Any], pattern: str) -> pd.Series[Any]:
    """Return numbers as texts, and nothing for NaN."""
    return values.map(lambda v: "" if np.isnan(v) else pattern.format(v))


def in_mc_errors(summary: pd.DataFrame) -> pd.Series[Any]:
    """Return the bias divided by its Monte Carlo error, as texts."""
    return formatted(summary["bias"] / summary["bias_mc_error"], "{:+.1f}")


def table_of(shown: pd.DataFrame, columns: Sequence[str]) -> str:
    """Return these columns as a Markdown table; numbers get four digits."""
    numbers = [c for c in ("truth", "bias", "rmse", "mean_std_error") if c in columns]
    return markdown(shown.assign(**{c: formatted(shown[c], "{:.4g}") for c in numbers})[list(columns)])


def figure_axes(titles: Sequence[str], names: Sequence[str], height: float) -> tuple[Figure, list[Axes]]:
    """Return a figure with one panel per title and one line per name."""
    figure = Figure(figsize=(3.2 * len(titles), height), layout="constrained")
    axes = list(figure.subplots(1, len(titles), sharey=True, squeeze=False)[0])
    for axis, title in zip(axes, titles, strict=True):
        axis.set_title(title, fontsize=10)
    axes[0].set_yticks(np.arange(len(names)), names)
    return figure, axes


def save_figure(figure: Figure, file: Path) -> None:
    """Write a figure with a legend at its right."""
    figure.axes[-1].legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.savefig(file, metadata={"Date": None})
