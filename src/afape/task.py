"""One evaluation, from checked arguments to a result: nuisances, one pass over the rows, estimates, bootstrap."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from .agents.policy import Policy, bind
from .arrays import Bools, Floats, Ints
from .bootstrap import Bootstrap, Replicates, run_bootstrap
from .classifiers import Classifier, check_classifier
from .data import Retrospective
from .estimators import Outcome, Support
from .estimators.estimate import check_confidence
from .missingness import MAR, MCAR
from .notices import (
    ClippedWeightsWarning,
    InterruptedBootstrapWarning,
    NormalizerWarning,
    PropensityFitWarning,
    SupportWarning,
    ValueFallbackWarning,
)
from .nuisance import (
    BoundPropensity,
    KnownPropensity,
    KnownValues,
    LearnedPropensity,
    as_regressor,
    assign_folds,
    split_folds,
)
from .positivity import Positivity
from .reductions import BASELINES, DIRECT, DOUBLY_ROBUST, WEIGHTED, Recipe, Reductions
from .result import Evaluation
from .support import SupportThresholds
from .walk import Ground, WalkOptions, walk

__all__ = ["Silent", "Task", "bound_options", "checked_thresholds", "name_of", "propensity_specs", "row_identity"]

_PROBE_ROWS = 256  # rows walked first, to see how many sets the policy asks for
_FAR_FROM_ONE = 0.1

Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Task:
    """Everything about an evaluation but the policy."""

    data: Retrospective
    classifier: Classifier
    missingness: MCAR | MAR
    given: Ints
    specs: dict[str, KnownPropensity | LearnedPropensity]  # by the suffix of the estimators' names
    names: list[str]
    recipe: Recipe
    bootstrap: Bootstrap
    confidence: float
    options: WalkOptions
    fold: Ints
    walk_seed: int
    bootstrap_seed: np.random.SeedSequence
    n_jobs: int | None
    positivity: Positivity

    @staticmethod
    def checked(
        data: Any,
        classifier: Any,
        *,
        missingness: Any,
        propensity: Any,
        values: Any,
        augment_label: bool,
        normalize: bool,
        acquisition_weight: str,
        bootstrap: Any,
        confidence: float,
        n_folds: int,
        split: float | None,
        random_state: int | None,
        n_jobs: int | None,
        walk: Any,
        estimators: Any,
        thresholds: Any = None,
    ) -> Task:
        """Check every argument of `evaluate`, before any work."""
        if not isinstance(data, Retrospective):
            raise TypeError(f"'data' must be an afape.Retrospective, not {type(data).__name__}.")
        if len(data) == 0:
            raise ValueError("'data' must have rows, but is empty.")
        if not isinstance(missingness, MCAR | MAR):
            raise TypeError(f"'missingness' must be afape.MCAR() or afape.MAR(given=[...]), not {missingness!r}.")
        if acquisition_weight not in ("before", "after"):
            raise ValueError(f"'acquisition_weight' must be 'before' or 'after', but is {acquisition_weight!r}.")
        check_confidence(confidence)
        given = missingness.given_columns(data)
        specs = propensity_specs(propensity)
        names = _chosen(estimators, specs)
        learner = values if isinstance(values, KnownValues) else as_regressor(values)
        draws = bootstrap if isinstance(bootstrap, Bootstrap) else Bootstrap(bootstrap)
        n_units = len(data) if data.cluster is None else len(np.unique(data.cluster))
        if draws.n_replicates and n_units < 2:
            raise ValueError(
                f"'bootstrap' needs at least two {'rows' if data.cluster is None else 'clusters'} to draw from, but there "
                f"is {n_units}."
            )
        judge = check_classifier(classifier, data)
        options = bound_options(walk, data)
        fold_seed, walk_seed, bootstrap_seed = np.random.SeedSequence(random_state).spawn(3)
        rng = np.random.default_rng(fold_seed)
        if split is None:
            fold = assign_folds(len(data), n_folds, data.cluster, rng)
            row_weight = None
        else:
            fold = split_folds(len(data), split, data.cluster, rng)
            row_weight = (fold == 0).astype(float)
        if split is not None and n_folds != 5:
            raise ValueError("'n_folds' and 'split' exclude each other: cross-fit, or learn from a part of the rows.")
        recipe = Recipe(learner, augment_label, normalize, acquisition_weight, given, fold, row_weight)
        seed = int(walk_seed.generate_state(1, np.uint64)[0])
        return Task(
            data=data,
            classifier=judge,
            missingness=missingness,
            given=given,
            specs=specs,
            names=names,
            recipe=recipe,
            bootstrap=draws,
            confidence=confidence,
            options=options,
            fold=fold,
            walk_seed=seed,
            bootstrap_seed=bootstrap_seed,
            n_jobs=n_jobs,
            positivity=Positivity(data, given, checked_thresholds(thresholds)),
        )

    def probe(self, policy: Policy) -> Bools:
        """Sets that the policy reaches in a few rows spread over the data."""
        n = len(self.data)
        rows = np.unique(np.linspace(0, n - 1, min(_PROBE_ROWS, n)).astype(np.intp))
        ground = Ground.recorded(self.data, policy, Silent())
        return np.concatenate([table.sets for table in walk(ground, rows, self.options, self.walk_seed)])

    def learn_propensities(self, asked: list[Bools]) -> dict[str, BoundPropensity]:
        """Bind known propensities, set up learned ones; ``asked`` are sets that policies reach."""
        sets = np.concatenate(asked)
        return {
            suffix: spec.bind(self.data)
            if isinstance(spec, KnownPropensity)
            else spec.bind(self.data, self.given, self.fold, sets)
            for suffix, spec in self.specs.items()
        }

    def evaluate(
        self, policy: Policy, name: str, propensities: dict[str, BoundPropensity], progress: Progress | None = None
    ) -> Evaluation:
        """Walk, estimate, bootstrap, warn."""
        keep = self.bootstrap.n_replicates > 0
        run = Reductions(
            self.data, policy, self.classifier, self.names, propensities, self.recipe, keep, self.positivity
        )
        n_boot = self.bootstrap.n_replicates
        total = run.steps + n_boot
        run.walk(self.options, self.walk_seed, self.n_jobs, progress and (lambda done: progress(done, total)))
        outcomes = run.outcomes(row_identity(self.data), self.confidence)
        if n_boot:
            replicates = run_bootstrap(
                run.replicate if self.bootstrap.refit else run.replicate_frozen,
                len(self.data),
                self.data.cluster,
                n_boot,
                self.bootstrap_seed,
                n_jobs=self.n_jobs,
                progress=progress and (lambda done, _: progress(run.steps + done, total)),
            )
            outcomes = self._with_replicates(outcomes, replicates)
        given = tuple(self.data.columns[j] for j in self.given)
        weights = _weight_table(outcomes, run.weighted_names)
        support = run.support.result(weights, *run.support_views(), given)
        self._warn(outcomes, run, support, propensities)
        return Evaluation(outcomes, support, name, name_of(self.classifier), repr(self.missingness), self.confidence)

    def _with_replicates(self, outcomes: dict[str, Outcome], replicates: Replicates) -> dict[str, Outcome]:
        done, asked = len(replicates.values), self.bootstrap.n_replicates
        if replicates.interrupted:
            warnings.warn(
                f"The bootstrap was interrupted after {done} of {asked} replicates; intervals rest on these.",
                InterruptedBootstrapWarning,
                stacklevel=4,
            )
        out = {}
        draws = f"{self.bootstrap_seed.entropy}, {self.bootstrap.kind}"
        for name, outcome in outcomes.items():
            estimates = {
                target: estimate.with_replicates(partial(replicates.of, name), target, draws)
                for target, estimate in outcome.estimates.items()
            }
            lost = 0
            if estimates:
                lost = int((~np.isfinite(replicates.of(name, "total"))).sum())
            # Where theory gives no error, or one that ignores the learning, the replicates give it.
            needed = outcome.error in ("none without bootstrap", "propensity as known") and done - lost > 1
            if needed:
                estimates = {t: e.without_influence() for t, e in estimates.items()}
            error = self.bootstrap.kind if needed else outcome.error
            out[name] = replace(outcome, estimates=estimates, error=error, replicates=done, lost=lost)
        return out

    def _warn(
        self, outcomes: dict[str, Outcome], run: Reductions, support: Support, propensities: dict[str, Any]
    ) -> None:
        names = run.weighted_names
        if names or DIRECT in outcomes:
            for text in support.warnings:
                _tell(f"{text} See result.support.", SupportWarning)
        for name in names:
            outcome = outcomes[name]
            if outcome.clipped:
                _tell(
                    f"{name}: {outcome.clipped} learned propensities fell below 'min_propensity' and were raised to it, "
                    "which biases the estimate towards what is recorded often. See result.support.",
                    ClippedWeightsWarning,
                )
            off = abs(outcome.normalizer - 1)
            if off > _FAR_FROM_ONE and off > 4 * outcome.normalizer_error:
                _tell(
                    f"{name}: the mean weight is {outcome.normalizer:.3g}, far from 1. Either the policy wants sets that "
                    "are hardly ever recorded, or the propensity model is wrong. See result.support.",
                    NormalizerWarning,
                )
        if run.fallbacks:
            _tell(
                f"Action values of {run.fallbacks} states and actions had no row like them to learn from in some fold, and "
                "fell back to a model of fewer groups (or, where there was no row at all, to the cost of stopping). "
                "Use fewer folds, or a policy that wants less.",
                ValueFallbackWarning,
            )
        if not all(getattr(p, "converged", True) for p in propensities.values()):
            _tell(
                "A logistic propensity did not converge, most likely because some rows are always or never recorded. "
                "See result.support for weights that are too large.",
                PropensityFitWarning,
            )


def _tell(message: str, category: type[Warning]) -> None:
    warnings.warn(message, category, stacklevel=5)


def checked_thresholds(thresholds: Any) -> SupportThresholds:
    """Refuse anything but thresholds."""
    if thresholds is None:
        return SupportThresholds()
    if not isinstance(thresholds, SupportThresholds):
        raise TypeError(f"'thresholds' must be an afape.SupportThresholds, not {thresholds!r}.")
    return thresholds


class Silent:
    """Stands in for the classifier where only the policy's way matters."""

    def predict(self, values: Floats, acquired: Bools) -> Ints:
        """The first class."""
        return np.zeros(len(values), dtype=np.intp)


def bound_options(walk: Any, data: Retrospective) -> WalkOptions:
    """Options with their simulation policy told about the problem."""
    if walk is not None and not isinstance(walk, WalkOptions):
        raise TypeError(f"'walk' must be an afape.WalkOptions, not {walk!r}.")
    options = walk or WalkOptions()
    if options.simulation is None:
        return options
    return replace(options, simulation=bind(options.simulation, data.problem, "simulation"))


def row_identity(data: Retrospective) -> str:
    """Which rows these are, so that only estimates on the same rows are compared."""
    return f"{data.source}:{hashlib.sha1(data.positions.tobytes()).hexdigest()}"


def name_of(thing: Any) -> str:
    """Short name of a policy or classifier."""
    text = repr(thing)
    return type(thing).__name__ if " object at 0x" in text or len(text) > 80 else text


def propensity_specs(propensity: Any) -> dict[str, KnownPropensity | LearnedPropensity]:
    """Suffix of the estimators' names for each propensity asked for."""
    listed = list(propensity) if isinstance(propensity, list | tuple) else [propensity]
    for p in listed:
        if p is None or isinstance(p, KnownPropensity | LearnedPropensity):
            continue
        if isinstance(p, type):
            raise TypeError(f"'propensity' must be an instance, but is the class {p.__name__}.")
        if not hasattr(p, "predict_proba"):
            raise TypeError(
                f"'propensity' must be None, a scikit-learn classifier, LearnedPropensity or KnownPropensity, not "
                f"{type(p).__name__}. A function that knows the probabilities goes into afape.KnownPropensity(function)."
            )
    specs = [
        LearnedPropensity()
        if p is None
        else p
        if isinstance(p, KnownPropensity | LearnedPropensity)
        else LearnedPropensity(p)
        for p in listed
    ]
    known = [p for p in specs if isinstance(p, KnownPropensity)]
    if not specs or len(known) > 1 or len(specs) - len(known) > 1:
        raise ValueError(
            "'propensity' must be one propensity, or a list of one learned (None) and one known, but the list has "
            f"{len(specs) - len(known)} learned and {len(known)} known."
        )
    return {"-gt" if len(specs) == 2 and isinstance(p, KnownPropensity) else "": p for p in specs}


def _chosen(estimators: Sequence[str] | None, specs: dict[str, Any]) -> list[str]:
    def both(base: str) -> list[str]:
        return [base + suffix for suffix in specs]

    possible = [*BASELINES, *(n for base in WEIGHTED for n in both(base)), DIRECT, *both(DOUBLY_ROBUST)]
    if estimators is None:
        return possible
    if isinstance(estimators, str) or not isinstance(estimators, Sequence) or not estimators:
        raise ValueError(f"'estimators' must be a list of names, but is {estimators!r}.")
    for name in estimators:
        if name not in possible:
            raise ValueError(
                f"'estimators' must be among {possible} under this assumption and propensity, but {name!r} is not."
            )
    return list(dict.fromkeys(estimators))


def _weight_table(outcomes: dict[str, Outcome], names: list[str]) -> pd.DataFrame:
    columns = ["estimator", "ess", "normalizer", "normalizers", "largest_weight", "clipped"]
    lines = []
    for name in names:
        outcome = outcomes[name]
        steps = ", ".join(f"{v:.3f}" for v in outcome.normalizers)
        lines.append((name, outcome.ess, outcome.normalizer, steps, outcome.largest_weight, outcome.clipped))
    return pd.DataFrame(lines, columns=columns)
