"""Run a plan step by step: walk, fit, reduce, bootstrap, warn."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import pandas as pd

from .._models import one_thread
from .._progress import Progress, reporter
from ..agents.policy import Policy
from ..estimators.answer import Answer
from ..estimators.catalogue import Choice
from ..estimators.evidence import Evidence, Fitted
from ..imputation.chained import ChainedImputer
from ..missingness.assumptions import MNAR
from ..propensity.binding import Propensities, Shared
from ..support.paths import Paths, paths_of
from ..support.support import Support, support_of
from .bootstrap import run_bootstrap
from .fit import Views, bind_propensities, choices_of, fit, repeat, steps_of, views_of
from .plan import Plan
from .reduce import answers, populations
from .replicate import NO_THEORY, replicate, with_replicates
from .sampling import sampling_note
from .walk import Steps, Walked, walk_policies
from .warn import (
    gap_of_nothing,
    labels_note,
    levels_note,
    repeats_note,
    warn_of_assumption,
    warn_of_classifier,
    warn_of_doubts,
    warn_of_extreme_values,
    warn_of_time,
    warn_of_weights,
    weight_table,
    weights_note,
    with_caveats,
    with_heavy_estimators,
    with_weightless_models,
)

__all__ = ["PolicyRun", "SubgroupRun", "run"]


@dataclass(frozen=True, eq=False)
class SubgroupRun:
    """Results for the rows of one subgroup."""

    answers: dict[str, Answer]
    support: Support
    stops: Evidence | None


@dataclass(frozen=True, eq=False)
class PolicyRun:
    """Results of an evaluation for one policy.

    Attributes
    ----------
    plan, policy, walked
        Inputs of the run, and the walk.
    choices : list of Choice
        Estimators.
    answers : dict
        Answer of each estimator.
    support, paths : Support, Paths
        Support diagnostics, and the sets that the policy's runs acquire.
    notes : tuple of str
        Assumptions behind the estimates, in words.
    forms : DataFrame
        Forms of the learned propensities.
    stops : Evidence or None
        Walk and weights, for the scores at which runs stop; None without outcomes of the user.
    subgroups : dict
        Results for the rows of each subgroup.
    """

    plan: Plan
    policy: Policy
    walked: Walked
    choices: list[Choice]
    answers: dict[str, Answer]
    support: Support
    paths: Paths
    notes: tuple[str, ...]
    forms: pd.DataFrame
    stops: Evidence | None = None
    subgroups: dict[str, SubgroupRun] = field(default_factory=dict)


def run(plan: Plan, policies: Mapping[str, Policy], progress: Progress | bool | None = None) -> dict[str, PolicyRun]:
    """Evaluate policies on the same rows; each has the same estimates as in a separate run, but models are shared."""
    with reporter(progress) as report:
        steps = Steps(report, len(policies) * steps_of(plan))
        warn_of_extreme_values(plan)
        _draw_imputations(plan)
        began = time.monotonic()
        walked = walk_policies(plan, policies, steps.walked)
        warn_of_time(plan, len(policies), time.monotonic() - began)
        plans = (plan, *plan.repeats)
        shared: list[Shared] = [{} for _ in plans]
        bound = {
            name: [bind_propensities(one, [walked[name]], kept) for one, kept in zip(plans, shared, strict=True)]
            for name in policies
        }
        warn_of_assumption(plan, walked.values(), next(iter(bound.values()))[0])
        return {name: _run(plan, policy, walked[name], bound[name], steps) for name, policy in policies.items()}


def _draw_imputations(plan: Plan) -> None:
    """Draw tables before the walk if the imputer is the user's, so that its errors show early; else draw when needed."""
    needed = any(choice.method.imputes for choice in plan.choices)
    own = plan.imputations is not None and not isinstance(plan.imputations.imputer, ChainedImputer)
    if needed and own and plan.imputations is not None and not isinstance(plan.missingness, MNAR):
        plan.imputations.draw()


def _run(plan: Plan, policy: Policy, walked: Walked, bound: list[Propensities], steps: Steps) -> PolicyRun:
    """Do all steps after the walk, for one policy; ``bound`` are the propensities of every repeat."""
    propensities = bound[0]
    choices, views = choices_of(plan, propensities), views_of(plan, propensities, walked)
    fitted = fit(plan, policy, walked, propensities, views, steps)
    others = zip(plan.repeats, bound[1:], strict=True)
    repeats = [fitted, *(repeat(fitted, again, policy, walked, other, steps) for again, other in others)]
    found = _answers(plan, choices, repeats, steps)
    support = _support(plan, choices, walked, views, found[""])
    found[""] = with_caveats(found[""], choices, support, plan.thresholds.share)
    found[""] = with_weightless_models(found[""], choices, plan)
    warn_of_doubts(found[""], choices, fitted, propensities, support)
    warn_of_weights(support, choices, plan)
    warn_of_classifier(found[""], choices, fitted, plan)
    notes = (
        *propensities.notes,
        *walked.notes,
        *repeats_note(plan),
        *sampling_note(plan, walked.tables, views.semi, found[""]),
        *gap_of_nothing(plan, fitted, choices),
        *levels_note(plan),
        *labels_note(plan),
        *weights_note(plan),
    )
    stops = _weighted_stops(plan, fitted, views)
    return PolicyRun(
        plan,
        policy,
        walked,
        choices,
        found[""],
        support,
        paths_of(plan.data, walked.tables, views.semi),
        notes,
        propensities.forms(),
        stops.get(""),
        _subgroups(plan, choices, walked, found, support, stops),
    )


def _answers(plan: Plan, choices: list[Choice], repeats: list[Fitted], steps: Steps) -> dict[str, dict[str, Answer]]:
    """Return answers by subgroup and estimator, with bootstrap replicates if the user asked for them."""
    with one_thread():
        found = {level: answers(plan, choices, part) for level, part in populations(plan, repeats).items()}
    if plan.bootstrap is None:
        return found
    # Multiple imputation has its own intervals; each replicate would need new imputations.
    replicated = [c for c in choices if not c.method.imputes]
    with_parts = frozenset(name for name, answer in found[""].items() if answer.error_method in NO_THEORY)
    if any(c.method.valued and c.name in with_parts for c in replicated):
        repeats = [one.learn(with_parts=True) for one in repeats]
    task = partial(replicate, plan, repeats, replicated, with_parts)
    seed, n_jobs = plan.bootstrap_seed, plan.n_jobs
    drawn = run_bootstrap(task, plan.data, plan.bootstrap, seed, n_jobs=n_jobs, report=steps.add)
    drawn.warn()
    return {level: with_replicates(part, drawn, level) for level, part in found.items()}


def _support(plan: Plan, choices: list[Choice], walked: Walked, views: Views, found: dict[str, Answer]) -> Support:
    """Return the support diagnostics, with the weights of every estimator."""
    with one_thread():
        support = support_of(plan.data, walked.tables, views.search, views.semi, views.complete, views.findings)
    support = replace(support, estimators=weight_table(found, [c.name for c in choices if c.method.weighs]))
    return with_heavy_estimators(support, choices, plan)


def _weighted_stops(plan: Plan, fitted: Fitted, views: Views) -> dict[str, Evidence]:
    """Return the walk and its weights by subgroup, without learned values; needed for the scores at which runs stop."""
    if not len(plan.outcomes):
        return {}
    key = next(key for key in views.by_key if key[0] == "sets")
    alone = replace(
        fitted, runs={}, completed=None, components={}, views={key: views.by_key[key]}, values={}, table=None, valued=()
    )
    return {level: part[0].evidence(key) for level, part in populations(plan, [alone]).items()}


def _subgroups(
    plan: Plan,
    choices: list[Choice],
    walked: Walked,
    found: dict[str, dict[str, Answer]],
    support: Support,
    stops: dict[str, Evidence],
) -> dict[str, SubgroupRun]:
    """Return the results of the subgroups.

    In their support, only the numbers of rows and the weights are their own; the rest describes all rows.
    """
    if plan.levels is None:
        return {}
    weighing = [c.name for c in choices if c.method.weighs]
    drawn = [table.sampled for table in walked.tables] if support.sampled else []
    out = {}
    for code, level in enumerate(plan.levels.names):
        mine = plan.levels.codes == code
        sampled = sum(int(mine[rows].sum()) for rows in drawn)
        weights = weight_table(found[level], weighing)
        own = replace(support, n_rows=int(mine.sum()), sampled=sampled, estimators=weights)
        out[level] = SubgroupRun(found[level], own, stops.get(level))
    return out
