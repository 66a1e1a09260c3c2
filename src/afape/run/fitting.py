"""Fit what the estimates of a policy are a function of: propensities, views, plain runs, action values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..agents.policy import Policy
from ..arrays import Bools, every, unique_sets
from ..classifiers import column_means
from ..components import policy_components
from ..diagnostics.search import known_unsupported, supported_view, wanted_enough
from ..estimators.catalogue import Choice
from ..estimators.imputed import ANY_TABLES
from ..imputation import CompletedRuns, completed_runs, completed_steps, component_steps
from ..nuisance.fitted import Fitted, ViewKey
from ..nuisance.propensity.known import BoundKnownPropensity
from ..nuisance.propensity.learned import BoundPropensity
from ..nuisance.weights import Propensities, Shared, View
from ..plan import Plan
from ..support import SupportMap, SupportSearch
from ..walk import Ground, Tables, WalkTable, run_costs, walk
from .walking import Steps, Walked

__all__ = ["Views", "averaged_rows", "bind_propensities", "choices_of", "fit", "steps_of", "views_of", "weighs_states"]


def bind_propensities(plan: Plan, walked: Iterable[Walked], shared: Shared | None = None) -> Propensities:
    """Propensities that serve all of these policies; ``shared`` keeps them for others."""
    asked = unique_sets(np.concatenate([w.asked for w in walked]))[0]
    complete = any(choice.method.view == "missing-data" for choice in plan.choices) if plan.asked else None
    return Propensities.bind(plan.data, plan.missingness, plan.propensities, plan.recipe.fold, asked, complete, shared)


@dataclass(frozen=True, eq=False)
class Views:
    """Every view of one policy, and the search for support that they come from."""

    by_key: dict[ViewKey, View]
    search: SupportSearch
    undecided: SupportMap = field(default_factory=SupportMap)  # too few rows tell whether a wanted set is supported

    @property
    def semi(self) -> View:
        """The semi-offline or hybrid view with the first propensity."""
        return next(view for (kind, _), view in self.by_key.items() if kind == "sets")

    @property
    def complete(self) -> View | None:
        """The missing-data view with the first propensity, where it is identified."""
        return next((view for (kind, _), view in self.by_key.items() if kind == "complete rows"), None)


def views_of(plan: Plan, propensities: Propensities, walked: Walked) -> Views:
    """Search for what is unsupported in each view: estimators that meet it answer with bounds."""
    search = SupportSearch(plan.data, propensities.conditioning, plan.thresholds)
    everything = np.ones(plan.data.problem.n_groups, dtype=bool)
    gaps, whole = propensities.conditioning.gaps, propensities.whole
    beyond = search if whole is None or whole is search.conditioning else replace(search, conditioning=whole)
    views: dict[ViewKey, View] = {}
    for name, propensity in propensities.of_sets.items():
        views["sets", name] = _view(search, propensity, gaps, walked.wanted, walked.tables)
    for name, propensity in propensities.of_complete.items():
        views["complete rows", name] = _view(beyond, propensity, everything, everything[None], walked.tables)
    found = Views(views, search)
    return replace(found, undecided=_undecided(search, found.semi, walked))


def _undecided(search: SupportSearch, view: View, walked: Walked) -> SupportMap:
    """Where too few rows tell whether what more than a negligible share of runs wants is supported."""
    if view.refusal or not view.propensity.learned:
        return SupportMap()
    found = search.undecided(walked.wanted, view.adjust, view.unsupported)
    return wanted_enough(view, found, search.data, walked.tables, search.thresholds.share) if found else found


def _view(search: SupportSearch, propensity: BoundPropensity, adjust: Bools, wanted: Bools, tables: Tables) -> View:
    """The view of a policy that wants these sets; its map holds what more than a negligible share of runs meets."""
    view = View(propensity, search.data.recorded, adjust, refusal=search.refusal(adjust))
    if view.refusal:
        return view
    if isinstance(propensity, BoundKnownPropensity):
        found = known_unsupported(search, propensity, adjust, tables)
    else:
        found = search.of_sets(wanted, adjust)
    return supported_view(view, found, search.data, tables, search.thresholds.share) if found else view


def choices_of(plan: Plan, propensities: Propensities) -> list[Choice]:
    """Estimators to use: those asked for, or all that the assumption allows for this policy."""
    gaps = bool(propensities.conditioning.gaps.any())
    if not plan.asked:
        other = "semi-offline" if gaps else "hybrid"
        return [c for c in plan.choices if c.method.view != other and not _refusal(c, propensities)]
    for choice in plan.choices:
        if gaps and choice.method.view == "semi-offline":
            raise ValueError(
                f"'estimators' has {choice.name!r}, but here the recording of what the policy wants depends on groups "
                f"that are not always recorded. Use {choice.method.name + '-miss'!r}."
            )
        if refusal := _refusal(choice, propensities):
            raise ValueError(f"'estimators' has {choice.name!r}, but {refusal}.")
    return plan.choices


def _refusal(choice: Choice, propensities: Propensities) -> str:
    """Why the assumption does not allow a method for this policy."""
    if choice.method.view == "missing-data" and choice.propensity not in propensities.of_complete:
        if propensities.whole is not None and choice.propensity == "known":
            return "the known propensity has no array for all groups together"
        return "under this graph the probability of a complete row is not identified"
    if "imputations" in choice.method.needs and not propensities.ignorable:
        return "imputation needs data missing at random given what is always recorded, and under this assumption they are not"
    return ""


def weighs_states(choice: Choice) -> bool:
    """Whether the method weighs rows by what they have recorded."""
    return "propensity" in choice.method.needs


def fit(
    plan: Plan,
    policy: Policy,
    walked: Walked,
    propensities: Propensities,
    views: Views,
    steps: Steps | None = None,
) -> Fitted:
    """Everything that the estimates of one policy are a function of."""
    choices = choices_of(plan, propensities)
    used = {c.key: views.by_key[c.key] for c in choices if c.key is not None}
    valued = dict.fromkeys(c.key for c in choices if c.key is not None and "values" in c.method.needs)
    steps = steps or Steps(None, 0)
    runs = _runs(plan, policy, walked, choices, steps)
    given = propensities.conditioning
    composed = dict.fromkeys(c.key for c in choices if c.key is not None and "components" in c.method.needs)
    if composed:
        part = steps.part(component_steps(len(plan.data)))
        views_used = {key: used[key] for key in composed}
        runs["components"] = policy_components(plan, policy, walked.tables, given, views_used, part.walked)
        steps.add(part.total)
    return Fitted(plan.data, plan.recipe, given, walked.tables, runs, used, tuple(valued)).learn()


def _runs(plan: Plan, policy: Policy, walked: Walked, choices: list[Choice], steps: Steps) -> dict[str, Any]:
    """Costs of plain runs, by walk, for the methods that average them."""
    data, judge, tables, own = plan.data, plan.classifier, walked.tables, len(plan.outcomes)
    needed = {choice.method.walk for choice in choices if choice.key is None}

    def walking(ground: Ground, rows: Any = None) -> Iterator[WalkTable]:
        return walk(ground, rows, plan.walk, plan.walk_seed, plan.n_jobs)

    out: dict[str, Any] = {}
    if "recorded" in needed:
        out["recorded"] = run_costs(tables, data, n_outcomes=own)
    if "blocked" in needed:
        out["blocked"] = run_costs(tables, data, blocked=True, n_outcomes=own)
        lacking = np.flatnonzero(~every(data.recorded[:, data.problem.free]))
        if len(lacking):  # these rows start from the free groups that they have
            partly = Ground.partly_free(data, policy, judge, plan.outcomes)
            out["blocked"] += run_costs(walking(partly, lacking), data, blocked=True, n_outcomes=own)
    if "mean-imputed" in needed:
        completed = np.where(np.isnan(data.values), column_means(data), data.values)
        ground = Ground.everything(data, completed, policy, judge, plan.outcomes)
        out["mean-imputed"] = run_costs(steps.telling(walking(ground)), data, n_outcomes=own)
    if "completed" in needed and plan.imputations is not None:
        if not walked.gaps(data) and not plan.imputations.reason:  # all that the policy wants is recorded in every row
            return out | {
                "completed": CompletedRuns(
                    [run_costs(tables, data, n_outcomes=own)] * len(plan.imputations), ANY_TABLES
                )
            }
        out["completed"] = completed_runs(
            plan.imputations,
            policy,
            judge,
            averaged_rows(plan),
            lambda ground, rows: steps.telling(walking(ground, rows)),
            plan.outcomes,
        )
    return out


def averaged_rows(plan: Plan) -> Bools:
    """Rows that estimates are means of."""
    averaged = plan.recipe.averaged
    return np.ones(len(plan.data), dtype=bool) if averaged is None else averaged > 0


def steps_of(plan: Plan) -> int:
    """Rows to walk and replicates to draw for one policy."""
    walks = {choice.method.walk for choice in plan.choices}
    steps = len(plan.data) * (1 + ("mean-imputed" in walks)) + plan.n_replicates
    if "completed" in walks and plan.imputations is not None:
        steps += completed_steps(plan.imputations, averaged_rows(plan))
    if any("components" in choice.method.needs for choice in plan.choices):
        steps += component_steps(len(plan.data))
    return steps
