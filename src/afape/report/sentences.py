"""Sentences and numbers of the page: the answer, the assumption, numbers as text."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd

from ..estimators.estimate import Bounds, Estimate
from ..estimators.unseen import ENOUGH_ROWS
from ..missingness.assumptions import MAR, MCAR, MNAR
from ..results.comparison import Comparison
from ..results.numbers import cost, decimals_of
from ..support.implications import INDICATOR

__all__ = [
    "STANDING_ASSUMPTIONS",
    "answer_of",
    "assumption_words",
    "chance",
    "interval_words",
    "percent",
    "weighed_words",
]

_ROUNDING = 1e-9  # a share nearer to 0 or 1 is exact
_Writer = Callable[[float | None], str]

STANDING_ASSUMPTIONS = (
    "Values are measured without noise. Measuring changes neither the values nor the label.",
    "A recorded value is the value that the policy would have measured. Cases do not affect each other. Every test that the "
    "policy orders is carried out.",
    "Every set of groups that the policy acquires was recorded in some similar cases.",
    "Neither the policy nor the classifier was trained on the rows of this evaluation.",
)


def percent(share: float | None, digits: int = 1) -> str:
    """Return a share in percent; 0 and 100 % are exact, and a share near them says so. The script of the page does the same."""
    if share is None or share != share:
        return "–"
    least = 10.0**-digits
    if abs(share) < _ROUNDING or abs(share - 1) < _ROUNDING:
        return f"{100 * share:.0f} %".removeprefix("-")
    if 0 < 100 * share < least / 2:
        return f"< {least:g} %"
    if 0 < 100 * (1 - share) < least / 2:
        return f"> {100 - least:g} %"
    return f"{100 * share:.{digits}f} %".replace("-", "−")


def chance(drawn: float | None) -> str:
    """Return a probability that was found by draws, so that 0 and 100 % are not exact. The script of the page does the same."""
    return percent(drawn if drawn is None else min(max(drawn, 1e-6), 1 - 1e-6))


def interval_words(cell: Mapping[str, float | None]) -> str:
    """Return the interval of an estimated share, ``59.8 to 62.2``; a share that is certain has none."""
    low, high = cell["lower"], cell["upper"]
    if low is None or high is None or low == high or not cell["estimate"]:
        return ""
    return f"{percent(low).removesuffix(' %')} to {percent(high).removesuffix(' %')}"


def assumption_words(missingness: MCAR | MAR | MNAR, label: str) -> str:
    """Return the assumption in words for a physician."""
    if isinstance(missingness, MCAR):
        return (
            f"We assume that recording depends on nothing: on no value, recorded or missing, and not on “{label}”. It is as "
            "random as tossing a coin."
        )
    if isinstance(missingness, MAR):
        names = [*missingness.given, label] if missingness.label else list(missingness.given)
        return (
            f"We assume: if two cases have the same {_listed(names)}, any other value was recorded with the same chance in both. "
            "Recording depends on nothing else, in particular not on the missing values."
        )
    return "We assume that recording depends only on what the graph below shows."


def weighed_words(rejected: pd.DataFrame, wanted: Collection[str], tips: float | None) -> str:
    """Return a sentence that says if the contradictions of the assumption are strong enough to change the ranking.

    A variable of which one standard deviation changes the odds of being recorded by a factor is compared with an unmeasured
    reason that changes them by this factor. ``wanted`` are the groups that the policies acquire, ``tips`` is the least strength
    at which the ranking could change.
    """
    if len(rejected) == 0:
        return ""
    mine = rejected[rejected["recording"].isin(wanted)]
    if len(mine) == 0:
        return "All of them are about groups that no policy acquires, so they do not matter for these costs."
    mine = mine[~mine["of"].str.startswith(INDICATOR)]  # values move costs, not that groups are recorded together
    if len(mine) == 0:
        return "They say only that groups are recorded together, not that recording depends on further values."
    if tips is None:
        return ""
    strengths = np.exp(np.abs(np.log(mine["odds_ratio"].to_numpy(dtype=float))))
    strong = mine[strengths >= tips]
    measure = "if one standard deviation of the variable is compared with an unmeasured reason (Λ)"
    if tips <= 1:
        return "The order of the policies is open even without them: the records cannot distinguish the best two."
    if len(strong) == 0:
        return (
            f"None of the {len(mine)} about groups that the policies acquire is strong enough to change the order of the "
            f"policies, {measure}: this needs a factor of {tips:.2f} in the odds, and the largest is {np.nanmax(strengths):.2f}."
        )
    many = f"{len(strong)} of the {len(mine)}" if len(strong) < len(mine) else f"All {len(mine)}"
    pairs = dict.fromkeys(f"“{line['of']}” for “{line['recording']}”" for line in strong.to_dict("records"))
    return (
        f"{many} about groups that the policies acquire are strong enough to change the order of the "
        f"policies, {measure}: this needs a factor of {tips:.2f} in the odds. They are {', '.join([*pairs][:4])}"
        f"{f' and {len(pairs) - 4} more' if len(pairs) > 4 else ''}."
        f"{' The others are too weak for that.' if len(strong) < len(mine) else ''}"
    )


def _listed(names: Sequence[str], most: int = 8) -> str:
    """Join names in quotes, the first ``most`` of them."""
    quoted = [f"“{name}”" for name in names[:most]]
    if len(names) > most:
        return f"{', '.join(quoted)} and {len(names) - most} more"
    return " and ".join([", ".join(quoted[:-1]), quoted[-1]]) if len(quoted) > 1 else quoted[0]


def answer_of(found: Comparison, estimator: str) -> str:
    """Return the answer in one or two sentences: the cost, or the cheapest policy, with its interval; otherwise bounds."""
    try:
        totals = found.estimates(estimator, "total")
    except KeyError as error:
        return f"The records give no estimate: {error.args[0] if error.args else error}"
    write = partial(cost, decimals=decimals_of(totals.values()))
    points = {name: e for name, e in totals.items() if not isinstance(e, Bounds)}
    if len(found.evaluations) == 1:
        return _one(found, estimator, *next(iter(totals.items())), write)
    if not points:
        return (
            "The records do not fully support any of these policies: there are only bounds on their costs, see below."
        )
    return _several(found, estimator, points, write)


def _one(found: Comparison, estimator: str, name: str, total: Estimate, write: _Writer) -> str:
    interval = _interval(total, found.confidence, write)
    if isinstance(total, Bounds):
        low, high = write(total.bound_lower), write(total.bound_upper)
        return (
            f"Deployed, “{name}” would cost between {low} and {high} per run {interval}. There is no single estimate, because "
            f"the records do not fully support this policy.{_extrapolated(total, found.confidence, write)}"
        )
    paid, wrong = (found.estimates(estimator, t)[name].value for t in ("acquisition", "misclassification"))
    answer = (
        f"Deployed, “{name}” would cost {write(total.value)} per run {interval}: {write(paid)} for acquisitions and "
        f"{write(wrong)} for wrong labels"
    )
    return f"{answer}. {_CAUTION}" if _grave(found) else f"{answer}."


def _several(found: Comparison, estimator: str, points: dict[str, Estimate], write: _Writer) -> str:
    order = sorted(points, key=lambda name: points[name].value)
    best = order[0]
    paid = f"{write(points[best].value)} per run {_interval(points[best], found.confidence, write)}"
    others = len(found.evaluations) - len(points)
    tail = f" {others} other {'policy has' if others == 1 else 'policies have'} only bounds." if others else ""
    if len(order) == 1:
        return f"Only “{best}” has an estimate: {paid}.{tail}"
    if few := found.too_few(estimator):
        return f"“{best}” has the lowest estimate, {paid}. {few}{tail}"
    rivals = _not_excluded(found, estimator, best)
    if rivals is None:
        return f"“{best}” has the lowest estimate, {paid}, but there are no intervals to compare the policies.{tail}"
    if rivals:
        names = ", ".join(f"“{n}”" for n in rivals)
        return f"“{best}” has the lowest estimate, {paid}, but the records cannot distinguish it from {names}.{tail}"
    if _grave(found):
        return f"“{best}” has the lowest estimate of {len(order)} policies, {paid}. {_CAUTION}{tail}"
    second = f"The next, “{order[1]}”, costs {write(points[order[1]].value)}."
    return f"“{best}” is the cheapest of {len(order)} policies, at {paid}. {second}{tail}"


_CAUTION = "But these records do not allow a firm conclusion: see the doubts below."


def _grave(found: Comparison) -> bool:
    return any(doubt.grave for doubt in found.doubts)


def _extrapolated(total: Bounds, confidence: float, write: _Writer) -> str:
    """Return a sentence about the estimate that holds if the models may be extrapolated; empty if there is none."""
    if total.extrapolated is None:
        return ""
    interval = _interval(total.extrapolated, confidence, write)
    return (
        f" If the model of recording also holds where the records do not support the policy, the cost is "
        f"{write(total.extrapolated.value)} {interval}."
    )


def _interval(estimate: Estimate, confidence: float, write: _Writer) -> str:
    """Return the interval in brackets."""
    lower, upper = estimate.interval(confidence)
    return "(no interval)" if lower != lower else f"({100 * confidence:g} % interval {write(lower)} to {write(upper)})"


def _not_excluded(found: Comparison, estimator: str, best: str) -> list[str] | None:
    """Policies that may be as cheap as the best one, by the simultaneous intervals; None without intervals."""
    try:
        table = found.differences(estimator, "total")
    except ValueError:
        return None
    rivals, rows = [], found.effective_rows(estimator)
    for line in table.to_dict("records"):
        if best not in (line["policy"], line["minus"]):
            continue
        other = line["minus"] if line["policy"] == best else line["policy"]
        if line["lower"] <= 0 <= line["upper"] or min(rows[best], rows[other]) < ENOUGH_ROWS:
            rivals.append(other)
    return rivals if np.isfinite(table["std_error"]).all() else None
