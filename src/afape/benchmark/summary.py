"""Errors, coverage and data efficiency from the results of an experiment."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from .._arguments import check_choice, check_count
from .._arrays import Floats
from ..estimators.catalogue import METHODS
from .data_set import COMPLETE

__all__ = ["COSTS", "data_efficiency", "summarise_results"]

COSTS = ("misclassification", "total")  # the targets of pages and verdicts: J and J_total of the paper
_KEYS = ["run", "rows", "agent", "estimator", "target"]
_COLUMNS = [*_KEYS, "draw", "truth", "estimate", "std_error", "lower", "upper", "ess", "unsupported", "support"]
_REPLICATES = 400


def summarise_results(results: pd.DataFrame) -> pd.DataFrame:
    """Return bias, root mean squared error and coverage per run, size, agent, estimator and target.

    ``bias`` is the mean difference from J, or from the cost of the drawn rows without gaps (estimator ``complete``), whose
    mean is J. The difference that varies less is taken. ``biased`` is the bias divided by its Monte Carlo error. ``covered``
    counts the data sets whose interval contains J, and ``intervals`` those that have an interval.
    """
    _check_results(results)
    lines = []
    results = _with_reference(results)
    for key, lines_of in results.groupby(_KEYS, sort=False):
        answered = lines_of[lines_of["estimate"].notna()]
        error = (answered["estimate"] - answered["truth"]).to_numpy()
        known = answered[answered["lower"].notna()]
        slack = 1e-9 * known["truth"].abs()  # exact estimates differ from the truth by rounding
        inside = (known["lower"] - slack <= known["truth"]) & (known["truth"] <= known["upper"] + slack)
        paired = (
            error if key[3] == COMPLETE else _steadier(error, (answered["estimate"] - answered["reference"]).to_numpy())
        )
        spread = float(error.std(ddof=1)) if len(error) > 1 else float("nan")
        mc_error = float(paired.std(ddof=1)) / np.sqrt(len(paired)) if len(paired) > 1 else float("nan")
        lines.append(
            {
                **dict(zip(_KEYS, key, strict=True)),
                "truth": lines_of["truth"].iloc[0],
                "draws": len(lines_of),
                "answered": len(answered),
                "mean": float(answered["estimate"].mean()),
                "bias": float(paired.mean()) if len(paired) else float("nan"),
                "bias_mc_error": mc_error,
                "biased": _in_units(paired, mc_error),
                "rmse": float(np.sqrt((error**2).mean())) if len(error) else float("nan"),
                "std_deviation": spread,
                "mean_std_error": float(answered["std_error"].mean()),
                "mean_lower": float(known["lower"].mean()),
                "mean_upper": float(known["upper"].mean()),
                "intervals": len(known),
                "covered": int(inside.sum()),
                "ess": float(answered["ess"].dropna().median()),
                "unsupported": float(lines_of["unsupported"].mean()),
                "warned": float((lines_of["support"] != "").mean()),
            }
        )
    return pd.DataFrame(lines)


def _check_results(results: Any) -> None:
    if not isinstance(results, pd.DataFrame):
        raise TypeError(f"'results' must be a DataFrame of an experiment's results, but is {type(results).__name__}.")
    if absent := [column for column in _COLUMNS if column not in results.columns]:
        raise ValueError(
            f"'results' must have the columns {_COLUMNS}, but lacks {absent}. Read it from results.csv of an experiment."
        )


def _steadier(error: Floats, paired: Floats) -> Floats:
    """Return the errors that vary less: against the truth, or against the drawn rows without gaps.

    Both have the same expectation.
    """
    if len(error) < 2 or not np.isfinite(paired).all():
        return error
    return paired if paired.std() <= error.std() else error


def _with_reference(results: pd.DataFrame) -> pd.DataFrame:
    """Add a column ``reference``: the cost of the drawn rows without gaps."""
    keys = ["run", "rows", "draw", "agent", "target"]
    complete = results[results["estimator"] == COMPLETE][[*keys, "estimate"]].rename(columns={"estimate": "reference"})
    return results.merge(complete, on=keys, how="left", validate="many_to_one")


def _in_units(error: Floats, mc_error: float) -> float:
    """Return the bias divided by its Monte Carlo error, or 0 for an exact estimate."""
    if len(error) < 2:
        return float("nan")
    if np.abs(error).max() < 1e-9:
        return 0.0
    return float(error.mean()) / mc_error if mc_error > 0 else float("nan")


def data_efficiency(
    results: pd.DataFrame, run: str = "convergence", target: str = "total", seed: int = 0
) -> pd.DataFrame:
    r"""Return how many times fewer rows an estimator needs than ``ipw-miss`` for the same root mean squared error.

    If the mean squared error is :math:`v / n`, the number of rows needed is proportional to :math:`v`. Every size estimates
    :math:`v` by :math:`n \cdot \mathrm{MSE}_n`, and ``ratio`` divides the sums over the sizes. Estimators with a known
    propensity are compared with ``ipw-miss-gt``. A biased estimator never reaches the error: ``ratio`` is NaN if the catalogue
    marks it as biased, or if its bias at the largest size exceeds four Monte Carlo errors. 95 % of the bootstrap replicates
    over data sets lie between ``lower`` and ``upper``.
    """
    _check_results(results)
    check_choice("run", run, list(results["run"].unique()))
    check_choice("target", target, list(results["target"].unique()))
    check_count("seed", seed, 0)
    chosen = _with_reference(results[(results["run"] == run) & (results["target"] == target)])
    lines: list[dict[str, Any]] = []
    for agent, own in chosen.groupby("agent", sort=False):
        squares = {name: _squares(lines_of) for name, lines_of in own.groupby("estimator", sort=False)}
        for name, (square, error) in squares.items():
            reference = "ipw-miss-gt" if str(name).endswith("-gt") else "ipw-miss"
            if name in (reference, COMPLETE) or reference not in squares:
                continue
            ratios = _replicated(squares[reference][0], square, seed)
            last = error[-1]
            biased = len(last) < 2 or abs(last.mean()) > 4 * last.std(ddof=1) / np.sqrt(len(last))
            biased |= METHODS[str(name).removesuffix("-gt")].biased
            found = (np.nan, np.nan, np.nan) if biased else (ratios[0], *np.quantile(ratios[1:], [0.025, 0.975]))
            lines.append(
                {
                    "run": run,
                    "target": target,
                    "agent": agent,
                    "estimator": name,
                    "against": reference,
                    "ratio": float(found[0]),
                    "lower": float(found[1]),
                    "upper": float(found[2]),
                    "biased": bool(biased),
                }
            )
    return pd.DataFrame(lines)


def _squares(lines: pd.DataFrame) -> tuple[list[Floats], list[Floats]]:
    """Return squared errors times n, and errors, per size: arrays with one number per data set."""
    squares, errors = [], []
    for rows, own in lines.sort_values(["rows", "draw"]).groupby("rows"):
        answered = own[own["estimate"].notna()]
        error = (answered["estimate"] - answered["truth"]).to_numpy()
        errors.append(_steadier(error, (answered["estimate"] - answered["reference"]).to_numpy()))
        squares.append(float(str(rows)) * error**2)
    return squares, errors


def _replicated(above: list[Floats], below: list[Floats], seed: int) -> Floats:
    """Return the ratio of the sums over sizes, followed by its bootstrap replicates."""
    rng = np.random.default_rng(seed)
    top, bottom = np.zeros(_REPLICATES + 1), np.zeros(_REPLICATES + 1)
    for a, b in zip(above, below, strict=True):
        if len(a) == 0 or len(b) == 0:
            continue
        chosen = rng.random((_REPLICATES, max(len(a), len(b))))
        top[0] += a.mean()
        bottom[0] += b.mean()
        top[1:] += a[(chosen[:, : len(a)] * len(a)).astype(int)].mean(axis=1)
        bottom[1:] += b[(chosen[:, : len(b)] * len(b)).astype(int)].mean(axis=1)
    return np.asarray(np.divide(top, bottom, out=np.full_like(top, np.nan), where=bottom > 0))
