"""Statistics of many data sets with Monte Carlo errors that respect that agents and estimators share the data sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from .._arrays import Bools, Floats
from .data_set import COMPLETE

__all__ = ["FEWEST", "Cells", "Measured", "NotRunError", "cells_of", "growth", "measured"]

_ARRAYS = ("estimate", "reference", "std_error", "lower", "upper")
FEWEST = 10  # data sets below which a Monte Carlo error is not trusted
_SLACK = 1e-9  # exact estimates differ from the truth by rounding


class NotRunError(LookupError):
    """The results lack a run that a statistic needs."""


class Measured(NamedTuple):
    """A statistic of all data sets, and its Monte Carlo error; the error is NaN with fewer than ten data sets."""

    value: float
    error: float


@dataclass(frozen=True, eq=False)
class Cells:
    """Estimates of one run, size and target: a line per data set, a column (*cell*) per agent and estimator.

    Attributes
    ----------
    names : tuple of (agent, estimator)
    truth : ndarray of shape (C,)
        J of each cell.
    estimate, reference, std_error, lower, upper : ndarray of shape (D, C)
        ``reference`` is the cost of the drawn rows without gaps, whose mean is J.
    """

    names: tuple[tuple[str, str], ...]
    truth: Floats
    estimate: Floats
    reference: Floats
    std_error: Floats
    lower: Floats
    upper: Floats

    def take(self, agents: Sequence[str] | None = None, estimators: Sequence[str] | None = None) -> Cells:
        """Return the cells of these agents and estimators."""
        kept = np.array(
            [(agents is None or a in agents) and (estimators is None or e in estimators) for a, e in self.names],
            dtype=bool,
        )
        arrays = {name: getattr(self, name)[:, kept] for name in _ARRAYS}
        names = tuple(name for name, keep in zip(self.names, kept, strict=True) if keep)
        return replace(self, names=names, truth=self.truth[kept], **arrays)

    def without(self, draw: int) -> Cells:
        """Return the cells without one data set."""
        return replace(self, **{name: np.delete(getattr(self, name), draw, axis=0) for name in _ARRAYS})

    @property
    def agents(self) -> list[str]:
        """Names of the agents."""
        return list(dict.fromkeys(agent for agent, _ in self.names))

    def bias(self) -> Floats:
        """Mean difference from J, or from the drawn rows without gaps where that varies less, as a share of J; (C,)."""
        error, paired = self.estimate - self.truth, self.estimate - self.reference
        whole = (np.isfinite(paired) | ~np.isfinite(error)).all(axis=0)
        steadier = whole & (_spread(paired) <= _spread(error))  # both have the same expectation
        return np.asarray(_mean(np.where(steadier, paired, error)) / np.abs(self.truth))

    def rmse(self) -> Floats:
        """Root mean squared error as a share of J, (C,)."""
        return np.asarray(np.sqrt(_mean((self.estimate - self.truth) ** 2)) / np.abs(self.truth))

    @property
    def covered(self) -> Bools:
        """True if the interval contains J, (D, C); False without an interval."""
        slack = _SLACK * np.abs(self.truth)
        return np.asarray((self.lower - slack <= self.truth) & (self.truth <= self.upper + slack))

    @property
    def with_interval(self) -> Bools:
        """True if there is an interval, (D, C)."""
        return np.asarray(np.isfinite(self.lower))

    def coverage(self) -> float:
        """Share of all intervals that contain J; NaN without intervals."""
        n = int(self.with_interval.sum())
        return int(self.covered.sum()) / n if n else float("nan")

    def narrowness(self) -> float:
        """Mean standard error over the standard deviation of the estimates, as the geometric mean over the cells."""
        spread, error = _spread(self.estimate), _mean(self.std_error)
        useful = spread > _SLACK * np.abs(self.truth)
        return float(np.exp(np.mean(np.log(error[useful] / spread[useful])))) if useful.any() else float("nan")


def _mean(numbers: Floats) -> Floats:
    """Mean of each column, without its NaN; NaN for a column without numbers."""
    n = np.isfinite(numbers).sum(axis=0)
    return np.asarray(np.where(n > 0, np.nansum(numbers, axis=0) / np.maximum(n, 1), np.nan))


def _spread(numbers: Floats) -> Floats:
    """Standard deviation of each column, without its NaN; NaN with fewer than two numbers."""
    n = np.isfinite(numbers).sum(axis=0)
    squares = np.nansum((numbers - _mean(numbers)) ** 2, axis=0)
    return np.asarray(np.where(n > 1, np.sqrt(squares / np.maximum(n - 1, 1)), np.nan))


def cells_of(results: pd.DataFrame, run: str, target: str, rows: int | None = None) -> Cells:
    """Return the cells of a run; ``rows`` is the largest size by default."""
    found = results[(results["run"] == run) & (results["target"] == target)]
    found = found[found["rows"] == (found["rows"].max() if rows is None else rows)]
    if found.empty:
        raise NotRunError(f"The results have no run {run!r} with the target {target!r}.")
    complete = found[found["estimator"] == COMPLETE].set_index(["draw", "agent"])["estimate"].rename("reference")
    found = found[found["estimator"] != COMPLETE].join(complete, on=["draw", "agent"])
    wide = found.pivot(index="draw", columns=["agent", "estimator"], values=["truth", *_ARRAYS])
    names = tuple((str(a), str(e)) for a, e in wide["estimate"].columns)
    arrays = {name: wide[name][list(names)].to_numpy(dtype=float) for name in ("truth", *_ARRAYS)}
    return Cells(names, np.nanmean(arrays.pop("truth"), axis=0), **arrays)


def measured(statistic: Callable[[Cells], float | Floats], cells: Cells) -> list[Measured]:
    """Return a statistic of the cells and its jackknife error over data sets; one entry per number of the statistic.

    Leaving out a data set leaves it out for all agents and estimators, so the error knows what they share.
    """
    value, n = np.atleast_1d(statistic(cells)), len(cells.estimate)
    if n < FEWEST:
        return [Measured(float(v), float("nan")) for v in value]
    left = np.array([np.atleast_1d(statistic(cells.without(draw))) for draw in range(n)])
    error = np.sqrt((n - 1) / n * ((left - left.mean(axis=0)) ** 2).sum(axis=0))
    return [Measured(float(v), float(e)) for v, e in zip(value, error, strict=True)]


def growth(rows: Sequence[int], errors: Sequence[Measured]) -> Measured:
    """Return the slope of the logarithm of the error in the logarithm of the rows: -1/2 where an estimate converges.

    ``errors`` are those of independent data sets of each size.
    """
    x = np.log(np.asarray(rows, dtype=float))
    if len(x) < 2:
        return Measured(float("nan"), float("nan"))
    weight = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
    value, spread = np.array([e.value for e in errors]), np.array([e.error / e.value for e in errors])
    return Measured(float(weight @ np.log(value)), float(np.sqrt((weight**2 * spread**2).sum())))
