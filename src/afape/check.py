"""check_support() and check_missingness(): what records say of a policy and of an assumption, before anything is estimated."""

from __future__ import annotations

from typing import Any

from .agents.policy import Policy, bind
from .arguments import check_confidence
from .data import Retrospective
from .diagnostics.implications import MissingnessCheck, advice_from, check_implications, implications
from .diagnostics.sums import support_of
from .diagnostics.support import Support
from .missingness import MAR, MCAR, MNAR
from .notices import HeavyWeightsWarning, SupportWarning, warn
from .plan import Options, Silent, make_plan
from .run import bind_propensities, views_of, walk_policies
from .support import SupportThresholds
from .walk import WalkOptions

__all__ = ["check_missingness", "check_support"]


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
        Its ``warnings`` are also given as `SupportWarning`, and where a few rows carry it, as `HeavyWeightsWarning`.
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
    plan = make_plan(data, Silent(), missingness, options)
    (walked,) = walk_policies(plan, {"policy": bind(policy, data.problem)}).values()
    views = views_of(plan, bind_propensities(plan, [walked]), walked)
    support = support_of(plan.data, walked.tables, views.search, views.semi, views.complete, views.undecided)
    for text in support.warnings:
        warn(text, SupportWarning)
    for text in support.heavy:
        warn(text, HeavyWeightsWarning)
    return support


def check_missingness(data: Retrospective, missingness: MCAR | MAR | MNAR, *, level: float = 0.05) -> MissingnessCheck:
    r"""Test what an assumption implies for the records; `evaluate` tests the part about the label.

    Missing at random given X_o says that :math:`R_a` is independent of Y and of everything else that is always
    recorded given X_o, and of :math:`X_b` given X_o among rows that have b. A graph says so of every pair that it separates in
    rows that have both recorded. Each implication gets a score test of a logistic regression with the column added
    (robust variance, by cluster where rows belong together); what is given may act by curves and products of pairs.

    Parameters
    ----------
    data : Retrospective
        Records.
    missingness : MCAR, MAR or MNAR
        What is assumed about why values are missing.
    level : float
        Level at which implications are rejected, adjusted for their number.

    Returns
    -------
    MissingnessCheck
        Tests, what is rejected in words, and what follows. Records can contradict an assumption, but never prove it: of
        what nobody recorded they say nothing.
    """
    check_confidence(level, "level")
    make_plan(data, Silent(), missingness, Options())  # refuses what does not fit
    table = check_implications(data, implications(missingness.graph_on(data)))
    advice = advice_from(missingness, data, table[table["p_adjusted"] < level])
    return MissingnessCheck(repr(missingness), table, level, advice)
