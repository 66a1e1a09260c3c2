"""compare(): several policies on the same rows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from concurrent.futures import Executor
from functools import partial
from typing import Any

from ._arguments import check_mapping
from ._progress import Progress, check_progress
from .agents.policy import Policy, training_rows_in
from .blocks.engine import check_executor
from .blocks.evaluation import judge_blocks
from .blocks.scanning import Scan
from .classifiers import Classifier
from .data.retrospective import Retrospective
from .missingness.assumptions import MAR, MCAR, MNAR
from .results.comparison import Comparison
from .results.evaluation import Evaluation
from .results.provenance import provenance_of
from .run.options import Options, with_options
from .run.plan import check_sendable, make_plan, on_records
from .run.run import run
from .warnings import AfapeWarning, SeenRowsWarning, warn

__all__ = ["compare"]


@with_options
def compare(
    data: Retrospective | Scan,
    policies: Mapping[str, Policy],
    classifier: Classifier,
    *,
    missingness: MCAR | MAR | MNAR,
    progress: Progress | bool | None = None,
    executor: Executor | None = None,
    **options: Any,
) -> Comparison:
    """Evaluate several policies on the same rows.

    All policies use the same rows, folds, bootstrap draws and completed tables, and share learned propensities. The
    error of a difference takes into account that both estimates use the same rows. Each policy has the same estimates
    as alone.

    Parameters
    ----------
    data : Retrospective or Scan
        Records to evaluate on, in memory or in files (`afape.scan`). Neither policies nor classifier should have been trained on
        them.
    policies : mapping from name to policy
        At least one policy. A policy is any object with ``probabilities(values, acquired)``.
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
    Comparison
    """
    policies = check_mapping("policies", policies, "from names to policies")
    arguments = {f"policies[{name!r}]": policy for name, policy in policies.items()}
    named = dict(zip(policies, arguments.items(), strict=True))
    found = judge(data, named, classifier, missingness, progress, options, executor=executor)
    return Comparison(found, next(iter(found.values())).confidence)


def judge(
    data: Retrospective | Scan,
    policies: Mapping[str, tuple[str, Policy]],
    classifier: Classifier,
    missingness: MCAR | MAR | MNAR,
    progress: Progress | bool | None,
    options: Mapping[str, Any],
    function: str = "compare",
    *,
    executor: Executor | None = None,
) -> dict[str, Evaluation]:
    """Check all arguments, then evaluate the policies; returns one `Evaluation` per name.

    ``policies`` maps each name to the name of its argument, for error messages, and the policy.
    """
    check_progress(progress)
    check_executor(executor)
    if isinstance(data, Scan):
        Options.of(function, options)  # raises an error for an unknown name
        own = partial(judge, function=function)
        return judge_blocks(own, data, policies, classifier, missingness, progress, options, executor)
    if executor is not None:
        raise TypeError("'executor' works on the blocks of a scan. For rows in memory, use n_jobs.")
    plan = make_plan(data, classifier, missingness, Options.of(function, options))
    bound = {name: on_records(policy, plan.data, argument) for name, (argument, policy) in policies.items()}
    for name, policy in bound.items():
        if count := training_rows_in(policy, plan.data.original or plan.data):
            warn(
                f"The policy {name!r} was trained on {count} of the {len(plan.data)} rows that it is evaluated on, so its cost "
                "will look too low. Hold out rows: train, test = data.split([0.5, 0.5]).",
                SeenRowsWarning,
            )
    check_sendable(plan.n_jobs, policies=bound, classifier=classifier)
    found = run(plan, bound, progress)
    made = provenance_of(plan)
    return {name: Evaluation.of(name, policy, found[name], made) for name, (_, policy) in policies.items()}


def check_settings(data: Any, classifier: Any, missingness: Any, settings: Mapping[str, Any]) -> None:
    """Check arguments of `compare` before any agent is trained; raises the errors that `compare` would raise.

    ``settings`` are the keyword arguments that the caller passes on to `compare`.
    """
    check_progress(settings.get("progress"))
    options = Options.of("compare", {k: v for k, v in settings.items() if k != "progress"})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AfapeWarning)  # compare gives these warnings
        make_plan(data, classifier, missingness, options)
