"""One evaluation, from checked arguments to a result: nuisances, one pass over the rows, estimates, bootstrap."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from .agents.policy import Policy
from .arguments import (
    Silent,
    bound_options,
    check_missingness,
    checked_thresholds,
    chosen_names,
    name_of,
    propensity_specs,
    row_identity,
)
from .arrays import Bools, Ints, any_of
from .bootstrap import Bootstrap, Replicates, run_bootstrap
from .classifiers import Classifier, check_classifier
from .data import Retrospective
from .estimators import Outcome, Support
from .estimators.estimate import check_confidence
from .imputation import Imputations
from .missingness import MAR, MCAR, MNAR
from .notices import (
    ClippedWeightsWarning,
    InterruptedBootstrapWarning,
    NormalizerWarning,
    PropensityFitWarning,
    SupportWarning,
    ValueFallbackWarning,
)
from .nuisance import (
    KnownPropensity,
    KnownValues,
    LearnedPropensity,
    as_regressor,
    assign_folds,
    split_folds,
)
from .nuisances import IMPUTED, Nuisances, possible_names
from .positivity import Positivity
from .reductions import Recipe, Reductions
from .result import Evaluation
from .support import SupportThresholds
from .walk import Ground, WalkOptions, walk
from .walk.sets import unique_sets

__all__ = ["Task"]

_PROBE_ROWS = 256  # rows walked first, to see how many sets the policy asks for
_FAR_FROM_ONE = 0.1

Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Task:
    """Everything about an evaluation but the policy."""

    data: Retrospective
    classifier: Classifier
    missingness: MCAR | MAR | MNAR
    specs: dict[str, KnownPropensity | LearnedPropensity]  # by the suffix of the estimators' names
    names: list[str] | None  # estimators asked for; None for all that the assumption allows
    recipe: Recipe
    bootstrap: Bootstrap
    confidence: float
    options: WalkOptions
    fold: Ints
    walk_seed: int
    bootstrap_seed: np.random.SeedSequence
    n_jobs: int | None
    thresholds: SupportThresholds

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
        imputer: Any,
        n_imputations: int,
        thresholds: Any = None,
    ) -> Task:
        """Check every argument of `evaluate`, before any work."""
        if not isinstance(data, Retrospective):
            raise TypeError(f"'data' must be an afape.Retrospective, not {type(data).__name__}.")
        if len(data) == 0:
            raise ValueError("'data' must have rows, but is empty.")
        check_missingness(missingness)
        if acquisition_weight not in ("before", "after"):
            raise ValueError(f"'acquisition_weight' must be 'before' or 'after', but is {acquisition_weight!r}.")
        check_confidence(confidence)
        missingness.conditioning(data, np.zeros(data.problem.n_groups, dtype=bool))  # refuses names that do not fit
        specs = propensity_specs(propensity)
        names = chosen_names(estimators, possible_names(missingness, list(specs)))
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
        fold_seed, walk_seed, bootstrap_seed, imputation_seed = np.random.SeedSequence(random_state).spawn(4)
        rng = np.random.default_rng(fold_seed)
        if split is None:
            fold = assign_folds(len(data), n_folds, data.cluster, rng)
            row_weight = None
        else:
            fold = split_folds(len(data), split, data.cluster, rng)
            row_weight = (fold == 0).astype(float)
        if split is not None and n_folds != 5:
            raise ValueError("'n_folds' and 'split' exclude each other: cross-fit, or learn from a part of the rows.")
        imputations = Imputations(data, imputer, n_imputations, int(imputation_seed.generate_state(1)[0]))
        recipe = Recipe(learner, augment_label, normalize, acquisition_weight, fold, row_weight, imputations)
        seed = int(walk_seed.generate_state(1, np.uint64)[0])
        return Task(
            data=data,
            classifier=judge,
            missingness=missingness,
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
            thresholds=checked_thresholds(thresholds),
        )

    def probe(self, policy: Policy) -> Bools:
        """Sets that the policy wants in a few rows spread over the data.

        Under a graph in all rows, because what has to be adjusted for depends on what the policy wants.
        """
        n = len(self.data)
        few = n if isinstance(self.missingness, MNAR) else min(_PROBE_ROWS, n)
        rows = np.unique(np.linspace(0, n - 1, few).astype(np.intp))
        ground = Ground.recorded(self.data, policy, Silent())
        free = self.data.problem.free
        found = [
            np.concatenate([table.sets, table.edge_sets(free)[0]])
            for table in walk(ground, rows, self.options, self.walk_seed)
        ]
        return unique_sets(np.concatenate(found))[0]

    def learn(self, policies: Iterable[Policy]) -> Nuisances:
        """Propensities that serve all of these policies."""
        sets = unique_sets(np.concatenate([self.probe(policy) for policy in policies]))[0]
        wanted = any_of(sets.T) | self.data.problem.free
        return Nuisances.learned(self.data, self.missingness, self.specs, self.fold, sets, wanted, self.names)

    def evaluate(self, policy: Policy, name: str, nuisances: Nuisances, progress: Progress | None = None) -> Evaluation:
        """Walk, estimate, bootstrap, warn."""
        keep = self.bootstrap.n_replicates > 0
        names = nuisances.names(self.names, self.missingness)
        positivity = Positivity(self.data, nuisances.given, self.thresholds)
        run = Reductions(self.data, policy, self.classifier, names, nuisances, self.recipe, keep, positivity)
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
        weights = _weight_table(outcomes, run.weighted_names)
        support = run.support.result(weights, *run.support_views, positivity.names)
        if IMPUTED in outcomes and support.unsupported > self.thresholds.share:
            share = f"{100 * support.unsupported:.2g} % of the policy's runs"
            caveat = f"{share} rest on the imputation model alone: no row like theirs has what they want"
            outcomes[IMPUTED] = replace(outcomes[IMPUTED], caveat=caveat)
        self._warn(outcomes, run, support)
        judge, assumed = name_of(self.classifier), repr(self.missingness)
        return Evaluation(outcomes, support, name, judge, assumed, self.confidence, nuisances.reasons)

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
            if name == IMPUTED:  # has intervals of its own: replicates would need imputations of their own
                out[name] = outcome
                continue
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

    def _warn(self, outcomes: dict[str, Outcome], run: Reductions, support: Support) -> None:
        names = [*run.weighted_names, *run.direct, *([IMPUTED] if run.imputed is not None else [])]
        propensities = {id(p): p for by in (run.nuisances.propensities, run.nuisances.complete) for p in by.values()}
        if names:
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


def _weight_table(outcomes: dict[str, Outcome], names: list[str]) -> pd.DataFrame:
    columns = ["estimator", "ess", "normalizer", "normalizers", "largest_weight", "clipped"]
    lines = []
    for name in names:
        outcome = outcomes[name]
        steps = ", ".join(f"{v:.3f}" for v in outcome.normalizers)
        lines.append((name, outcome.ess, outcome.normalizer, steps, outcome.largest_weight, outcome.clipped))
    return pd.DataFrame(lines, columns=columns)
