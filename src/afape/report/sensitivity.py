"""The section on unmeasured reasons: how strong one would have to be to change the ranking."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from .._progress import Progress
from ..agents.builtin import AcquireNone
from ..files.writing import plain_records
from ..results.comparison import Comparison
from ..sensitivity_analysis.analysis import Sensitivity
from ..sensitivity_analysis.entry import sensitivity_of_runs
from .sentences import number

__all__ = ["is_repriced", "sensitivity_content", "sensitivity_of"]

_LAMBDAS = (1.0, 1.1, 1.25, 1.5, 2.0, 3.0)
_LARGEST = 20.0  # strength up to which a tipping point is searched


def sensitivity_of(found: Comparison, progress: Progress | None = None) -> Sensitivity | None:
    """Run a sensitivity analysis for the policies of a comparison; a single policy is compared with acquiring nothing.

    None if the results were read from a file, which has no policies, or if their prices were changed.
    """
    runs = {name: e.origin.run for name, e in found.evaluations.items() if e.origin is not None}
    known = {name: run for name, run in runs.items() if run is not None}
    if len(known) < len(runs) or is_repriced(found):
        return None
    more = {}
    if len(known) == 1 and not any(isinstance(run.policy, AcquireNone) for run in known.values()):
        more["acquire nothing"] = AcquireNone()
    return sensitivity_of_runs(known, more, lambdas=_LAMBDAS, progress=progress)


def is_repriced(found: Comparison) -> bool:
    """True if prices were changed after the evaluation."""
    first = next(iter(found.evaluations.values()))
    if first.origin is None or first.tariff is None:
        return False
    data, tariff = first.origin.data, first.tariff
    prices = data.problem.prices[~data.problem.free]
    return not (np.array_equal(tariff.prices, prices) and np.array_equal(tariff.costs, data.costs))


def sensitivity_content(found: Sensitivity) -> dict[str, Any]:
    """Return tables and sentences as plain numbers and text."""
    sentences = _tipping(found)
    benchmark: list[dict[str, Any]] = []
    with suppress(ValueError):  # a known propensity has no models to compare
        benchmark = plain_records(found.benchmark)
    for line in benchmark[:6]:
        sentences.append(
            f"For comparison: “{line['group']}”, which the model includes, changes these odds by a factor of up to "
            f"{number(line['q95'])} (in 95 % of cases)."
        )
    return {"table": plain_records(found.table), "benchmark": benchmark, "sentences": sentences}


def _tipping(found: Sensitivity) -> list[str]:
    """One sentence per policy about the cheapest policy and this one."""
    estimates = {name: found.estimate(name) for name in found.policies}
    ranked = sorted((n for n in estimates if np.isfinite(estimates[n])), key=lambda n: estimates[n])
    if len(ranked) < 2:
        return ["Fewer than two policies have an estimate, so there is no ranking to change."]
    return [_pair(found, ranked[0], other) for other in ranked[1:5]]


def _pair(found: Sensitivity, best: str, other: str) -> str:
    tips = found.tipping(best, other, largest=_LARGEST, bootstrap=0).Lambda
    if not np.isfinite(tips):
        return (
            f"Even an unmeasured reason that changes the odds of being recorded by a factor of {_LARGEST:g} would not make "
            f"“{best}” more expensive than “{other}”."
        )
    if tips <= 1:
        return f"It is not certain that “{best}” is cheaper than “{other}”, even without an unmeasured reason."
    return (
        f"An unmeasured reason would have to change the odds of being recorded by a factor of {number(tips)} before “{best}” "
        f"could cost as much as “{other}”."
    )
