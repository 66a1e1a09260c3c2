"""Apply every method to the fitted object: one answer per estimator, for all rows and for subgroups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..action_values.known import KnownValues
from ..estimators.answer import Answer, Reduction
from ..estimators.bounds import Bounded
from ..estimators.catalogue import Choice
from ..estimators.evidence import Fitted, extrapolated_key
from ..estimators.repeated import Repeated
from ..propensity.weights import View
from .plan import Plan

__all__ = ["answers", "populations", "reduced"]


def populations(plan: Plan, repeats: Sequence[Fitted]) -> dict[str, list[Fitted]]:
    """Return the fitted object of every repeat for all rows, with key "", and for every subgroup.

    All subgroups share the models, which are learned without regard to subgroups. The averages of a subgroup use only
    its own rows.
    """
    averaged = np.ones(len(plan.data)) if plan.recipe.averaged is None else plan.recipe.averaged
    out = {"": list(repeats)}
    if plan.levels is not None:
        for code, level in enumerate(plan.levels.names):
            mine = averaged * (plan.levels.codes == code)
            out[level] = [
                replace(one, recipe=replace(one.recipe, averaged=mine, tariff=one.recipe.tariff.of_subgroup))
                for one in repeats
            ]
    return out


def reduced(choice: Choice, repeats: Sequence[Fitted]) -> Reduction:
    """Apply the method to every repeat, and average; methods without weights and learned values need one repeat only."""
    found = [_reduced(choice, one) for one in (repeats if choice.key is not None else repeats[:1])]
    return found[0] if len(found) == 1 else Repeated(found)


def _reduced(choice: Choice, fitted: Fitted) -> Reduction:
    """Apply the method to the fitted object; returns bounds if the policy wants unsupported sets that the method needs."""
    method, key = choice.method, choice.key
    view = None if key is None else fitted.views[key]
    if view is None or not view.unsupported or not _needs_records(choice, fitted, view):
        return method.reduce(fitted.evidence(key, method.valued))
    assert key is not None
    least, largest = (fitted.evidence(key, method.valued, flag) for flag in (False, True))
    plain = extrapolated_key(key)
    extrapolated = method.reduce(fitted.evidence(plain, method.valued)) if plain in fitted.views else None
    return Bounded(method.reduce(least), method.reduce(largest), least, extrapolated)


def _needs_records(choice: Choice, fitted: Fitted, view: View) -> bool:
    """True if the method needs records of the wanted groups.

    Only a mean of known action values needs none, if there are no groups to adjust for.
    """
    known = isinstance(fitted.recipe.values, KnownValues)
    return choice.method.weighs or not known or bool(view.adjust.any())


def answers(plan: Plan, choices: list[Choice], repeats: Sequence[Fitted]) -> dict[str, Answer]:
    """Return the answer of every estimator, for the rows that are averaged over."""
    used = repeats[0].row_weight > 0
    n_units = int(used.sum()) if plan.data.cluster is None else len(np.unique(plan.data.cluster[used]))
    if plan.levels is not None and n_units < 2:
        unit = "row" if plan.data.cluster is None else "cluster"
        return {c.name: Answer(reason=f"the subgroup has {n_units} {unit}") for c in choices}
    return {choice.name: reduced(choice, repeats).answer() for choice in choices}
