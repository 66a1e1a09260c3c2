"""The ranking of policies by estimated cost, with the uncertainty of their ranks."""

from __future__ import annotations

from collections.abc import Mapping, Set
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from .._arrays import Floats
from ..estimators.differences import covariance_of, draws, paired_differences
from ..estimators.estimate import Bounds, Estimate

__all__ = ["ranked_policies"]


def ranked_policies(
    estimates: Mapping[str, Estimate], confidence: float, few: Set[str] = frozenset(), doubtful: bool = False
) -> pd.DataFrame:
    """Rank policies, cheapest first; see `Comparison.ranking`.

    A policy with bounds is ranked if they decide whether it is cheaper or dearer than every policy with an estimate. With such
    policies, each pair gets an equal share of the error that ``confidence`` allows. If the result is ``doubtful``, nothing is
    called the cheapest. Policies in ``few`` have too few effective rows: they exclude no rank. Returns no line if nothing is
    decided.
    """
    points = {name: e for name, e in estimates.items() if not isinstance(e, Bounds)}
    bounded = [name for name in estimates if name not in points]
    signs = _signs_of_bounds(estimates, bounded, confidence)
    ranked = [b for b in bounded if any(b in pair for pair in signs) and all((b, p) in signs for p in points)]
    names = [name for name in estimates if name in points or name in ranked]
    if not names:
        return pd.DataFrame()
    n_pairs = len(estimates) * (len(estimates) - 1) / 2
    n_points = len(points) * (len(points) - 1) / 2
    if len(points) > 1:
        share = n_points / n_pairs if bounded else 1.0
        found = _signs_of_points(points, 1 - (1 - confidence) * share)
        signs |= {pair: sign for pair, sign in found.items() if not few & set(pair)}
    dearer = {n: sum(signs.get((n, other), 0) > 0 for other in names) for n in names}
    cheaper = {n: sum(signs.get((n, other), 0) < 0 for other in names) for n in names}
    few = few if len(names) > 1 else frozenset()
    best = _best(points, few, [b for b in ranked if dearer[b] == 0], ranked)
    ends = {n: e for n in ranked if isinstance(e := estimates[n], Bounds)}
    table = pd.DataFrame(
        {
            "policy": names,
            "estimate": [estimates[n].value for n in names],
            "best": [best[n] for n in names],
            "rank_lower": [1 + dearer[n] for n in names],
            "rank_upper": [len(names) - cheaper[n] for n in names],
        }
    )
    table["verdict"] = [
        _verdict(line, len(names), line["policy"] in few, doubtful) for line in table.to_dict("records")
    ]
    order = table["estimate"]
    if ends:
        further = {n: e.extrapolated.value for n, e in ends.items() if e.extrapolated is not None}
        table["bound_lower"] = [ends[n].bound_lower if n in ends else np.nan for n in names]
        table["bound_upper"] = [ends[n].bound_upper if n in ends else np.nan for n in names]
        table["extrapolated"] = [further.get(n, np.nan) for n in names]
        order = order.fillna((table["bound_lower"] + table["bound_upper"]) / 2)
    return table.loc[order.sort_values(kind="stable").index].reset_index(drop=True)


def _signs_of_bounds(
    estimates: Mapping[str, Estimate], bounded: list[str], confidence: float
) -> dict[tuple[str, str], int]:
    """Return, for pairs with a bounded policy that are decided, 1 if the first is dearer and -1 if it is cheaper."""
    n_pairs = len(estimates) * (len(estimates) - 1) / 2
    out = {}
    for a, b in combinations(estimates, 2):
        if a in bounded or b in bounded:
            low, high = (estimates[a] - estimates[b]).interval(1 - (1 - confidence) / n_pairs)
            if low > 0 or high < 0:
                sign = 1 if low > 0 else -1
                out[a, b], out[b, a] = sign, -sign
    return out


def _signs_of_points(points: Mapping[str, Estimate], confidence: float) -> dict[tuple[str, str], int]:
    out = {}
    for line in paired_differences(points, confidence).to_dict("records"):
        a, b = line["policy"], line["minus"]
        if line["lower"] > 0 or line["upper"] < 0:
            sign = 1 if line["lower"] > 0 else -1
            out[a, b], out[b, a] = sign, -sign
    return out


def _best(points: Mapping[str, Estimate], few: Set[str], undercut: list[str], ranked: list[str]) -> dict[str, float]:
    """Return the probability that each policy is the cheapest, NaN for those in ``few``.

    ``undercut`` are bounded policies that none is cheaper than.
    """
    if undercut:
        alone = 1.0 if len(undercut) == 1 else float("nan")
        return {name: alone if name in undercut else 0.0 for name in (*points, *ranked)}
    values: Floats = np.array([e.value for e in points.values()])
    drawn = values + draws(covariance_of(list(points.values())))
    enough = np.array([name not in few for name in points])
    first = np.where(enough, drawn, np.inf).argmin(axis=1)
    shares = np.where(enough, np.bincount(first, minlength=len(points)) / len(drawn), np.nan)
    return dict(zip(points, shares.tolist(), strict=True)) | dict.fromkeys(ranked, 0.0)


def _verdict(line: dict[Any, Any], n_policies: int, few: bool, doubtful: bool) -> str:
    """Describe rank and probability in words; nothing is the cheapest if there are grave doubts."""
    if n_policies == 1:
        return "alone"
    if few:
        return "too few rows"
    if line["rank_upper"] == 1:
        return "lowest estimate, in doubt" if doubtful else "cheapest"
    if line["rank_lower"] > 1:
        return "not the cheapest"
    return "unlikely to be the cheapest" if line["best"] < 0.05 else "perhaps the cheapest"
