"""The answer in one sentence."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..comparison import Comparison
from ..estimators import Bounds
from .words import interval_words, number

__all__ = ["answer_of"]


def answer_of(found: Comparison, estimator: str) -> str:
    """What it costs, or which policy is the cheapest, with the interval; bounds where the records allow no more."""
    try:
        totals = found.estimates(estimator, "total")
    except KeyError as error:
        return f"The records give no estimate: {error.args[0] if error.args else error}"
    points = {name: e for name, e in totals.items() if not isinstance(e, Bounds)}
    if len(found.evaluations) == 1:
        return _one(found, estimator, *next(iter(totals.items())))
    if not points:
        return "The records do not support all of what any of these policies wants: their costs are only bounded, see below."
    return _several(found, estimator, points)


def _one(found: Comparison, estimator: str, name: str, total: Any) -> str:
    if isinstance(total, Bounds):
        low, high = total.interval(found.confidence)
        return (
            f"Deployed, “{name}” would cost between {number(total.bound_lower)} and {number(total.bound_upper)} per run "
            f"{interval_words(low, high, found.confidence)}. There is no single number, because the records do not "
            "support all of what it wants."
        )
    paid, wrong = (found.estimates(estimator, t)[name].value for t in ("acquisition", "misclassification"))
    low, high = total.interval(found.confidence)
    return (
        f"Deployed, “{name}” would cost {number(total.value)} per run {interval_words(low, high, found.confidence)}: "
        f"{number(paid)} for acquisitions and {number(wrong)} for wrong labels."
    )


def _several(found: Comparison, estimator: str, points: dict[str, Any]) -> str:
    order = sorted(points, key=lambda name: points[name].value)
    best = order[0]
    low, high = points[best].interval(found.confidence)
    cost = f"{number(points[best].value)} per run {interval_words(low, high, found.confidence)}"
    others = len(found.evaluations) - len(points)
    tail = f" {others} more {'has' if others == 1 else 'have'} only bounds." if others else ""
    if len(order) == 1:
        return f"Only “{best}” has a single number: {cost}.{tail}"
    rivals = _not_excluded(found, estimator, best)
    if rivals is None:
        return f"“{best}” has the lowest estimate, {cost}; there are no intervals to compare it by.{tail}"
    if not rivals:
        second = points[order[1]].value
        rest = f"the next, “{order[1]}”, costs {number(second)}.{tail}"
        return f"“{best}” is the cheapest of {len(order)} policies, at {cost}; {rest}"
    names = ", ".join(f"“{n}”" for n in rivals)
    return f"“{best}” has the lowest estimate, {cost}, but the records do not tell it from {names}.{tail}"


def _not_excluded(found: Comparison, estimator: str, best: str) -> list[str] | None:
    """Policies that may be as cheap as the best one, by the simultaneous intervals."""
    try:
        table = found.differences(estimator, "total")
    except ValueError:
        return None
    rivals = []
    for line in table.to_dict("records"):
        if best in (line["policy"], line["minus"]) and line["lower"] <= 0 <= line["upper"]:
            rivals.append(line["minus"] if line["policy"] == best else line["policy"])
    return rivals if np.isfinite(table["std_error"]).all() else None
