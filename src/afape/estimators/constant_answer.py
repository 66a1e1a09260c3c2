"""Comparison of a classifier with the best constant answer: one label that is predicted for every case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from .._arrays import Floats
from ..data.retrospective import Retrospective
from .answer import Answer
from .catalogue import Choice, ranked
from .estimate import Bounds, Estimate

__all__ = ["DearerThanConstant", "dearer_than_constant"]

_CRITICAL = NormalDist().inv_cdf(0.99)  # standard errors by which a classifier must be dearer


class DearerThanConstant(NamedTuple):
    """A classifier whose errors cost more than a constant answer."""

    wrong: Estimate  # misclassification cost under the policy
    constant: Estimate  # misclassification cost if `label` is always predicted
    label: Any


def dearer_than_constant(
    answers: Mapping[str, Answer],
    choices: Sequence[Choice],
    data: Retrospective,
    costs: Floats,
    row_weight: Floats | None = None,
) -> DearerThanConstant | None:
    """Return both costs if the errors under a policy certainly cost more than the best constant answer, else None.

    Parameters
    ----------
    answers, choices
        Answers of one policy, and the methods behind them. The preferred method with an estimate and an error is used.
    data : Retrospective
        Records; ``data.labels`` give the cost of a constant answer.
    costs : ndarray of shape (K, K)
        Cost of each true and predicted label.
    row_weight : ndarray of shape (n,), optional
        Weight of each row in all means.
    """
    weight = data.row_weight if row_weight is None else row_weight
    paid = costs[data.labels]  # (n, K)
    means = weight @ paid / weight.sum()
    best = int(means.argmin())
    influence = weight * (paid[:, best] - means[best]) * (len(weight) / weight.sum())
    constant = Estimate(float(means[best]), influence, data.cluster, data.identity)
    for name in [c.name for method in ranked() for c in choices if c.method is method]:
        wrong = answers[name].estimates.get("misclassification")
        if wrong is None or isinstance(wrong, Bounds) or not np.isfinite(wrong.std_error):
            continue
        error = wrong.std_error if wrong.influence is None else (wrong - constant).std_error
        if wrong.value - constant.value > _CRITICAL * error + 1e-9 * abs(constant.value):
            return DearerThanConstant(wrong, constant, data.classes[best])
        return None
    return None
