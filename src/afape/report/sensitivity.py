"""The section on unmeasured reasons: how strong one would have to be to change the ranking."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from .._progress import Progress
from ..agents.builtin import AcquireNone
from ..estimators.estimate import Bounds
from ..files.writing import plain_records
from ..results.comparison import Comparison
from ..sensitivity_analysis.analysis import Sensitivity
from ..sensitivity_analysis.entry import sensitivity_of_runs

__all__ = ["is_repriced", "sensitivity_content", "sensitivity_of", "starting_from_answer"]

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


def starting_from_answer(found: Sensitivity, comparison: Comparison, estimator: str) -> Sensitivity:
    """Return the analysis with bounds that start from the estimates of the page; bounds of costs are no start."""
    try:
        estimates = comparison.estimates(estimator, found.costs.target)
    except KeyError:
        return found
    points = {name: e.value for name, e in estimates.items() if name in found.policies and not isinstance(e, Bounds)}
    return found.starting_from({name: value for name, value in points.items() if np.isfinite(value)})


def sensitivity_content(found: Sensitivity, estimator: str) -> dict[str, Any]:
    """Return tables and sentences as plain numbers and text; the bounds start from the estimates of the page."""
    sentences, tips = _tipping(found)
    benchmark: list[dict[str, Any]] = []
    with suppress(ValueError):  # a known propensity has no models to compare
        benchmark = plain_records(found.benchmark)
    if known := [f"{line['q95']:.2f} (“{line['group']}”)" for line in benchmark[:6] if line["q95"] is not None]:
        sentences.append(
            "For comparison: what the model includes changes these odds, in 95 % of cases, by a factor of up to "
            f"{', '.join(known)}."
        )
    how = (
        f"At Λ = 1 the bounds are the estimates by {estimator}, as above. For other Λ, what such a reason changes is computed by "
        "inverse-probability weighting of whole runs, the only estimator for which this analysis exists, and added to these "
        "estimates."
    )
    lines = plain_records(found.table)
    table = [{"policy": name, "bounds": [line for line in lines if line["policy"] == name]} for name in found.policies]
    flat = bool((found.table["bound_upper"] - found.table["bound_lower"]).abs().max() == 0)
    return {"flat": flat, "table": table, "benchmark": benchmark, "sentences": sentences, "how": how, "tips": tips}


def _tipping(found: Sensitivity) -> tuple[list[str], float | None]:
    """Return a sentence for each of the four next policies, up to which strength the first stays cheaper, and the least of these.

    Infinite strengths count as the largest one searched; the least is None without a ranking.
    """
    estimates = {name: found.estimate(name) for name in found.policies}
    ranked = sorted((n for n in estimates if np.isfinite(estimates[n])), key=lambda n: estimates[n])
    if len(ranked) < 2:
        return ["Fewer than two policies have an estimate, so there is no ranking to change."], None
    tips = {other: found.tipping(ranked[0], other, largest=_LARGEST, bootstrap=0).Lambda for other in ranked[1:5]}
    sentences = [_pair(ranked[0], other, at) for other, at in tips.items()]
    for name in (name for name in found.policies if name not in ranked):
        sentences.append(f"“{name}” is left out: {found.tipping(name, ranked[0], bootstrap=0).reason}.")
    return sentences, min(_LARGEST, *tips.values())


def _pair(best: str, other: str, tips: float) -> str:
    if not np.isfinite(tips):
        return (
            f"Even an unmeasured reason that changes the odds of being recorded by a factor of {_LARGEST:g} would not make "
            f"“{best}” more expensive than “{other}”."
        )
    if tips <= 1:
        return f"“{best}” is not cheaper than “{other}” for certain, even without an unmeasured reason."
    return (
        f"An unmeasured reason would have to change the odds of being recorded by a factor of {tips:.2f} before “{best}” "
        f"could cost as much as “{other}”."
    )
