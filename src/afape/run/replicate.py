"""Bootstrap replicates of the answers: what one replicate repeats, and how replicates give standard errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from .._arrays import Floats
from ..estimators.amounts import ReplicatedAmounts, Replicates
from ..estimators.answer import Answer, sample_of
from ..estimators.catalogue import Choice
from ..estimators.evidence import Fitted
from ..propensity.factor import NotLearnableError
from .bootstrap import Drawn
from .plan import Plan
from .reduce import populations, reduced

__all__ = ["NO_THEORY", "Replicate", "Values", "replicate", "with_replicates"]

# Error methods that replicates replace.
NO_THEORY = (
    "none without bootstrap",
    "propensity as known",
    "action values as known",
    "propensity and action values as known",
)


class Replicate(NamedTuple):
    """Values of one estimator in one replicate."""

    costs: Floats  # (E,) columns of the costs; (2 E,) for bounds: columns of the least, then of the largest cost
    parts: Floats | None = None  # (P,) parts of the costs, if standard errors come from replicates


Values = dict[tuple[str, str], Replicate]  # key: estimator, and level of the subgroup ("" for all rows)


def replicate(
    plan: Plan, repeats: Sequence[Fitted], choices: list[Choice], with_parts: frozenset[str], drawn: np.ndarray
) -> Values:
    """Compute all estimates of one bootstrap replicate; empty if the drawn rows are too few to learn from.

    ``drawn`` (n,) is how often each row was drawn. ``with_parts`` names the estimators whose parts are needed too. With
    ``refit``, learned propensities and action values are learned again from the drawn rows. Always kept: the walk, the
    folds, the chosen forms, the unsupported sets, and the components of EFF. `run` leaves out multiple imputation.
    """
    assert plan.bootstrap is not None
    out: Values = {}
    try:
        again = [one.refit(drawn) if plan.bootstrap.refit else one.reweight(drawn) for one in repeats]
        for level, population in populations(plan, again).items():
            if not (population[0].row_weight > 0).any():  # no row of the subgroup was drawn
                continue
            for choice in choices:
                reduction = reduced(choice, population)
                answer = reduction.answer()
                if answer.costs is not None:
                    parts = reduction.parts() if choice.name in with_parts else None
                    found = None if parts is None else parts.amounts.values
                    out[choice.name, level] = Replicate(answer.costs.amounts.values, found)
    except NotLearnableError:
        return {}
    return out


def with_replicates(answers: Mapping[str, Answer], drawn: Drawn[Values], level: str = "") -> dict[str, Answer]:
    """Add bootstrap replicates to the answers.

    Replicates give the standard error if theory gives none, or if it treats learned propensities or action values as known.
    Answers by multiple imputation do not change: their standard errors come from the completed tables.
    """
    return {
        name: answer if answer.error_method == "rubin" else _replicated(answer, name, drawn, level)
        for name, answer in answers.items()
    }


def _replicated(answer: Answer, name: str, drawn: Drawn[Values], level: str) -> Answer:
    found = [values.get((name, level)) for values in drawn.values]
    if answer.costs is None:
        return replace(answer, replicates=len(found))
    draws, values = f"{drawn.entropy}, {drawn.bootstrap.kind}", answer.costs.amounts.values
    costs = Replicates(_stacked([None if one is None else one.costs for one in found], len(values)), draws)
    lost = int((~np.isfinite(costs.values).all(axis=1)).sum())
    answer = replace(answer, replicates=len(found), lost=lost)
    assert answer.costs is not None
    if answer.error_method not in NO_THEORY or len(found) - lost < 2:
        return replace(answer, costs=replace(answer.costs, amounts=answer.costs.amounts.with_replicates(costs)))
    amounts = ReplicatedAmounts(values, sample_of(answer.estimates["total"]), costs)
    parts = [None if one is None else one.parts for one in found]
    width = next((len(one) for one in parts if one is not None), None)
    return replace(
        answer,
        costs=replace(answer.costs, amounts=amounts),
        part_replicates=None if width is None else Replicates(_stacked(parts, width), draws),
        error_method=drawn.bootstrap.kind,
    )


def _stacked(found: list[Floats | None], width: int) -> Floats:
    """Return the replicates as an array (B, width), with NaN where a replicate has no estimate."""
    out = np.full((len(found), width), np.nan)
    for line, one in zip(out, found, strict=True):
        if one is not None:
            line[: len(one)] = one[:width]
    return out
