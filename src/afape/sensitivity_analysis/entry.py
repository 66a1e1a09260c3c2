"""sensitivity(): bound costs if recording may have unmeasured reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pandas as pd

from .._arguments import check_choice, check_mapping
from .._progress import Progress, reporter
from ..agents.policy import Policy
from ..classifiers import Classifier
from ..data.retrospective import Retrospective
from ..estimators.estimate import TARGETS
from ..missingness.assumptions import MAR, MCAR, MNAR
from ..propensity.binding import Propensities, PropensitySpec
from ..propensity.learned import DEFAULT_PROPENSITY
from ..propensity.weights import View
from ..run.bootstrap import Bootstrap
from ..run.fit import bind_propensities, views_of
from ..run.options import Options
from ..run.plan import Plan, choices_under, make_plan, name_of, on_records
from ..run.run import PolicyRun
from ..run.walk import Steps, Walked, walk_policies
from ..support.support import support_of
from ..walk.walker import WalkOptions
from .analysis import Sensitivity, checked_lambdas
from .stops import stops_of
from .uncertain_costs import UncertainCosts, confidence_intervals, constraints_on, warn_about

__all__ = ["sensitivity", "sensitivity_of_runs"]

_KINDS = ("valid", "sharp")


def sensitivity(
    data: Retrospective,
    policies: Policy | Mapping[str, Policy],
    classifier: Classifier,
    *,
    missingness: MCAR | MAR | MNAR,
    lambdas: Sequence[float] = (1, 1.1, 1.25, 1.5, 2, 3),
    target: str = "total",
    kind: str = "valid",
    propensity: Any = None,
    bootstrap: int | Bootstrap = 100,
    confidence: float = 0.95,
    n_folds: int | None = None,
    random_state: int | None = 0,
    n_jobs: int | None = None,
    walk: WalkOptions | None = None,
    progress: Progress | bool | None = None,
) -> Sensitivity:
    r"""Bound costs if recording may have unmeasured reasons.

    The nominal weight of a row i in a set S is :math:`w^0_{iS} = 1 / P(R \ge S \mid X_o)`. With one normaliser for
    the whole trajectory, the cost is

    .. math:: J(w) = \frac{\sum_i \sum_S f_{iS} w_{iS} (C_{iS} + c(S))}{\sum_i \sum_S f_{iS} w_{iS}}

    where f is the flow that stops in S, C the misclassification cost there and c(S) the prices of its groups. Under the
    marginal sensitivity model the true odds of R >= S, given also the unmeasured reasons, differ from the modelled odds
    by a factor of at most :math:`\Lambda`. Then :math:`1 + (w^0 - 1)/\Lambda \le w \le 1 + \Lambda (w^0 - 1)`, and
    :math:`w_{iS} \le w_{iT}` for S inside T. The *valid* bounds are the least and largest J(w) over these weights. The
    *sharp* bounds also use that true weights balance the columns that recording depends on (see
    `afape.sensitivity_analysis.balance.balance_functions`). They are tighter, but each needs a linear programme.

    Parameters
    ----------
    data, classifier, missingness, propensity, n_folds, n_jobs, walk, progress
        As in `evaluate`; one propensity, learned or known. All policies share it, although `evaluate` may choose a method
        for each: policies are compared under the same true weights, so a set that two of them reach must have the same
        nominal weights.
    policies : policy, or mapping from name to policy
        Policies to evaluate on the same rows.
    lambdas : sequence of float
        Strengths, ascending, each at least 1. At 1 both bounds equal the trajectory-normalised estimate.
    target : {"total", "acquisition", "misclassification"}
        Which cost.
    kind : {"valid", "sharp"}
        Which bounds.
    bootstrap : int or Bootstrap
        Replicates for the confidence intervals, 0 for none. Each replicate learns the propensity and computes bounds
        again. Intervals go from the lower quantile of the lower bounds to the upper quantile of the upper bounds.
    confidence : float
        Level of the intervals.
    random_state : int or None
        Seed of folds, sampled walks and bootstrap.

    Returns
    -------
    Sensitivity
    """
    strengths = checked_lambdas(lambdas)
    check_choice("target", target, TARGETS)
    check_choice("kind", kind, _KINDS)
    named = _named(policies)

    if isinstance(propensity, list | tuple):
        raise TypeError("'propensity' must be one propensity here, not a list; call sensitivity once for each.")
    options = Options(
        propensity=propensity,
        bootstrap=bootstrap,
        confidence=confidence,
        n_folds=n_folds,
        random_state=random_state,
        n_jobs=n_jobs,
        walk=walk,
    )
    plan = make_plan(data, classifier, missingness, options)
    bound = {name: on_records(policy, plan.data, argument) for name, (policy, argument) in named.items()}
    with reporter(progress) as told:
        steps = Steps(told, len(data) * len(bound) + plan.n_replicates)
        return _analysed(plan, walk_policies(plan, bound, steps.walked), _BoundsAsked(strengths, target, kind), steps)


def sensitivity_of_runs(
    runs: Mapping[str, PolicyRun],
    more: Mapping[str, Policy],
    *,
    lambdas: Sequence[float],
    progress: Progress | bool | None = None,
) -> Sensitivity:
    """Valid bounds of the total cost of policies that were compared; their plan and their walks are reused.

    Parameters
    ----------
    runs : mapping from name to PolicyRun
        Policies of one comparison.
    more : mapping from name to policy
        Further policies, which are walked now.
    lambdas, progress
        As in `sensitivity`. There are no bootstrap intervals, and the propensity is learned by default models.
    """
    plan = next(iter(runs.values())).plan
    specs: dict[str, PropensitySpec] = {"learned": DEFAULT_PROPENSITY}
    choices = choices_under(plan.missingness, specs)
    plan = replace(plan, propensities=specs, choices=choices, asked=False, bootstrap=None)
    bound = {name: on_records(policy, plan.data) for name, policy in more.items()}
    with reporter(progress) as told:
        steps = Steps(told, len(plan.data) * max(len(bound), 1))
        walked = {name: run.walked for name, run in runs.items()} | walk_policies(plan, bound, steps.walked)
        return _analysed(plan, walked, _BoundsAsked(checked_lambdas(lambdas), "total", "valid"), steps)


class _BoundsAsked(NamedTuple):
    strengths: tuple[float, ...]
    target: str
    kind: str


def _analysed(plan: Plan, walked: Mapping[str, Walked], asked: _BoundsAsked, steps: Steps) -> Sensitivity:
    """Bounds at every strength, with the intervals that the plan asks for."""
    propensities = bind_propensities(plan, walked.values())
    costs = _costs(plan, propensities, walked, asked)
    lines, intervals = [], confidence_intervals(plan, costs, steps.add)
    for name in walked:
        low, high = costs.bounds(name, asked.strengths)
        ends = dict(zip(("lower", "upper"), intervals[name], strict=True))
        columns = {"Lambda": asked.strengths, "bound_lower": low, "bound_upper": high, **ends}
        lines.append(pd.DataFrame({"policy": name, "target": asked.target, **columns}))
    return Sensitivity(pd.concat(lines, ignore_index=True), plan.confidence, costs, plan, propensities)


def _costs(plan: Plan, propensities: Propensities, walked: Mapping[str, Walked], asked: _BoundsAsked) -> UncertainCosts:
    """Costs of the policies as functions of the weights; warn about policies without support."""
    data, given = plan.data, propensities.conditioning
    if asked.kind == "sharp" and given.gaps.any():
        raise ValueError(
            "'kind' must be 'valid' if recording depends on groups with gaps: sharp bounds need the modelled probability to "
            "be right on average, and the records can show this only for groups that are always recorded."
        )
    shares = {}
    for name, policy in walked.items():
        views = views_of(plan, propensities, policy)
        shares[name] = support_of(data, policy.tables, views.search, views.semi, None, views.findings).unsupported
    unsupported = frozenset(name for name, share in shares.items() if share > plan.thresholds.share)
    (learned,) = propensities.of_sets.values()
    view, balanced = View(learned, data.recorded, given.gaps), given.matrix(data) if asked.kind == "sharp" else None
    prices, cases = data.problem.prices, data.weight
    stops = {name: stops_of(policy.tables, prices, asked.target, cases) for name, policy in walked.items()}
    alone = {
        name: constraints_on([mine], data, view, None if name in unsupported else balanced)
        for name, mine in stops.items()
    }
    refit = plan.bootstrap is None or plan.bootstrap.refit
    costs = UncertainCosts(data, stops, view, balanced, asked.target, asked.strengths, refit, unsupported, alone)
    warn_about(costs, shares)
    return costs


def _named(policies: Any) -> dict[str, tuple[Policy, str]]:
    """Policies by name, each with the name of its argument for error messages."""
    if isinstance(policies, Mapping):
        named = check_mapping("policies", policies, "from names to policies")
        return {name: (policy, f"policies[{name!r}]") for name, policy in named.items()}
    if isinstance(policies, list | tuple | set | str) or policies is None:
        raise TypeError(
            f"'policies' must be a policy or a mapping from names to policies, but is {type(policies).__name__}."
        )
    return {name_of(policies): (policies, "policies")}
