"""A plan put into effect: walk, fit, reduce, warn. Each step is a function of what the steps before it gave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from ..agents.policy import Policy
from ..arrays import Floats, Ints
from ..bootstrap import NO_THEORY, Replicates, Values, key_of, part_name, run_bootstrap
from ..diagnostics.paths import paths_of
from ..diagnostics.sums import support_of
from ..estimators.bounds import BoundedReduction
from ..estimators.catalogue import Choice
from ..estimators.estimate import Outcome
from ..estimators.linear import LinearParts
from ..estimators.reduction import Reduced
from ..estimators.weighted import WeightedSums
from ..imputation import ChainedImputer
from ..missingness import MNAR
from ..nuisance.fitted import Evidence, Fitted
from ..nuisance.fitting import one_thread
from ..nuisance.propensity.factor import NotLearnableError
from ..nuisance.values.known import KnownValues
from ..nuisance.weights import Propensities, Shared, View
from ..parts import Tariff
from ..plan import Plan, name_of
from ..progress import Progress, told_by
from ..result import Evaluation, Origin, part_sums
from .fitting import Views, bind_propensities, choices_of, fit, steps_of, views_of, weighs_states
from .telling import (
    gap_of_nothing,
    tell_assumption,
    tell_doubts,
    tell_weights,
    told_levels,
    weight_table,
    with_caveats,
    with_leaning,
)
from .walking import Steps, Walked, walk_policies

__all__ = ["answer", "run"]


def run(plan: Plan, policies: Mapping[str, Policy], progress: Progress | bool | None = None) -> dict[str, Evaluation]:
    """Evaluate policies that know the problem, on the same rows; each as if it were alone, but models are shared."""
    with told_by(progress) as told:
        return _run(plan, policies, told)


def _run(plan: Plan, policies: Mapping[str, Policy], progress: Progress | None) -> dict[str, Evaluation]:
    steps = Steps(progress, len(policies) * steps_of(plan))
    _draw_imputations(plan)
    walked = walk_policies(plan, policies, steps.walked)
    shared: Shared = {}
    bound = {name: bind_propensities(plan, [walked[name]], shared) for name in policies}
    tell_assumption(plan, walked.values(), next(iter(bound.values())))
    return {name: _evaluate(plan, name, policy, walked[name], bound[name], steps) for name, policy in policies.items()}


def _draw_imputations(plan: Plan) -> None:
    """The user's own imputer should fail before the walk, if it fails; otherwise the walk says whether tables are needed."""
    needed = any("imputations" in choice.method.needs for choice in plan.choices)
    own = plan.imputations is not None and not isinstance(plan.imputations.imputer, ChainedImputer)
    if needed and own and plan.imputations is not None and not isinstance(plan.missingness, MNAR):
        plan.imputations.draw()


def _evaluate(
    plan: Plan, name: str, policy: Policy, walked: Walked, propensities: Propensities, steps: Steps
) -> Evaluation:
    """Fit, reduce, bootstrap, warn."""
    choices, views = choices_of(plan, propensities), views_of(plan, propensities, walked)
    fitted = fit(plan, policy, walked, propensities, views, steps)
    tariff = Tariff.of(plan.data, plan.outcomes)
    populations = _populations(plan, fitted)
    with one_thread():
        found = {level: _outcomes(plan, choices, part, tariff) for level, part in populations.items()}
    if plan.bootstrap is not None:
        # Imputed estimates have intervals of their own: replicates would need imputations of their own.
        replicated = [c for c in choices if "imputations" not in c.method.needs]
        needing = frozenset(name for name, outcome in found[""].items() if outcome.error_method in NO_THEORY)
        parted = bool(needing) or any("components" in c.method.needs for c in replicated)
        replicates = _replicates(plan, replace(fitted, parted=parted), replicated, steps, needing)
        found = {level: outcomes | replicates.added_to(outcomes, level) for level, outcomes in found.items()}
    found = {level: _with_own(outcomes, tariff) for level, outcomes in found.items()}
    outcomes = found.pop("")
    with one_thread():
        support = support_of(plan.data, walked.tables, views.search, views.semi, views.complete, views.undecided)
    support = replace(support, estimators=weight_table(outcomes, [c.name for c in choices if weighs_states(c)]))
    outcomes = with_caveats(outcomes, choices, support, plan.thresholds.share)
    support = with_leaning(support, choices, plan)
    tell_doubts(outcomes, choices, fitted, propensities, support)
    tell_weights(support, choices, plan)
    judge, assumed, forms = name_of(plan.classifier), repr(plan.missingness), propensities.forms()
    notes = (*propensities.notes, *walked.notes, *gap_of_nothing(plan, fitted, choices), *told_levels(plan))
    whole = Evaluation(outcomes, support, name, judge, assumed, plan.confidence, notes, tuple(choices), forms, tariff)
    origin = Origin(plan.data, plan.missingness, policy, plan.classifier, plan.seed)
    whole = replace(whole, paths=paths_of(plan.data, walked.tables, views.semi), origin=origin)
    if len(plan.outcomes):
        whole = replace(whole, weighted=_weighted_stops(populations[""], views))
    weighs = [c.name for c in choices if weighs_states(c)]
    drawn = [table.sampled for table in walked.tables] if found and support.sampled else []
    subgroups = {}
    for level, part in found.items():
        subgroups[level] = _subgroup(whole, plan, level, part, weight_table(part, weighs), drawn)
        if len(plan.outcomes):
            subgroups[level] = replace(subgroups[level], weighted=_weighted_stops(populations[level], views))
    return replace(whole, subgroups=subgroups)


def _weighted_stops(fitted: Fitted, views: Views) -> Evidence:
    """The walk and its weights, without all that was learned beside them."""
    key = next(key for key in views.by_key if key[0] == "sets")
    alone = replace(fitted, runs={}, views={key: views.by_key[key]}, values={}, part_values={}, table=None, valued=())
    return alone.evidence(key)


def _populations(plan: Plan, fitted: Fitted) -> dict[str, Fitted]:
    """The fitted object for all rows, named "", and for the rows of every subgroup: learned from all, averaged over some."""
    averaged = np.ones(len(plan.data)) if plan.recipe.averaged is None else plan.recipe.averaged
    out = {"": fitted}
    if plan.levels is not None:
        for code, level in enumerate(plan.levels.names):
            mine = averaged * (plan.levels.codes == code)
            out[level] = replace(fitted, recipe=replace(plan.recipe, averaged=mine))
    return out


def _outcomes(plan: Plan, choices: list[Choice], fitted: Fitted, tariff: Tariff) -> dict[str, Outcome]:
    """What every estimator says of the rows that are averaged over, and what that is made of."""
    used = fitted.row_weight > 0
    n_units = int(used.sum()) if plan.data.cluster is None else len(np.unique(plan.data.cluster[used]))
    if plan.levels is not None and n_units < 2:
        what = "row" if plan.data.cluster is None else "cluster"
        return {c.name: Outcome({}, reason=f"the subgroup has {n_units} {what}") for c in choices}
    out = {}
    for choice in choices:
        reduced = answer(choice, fitted)
        outcome = reduced.outcome(plan.data.identity, plan.confidence)
        estimates = {t: replace(e, limits=tariff.limits[t]) for t, e in outcome.estimates.items()}
        outcome = replace(outcome, estimates=estimates)
        if not outcome.reason:
            columns = fitted.columns(isinstance(reduced, BoundedReduction))
            outcome = replace(outcome, parts=_parts(plan, reduced, fitted), columns=columns)
        out[choice.name] = outcome
    return out


def _parts(plan: Plan, reduced: Reduced, fitted: Fitted) -> LinearParts | None:
    """What the costs are made of; at once where the walk is too large to be kept until somebody asks."""
    if isinstance(reduced, WeightedSums) and fitted.tables.held:
        return reduced.later(plan.data.identity, plan.confidence)
    return reduced.parts(plan.data.identity, plan.confidence)


def answer(choice: Choice, fitted: Fitted) -> Reduced:
    """What a method answers; bounds where what it rests on is not supported for all of the policy's runs."""
    method, key, valued = choice.method, choice.key, "values" in choice.method.needs
    view = None if key is None else fitted.views[key]
    if view is None or not view.unsupported or not _rests_on_records(choice, fitted, view):
        return method.reduce(fitted.evidence(key, valued))
    least, largest = (fitted.evidence(key, valued, flag) for flag in (False, True))
    return BoundedReduction(method.reduce(least), method.reduce(largest), least)


def _rests_on_records(choice: Choice, fitted: Fitted, view: View) -> bool:
    """Whether the method needs records of what the policy wants: all do but a mean of known values."""
    known = isinstance(fitted.recipe.values, KnownValues)
    return weighs_states(choice) or not known or bool(view.adjust.any())


def _with_own(outcomes: dict[str, Outcome], tariff: Tariff) -> dict[str, Outcome]:
    """Add outcomes of the user's own, which are parts themselves."""
    out = {}
    for name, outcome in outcomes.items():
        sums = part_sums(outcome)
        own = {} if sums.linear is None else {t: tariff.estimate(sums, t) for t in tariff.own.names}
        out[name] = replace(outcome, estimates=outcome.estimates | own)
    return out


def _subgroup(
    whole: Evaluation, plan: Plan, level: str, outcomes: dict[str, Outcome], weights: pd.DataFrame, drawn: list[Ints]
) -> Evaluation:
    """The evaluation of a subgroup; what the records support, weights of estimators aside, is told of all rows.

    ``drawn`` are the rows that were sampled, by table.
    """
    assert plan.levels is not None
    mine = plan.levels.codes == plan.levels.names.index(level)
    sampled = sum(int(mine[rows].sum()) for rows in drawn)
    support = replace(whole.support, n_rows=int(mine.sum()), sampled=sampled, estimators=weights)
    return replace(
        whole, outcomes=outcomes, support=support, policy=f"{whole.policy} where {plan.levels.name} is {level}"
    )


def _replicates(plan: Plan, fitted: Fitted, choices: list[Choice], steps: Steps, needing: frozenset[str]) -> Replicates:
    """Replicates of the estimates; of the parts too for the estimators that need them for errors."""
    assert plan.bootstrap is not None
    return run_bootstrap(
        partial(_replicate, plan, fitted, choices, needing),
        plan.data,
        plan.bootstrap,
        plan.bootstrap_seed,
        n_jobs=plan.n_jobs,
        told=steps.add,
    )


def _replicate(plan: Plan, fitted: Fitted, choices: list[Choice], needing: frozenset[str], drawn: Floats) -> Values:
    """Every estimate with rows drawn this often; nothing where the drawn rows do not suffice to learn what is needed."""
    assert plan.bootstrap is not None
    try:
        again = fitted.refit(drawn) if plan.bootstrap.refit else fitted.reweight(drawn)
    except NotLearnableError:
        return {}
    out: Values = {}
    for level, population in _populations(plan, again).items():
        if not (population.row_weight > 0).any():  # no row of the subgroup was drawn
            continue
        for choice in choices:
            try:
                reduced = answer(choice, population)
                parted = choice.name in needing
                out[key_of(choice.name, level)] = _with_parts(reduced, plan) if parted else reduced.values
            except NotLearnableError:
                return {}
    return out


def _with_parts(reduced: Reduced, plan: Plan) -> dict[str, float]:
    """Values of the targets, and of all parts by their number."""
    values = dict(reduced.values)
    if np.isfinite(list(values.values())).all():
        parts = reduced.parts(plan.data.identity, plan.confidence)
        values |= {} if parts is None else {part_name(j): float(v) for j, v in enumerate(parts.values)}
    return values
