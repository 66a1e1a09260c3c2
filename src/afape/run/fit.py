"""Fit everything that the estimates of a policy need: propensities, views, plain runs, action values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from .._arrays import Bools, Ints, every, unique_sets
from ..agents.policy import Policy, ignores_values
from ..classifiers import column_means
from ..estimators.catalogue import Choice
from ..estimators.eff.components import Components, component_steps, components_by_view
from ..estimators.eff.conditional_means import Runner
from ..estimators.evidence import Fitted, ViewKey, extrapolated_key
from ..estimators.imputed import ANY_TABLES
from ..imputation.imputations import CompletedRuns, completed_runs, completed_steps
from ..missingness.assumptions import Conditioning
from ..propensity.binding import BoundPropensity, Propensities, Shared
from ..propensity.known import BoundKnownPropensity
from ..propensity.weights import View
from ..support.search import Findings, SupportSearch
from ..support.violations import known_unsupported, supported_view, wanted_enough
from ..walk.ground import Ground
from ..walk.run_parts import RunParts, run_parts
from ..walk.table import Tables, WalkTable
from ..walk.walker import walk
from .plan import Plan
from .walk import Steps, Walked

__all__ = ["Views", "averaged_rows", "bind_propensities", "choices_of", "fit", "repeat", "steps_of", "views_of"]


def bind_propensities(plan: Plan, walked: Iterable[Walked], shared: Shared | None = None) -> Propensities:
    """Bind propensities that fit all of these policies; ``shared`` stores them for further policies."""
    asked = unique_sets(np.concatenate([w.asked for w in walked]))[0]
    complete = any(choice.method.complete_rows for choice in plan.choices) if plan.asked else None
    return Propensities.bind(plan.data, plan.missingness, plan.propensities, plan.recipe.fold, asked, complete, shared)


@dataclass(frozen=True, eq=False)
class Views:
    """All views of one policy, and the search for support that made them."""

    by_key: dict[ViewKey, View]
    search: SupportSearch
    findings: Findings = field(default_factory=Findings)  # of the semi-offline or hybrid view

    @property
    def semi(self) -> View:
        """Semi-offline or hybrid view with the first propensity."""
        return next(view for (kind, _), view in self.by_key.items() if kind == "sets")

    @property
    def complete(self) -> View | None:
        """Missing-data view with the first propensity; None if it is not identified."""
        return next((view for (kind, _), view in self.by_key.items() if kind == "complete rows"), None)


def views_of(plan: Plan, propensities: Propensities, walked: Walked) -> Views:
    """Search for unsupported sets in each view. Estimators that need such sets return bounds."""
    search = SupportSearch(plan.data, propensities.conditioning, plan.thresholds)
    everything = np.ones(plan.data.problem.n_groups, dtype=bool)
    gaps, whole = propensities.conditioning.gaps, propensities.whole
    beyond = search if whole is None or whole is search.conditioning else replace(search, conditioning=whole)
    views: dict[ViewKey, View] = {}
    found: list[Findings] = []
    for name, propensity in propensities.of_sets.items():
        more, findings = _views(search, propensity, gaps, walked.wanted, walked.tables, ("sets", name))
        views |= more
        found.append(findings)
    for name, propensity in propensities.of_complete.items():
        key = ("complete rows", name)
        views |= _views(beyond, propensity, everything, everything[None], walked.tables, key)[0]
    out = Views(views, search)
    return replace(out, findings=_with_undecided(search, out.semi, found[0], walked))


def _with_undecided(search: SupportSearch, view: View, findings: Findings, walked: Walked) -> Findings:
    """The findings with all sets that matter to the policy and whose support the rows do not decide."""
    if view.refusal or not view.propensity.learned:
        return findings
    found = search.undecided(walked.wanted, view.adjust, findings._replace(unsupported=view.unsupported))
    if found:
        found = wanted_enough(view, found, search.data, walked.tables, search.thresholds.share)
    return findings._replace(undecided=found)


def _views(
    search: SupportSearch, propensity: BoundPropensity, adjust: Bools, wanted: Bools, tables: Tables, key: ViewKey
) -> tuple[dict[ViewKey, View], Findings]:
    """Return the view of a policy that wants these sets, without the unsupported sets that a relevant share of runs meets.

    If the propensity may be extrapolated into all unsupported regions, the view as if they were supported is returned too.
    """
    view = View(propensity, search.data.recorded, adjust, refusal=search.refusal(adjust))
    if view.refusal:
        return {key: view}, Findings()
    if isinstance(propensity, BoundKnownPropensity):
        found = Findings(known_unsupported(search, propensity, adjust, tables))
    else:
        found = search.of_sets(wanted, adjust)
    if not found.unsupported:
        return {key: view}, found
    supported = supported_view(view, found.unsupported, search.data, tables, search.thresholds.share)
    if supported.unsupported and search.extrapolates(supported.unsupported):
        return {key: supported, extrapolated_key(key): view}, found
    return {key: supported}, found


def choices_of(plan: Plan, propensities: Propensities) -> list[Choice]:
    """Return the estimators to use: those that the user named, or all that the assumption allows for this policy."""
    gaps = bool(propensities.conditioning.gaps.any())
    if not plan.asked:
        return [c for c in plan.choices if not _other_view(c, gaps) and not _refusal(c, propensities)]
    for choice in plan.choices:
        if gaps and choice.method.semi_offline:
            raise ValueError(
                f"'estimators' has {choice.name!r}, but here the recording of the wanted groups depends on groups that "
                f"are not always recorded. Use {choice.method.name + '-miss'!r}."
            )
        if refusal := _refusal(choice, propensities):
            raise ValueError(f"'estimators' has {choice.name!r}, but {refusal}.")
    return plan.choices


def _other_view(choice: Choice, gaps: bool) -> bool:
    """True if the method does not fit the given groups: hybrid methods need gaps, semi-offline methods need none."""
    return choice.method.semi_offline if gaps else choice.method.hybrid


def _refusal(choice: Choice, propensities: Propensities) -> str:
    """Return why the assumption does not allow a method for this policy; empty if it does."""
    if choice.method.complete_rows and choice.propensity not in propensities.of_complete:
        if propensities.whole is not None and choice.propensity == "known":
            return "the known propensity has no array for all groups together"
        return "under this graph the probability of a complete row is not identified"
    if choice.method.imputes and not propensities.ignorable:
        return "imputation needs data missing at random given the groups that are always recorded, which is not assumed here"
    return ""


def fit(
    plan: Plan,
    policy: Policy,
    walked: Walked,
    propensities: Propensities,
    views: Views,
    steps: Steps | None = None,
) -> Fitted:
    """Fit everything that the estimates of one policy need."""
    choices = choices_of(plan, propensities)
    keyed = [(key, c.method) for c in choices if c.key is not None for key in (c.key, extrapolated_key(c.key))]
    used = {key: views.by_key[key] for key, _ in keyed if key in views.by_key}
    valued = tuple(dict.fromkeys(key for key, method in keyed if key in used and method.valued))
    composed = {key: used[key] for key, method in keyed if key in used and method.composed}
    steps, given = steps or Steps(None, 0), propensities.conditioning
    components = _components(plan, policy, walked, given, composed, steps)
    runs, completed = _runs(plan, policy, walked, choices, steps), _completed(plan, policy, walked, choices, steps)
    recipe = replace(plan.recipe, tariff=replace(plan.recipe.tariff, fixed=ignores_values(policy)))
    return Fitted(plan.data, recipe, given, walked.tables, runs, used, valued, completed, components).learn()


def repeat(
    fitted: Fitted, plan: Plan, policy: Policy, walked: Walked, propensities: Propensities, steps: Steps
) -> Fitted:
    """Fit again with the folds and donors of another plan; the walk, unsupported sets and plain runs are kept."""
    views = {key: replace(view, propensity=_of_view(propensities, key)) for key, view in fitted.views.items()}
    composed = {key: views[key] for key in fitted.components}
    components = _components(plan, policy, walked, fitted.conditioning, composed, steps)
    recipe = replace(fitted.recipe, fold=plan.recipe.fold)
    return replace(fitted, recipe=recipe, views=views, components=components, values={}).learn()


def _of_view(propensities: Propensities, key: ViewKey) -> BoundPropensity:
    """Return the propensity of a view, extrapolated or not."""
    found = propensities.of_sets if key[0].startswith("sets") else propensities.of_complete
    return found[key[1]]


def _components(
    plan: Plan, policy: Policy, walked: Walked, given: Conditioning, views: dict[ViewKey, View], steps: Steps
) -> Mapping[ViewKey, Components]:
    """Compute the components of the policy's costs in these views, for EFF."""
    if not views:
        return {}
    stage = steps.stage(component_steps(len(plan.data)))
    runner = Runner(policy, plan.classifier, plan.outcomes, plan.walk, plan.walk_seed, plan.n_jobs, report=stage.walked)
    averaged = plan.recipe.averaged
    found = components_by_view(plan.data, walked.tables, given, views, runner, plan.donors, averaged)
    steps.add(stage.total)
    return found


def _walk(plan: Plan, ground: Ground, rows: Ints | None = None, copies: int = 1) -> Iterator[WalkTable]:
    n_rows = copies * (len(plan.data) if rows is None else len(rows))
    options = plan.walk.within(n_rows, plan.data.problem.n_groups)
    return walk(ground, rows, options, plan.walk_seed, plan.n_jobs)


def _runs(plan: Plan, policy: Policy, walked: Walked, choices: list[Choice], steps: Steps) -> dict[str, RunParts]:
    """Compute the parts of plain runs, by walk, for the methods that average them."""
    data, judge, tables, own = plan.data, plan.classifier, walked.tables, len(plan.outcomes)
    needed = {choice.method.walk for choice in choices if choice.key is None}
    out: dict[str, RunParts] = {}
    if "recorded" in needed:
        out["recorded"] = run_parts(tables, data, n_outcomes=own)
    if "blocked" in needed:
        out["blocked"] = run_parts(tables, data, blocked=True, n_outcomes=own)
        lacking = np.flatnonzero(~every(data.recorded[:, data.problem.free]))
        if len(lacking):  # these rows start from the free groups that they have
            partly = Ground.partly_free(data, policy, judge, plan.outcomes)
            out["blocked"] += run_parts(_walk(plan, partly, lacking), data, blocked=True, n_outcomes=own)
    if "mean-imputed" in needed:
        completed = np.where(np.isnan(data.values), column_means(data), data.values)
        ground = Ground.everything(data, completed, policy, judge, plan.outcomes)
        out["mean-imputed"] = run_parts(steps.reported(_walk(plan, ground)), data, n_outcomes=own)
    return out


def _completed(plan: Plan, policy: Policy, walked: Walked, choices: list[Choice], steps: Steps) -> CompletedRuns | None:
    """Run the policy on the completed tables, for multiple imputation; None if no estimator needs it."""
    if plan.imputations is None or not any(choice.method.imputes for choice in choices):
        return None
    if not walked.gaps(plan.data) and not plan.imputations.reason:  # every row has everything that the policy wants
        runs = run_parts(walked.tables, plan.data, n_outcomes=len(plan.outcomes))
        return CompletedRuns([runs] * len(plan.imputations), ANY_TABLES)
    tables = plan.imputations
    return completed_runs(
        tables,
        policy,
        plan.classifier,
        averaged_rows(plan),
        lambda ground, rows: steps.reported(_walk(plan, ground, rows, len(tables))),
        plan.outcomes,
    )


def averaged_rows(plan: Plan) -> Bools:
    """Return True for the rows that estimates average over, (n,)."""
    averaged = plan.recipe.averaged
    return np.ones(len(plan.data), dtype=bool) if averaged is None else averaged > 0


def steps_of(plan: Plan) -> int:
    """Return the number of progress steps of one policy: rows to walk plus replicates to draw."""
    walks = {choice.method.walk for choice in plan.choices}
    steps = len(plan.data) * (1 + ("mean-imputed" in walks)) + plan.n_replicates
    if "completed" in walks and plan.imputations is not None:
        steps += completed_steps(plan.imputations, averaged_rows(plan))
    if any(choice.method.composed for choice in plan.choices):
        steps += (1 + len(plan.repeats)) * component_steps(len(plan.data))
    return steps
