"""How strong an unmeasured reason would have to be to overturn a conclusion."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from ..agents import AcquireNone
from ..comparison import Comparison
from ..plain import plain_records
from ..sensitivity_analysis import Sensitivity, sensitivity
from .words import number

__all__ = ["asked_strength", "is_repriced", "strength_of"]

_LAMBDAS = (1.0, 1.1, 1.25, 1.5, 2.0, 3.0)
_LARGEST = 20.0


def asked_strength(found: Comparison, progress: Any = None) -> Sensitivity | None:
    """Bounds for the policies of a comparison; a single policy is set beside acquiring nothing.

    None where the results came out of a file, without their policies, or were given other prices afterwards.
    """
    first = next(iter(found.evaluations.values())).origin
    assert first is not None
    if first.policy is None or is_repriced(found):
        return None
    policies = {name: e.origin.policy for name, e in found.evaluations.items() if e.origin is not None}
    if len(policies) == 1 and not any(isinstance(p, AcquireNone) for p in policies.values()):
        policies["acquire nothing"] = AcquireNone()
    return sensitivity(
        first.data,
        policies,
        first.classifier,
        missingness=first.missingness,
        lambdas=_LAMBDAS,
        bootstrap=0,
        confidence=found.confidence,
        random_state=first.seed,
        progress=progress,
    )


def is_repriced(found: Comparison) -> bool:
    """Whether prices were changed after the evaluation."""
    first = next(iter(found.evaluations.values()))
    if first.origin is None or first.tariff is None:
        return False
    data, tariff = first.origin.data, first.tariff
    prices = data.problem.prices[~data.problem.free]
    return not (np.array_equal(tariff.prices, prices) and np.array_equal(tariff.costs, data.costs))


def strength_of(found: Sensitivity | None, confidence: float) -> dict[str, Any] | None:
    """Tables and sentences; None where it was not asked."""
    if found is None:
        return None
    sentences = [text for text in _tipping(found) if text]
    benchmark: list[dict[str, Any]] = []
    with suppress(ValueError):  # a known propensity has no models to compare
        benchmark = plain_records(found.benchmark)
    for line in benchmark[:6]:
        sentences.append(
            f"For scale: “{line['group']}”, which is accounted for, changes these odds by a factor of up to "
            f"{number(line['q95'])} (in 95 % of cases)."
        )
    return {"table": plain_records(found.table), "benchmark": benchmark, "sentences": sentences}


def _tipping(found: Sensitivity) -> list[str]:
    estimates = {name: found.estimate(name) for name in found.policies}
    ranked = sorted((n for n in estimates if np.isfinite(estimates[n])), key=lambda n: estimates[n])
    if len(ranked) < 2:
        return [
            "One policy alone has no conclusion that could be overturned; the bounds below show how far its cost could move."
        ]
    return [_pair(found, ranked[0], other) for other in ranked[1:5]]


def _pair(found: Sensitivity, best: str, other: str) -> str:
    tips = found.tipping(best, other, largest=_LARGEST, bootstrap=0).Lambda
    if not np.isfinite(tips):
        at_most = f"even one that changes the odds of being recorded by a factor of {_LARGEST:g}"
        return f"No unmeasured reason, {at_most}, would make “{best}” dearer than “{other}”."
    if tips <= 1:
        return f"That “{best}” is cheaper than “{other}” is not certain even without any unmeasured reason."
    return (
        f"An unmeasured reason would have to change the odds of being recorded by a factor of {number(tips)} before “{best}” "
        f"could cost as much as “{other}”."
    )
