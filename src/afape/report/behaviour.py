"""What the policies do, side by side: how often they acquire each group, their errors, and the quality of their predictions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..data.row_counts import RowCounts
from ..estimators.estimate import Bounds, Estimate
from ..results.evaluation import Evaluation
from ..results.metrics import metrics_of
from ..results.parts import Parts

__all__ = ["behaviour_content"]


def behaviour_content(
    evaluations: Mapping[str, Evaluation], estimator: str, prices: Mapping[str, float], data: RowCounts
) -> dict[str, Any]:
    """Return one line per group, kind of error and metric, each with one cell per policy; None stands for no estimate.

    Policies without an answer by ``estimator`` use their own best one. ``prices`` are those of the groups.
    """
    parts = {name: _parts(evaluation, estimator) for name, evaluation in evaluations.items()}
    known = [p for p in parts.values() if p is not None]
    if not known:
        return {"events": [], "metrics": [], "means": []}
    tariff = known[0].tariff
    recorded = dict(zip(data.problem.group_names, data.recorded_share.tolist(), strict=True))
    events: list[dict[str, Any]] = [
        {
            "event": f"acquires {group}",
            "group": group,
            "never": all(p is not None and _is_zero(p.rates[group]) for p in parts.values()),
            "price": prices[group],
            "recorded": recorded[group],
            "cells": [None if p is None else _numbers(p.rates[group], p.confidence) for p in parts.values()],
        }
        for group in tariff.groups
    ]
    for true, predicted in known[0].confusion:
        if true != predicted:
            y, k = tariff.classes.index(true), tariff.classes.index(predicted)
            cells = [
                None if p is None else _numbers(p.confusion[true, predicted], p.confidence) for p in parts.values()
            ]
            event = f"predicts “{predicted}” where “{true}” is true"
            line = {"event": event, "group": None, "never": False, "price": float(tariff.costs[y, k]), "recorded": None}
            events.append({**line, "cells": cells})
    means = [None if p is None or isinstance(p.acquisitions, Bounds) else p.acquisitions.value for p in parts.values()]
    return {"events": events, "metrics": _metrics(list(parts.values())), "means": means}


def _is_zero(rate: Estimate) -> bool:
    """True if a policy surely never does this."""
    return not isinstance(rate, Bounds) and rate.value == 0 and rate.std_error == 0


def _parts(evaluation: Evaluation, estimator: str) -> Parts | None:
    try:
        return evaluation.parts(estimator if estimator in evaluation else evaluation.best_estimator)
    except (KeyError, ValueError):
        return None


def _metrics(parts: list[Parts | None]) -> list[dict[str, Any]]:
    """Return one line per metric; lines without any estimate are left out."""
    columns = [{} if p is None else {(m.name, m.label): m for m in metrics_of(p)} for p in parts]
    lines = []
    for name, label in next(column for column in columns if column):
        cells: list[dict[str, Any] | None] = []
        for column, p in zip(columns, parts, strict=True):
            found = column.get((name, label))
            if p is None or found is None or found.estimate is None:
                cells.append(None if found is None else {"note": found.note})
                continue
            lower, upper, note = found.interval(p.confidence)
            cells.append(
                {"estimate": found.estimate.value, "lower": _known(lower), "upper": _known(upper), "note": note}
            )
        if any(cell and "estimate" in cell for cell in cells):
            lines.append({"metric": name, "label": "" if label is None else str(label), "cells": cells})
    return lines


def _numbers(estimate: Estimate, confidence: float) -> dict[str, Any]:
    lower, upper = estimate.interval(confidence)
    if isinstance(estimate, Bounds):
        return {"bound_lower": estimate.bound_lower, "bound_upper": estimate.bound_upper}
    return {"estimate": estimate.value, "lower": _known(lower), "upper": _known(upper)}


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
