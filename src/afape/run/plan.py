"""The plan of an evaluation: all arguments of `evaluate` and `compare`, checked once before any work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any

import numpy as np
from joblib.externals.loky.backend.reduction import dumps

from .._arguments import (
    check_choice,
    check_confidence,
    check_count,
    check_flag,
    check_jobs,
    check_number,
    check_seed,
    check_texts,
    shown,
)
from .._arrays import Bools, Floats, Ints
from ..action_values.known import KnownValues
from ..action_values.models import DEFAULT_VALUES, LearnedValues, as_regressor
from ..agents.policy import Policy, bind_to_records
from ..classifiers import Classifier, check_classifier
from ..data.alike_parts import alike_parts
from ..data.label_group import with_label_group
from ..data.retrospective import Retrospective, check_records
from ..data.subgroups import Levels, levels_of
from ..estimators.catalogue import METHODS, Choice
from ..estimators.evidence import Recipe
from ..imputation.donors import Donors
from ..imputation.imputations import Imputations
from ..missingness.assumptions import MAR, MCAR, MNAR
from ..missingness.known_propensity import KnownPropensity
from ..propensity.binding import PropensitySpec
from ..propensity.learned import DEFAULT_PROPENSITY, LearnedPropensity
from ..support.thresholds import DEFAULT_THRESHOLDS, SupportThresholds
from ..walk.labelled import PairsWithLabel, on_label_group, outcomes_on_label_group, policy_on_label_group
from ..walk.outcomes import NO_OUTCOMES, OwnOutcomes, check_outcomes
from ..walk.tariff import Tariff
from ..walk.walker import WalkOptions
from .bootstrap import Bootstrap
from .options import Options

__all__ = [
    "Options",
    "Plan",
    "Silent",
    "assign_folds",
    "choices_under",
    "make_plan",
    "name_of",
    "on_records",
    "split_folds",
]


@dataclass(frozen=True, eq=False)
class Plan:
    """All checked arguments of an evaluation except the policies.

    Attributes
    ----------
    propensities : dict
        Specifications by name: "learned", "known".
    choices : list of Choice
        Estimators that the user named, or that the assumption may allow.
    asked : bool
        True if the user named the estimators.
    recipe : Recipe
        How estimates are made.
    bootstrap : Bootstrap or None
        How replicates are drawn.
    walk : WalkOptions
        Budgets of the walk, with its simulation policy bound to the problem.
    walk_seed, bootstrap_seed
        Seeds.
    donors : Donors
        Completed rows from which components draw values; computed when first used.
    imputations : Imputations or None
        Completed tables, drawn when first used.
    outcomes : OwnOutcomes
        Outcomes defined by the user.
    levels : Levels or None
        Subgroups with their own estimates.
    seed : int or None
        ``random_state``, from which all seeds are derived.
    changed : mapping
        Options that the user changed, as text.
    repeats : tuple of Plan
        Plans with other folds and donors. Estimates are means over this plan and these.
    """

    data: Retrospective
    classifier: Classifier
    missingness: MCAR | MAR | MNAR
    propensities: dict[str, PropensitySpec]
    choices: list[Choice]
    asked: bool
    recipe: Recipe
    bootstrap: Bootstrap | None
    confidence: float
    walk: WalkOptions
    walk_seed: int
    bootstrap_seed: np.random.SeedSequence
    donors: Donors
    n_jobs: int | None
    thresholds: SupportThresholds
    imputations: Imputations | None
    outcomes: OwnOutcomes = NO_OUTCOMES
    levels: Levels | None = None
    seed: int | None = 0
    changed: Mapping[str, str] = field(default_factory=dict)
    repeats: tuple[Plan, ...] = ()

    @property
    def n_replicates(self) -> int:
        """Number of bootstrap replicates to draw."""
        return 0 if self.bootstrap is None else self.bootstrap.n_replicates


class Silent:
    """Classifier that always predicts the first class, for uses that need only the policy's decisions."""

    def predict(self, values: Floats, acquired: Bools) -> Ints:
        """Predict the first class."""
        return np.zeros(len(values), dtype=np.intp)


def make_plan(data: Any, classifier: Any, missingness: Any, options: Options) -> Plan:
    """Check all arguments and return the plan; ``classifier`` is `Silent` if no prediction is needed."""
    check_records(data)
    if len(data) == 0:
        raise ValueError("'data' must have rows, but is empty.")
    levels, all_rows = None if options.by is None else levels_of(options.by, data), data
    data = _check_missingness(missingness, _weighing_labels(data, missingness, options))
    levels = None if levels is None else levels.take(np.isin(all_rows.positions, data.positions))
    check_choice("acquisition_weight", options.acquisition_weight, ("before", "after"))
    check_confidence(options.confidence)
    check_flag("normalize", options.normalize)
    check_jobs(options.n_jobs)
    check_seed(options.random_state)
    specs = _propensity_specs(options.propensity, data, missingness)
    possible = choices_under(missingness, specs)
    choices = _chosen(options.estimators, possible)
    values = _action_values(options.values)
    outcomes = outcomes_on_label_group(check_outcomes(options.outcomes), data)
    bootstrap = _bootstrap(options.bootstrap, data)
    judge = on_label_group(check_classifier(classifier, data.original or data), data)
    seeds = np.random.SeedSequence(options.random_state).spawn(5)
    fold_seed, walk_seed, bootstrap_seed, imputation_seed, component_seed = seeds
    fold, averaged = _folds(data, options, np.random.default_rng(fold_seed))
    plan = Plan(
        data=data,
        classifier=judge,
        missingness=missingness,
        propensities=specs,
        choices=choices,
        asked=options.estimators is not None,
        recipe=Recipe(
            values,
            options.normalize,
            options.acquisition_weight,
            fold,
            averaged,
            Tariff.of(data, outcomes),
            options.confidence,
        ),
        bootstrap=bootstrap,
        confidence=options.confidence,
        walk=walk_options(options.walk, data),
        walk_seed=int(walk_seed.generate_state(1, np.uint64)[0]),
        bootstrap_seed=bootstrap_seed,
        donors=Donors(int(component_seed.generate_state(1)[0])),
        n_jobs=options.n_jobs,
        thresholds=_thresholds(options.thresholds),
        imputations=_imputations(options, data, choices, int(imputation_seed.generate_state(1)[0])),
        outcomes=outcomes,
        levels=levels,
        seed=options.random_state,
        changed=options.changed(),
    )
    return replace(plan, repeats=_repeats(plan, options, fold_seed, component_seed))


def _repeats(
    plan: Plan, options: Options, fold_seed: np.random.SeedSequence, component_seed: np.random.SeedSequence
) -> tuple[Plan, ...]:
    """Return the plans of the repeats after the first, with their own folds and donors."""
    further = check_count("n_repeats", options.n_repeats, 1) - 1
    if further and options.split is not None:
        raise ValueError(
            "'n_repeats' and 'split' exclude each other, but both were given: repeats need estimates on the same rows. "
            "Leave out 'split' for cross-fitting, or 'n_repeats'."
        )
    found = []
    for fold, donors in zip(fold_seed.spawn(further), component_seed.spawn(further), strict=True):
        recipe = replace(plan.recipe, fold=_folds(plan.data, options, np.random.default_rng(fold))[0])
        found.append(replace(plan, recipe=recipe, donors=Donors(int(donors.generate_state(1)[0]))))
    return tuple(found)


def _check_missingness(missingness: Any, data: Retrospective) -> Retrospective:
    """Return the records to evaluate on: all rows except those that the assumption leaves out."""
    if not isinstance(missingness, MCAR | MAR | MNAR):
        raise TypeError(
            f"'missingness' must be afape.MCAR(), afape.MAR(given=[...]) or afape.MNAR(graph=...), not {shown(missingness)}."
        )
    data = missingness.rows(data) if isinstance(missingness, MAR) else data
    missingness.conditioning(data, np.zeros(data.problem.n_groups, dtype=bool))  # raises an error for unknown names
    return data


def _propensity_specs(
    propensity: Any, data: Retrospective, missingness: MCAR | MAR | MNAR
) -> dict[str, PropensitySpec]:
    """Return the specifications by name, in the user's order."""
    listed = list(propensity) if isinstance(propensity, list | tuple) else [propensity]
    specs: list[PropensitySpec] = []
    for p in listed:
        if isinstance(p, type):
            raise TypeError(f"'propensity' must be an instance, but is the class {p.__name__}.")
        if isinstance(p, KnownPropensity | LearnedPropensity):
            specs.append(p)
        elif p is None:
            specs.append(DEFAULT_PROPENSITY)
        elif hasattr(p, "predict_proba"):
            specs.append(LearnedPropensity(p))
        else:
            raise TypeError(
                f"'propensity' must be None, a scikit-learn classifier, LearnedPropensity or KnownPropensity, not "
                f"{type(p).__name__}. For a function that returns known probabilities, use afape.KnownPropensity(function)."
            )
    known = [p for p in specs if isinstance(p, KnownPropensity)]
    if not specs or len(known) > 1 or len(specs) - len(known) > 1:
        raise ValueError(
            "'propensity' must be one propensity, or a list of one learned (None) and one known, but the list has "
            f"{len(specs) - len(known)} learned and {len(known)} known."
        )
    for p in known:
        if p.asks_for_labels and data.original is not None and not isinstance(missingness, MNAR):
            raise ValueError(
                f"{p!r} must not use the label, because some labels are missing: the label is the last column of 'required'."
            )
        p.lookup(data)  # raises an error for arrays that do not fit
    return {"known" if isinstance(p, KnownPropensity) else "learned": p for p in specs}


def choices_under(missingness: MCAR | MAR | MNAR, propensities: Mapping[str, Any]) -> list[Choice]:
    """Return the estimators that an assumption may allow, in the order of the catalogue.

    Under a graph, the allowed estimators also depend on the policy. If there are a learned and a known propensity, each
    weighting method has a second estimator with the known one, marked ``-gt``.
    """
    first = "learned" if "learned" in propensities else "known"
    found = []
    for method in METHODS.values():
        if method.hybrid and not isinstance(missingness, MNAR):
            continue
        kind = "complete rows" if method.complete_rows else "sets"
        for name in propensities if method.uses_propensity else [first]:
            key = (kind, name) if method.complete_rows or method.semi_offline or method.hybrid else None
            found.append(Choice(method, name, method.name if name == first else f"{method.name}-gt", key))
    return found


def _chosen(estimators: Any, possible: list[Choice]) -> list[Choice]:
    """Return the estimators that the user named, each once; all possible ones if ``estimators`` is None."""
    if estimators is None:
        return possible
    estimators = check_texts("estimators", estimators, "names")
    if not estimators:
        raise ValueError("'estimators' must be a non-empty list of names, but is empty.")
    by_name = {choice.name: choice for choice in possible}
    for name in estimators:
        if name not in by_name:
            raise ValueError(
                f"'estimators' must be among {list(by_name)} under this assumption and propensity, but {name!r} is not."
            )
    return [by_name[name] for name in dict.fromkeys(estimators)]


def _action_values(values: Any) -> LearnedValues | KnownValues:
    if values is None:
        return DEFAULT_VALUES
    return values if isinstance(values, LearnedValues | KnownValues) else LearnedValues(as_regressor(values))


def _bootstrap(bootstrap: Any, data: Retrospective) -> Bootstrap | None:
    if not isinstance(bootstrap, Bootstrap | Integral) or isinstance(bootstrap, bool):
        raise TypeError(f"'bootstrap' must be a number of replicates or an afape.Bootstrap, but is {shown(bootstrap)}.")
    draws = bootstrap if isinstance(bootstrap, Bootstrap) else Bootstrap(check_count("bootstrap", bootstrap, 0))
    if bootstrap == 0:
        return None
    n_units = len(data) if data.cluster is None else len(np.unique(data.cluster))
    if draws.n_replicates and n_units < 2:
        raise ValueError(
            f"'bootstrap' needs at least two {'rows' if data.cluster is None else 'clusters'} to draw from, but there "
            f"is {n_units}."
        )
    return draws


def _folds(data: Retrospective, options: Options, rng: np.random.Generator) -> tuple[Ints, Floats | None]:
    """Return the fold of each row, and 1 for rows to average over (None for all rows)."""
    if options.split is None:
        return assign_folds(data, 5 if options.n_folds is None else options.n_folds, rng), None
    if options.n_folds is not None:
        raise ValueError(
            "'n_folds' and 'split' exclude each other, but both were given. Leave out 'split' for cross-fitting, or 'n_folds' "
            "to learn from one share of the rows."
        )
    fold = split_folds(data, options.split, rng)
    return fold, (fold == 0).astype(float)


def assign_folds(data: Retrospective, n_folds: int, rng: np.random.Generator) -> Ints:
    """Assign rows at random to folds that are alike (`alike_parts`), (n,); rows of one cluster share a fold.

    With one fold, propensities and action values are fitted and used on the same rows.
    """
    check_count("n_folds", n_folds, 1)
    n_units = int(data.unit.max()) + 1
    if n_units < n_folds:
        raise ValueError(
            f"'n_folds' must not exceed the number of {'rows' if data.cluster is None else 'clusters'}, but is {n_folds} "
            f"for {n_units}. Lower it, or use n_folds=1."
        )
    return alike_parts(data, n_folds, rng)


def split_folds(data: Retrospective, split: float, rng: np.random.Generator) -> Ints:
    """Assign rows at random to fold 1, which models are fitted on, or fold 0, which estimates average over; (n,)."""
    check_number("split", split, "lie strictly between 0 and 1", lambda share: 0 < share < 1)
    n_units = int(data.unit.max()) + 1
    n_learn = round(split * n_units)
    if not 0 < n_learn < n_units:
        raise ValueError(
            f"'split' must leave rows to learn from and rows to average over, but {split!r} of {n_units} leaves none. Choose a "
            "value nearer to 0.5."
        )
    learns = np.zeros(n_units, dtype=np.intp)
    learns[rng.permutation(n_units)[:n_learn]] = 1
    return learns[data.unit]


def walk_options(walk: Any, data: Retrospective) -> WalkOptions:
    """Check the options and bind their simulation policy to the problem."""
    if walk is not None and not isinstance(walk, WalkOptions):
        raise TypeError(f"'walk' must be an afape.WalkOptions, not {shown(walk)}.")
    options = WalkOptions() if walk is None else walk
    if options.simulation is None:
        return options
    return replace(options, simulation=on_records(options.simulation, data, "simulation"))


def on_records(policy: Any, data: Retrospective, argument: str = "policy") -> Policy:
    """Return the policy bound to these records, which may have the label as a group."""
    return policy_on_label_group(bind_to_records(policy, data.original or data, argument), data)


def _weighing_labels(data: Retrospective, missingness: Any, options: Options) -> Retrospective:
    """Return the records, with the label as a group if some rows have none; raise errors for what then has no meaning."""
    if data.labelled.all():
        return data
    label = data.problem.label
    if getattr(missingness, "label", False):
        raise ValueError(
            f"'missingness' must not say label=True here, because {label!r} is not always recorded. Draw a graph with the arrows "
            f"of {label!r}: afape.MNAR(graph=...)."
        )
    if isinstance(options.values, KnownValues):
        raise TypeError(
            "'values' must be learned if some labels are missing: KnownValues is for records with all labels."
        )
    if isinstance(options.by, str) and options.by == label:
        raise ValueError(
            f"'by' must not be the label {label!r} if some labels are missing: its subgroups are then unknown."
        )
    return with_label_group(data)


def _thresholds(thresholds: Any) -> SupportThresholds:
    if thresholds is None:
        return DEFAULT_THRESHOLDS
    if not isinstance(thresholds, SupportThresholds):
        raise TypeError(f"'thresholds' must be an afape.SupportThresholds, not {shown(thresholds)}.")
    return thresholds


def _imputations(options: Options, data: Retrospective, choices: list[Choice], seed: int) -> Imputations | None:
    """Return the completed tables if an estimator may need them. The arguments are checked in any case."""
    given = options.imputer is not None or options.n_imputations is not None
    if not given and not any(choice.method.imputes for choice in choices):
        return None
    n_imputations = 10 if options.n_imputations is None else options.n_imputations
    return Imputations(data, options.imputer, n_imputations, seed)


def check_sendable(n_jobs: int | None, **things: Any) -> None:
    """Raise TypeError, before any work, if an argument cannot be sent to other processes."""
    if n_jobs in (None, 1):
        return
    for argument, thing in things.items():
        try:
            dumps(thing)
        except Exception as error:  # pickling calls the user's code, which may raise anything
            raise TypeError(
                f"{argument!r} must be picklable to run with n_jobs={n_jobs}, but {type(thing).__name__} is not "
                f"({error}). Use n_jobs=1, or remove open files, locks and sessions from it."
            ) from error


def name_of(thing: Any) -> str:
    """Return a short name of a policy or classifier."""
    thing = thing.classifier if isinstance(thing, PairsWithLabel) else thing
    text = shown(thing)
    return type(thing).__name__ if " object at 0x" in text or len(text) > 80 else text
