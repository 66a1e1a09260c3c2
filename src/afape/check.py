"""check_support(): whether the records support a policy, before anything is estimated."""

from __future__ import annotations

from typing import Any

from .agents.policy import Policy, bind
from .data import Retrospective
from .diagnostics.sums import support_of
from .diagnostics.support import Support
from .missingness import MAR, MCAR, MNAR
from .notices import SupportWarning, warn
from .plan import Options, make_plan
from .run import bind_propensities, views_of, walk_policies
from .support import SupportThresholds
from .walk import WalkOptions

__all__ = ["check_support"]


def check_support(
    data: Retrospective,
    policy: Policy,
    *,
    missingness: MCAR | MAR | MNAR,
    propensity: Any = None,
    thresholds: SupportThresholds | None = None,
    n_folds: int | None = None,
    random_state: int | None = 0,
    n_jobs: int | None = None,
    walk: WalkOptions | None = None,
) -> Support:
    """Check whether the records support a policy; `evaluate` does the same.

    Weighting and learning represent runs that nobody recorded by rows like them. Where there are none, no estimator
    can help. For every set of groups that the policy wants, the records are searched, without a model, for regions of
    what missingness depends on in which the set is not recorded.

    Parameters
    ----------
    data : Retrospective
        Records.
    policy
        Anything with ``probabilities(values, acquired)``.
    missingness : MCAR, MAR or MNAR
        What is assumed about why values are missing.
    propensity : optional
        As in `evaluate`, but one only. A `KnownPropensity` says itself what is unsupported.
    thresholds : SupportThresholds, optional
        When to warn.
    n_folds, random_state, n_jobs, walk
        As in `evaluate`.

    Returns
    -------
    Support
        Its ``warnings`` are also given as `SupportWarning`.
    """
    if isinstance(propensity, list | tuple):
        raise TypeError("'propensity' must be one propensity here, not a list; call check_support once for each.")
    options = Options(
        propensity=propensity,
        thresholds=thresholds,
        n_folds=n_folds,
        random_state=random_state,
        n_jobs=n_jobs,
        walk=walk,
    )
    plan = make_plan(data, None, missingness, options)
    (walked,) = walk_policies(plan, {"policy": bind(policy, data.problem)}).values()
    views = views_of(plan, bind_propensities(plan, [walked]), walked)
    support = support_of(plan.data, walked.tables, views.search, views.semi, views.complete)
    for text in support.warnings:
        warn(text, SupportWarning)
    return support
