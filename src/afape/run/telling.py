"""Say what makes estimates doubtful, in warnings, notes and tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pandas as pd

from ..agents.policy import bind
from ..arrays import share_of_heaviest
from ..diagnostics.sums import carried_by_few, label_suspected
from ..diagnostics.support import WEIGHT_COLUMNS, Support
from ..diagnostics.words import balance_words, leaning_words, normalizer_words
from ..estimators.catalogue import METHODS, Choice
from ..estimators.estimate import Outcome
from ..missingness import MNAR
from ..notices import (
    AssumptionWarning,
    BalanceWarning,
    ClippedWeightsWarning,
    HeavyWeightsWarning,
    NormalizerWarning,
    PropensityFitWarning,
    SupportWarning,
    ValueFallbackWarning,
    warn,
)
from ..nuisance.fitted import Fitted
from ..nuisance.weights import Propensities
from ..plan import Plan
from .fitting import weighs_states
from .walking import Walked, walk_policies

__all__ = [
    "gap_of_nothing",
    "tell_assumption",
    "tell_doubts",
    "tell_weights",
    "told_levels",
    "weight_table",
    "with_caveats",
    "with_leaning",
]

_OFF, _FAR_OFF = 0.1, 0.3  # distance of a mean weight from 1 that is told: beyond chance, and in any case


def tell_assumption(plan: Plan, walked: Iterable[Walked], propensities: Propensities) -> None:
    """Warn where the label predicts what is recorded although the assumption says that it does not."""
    data, given = plan.data, propensities.conditioning
    wanted = np.any([w.wanted.any(axis=0) for w in walked], axis=0) & ~data.always_recorded
    if given.label or not wanted.any() or len(data.classes) < 2:
        return
    if not isinstance(plan.missingness, MNAR) and not label_suspected(data, given, np.flatnonzero(wanted)):
        return
    from ..diagnostics.implications import label_findings

    names = [data.problem.group_names[g] for g in np.flatnonzero(wanted)]
    if text := label_findings(data, plan.missingness, names):
        warn(text, AssumptionWarning)


def weight_table(outcomes: dict[str, Outcome], names: list[str]) -> pd.DataFrame:
    """How far each estimate leans on few rows and large weights."""
    lines = []
    for name in names:
        outcome = outcomes[name]
        steps = ", ".join(f"{v:.3f}" for v in outcome.normalizers)
        total = outcome.estimates.get("total")
        known = total is not None and total.influence is not None
        ten = share_of_heaviest(total.influence, total.cluster) if known else float("nan")  # type: ignore[union-attr, arg-type]
        lines.append((name, outcome.ess, ten, outcome.normalizer, steps, outcome.largest_weight, outcome.clipped))
    return pd.DataFrame(lines, columns=WEIGHT_COLUMNS)


def with_caveats(
    outcomes: dict[str, Outcome], choices: list[Choice], support: Support, negligible: float
) -> dict[str, Outcome]:
    """Say of imputed estimates how much of them rests on the imputation model alone."""
    out = dict(outcomes)
    for choice in choices:
        if "imputations" in choice.method.needs and support.unsupported > negligible:
            share = f"{100 * support.unsupported:.2g} % of the policy's runs"
            caveat = f"{share} rest on the imputation model alone: no row like theirs has what they want"
            out[choice.name] = replace(out[choice.name], caveat=caveat)
    return out


def with_leaning(support: Support, choices: list[Choice], plan: Plan) -> Support:
    """Add which estimators a few rows carry."""
    lines, rows = support.estimators.to_dict("records"), int(support.views["rows_usable"].iloc[0])
    unbiased = {c.name for c in choices if not c.method.biased}
    heavy = [
        line["estimator"]
        for line in lines
        if line["estimator"] in unbiased
        and carried_by_few(plan.thresholds, len(plan.data), rows, line["ess"], line["ten_heaviest"])
    ]
    return replace(support, heavy=(*support.heavy, leaning_words(support.estimators, heavy))) if heavy else support


def told_levels(plan: Plan) -> tuple[str, ...]:
    """Say of subgroups how many rows lack what they are told apart by."""
    if plan.levels is None or plan.levels.n_missing == 0:
        return ()
    count, name, level = plan.levels.n_missing, plan.levels.name, plan.levels.names[-1]
    return (f"{count} of {len(plan.data)} rows have no {name!r}; they form the subgroup {level!r}.",)


def gap_of_nothing(plan: Plan, fitted: Fitted, choices: list[Choice]) -> tuple[str, ...]:
    """Compare the cost of acquiring nothing by the weights of a graph with the same by all rows, which needs no graph."""
    hybrid = [c.key for c in choices if c.key is not None and c.method.view == "hybrid"]
    if not hybrid or not plan.data.always_recorded[plan.data.problem.free].all():
        return ()
    from ..agents.builtin import AcquireNone
    from ..diagnostics.gap import gap_between

    view = fitted.views[hybrid[0]]
    if view.refusal or view.unsupported or not view.adjust.any():
        return ()
    (nothing,) = walk_policies(plan, {"nothing": bind(AcquireNone(), plan.data.problem)}).values()
    alone = replace(fitted, tables=nothing.tables, table=None, values={}, valued=())
    weighted = METHODS["ipw-semi-miss"].reduce(alone.evidence(hybrid[0])).outcome(plan.data.identity, plan.confidence)
    words, doubtful = gap_between(weighted, alone)
    if doubtful:
        warn(f"{words[0]} The records contradict the graph, or the propensity is wrong.", AssumptionWarning)
    return words


def tell_doubts(
    outcomes: dict[str, Outcome], choices: list[Choice], fitted: Fitted, propensities: Propensities, support: Support
) -> None:
    """Warn of what makes estimates doubtful."""
    judged = [choice.name for choice in choices if not choice.method.biased]
    for text in support.warnings if judged else ():
        warn(f"{text} See result.support.", SupportWarning)
    for name in judged:
        outcome = outcomes[name]
        if outcome.clipped:
            warn(
                f"{name}: {outcome.clipped} learned propensities fell below 'min_propensity' and were raised to it, "
                "which biases the estimate towards what is recorded often. See result.support.",
                ClippedWeightsWarning,
            )
        off = abs(outcome.normalizer - 1)
        if off > _FAR_OFF or (off > _OFF and off > 3 * outcome.normalizer_error):
            warn(normalizer_words(name, outcome.normalizer, outcome.normalizer_error), NormalizerWarning)
    if fitted.fallbacks:
        warn(
            f"Action values of {fitted.fallbacks} states and actions had no row like them to learn from in some fold, and "
            "fell back to a model of fewer groups (or, where there was no row at all, to the cost of stopping). "
            "A few of many states do no harm: compare drl-semi with ipw-semi, which needs no action values. Where they differ, "
            "use fewer folds (n_folds=2), pool rare groups, or a policy that wants less; support.sets says which sets are rare.",
            ValueFallbackWarning,
        )
    if not propensities.converged:
        warn(
            "A logistic propensity did not converge, most likely because some rows are always or never recorded. "
            "See result.support for weights that are too large.",
            PropensityFitWarning,
        )


def tell_weights(support: Support, choices: list[Choice], plan: Plan) -> None:
    """Warn of weights that rest on few rows, or that do not balance what is always recorded."""
    if not any(weighs_states(c) and not c.method.biased for c in choices):
        return
    if support.heavy:
        warn(f"{' '.join(support.heavy)} See result.support.", HeavyWeightsWarning)
    worst = support.balance["after"].abs().max() if len(support.balance) else 0.0
    if worst > plan.thresholds.difference and (text := balance_words(support.balance, plan.thresholds.difference)):
        warn(text, BalanceWarning)
