"""Sensitivity, specificity, predictive values and accuracy of a policy, as functions of its confusion rates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from .._arrays import Floats
from ..estimators.estimate import Estimate
from ..estimators.proportion import logit_interval
from .parts import Parts

__all__ = ["Metric", "metric_table", "metrics_of"]


@dataclass(frozen=True, eq=False)
class Metric:
    """A function of the confusion rates of a policy.

    Attributes
    ----------
    name : str
        Usual name of the metric.
    label
        The positive class; None for a metric of all classes.
    estimate : Estimate or None
        Estimate, with standard error by the delta method; None if there is none.
    note : str
        Why there is no estimate, or a remark on it.
    """

    name: str
    label: Any
    estimate: Estimate | None
    note: str = ""

    def interval(self, confidence: float) -> tuple[float, float, str]:
        r"""Return lower and upper limit, symmetric on the logit scale and so between 0 and 1, and a note.

        With :math:`m` the metric and :math:`se` its standard error, :math:`\mathrm{logit}(m) \pm t \, se / (m (1 - m))`. If m
        is 0 or 1, or if a few rows carry it, the interval contains that of `Estimate`, with the effective rows of the cases
        that the metric is about.
        """
        if self.estimate is None:
            return float("nan"), float("nan"), self.note
        return (*logit_interval(self.estimate, confidence), self.note)


def metrics_of(parts: Parts) -> list[Metric]:
    """Compute all metrics: for the second of two classes, or for every class against the others if there are more."""
    classes, n_groups = parts.tariff.classes, len(parts.tariff.groups)
    names = list(_names(classes))
    if parts.bounded:
        why = "the records give only bounds of the parts, because the policy wants sets that they do not support"
        return [Metric(name, label, None, why) for name, label, *_ in names]
    cells = parts.values[n_groups:].reshape(len(classes), -1)
    found = []
    for name, label, ratios in names:
        value, gradient, note = _ratio(cells, ratios, name, label, classes)
        if gradient is None:
            found.append(Metric(name, label, None, note))
            continue
        estimate = parts.combine(np.concatenate([np.zeros(n_groups), gradient.ravel()]))
        # The linear combination has the standard error of the metric, but not its value; the metric uses a share of the cases.
        share = min(float((cells * bottom).sum()) for _, bottom in ratios)
        dense = min(estimate.concentration / share, 1.0)
        found.append(Metric(name, label, replace(estimate, value=value, limits=(0.0, 1.0), concentration=dense), note))
    return found


def _names(classes: tuple[Any, ...]) -> Iterator[tuple[str, Any, list[tuple[Floats, Floats]]]]:
    """Yield name, class, and the ratios of sums of cells whose mean is the metric."""
    n = len(classes)
    every: Floats = np.ones((n, n))
    rows = [np.eye(n)[y][:, None] * np.ones(n) for y in range(n)]  # cells of a true label
    for y in [1] if n == 2 else range(n):
        is_true, called = rows[y], rows[y].T
        other, other_called = every - is_true, every - called
        yield "sensitivity", classes[y], [(is_true * called, is_true)]
        yield "specificity", classes[y], [(other * other_called, other)]
        yield "positive predictive value", classes[y], [(is_true * called, called)]
        yield "negative predictive value", classes[y], [(other * other_called, other_called)]
    yield "accuracy", None, [(np.eye(n), every)]
    yield "balanced accuracy", None, [(np.diag(np.eye(n)[y]), rows[y]) for y in range(n)]


def _ratio(
    cells: Floats, ratios: list[tuple[Floats, Floats]], name: str, label: Any, classes: tuple[Any, ...]
) -> tuple[float, Floats | None, str]:
    """Return the mean of the ratios, its gradient with respect to the cells (K, K), and why there is none."""
    value, gradient = 0.0, np.zeros_like(cells)
    for top, bottom in ratios:
        whole, part = float((cells * bottom).sum()), float((cells * top).sum())
        if not whole > 1e-12:
            return float("nan"), None, _nothing(cells, name, label, classes)
        value += part / whole / len(ratios)
        gradient += (top / whole - bottom * part / whole**2) / len(ratios)
    return value, gradient, ""


def _nothing(cells: Floats, name: str, label: Any, classes: tuple[Any, ...]) -> str:
    if name == "balanced accuracy":
        lacking = [c for c, share in zip(classes, cells.sum(axis=1), strict=True) if not share > 1e-12]
        return f"no case of class {lacking[0]!r}"
    return {
        "sensitivity": f"no case of class {label!r}",
        "specificity": f"every case is of class {label!r}",
        "positive predictive value": f"class {label!r} is never predicted",
        "negative predictive value": f"class {label!r} is always predicted",
    }.get(name, "no case at all")


def metric_table(metrics: list[Metric], confidence: float) -> pd.DataFrame:
    """Return a table with one line per metric."""
    lines = []
    for metric in metrics:
        low, high, note = metric.interval(confidence)
        estimate = metric.estimate
        lines.append(
            {
                "metric": metric.name,
                "label": "" if metric.label is None else metric.label,
                "estimate": np.nan if estimate is None else estimate.value,
                "std_error": np.nan if estimate is None else estimate.std_error,
                "lower": low,
                "upper": high,
                "note": note,
            }
        )
    return pd.DataFrame(lines)
