"""Comparison of a classifier with the best constant answer: one label that is predicted for every case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from .._arrays import Floats
from ..data.retrospective import Retrospective
from ..walk.tariff import Tariff
from .amounts import Amounts, RunAmounts, Sample
from .answer import Answer
from .catalogue import Choice, ranked
from .estimate import Bounds, Estimate

__all__ = ["DearerThanConstant", "dearer_than_constant", "label_amounts"]

_CRITICAL = NormalDist().inv_cdf(0.99)  # standard errors by which a classifier must be dearer


class DearerThanConstant(NamedTuple):
    """A classifier whose errors cost more than a constant answer."""

    wrong: Estimate  # misclassification cost under the policy
    constant: Estimate  # misclassification cost if `label` is always predicted
    label: Any


def label_amounts(data: Retrospective, row_weight: Floats | None = None) -> Amounts:
    """Share of each label among the cases, (K,), as amounts; every row must have its label."""
    weight = data.row_weight if row_weight is None else row_weight
    each = np.eye(len(data.classes))[data.labels]
    return RunAmounts(each, weight, Sample(data.cluster, data.identity, 0.95))


def dearer_than_constant(
    answers: Mapping[str, Answer], choices: Sequence[Choice], labels: Amounts, tariff: Tariff
) -> DearerThanConstant | None:
    """Return both costs if the errors under a policy certainly cost more than the best constant answer, else None.

    Parameters
    ----------
    answers, choices
        Answers of one policy, and the methods behind them. The preferred method with an estimate and an error is used.
    labels : Amounts
        Shares of the labels, which give the cost of a constant answer.
    tariff : Tariff
        Cost of each true and predicted label.
    """
    best = int((labels.values @ tariff.costs).argmin())
    constant = labels.combine(tariff.costs[:, best])
    for name in [c.name for method in ranked() for c in choices if c.method is method]:
        wrong = answers[name].estimates.get("misclassification")
        if wrong is None or isinstance(wrong, Bounds) or not np.isfinite(wrong.std_error):
            continue
        error = (wrong - constant).std_error if wrong.pairs_with(constant) else wrong.std_error
        if wrong.value - constant.value > _CRITICAL * error + 1e-9 * abs(constant.value):
            return DearerThanConstant(wrong, constant, tariff.classes[best])
        return None
    return None
