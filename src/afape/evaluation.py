"""evaluate(): assumption, nuisances, estimators, result."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from .agents.policy import Policy, bind
from .arrays import Bools, Floats, Ints, every
from .classifiers import Classifier, check_classifier, column_means
from .data import Retrospective
from .estimators import (
    Estimate,
    InverseProbability,
    Outcome,
    RunCosts,
    SupportReduction,
    View,
)
from .estimators.estimate import check_confidence
from .missingness import MAR, MCAR
from .notices import ClippedWeightsWarning, NormalizerWarning, PropensityFitWarning, SupportWarning
from .nuisance import BoundPropensity, KnownPropensity, LearnedPropensity, assign_folds
from .result import Evaluation
from .walk import Ground, WalkOptions, WalkTable, walk

__all__ = ["evaluate", "true_cost"]

_BASELINES = ("imp-mean", "blocking", "cc")
_WEIGHTED = ("ipw-miss", "ipw-semi")
_PROBE_ROWS = 256  # rows walked first, to see how many sets the policy asks for
_FAR_FROM_ONE = 0.1

Progress = Callable[[int, int], None]


def evaluate(
    data: Retrospective,
    policy: Policy,
    classifier: Classifier,
    *,
    missingness: MCAR | MAR,
    estimators: Sequence[str] | None = None,
    propensity: Any = None,
    normalize: bool = True,
    acquisition_weight: str = "before",
    confidence: float = 0.95,
    n_folds: int = 5,
    random_state: int | None = 0,
    n_jobs: int | None = None,
    walk: WalkOptions | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Estimate what a policy would cost if it were deployed.

    Parameters
    ----------
    data : Retrospective
        Records to judge on; neither policy nor classifier should have been trained on them.
    policy, classifier
        Anything with ``probabilities(values, acquired)`` and ``predict(values, acquired)``.
    missingness : MCAR or MAR
        What is assumed about why values are missing.
    estimators : list of str, optional
        Names; default all that the assumption allows: ``imp-mean``, ``blocking``, ``cc`` (known to be biased, kept
        because the field reports them), ``ipw-miss`` and ``ipw-semi``.
    propensity : optional
        None to learn it, a scikit-learn classifier or `LearnedPropensity` to say how, a `KnownPropensity`, or a
        list of one learned and one known, whose estimators then end in ``-gt``.
    normalize : bool
        Divide by mean weights (Hajek). The mean weights are reported either way.
    acquisition_weight : {"before", "after"}
        Weight of a price: that before the decision, or the paper's after it.
    confidence : float
        Level of the intervals.
    n_folds : int
        Folds for cross-fitting learned propensities; 1 fits and uses them on the same rows.
    random_state : int or None
        Seed of folds and of sampled walks.
    n_jobs : int or None
        Processes that walk chunks of rows.
    walk : WalkOptions, optional
        Budgets, and how rows past them are sampled.
    progress : callable, optional
        Called with rows done and rows to do.

    Returns
    -------
    Evaluation
    """
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
    specs = _propensity_specs(propensity)
    names = _chosen(estimators, specs)
    bound = bind(policy, data.problem)
    judge = check_classifier(classifier, data)
    options = _bound_options(walk, data)
    fold_seed, walk_seed = np.random.SeedSequence(random_state).spawn(2)
    fold = assign_folds(len(data), n_folds, data.cluster, np.random.default_rng(fold_seed))
    seed = int(walk_seed.generate_state(1, np.uint64)[0])

    asked = _probe(data, bound, options, seed)
    propensities = {
        suffix: spec.bind(data) if isinstance(spec, KnownPropensity) else spec.bind(data, given, fold, asked)
        for suffix, spec in specs.items()
    }
    run = _Run(data, bound, judge, names, propensities, normalize, acquisition_weight)
    run.walk(options, seed, n_jobs, progress)
    outcomes = run.outcomes(_row_identity(data), confidence)
    diagnostics = _weight_table(outcomes, run.weighted_names)
    support = run.support.result(diagnostics)
    _warn(outcomes, run.weighted_names, support.unsupported, propensities)
    return Evaluation(outcomes, support, _name_of(policy), _name_of(classifier), repr(missingness), confidence)


def true_cost(
    data: Retrospective,
    policy: Policy,
    classifier: Classifier,
    *,
    confidence: float = 0.95,
    random_state: int | None = 0,
    n_jobs: int | None = None,
    walk: WalkOptions | None = None,
) -> dict[str, Estimate]:
    """Cost J of a policy by target, from complete data.

    The intervals speak about the population that the rows were drawn from; for these very rows the value is
    exact (or, where rows were sampled, as exact as the sampling).
    """
    if not isinstance(data, Retrospective):
        raise TypeError(f"'data' must be an afape.Retrospective, not {type(data).__name__}.")
    gaps = (~data.recorded).sum(axis=0)
    if gaps.any():
        g = int(gaps.argmax())
        raise ValueError(
            f"'data' must be complete, but {int((~data.complete).sum())} of {len(data)} rows have gaps, most of them in "
            f"{data.problem.group_names[g]!r} ({int(gaps[g])} rows). With gaps, use afape.evaluate."
        )
    check_confidence(confidence)
    judge = check_classifier(classifier, data)
    ground = Ground.everything(data, data.values, bind(policy, data.problem), judge)
    costs = RunCosts(data)
    seed = int(np.random.SeedSequence(random_state).generate_state(1, np.uint64)[0])
    for table in _walk(ground, None, _bound_options(walk, data), seed, n_jobs):
        costs.add(table)
    return costs.outcome(_row_identity(data), confidence).estimates


_walk = walk  # 'walk' is also the name of an argument


class _Run:
    """One pass over the rows: every estimator reduces the same tables."""

    def __init__(
        self,
        data: Retrospective,
        policy: Policy,
        classifier: Classifier,
        names: list[str],
        propensities: dict[str, BoundPropensity],
        normalize: bool,
        acquisition_weight: str,
    ) -> None:
        self.data, self.policy, self.classifier, self.names = data, policy, classifier, names
        self.plain: dict[str, RunCosts] = {}
        if "imp-mean" in names:
            self.plain["imp-mean"] = RunCosts(data)
        if "blocking" in names:
            self.plain["blocking"] = RunCosts(data, blocked=True)
        if "cc" in names:
            self.plain["cc"] = RunCosts(data, only=data.complete)
        none, everything = np.zeros(data.problem.n_groups, bool), np.ones(data.problem.n_groups, bool)
        self.weighted: dict[str, InverseProbability] = {}
        views = {}
        for suffix, propensity in propensities.items():
            for base, adjust in (("ipw-miss", everything), ("ipw-semi", none)):
                views[base + suffix] = View(propensity, data.recorded, adjust)
        for name in names:
            if name in views:
                self.weighted[name] = InverseProbability(
                    data, views[name], normalize=normalize, acquisition_weight=acquisition_weight
                )
        # Support speaks of the semi-offline view; weights computed for an estimator serve it as well.
        self.support = SupportReduction(data)
        self._support_name = "ipw-semi" + next(iter(propensities))
        self._support_view = views[self._support_name]

    @property
    def weighted_names(self) -> list[str]:
        return list(self.weighted)

    def walk(self, options: WalkOptions, seed: int, n_jobs: int | None, progress: Progress | None) -> None:
        data = self.data
        n, done = len(data), 0
        todo = n * (1 + ("imp-mean" in self.plain))
        ground = Ground.recorded(data, self.policy, self.classifier)
        for table in _walk(ground, None, options, seed, n_jobs):
            self._reduce(table)
            done = _told(progress, done, table, todo)
        if ground.rooted and "blocking" in self.plain:
            lacking = np.flatnonzero(~every(data.recorded[:, data.problem.free]))
            partly = Ground.partly_free(data, self.policy, self.classifier)
            for table in _walk(partly, lacking, options, seed, n_jobs):
                self.plain["blocking"].add(table)
        if "imp-mean" in self.plain:
            means = column_means(data)
            values = np.where(np.isnan(data.values), means, data.values)
            completed = Ground.everything(data, values, self.policy, self.classifier)
            for table in _walk(completed, None, options, seed, n_jobs):
                self.plain["imp-mean"].add(table)
                done = _told(progress, done, table, todo)

    def _reduce(self, table: WalkTable) -> None:
        for name, costs in self.plain.items():
            if name != "imp-mean":
                costs.add(table)
        states = None
        for name, estimator in self.weighted.items():
            weighted = estimator.view.weigh(table)
            estimator.add(table, weighted)
            if name == self._support_name:
                states = weighted
        self.support.add(table, states or self._support_view.weigh(table))

    def outcomes(self, rows: str, confidence: float) -> dict[str, Outcome]:
        reductions: dict[str, RunCosts | InverseProbability] = {**self.plain, **self.weighted}
        return {name: reductions[name].outcome(rows, confidence) for name in self.names}


def _told(progress: Progress | None, done: int, table: WalkTable, todo: int) -> int:
    done += int((table.depth == 0).sum())  # each row starts in one state
    if progress is not None:
        progress(min(done, todo), todo)
    return done


def _propensity_specs(propensity: Any) -> dict[str, KnownPropensity | LearnedPropensity]:
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
    possible = [*_BASELINES, *(base + suffix for base in _WEIGHTED for suffix in specs)]
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


def _bound_options(walk: WalkOptions | None, data: Retrospective) -> WalkOptions:
    if walk is not None and not isinstance(walk, WalkOptions):
        raise TypeError(f"'walk' must be an afape.WalkOptions, not {walk!r}.")
    options = walk or WalkOptions()
    if options.simulation is None:
        return options
    simulation = bind(options.simulation, data.problem, "simulation")
    return WalkOptions(options.max_states, options.n_trajectories, simulation, options.chunk_lines)


class _Silent:
    """Stands in for the classifier where only the policy's way matters."""

    def predict(self, values: Floats, acquired: Bools) -> Ints:
        return np.zeros(len(values), dtype=np.intp)


def _probe(data: Retrospective, policy: Policy, options: WalkOptions, seed: int) -> Bools:
    """Sets that the policy reaches in a few rows spread over the data."""
    rows = np.unique(np.linspace(0, len(data) - 1, min(_PROBE_ROWS, len(data))).astype(np.intp))
    ground = Ground.recorded(data, policy, _Silent())
    return np.concatenate([table.sets for table in _walk(ground, rows, options, seed)])


def _row_identity(data: Retrospective) -> str:
    return f"{data.source}:{hashlib.sha1(data.positions.tobytes()).hexdigest()}"


def _name_of(thing: Any) -> str:
    text = repr(thing)
    return type(thing).__name__ if " object at 0x" in text or len(text) > 80 else text


def _weight_table(outcomes: dict[str, Outcome], names: list[str]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "estimator": name,
                "ess": outcomes[name].ess,
                "normalizer": outcomes[name].normalizer,
                "normalizers": ", ".join(f"{v:.3f}" for v in outcomes[name].normalizers),
                "largest_weight": outcomes[name].largest_weight,
                "clipped": outcomes[name].clipped,
            }
            for name in names
        ],
        columns=["estimator", "ess", "normalizer", "normalizers", "largest_weight", "clipped"],
    )


def _warn(outcomes: dict[str, Outcome], names: list[str], unsupported: float, propensities: dict[str, Any]) -> None:
    if unsupported > 0 and names:
        warnings.warn(
            f"An estimated {100 * unsupported:.2g} % of the policy's runs want a set of groups that no row has recorded. "
            "The weighted estimates leave these runs out; see result.support.sets.",
            SupportWarning,
            stacklevel=3,
        )
    for name in names:
        outcome = outcomes[name]
        if outcome.clipped:
            warnings.warn(
                f"{name}: {outcome.clipped} learned propensities fell below 'min_propensity' and were raised to it, which "
                "biases the estimate towards what is recorded often. See result.support.",
                ClippedWeightsWarning,
                stacklevel=3,
            )
        off = abs(outcome.normalizer - 1)
        if off > _FAR_FROM_ONE and off > 4 * outcome.normalizer_error:
            warnings.warn(
                f"{name}: the mean weight is {outcome.normalizer:.3g}, far from 1. Either the policy wants sets that are "
                "hardly ever recorded, or the propensity model is wrong. See result.support.",
                NormalizerWarning,
                stacklevel=3,
            )
    if not all(getattr(p, "converged", True) for p in propensities.values()):
        warnings.warn(
            "A logistic propensity did not converge, most likely because some rows are always or never recorded. "
            "See result.support for weights that are too large.",
            PropensityFitWarning,
            stacklevel=3,
        )
