"""A plan put into effect: walk, fit, reduce, warn. Each step is a function of what the steps before it gave."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from .agents.policy import Policy, bind
from .arrays import Bools, Floats, Ints, every, share_of_heaviest, tally, unique_sets
from .bootstrap import NO_THEORY, Replicates, Values, key_of, part_name, run_bootstrap
from .classifiers import column_means
from .components import policy_components
from .data import Retrospective
from .diagnostics.paths import paths_of
from .diagnostics.search import known_unsupported, supported_view, wanted_enough
from .diagnostics.sums import carried_by_few, label_suspected, support_of
from .diagnostics.support import WEIGHT_COLUMNS, Support
from .diagnostics.words import balance_words, leaning_words, normalizer_words
from .estimators.bounds import BoundedReduction
from .estimators.catalogue import METHODS, Choice
from .estimators.estimate import Outcome
from .estimators.imputed import ANY_TABLES
from .estimators.reduction import Reduced
from .imputation import ChainedImputer, CompletedRuns, completed_runs, completed_steps, component_steps
from .missingness import MNAR
from .notices import (
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
from .nuisance.fitted import Evidence, Fitted, ViewKey
from .nuisance.propensity.factor import NotLearnableError
from .nuisance.propensity.known import BoundKnownPropensity
from .nuisance.propensity.learned import BoundPropensity
from .nuisance.values.known import KnownValues
from .nuisance.values.models import LearnedValues
from .nuisance.weights import Propensities, Shared, View
from .parts import Tariff
from .plan import Plan, name_of
from .progress import Progress, told_by
from .result import Evaluation, Origin, part_sums
from .support import SupportMap, SupportSearch
from .walk import Ground, Tables, TableStore, WalkTable, run_costs, walk

__all__ = [
    "Progress",
    "Steps",
    "Views",
    "Walked",
    "answer",
    "bind_propensities",
    "fit",
    "run",
    "views_of",
    "walk_policies",
]

_PROBE_ROWS = 256  # rows by whose sets the form of the propensity is chosen
_MOST_WANTED = 20_000  # sets whose support is searched for
_OFF, _FAR_OFF = 0.1, 0.3  # distance of a mean weight from 1 that is told: beyond chance, and in any case


def run(plan: Plan, policies: Mapping[str, Policy], progress: Progress | bool | None = None) -> dict[str, Evaluation]:
    """Evaluate policies that know the problem, on the same rows; each as if it were alone, but models are shared."""
    with told_by(progress) as told:
        return _run(plan, policies, told)


def _run(plan: Plan, policies: Mapping[str, Policy], progress: Progress | None) -> dict[str, Evaluation]:
    steps = Steps(progress, len(policies) * _steps_of(plan))
    _draw_imputations(plan)
    walked = walk_policies(plan, policies, steps.walked)
    shared: Shared = {}
    bound = {name: bind_propensities(plan, [walked[name]], shared) for name in policies}
    _tell_assumption(plan, walked.values(), next(iter(bound.values())))
    return {name: _evaluate(plan, name, policy, walked[name], bound[name], steps) for name, policy in policies.items()}


def _draw_imputations(plan: Plan) -> None:
    """The user's own imputer should fail before the walk, if it fails; otherwise the walk says whether tables are needed."""
    needed = any("imputations" in choice.method.needs for choice in plan.choices)
    own = plan.imputations is not None and not isinstance(plan.imputations.imputer, ChainedImputer)
    if needed and own and plan.imputations is not None and not isinstance(plan.missingness, MNAR):
        plan.imputations.draw()


class Steps:
    """Counts rows that were walked and replicates that were drawn, and tells of them."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self.progress, self.total, self.done = progress, total, 0

    def add(self, count: int) -> None:
        """So many more are done."""
        self.done += count
        if self.progress is not None:
            self.progress(min(self.done, self.total), self.total)

    def part(self, count: int) -> Steps:
        """Steps of a part that is told of on its own, so many at most; `add` them when it is done."""
        base = self.done

        def tell(done: int, _: int) -> None:
            if self.progress is not None:
                self.progress(min(base + done, self.total), self.total)

        return Steps(tell, count)

    def walked(self, table: WalkTable) -> None:
        """The rows of this table are walked."""
        self.add(int((table.depth == 0).sum()))  # each row starts in one state

    def telling(self, tables: Iterable[WalkTable]) -> Iterator[WalkTable]:
        """The same tables, told of one by one."""
        for table in tables:
            self.walked(table)
            yield table


def _steps_of(plan: Plan) -> int:
    """Rows to walk and replicates to draw for one policy."""
    walks = {choice.method.walk for choice in plan.choices}
    steps = len(plan.data) * (1 + ("mean-imputed" in walks)) + plan.n_replicates
    if "completed" in walks and plan.imputations is not None:
        steps += completed_steps(plan.imputations, _used(plan))
    if any("components" in choice.method.needs for choice in plan.choices):
        steps += component_steps(len(plan.data))
    return steps


def _used(plan: Plan) -> Bools:
    averaged = plan.recipe.averaged
    return np.ones(len(plan.data), dtype=bool) if averaged is None else averaged > 0


@dataclass(frozen=True, eq=False)
class Walked:
    """The walk of one policy over what is recorded.

    Attributes
    ----------
    tables : Tables
        Its tables.
    wanted : ndarray of bool, shape (u, G)
        Distinct sets that the policy wants somewhere, nothing at all among them; where they are very many, those that are
        wanted most.
    asked : ndarray of bool, shape (v, G)
        Sets that it reaches or wants in a few rows spread over the data; under a graph in all rows, because what has to be
        adjusted for depends on them.
    n_wanted : int
        How many sets it wants.
    """

    tables: Tables
    wanted: Bools
    asked: Bools
    n_wanted: int = 0

    def gaps(self, data: Retrospective) -> bool:
        """Whether the policy wants anything that some row lacks."""
        return bool((self.asked | self.wanted.any(axis=0))[:, ~data.always_recorded].any())

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out."""
        if self.n_wanted <= len(self.wanted):
            return ()
        return (f"Support was searched for the {len(self.wanted):,} sets wanted most, of {self.n_wanted:,}.",)


def walk_policies(
    plan: Plan, policies: Mapping[str, Policy], told: Callable[[WalkTable], None] | None = None
) -> dict[str, Walked]:
    """Walk every policy over what is recorded: the only time that it and the classifier are asked about it."""
    data, store = plan.data, TableStore()
    n, free = len(data), data.problem.free
    few = n if isinstance(plan.missingness, MNAR) else min(_PROBE_ROWS, n)
    probed = np.isin(np.arange(n), np.linspace(0, n - 1, few).astype(np.intp))
    # What stopping would cost helps to learn what going on will cost, where the label may be used.
    learned = isinstance(plan.recipe.values, LearnedValues) and plan.recipe.values.augment_label
    predicts = learned and any("values" in choice.method.needs for choice in plan.choices)
    out = {}
    for name, policy in policies.items():
        wanted: list[Bools] = [np.zeros((1, data.problem.n_groups), dtype=bool)]
        amount: list[Floats] = [np.full(1, np.inf)]
        asked: list[Bools] = []

        def seen(
            table: WalkTable,
            wanted: list[Bools] = wanted,
            amount: list[Floats] = amount,
            asked: list[Bools] = asked,
        ) -> None:
            sets, index = table.edge_sets(free)
            reach = table.reach[table.edge_state]
            kept = np.unique(index[reach > 0])
            wanted.append(sets[kept])
            amount.append(tally(index, reach * table.edge_probability, len(sets))[kept])
            mine = probed[table.row]
            asked.append(table.sets[np.unique(table.set_index[mine])])
            asked.append(sets[np.unique(index[mine[table.edge_state]])])
            if told is not None:
                told(table)

        ground = Ground.recorded(data, policy, plan.classifier, predicts, plan.outcomes)
        tables = store.keep(walk(ground, None, plan.walk, plan.walk_seed, plan.n_jobs), seen)
        most, n_wanted = _most_wanted(np.concatenate(wanted), np.concatenate(amount))
        out[name] = Walked(tables, most, unique_sets(np.concatenate(asked))[0], n_wanted)
    return out


def _most_wanted(sets: Bools, amount: Floats) -> tuple[Bools, int]:
    """Distinct sets, those of the largest amount where they are very many; and how many there are."""
    distinct, index = unique_sets(sets)
    if len(distinct) <= _MOST_WANTED:
        return distinct, len(distinct)
    order = np.argsort(-tally(index, amount, len(distinct)), kind="stable")[:_MOST_WANTED]
    return distinct[np.sort(order)], len(distinct)


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
    undecided: SupportMap = field(
        default_factory=SupportMap
    )  # where too few rows tell whether a wanted set is supported

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


def fit(
    plan: Plan,
    policy: Policy,
    walked: Walked,
    propensities: Propensities,
    views: Views,
    steps: Steps | None = None,
) -> Fitted:
    """Everything that the estimates of one policy are a function of."""
    choices = _choices(plan, propensities)
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


def _evaluate(
    plan: Plan, name: str, policy: Policy, walked: Walked, propensities: Propensities, steps: Steps
) -> Evaluation:
    """Fit, reduce, bootstrap, warn."""
    choices, views = _choices(plan, propensities), views_of(plan, propensities, walked)
    fitted = fit(plan, policy, walked, propensities, views, steps)
    tariff = Tariff.of(plan.data, plan.outcomes)
    populations = _populations(plan, fitted)
    found = {level: _outcomes(plan, choices, part, tariff) for level, part in populations.items()}
    if plan.bootstrap is not None:
        # Imputed estimates have intervals of their own: replicates would need imputations of their own.
        replicated = [c for c in choices if "imputations" not in c.method.needs]
        needing = frozenset(name for name, outcome in found[""].items() if outcome.error_method in NO_THEORY)
        replicates = _replicates(plan, replace(fitted, parted=bool(needing)), replicated, steps, needing)
        found = {level: outcomes | replicates.added_to(outcomes, level) for level, outcomes in found.items()}
    found = {level: _with_own(outcomes, tariff) for level, outcomes in found.items()}
    outcomes = found.pop("")
    support = support_of(plan.data, walked.tables, views.search, views.semi, views.complete, views.undecided)
    support = replace(support, estimators=_weight_table(outcomes, [c.name for c in choices if _weighs_states(c)]))
    outcomes = _with_caveats(outcomes, choices, support, plan.thresholds.share)
    support = _with_leaning(support, choices, plan)
    _tell(outcomes, choices, fitted, propensities, support)
    _tell_weights(support, choices, plan)
    judge, assumed, forms = name_of(plan.classifier), repr(plan.missingness), propensities.forms()
    notes = (*propensities.notes, *walked.notes, *_gap_of_nothing(plan, fitted, choices), *_told_levels(plan))
    whole = Evaluation(outcomes, support, name, judge, assumed, plan.confidence, notes, tuple(choices), forms, tariff)
    origin = Origin(plan.data, plan.missingness, policy, plan.classifier, plan.seed)
    whole = replace(whole, paths=paths_of(plan.data, walked.tables, views.semi), origin=origin)
    if len(plan.outcomes):
        whole = replace(whole, weighted=_weighted_stops(populations[""], views))
    weighs = [c.name for c in choices if _weighs_states(c)]
    drawn = [table.sampled for table in walked.tables] if found and support.sampled else []
    subgroups = {}
    for level, part in found.items():
        subgroups[level] = _subgroup(whole, plan, level, part, _weight_table(part, weighs), drawn)
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
            parts = reduced.parts(plan.data.identity, plan.confidence)
            columns = fitted.columns(isinstance(reduced, BoundedReduction))
            outcome = replace(outcome, parts=parts, columns=columns)
        out[choice.name] = outcome
    return out


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


def _told_levels(plan: Plan) -> tuple[str, ...]:
    """Say of subgroups how many rows lack what they are told apart by."""
    if plan.levels is None or plan.levels.n_missing == 0:
        return ()
    count, name, level = plan.levels.n_missing, plan.levels.name, plan.levels.names[-1]
    return (f"{count} of {len(plan.data)} rows have no {name!r}; they form the subgroup {level!r}.",)


def _choices(plan: Plan, propensities: Propensities) -> list[Choice]:
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
            _used(plan),
            lambda ground, rows: steps.telling(walking(ground, rows)),
            plan.outcomes,
        )
    return out


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
    return _weighs_states(choice) or not known or bool(view.adjust.any())


def _weighs_states(choice: Choice) -> bool:
    return "propensity" in choice.method.needs


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


def _weight_table(outcomes: dict[str, Outcome], names: list[str]) -> pd.DataFrame:
    lines = []
    for name in names:
        outcome = outcomes[name]
        steps = ", ".join(f"{v:.3f}" for v in outcome.normalizers)
        total = outcome.estimates.get("total")
        known = total is not None and total.influence is not None
        ten = share_of_heaviest(total.influence, total.cluster) if known else float("nan")  # type: ignore[union-attr, arg-type]
        lines.append((name, outcome.ess, ten, outcome.normalizer, steps, outcome.largest_weight, outcome.clipped))
    return pd.DataFrame(lines, columns=WEIGHT_COLUMNS)


def _with_caveats(
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


def _tell_assumption(plan: Plan, walked: Iterable[Walked], propensities: Propensities) -> None:
    """Warn where the label predicts what is recorded although the assumption says that it does not."""
    data, given = plan.data, propensities.conditioning
    wanted = np.any([w.wanted.any(axis=0) for w in walked], axis=0) & ~data.always_recorded
    if given.label or not wanted.any() or len(data.classes) < 2:
        return
    if not isinstance(plan.missingness, MNAR) and not label_suspected(data, given, np.flatnonzero(wanted)):
        return
    from .diagnostics.implications import label_findings

    names = [data.problem.group_names[g] for g in np.flatnonzero(wanted)]
    if text := label_findings(data, plan.missingness, names):
        warn(text, AssumptionWarning)


def _gap_of_nothing(plan: Plan, fitted: Fitted, choices: list[Choice]) -> tuple[str, ...]:
    """Compare the cost of acquiring nothing by the weights of a graph with the same by all rows, which needs no graph."""
    hybrid = [c.key for c in choices if c.key is not None and c.method.view == "hybrid"]
    if not hybrid or not plan.data.always_recorded[plan.data.problem.free].all():
        return ()
    from .agents.builtin import AcquireNone
    from .diagnostics.gap import gap_between

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


def _with_leaning(support: Support, choices: list[Choice], plan: Plan) -> Support:
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


def _tell_weights(support: Support, choices: list[Choice], plan: Plan) -> None:
    """Warn of weights that rest on few rows, or that do not balance what is always recorded."""
    if not any(_weighs_states(c) and not c.method.biased for c in choices):
        return
    if support.heavy:
        warn(f"{' '.join(support.heavy)} See result.support.", HeavyWeightsWarning)
    worst = support.balance["after"].abs().max() if len(support.balance) else 0.0
    if worst > plan.thresholds.difference and (text := balance_words(support.balance, plan.thresholds.difference)):
        warn(text, BalanceWarning)


def _tell(
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
