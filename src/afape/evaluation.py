"""evaluate(), true_cost() and true_parts()."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

import numpy as np

from ._arguments import check_confidence, check_jobs, check_seed
from ._progress import Progress
from .agents.policy import Policy, bind_to_records, ignores_values
from .blocks.scanning import Scan
from .classifiers import Classifier, check_classifier
from .comparison import judge
from .data.retrospective import Retrospective
from .estimators.amounts import Sample
from .estimators.baselines import RunAverage
from .estimators.estimate import Estimate
from .missingness.assumptions import MAR, MCAR, MNAR
from .results.evaluation import Evaluation
from .results.parts import Parts
from .run.options import with_options
from .run.plan import check_sendable, name_of, walk_options
from .walk.ground import Ground
from .walk.limited import SharedWalks
from .walk.outcomes import NO_OUTCOMES, OwnOutcomes, check_outcomes
from .walk.repeated_answers import with_repeated_answers
from .walk.run_parts import run_parts
from .walk.table import TableStore, WalkTable
from .walk.tariff import Tariff
from .walk.walker import WalkOptions
from .walk.walker import walk as walk_rows

__all__ = ["evaluate", "true_averages", "true_cost", "true_parts"]


@with_options
def evaluate(
    data: Retrospective | Scan,
    policy: Policy,
    classifier: Classifier,
    *,
    missingness: MCAR | MAR | MNAR,
    progress: Progress | bool | None = None,
    executor: Executor | None = None,
    **options: Any,
) -> Evaluation:
    """Estimate what a policy would cost if it were deployed.

    Parameters
    ----------
    data : Retrospective or Scan
        Records to evaluate on, in memory or in files (`afape.scan`). Neither policy nor classifier should have been trained on
        them.
    policy
        Any object with ``probabilities(values, acquired)``.
    classifier
        Any object with ``predict(values, acquired)``.
    missingness : MCAR, MAR or MNAR
        The assumption about why values are missing.
    progress : callable or bool, optional
        A function that is called as ``progress(done, total)``, in steps. True shows a bar, False shows none. Default: a
        bar in notebooks only.
    executor : concurrent.futures.Executor, optional
        What works on the blocks of a scan: a process pool, or ``dask.distributed.Client(...).get_executor()``. Default: the
        blocks are evaluated in turn.
    **options
        Options, see below.

    Returns
    -------
    Evaluation
    """
    name = name_of(policy)
    named = {name: ("policy", policy)}
    return judge(data, named, classifier, missingness, progress, options, "evaluate", executor=executor)[name]


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
    """Compute the cost J of a policy from complete data; returns one `Estimate` per target.

    The intervals refer to the population that the rows were drawn from. For these rows the value is exact, up to sampling
    error if the walk sampled rows.
    """
    found = _true_average(data, policy, classifier, NO_OUTCOMES, confidence, random_state, n_jobs, walk)
    return found.answer().estimates


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
    """Compute the parts of a policy's cost from complete data, see `Parts`. Arguments are those of `evaluate`."""
    own = check_outcomes(outcomes)
    found = _true_average(data, policy, classifier, own, confidence, random_state, n_jobs, walk)
    return Parts("truth", found.parts(), found.tariff, confidence)


def _true_average(
    data: Retrospective,
    policy: Policy,
    classifier: Classifier,
    outcomes: OwnOutcomes,
    confidence: float,
    random_state: int | None,
    n_jobs: int | None,
    walk: WalkOptions | None,
) -> RunAverage:
    """Check the arguments and return the average of the runs on complete data."""
    settings: dict[str, Any] = {"random_state": random_state, "n_jobs": n_jobs, "walk": walk}
    return true_averages(data, [policy], classifier, confidence=confidence, outcomes=outcomes, **settings)[0]


def true_averages(
    data: Retrospective,
    policies: Sequence[Policy],
    classifier: Classifier,
    *,
    confidence: float = 0.95,
    random_state: int | None = 0,
    n_jobs: int | None = None,
    walk: WalkOptions | None = None,
    outcomes: OwnOutcomes = NO_OUTCOMES,
) -> list[RunAverage]:
    """Check the arguments, and return the average of the runs of each policy on complete data."""
    check_confidence(confidence)
    if not isinstance(data, Retrospective):
        raise TypeError(f"'data' must be an afape.Retrospective, not {type(data).__name__}.")
    gaps = (~data.recorded).sum(axis=0)
    if gaps.any():
        g = int(gaps.argmax())
        raise ValueError(
            f"'data' must be complete, but {int((~data.complete).sum())} of {len(data)} rows have gaps, most of them in "
            f"{data.problem.group_names[g]!r} ({int(gaps[g])} rows). With gaps, use afape.evaluate."
        )
    if not data.labelled.all():
        raise ValueError(
            f"'data' must have all labels, but {int((~data.labelled).sum())} of {len(data)} rows have none. Use afape.evaluate."
        )
    check_seed(random_state)
    check_jobs(n_jobs)
    for policy in policies:
        check_sendable(n_jobs, policy=policy, classifier=classifier)
    judge = check_classifier(classifier, data)
    bound = [bind_to_records(policy, data) for policy in policies]
    seed = int(np.random.SeedSequence(random_state).generate_state(1, np.uint64)[0])
    options = walk_options(walk, data)

    def ground(policy: Policy, everywhere: bool) -> Ground:
        return replace(Ground.everything(data, data.values, policy, judge, outcomes), everywhere=everywhere)

    def tables(ground: Ground) -> Iterator[WalkTable]:
        return with_repeated_answers(ground, walk_rows(ground, None, options, seed, n_jobs))

    walks = SharedWalks(bound, ground, tables, TableStore())
    sample = Sample.of(data, confidence)
    found = []
    for policy in bound:
        runs = run_parts(walks.tables(policy), data, n_outcomes=len(outcomes))
        tariff = replace(Tariff.of(data, outcomes), fixed=ignores_values(policy))
        found.append(RunAverage(runs, data.row_weight, tariff, sample))
    return found
