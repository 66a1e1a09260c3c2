"""evaluate() and true_cost()."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .agents.policy import Policy, bind
from .arguments import check_confidence, check_jobs, check_seed
from .bootstrap import Bootstrap
from .classifiers import Classifier, check_classifier
from .data import Retrospective
from .estimators.estimate import Estimate
from .estimators.plain import RunAverage
from .missingness import MAR, MCAR, MNAR
from .outcomes import NO_OUTCOMES, OwnOutcomes, check_outcomes
from .parts import Parts, PartSums, Tariff
from .plan import Options, check_sendable, make_plan, name_of, walk_options
from .progress import Progress, check_progress
from .result import Evaluation
from .run import run
from .support import SupportThresholds
from .walk import Ground, PartColumns, RunCosts, WalkOptions, run_costs
from .walk import walk as walk_rows

__all__ = ["evaluate", "true_cost", "true_parts"]


def evaluate(
    data: Retrospective,
    policy: Policy,
    classifier: Classifier,
    *,
    missingness: MCAR | MAR | MNAR,
    estimators: Sequence[str] | None = None,
    propensity: Any = None,
    values: Any = None,
    normalize: bool = True,
    acquisition_weight: str = "before",
    bootstrap: int | Bootstrap = 0,
    confidence: float = 0.95,
    n_folds: int | None = None,
    split: float | None = None,
    imputer: Any = None,
    n_imputations: int | None = None,
    random_state: int | None = 0,
    n_jobs: int | None = None,
    walk: WalkOptions | None = None,
    thresholds: SupportThresholds | None = None,
    outcomes: Mapping[str, Callable[..., Any]] | None = None,
    by: Any = None,
    progress: Progress | bool | None = None,
) -> Evaluation:
    """Estimate what a policy would cost if it were deployed.

    Parameters
    ----------
    data : Retrospective
        Records to judge on; neither policy nor classifier should have been trained on them.
    policy, classifier
        Anything with ``probabilities(values, acquired)`` and ``predict(values, acquired)``.
    missingness : MCAR, MAR or MNAR
        What is assumed about why values are missing.
    estimators : list of str, optional
        Names; default all that the assumption allows: ``imp-mean``, ``blocking``, ``cc`` (known to be biased, kept
        because the field reports them), ``ipw-miss``, ``mi``, ``ipw-semi``, ``dm-semi`` and ``drl-semi``; where recording
        depends on groups with gaps, ``ipw-semi-miss``, ``dm-semi-miss`` and ``drl-semi-miss`` in place of the latter
        three, and no ``mi``.
    propensity : optional
        None to learn it, a scikit-learn classifier or `LearnedPropensity` to say how, a `KnownPropensity`, or a
        list of one learned and one known, whose estimators then end in ``-gt``.
    values : LearnedValues, KnownValues, str or regressor, optional
        Where action values come from: `LearnedValues` says how they are learned (a name or a scikit-learn regressor
        stands for ``LearnedValues(regressor)``), `KnownValues` brings them along. The doubly robust part of ``eff-semi`` always
        learns by ridge regression, so that its parts add up to its costs.
    normalize : bool
        Divide by mean weights (Hajek). The mean weights are reported either way.
    acquisition_weight : {"before", "after"}
        Weight of a price in IPW: that before the decision, or the paper's after it.
    bootstrap : int or Bootstrap
        Replicates of the refitting bootstrap, or how to draw them; 0 for none. Without it ``dm-semi`` has no
        interval.
    confidence : float
        Level of the intervals.
    n_folds : int, optional
        Folds for cross-fitting what is learned, 5 by default; 1 learns and uses it on the same rows.
    split : float, optional
        In place of cross-fitting, as in the paper: learn from this share of the rows, average over the others.
    imputer : optional
        What ``mi`` completes the records with: None or "trees", "linear", "matching" (see `ChainedImputer`), any object
        with ``impute(data, n_imputations, random_state)`` that gives complete tables of shape (n, d), or a
        scikit-learn imputer that draws.
    n_imputations : int, optional
        Completed tables of ``mi``, 10 by default. The policy runs on each, so that ``mi`` takes as much time as all other
        estimators several times over; name the estimators you want if you do not want this one.
    random_state : int or None
        Seed of folds, sampled walks, bootstrap and imputations.
    n_jobs : int or None
        Processes that walk chunks of rows and refit replicates.
    walk : WalkOptions, optional
        Budgets, and how rows past them are sampled.
    thresholds : SupportThresholds, optional
        What counts as too little support. Where more than a negligible share of the policy's runs wants sets that the
        records do not support, estimators answer with `Bounds` (see `check_support`).
    outcomes : mapping from name to function, optional
        Outcomes of your own: ``f(values, acquired, labels)`` gives one number per case, asked where a run stops, and is estimated
        as the misclassification cost is. `brier`, `log_loss` and `score` make some of a classifier with ``predict_proba``.
    by : str or array, optional
        A recorded column, or one entry per row: every estimate also for each of its levels, in ``result.subgroups``, with the
        effective rows and weights of the level in its ``support.estimators``.
    progress : callable or bool, optional
        Called with steps done and steps to do. True shows a bar, False none; by default notebooks show one.

    Returns
    -------
    Evaluation
    """
    options = Options(
        estimators=estimators,
        propensity=propensity,
        values=values,
        normalize=normalize,
        acquisition_weight=acquisition_weight,
        bootstrap=bootstrap,
        confidence=confidence,
        n_folds=n_folds,
        split=split,
        imputer=imputer,
        n_imputations=n_imputations,
        random_state=random_state,
        n_jobs=n_jobs,
        walk=walk,
        thresholds=thresholds,
        outcomes=outcomes,
        by=by,
    )
    plan = make_plan(data, classifier, missingness, options)
    check_progress(progress)
    name, bound = name_of(policy), bind(policy, data.problem)
    check_sendable(n_jobs, policy=bound, classifier=classifier)
    return run(plan, {name: bound}, progress)[name].described(policy)


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
    check_confidence(confidence)
    runs = _complete_runs(data, policy, classifier, NO_OUTCOMES, random_state, n_jobs, walk)
    return RunAverage(data, runs, np.ones(len(data))).outcome(data.identity, confidence).estimates


def true_parts(
    data: Retrospective,
    policy: Policy,
    classifier: Classifier,
    *,
    outcomes: Mapping[str, Callable[..., Any]] | None = None,
    confidence: float = 0.95,
    random_state: int | None = 0,
    n_jobs: int | None = None,
    walk: WalkOptions | None = None,
) -> Parts:
    """What a policy does, from complete data: the parts of its cost, see `Parts`; arguments as of `evaluate`."""
    check_confidence(confidence)
    own = check_outcomes(outcomes)
    runs = _complete_runs(data, policy, classifier, own, random_state, n_jobs, walk)
    linear = RunAverage(data, runs, np.ones(len(data))).parts(data.identity, confidence)
    return Parts("truth", PartSums(linear, PartColumns.of(data, len(own))), Tariff.of(data, own), confidence)


def _complete_runs(
    data: Retrospective,
    policy: Policy,
    classifier: Classifier,
    outcomes: OwnOutcomes,
    random_state: int | None,
    n_jobs: int | None,
    walk: WalkOptions | None,
) -> RunCosts:
    """Runs on complete data, checked."""
    if not isinstance(data, Retrospective):
        raise TypeError(f"'data' must be an afape.Retrospective, not {type(data).__name__}.")
    gaps = (~data.recorded).sum(axis=0)
    if gaps.any():
        g = int(gaps.argmax())
        raise ValueError(
            f"'data' must be complete, but {int((~data.complete).sum())} of {len(data)} rows have gaps, most of them in "
            f"{data.problem.group_names[g]!r} ({int(gaps[g])} rows). With gaps, use afape.evaluate."
        )
    check_seed(random_state)
    check_sendable(check_jobs(n_jobs), policy=policy, classifier=classifier)
    judge = check_classifier(classifier, data)
    ground = Ground.everything(data, data.values, bind(policy, data.problem), judge, outcomes)
    seed = int(np.random.SeedSequence(random_state).generate_state(1, np.uint64)[0])
    tables = walk_rows(ground, None, walk_options(walk, data), seed, n_jobs)
    return run_costs(tables, data, n_outcomes=len(outcomes))
