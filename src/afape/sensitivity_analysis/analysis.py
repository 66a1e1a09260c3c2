"""sensitivity(): how far unmeasured reasons for recording could move a cost, and when a conclusion tips."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from math import isfinite
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..agents.policy import Policy, bind
from ..bootstrap import Bootstrap, run_bootstrap
from ..classifiers import Classifier
from ..data import Retrospective
from ..diagnostics.sums import support_of
from ..estimators.estimate import TARGETS
from ..missingness import MAR, MCAR, MNAR
from ..nuisance.propensity.known import KnownPropensity
from ..nuisance.weights import Propensities, View, bind_propensity
from ..plan import Options, Plan, make_plan, name_of
from ..progress import Progress, told_by
from ..run import Steps, Walked, bind_propensities, views_of, walk_policies
from ..walk import WalkOptions, WalkTable
from .marginal import stop_lines
from .study import WeightStudy, odds_ratios, replicated, tell

__all__ = ["Sensitivity", "Tipping", "sensitivity"]

_KINDS = ("valid", "sharp")
_LARGEST = 100.0  # strength up to which a tipping point is looked for


class Tipping(NamedTuple):
    """Strength of an unmeasured reason at which a conclusion is no longer certain.

    ``Lambda`` is that of the estimates: 1 where the conclusion does not even hold without any such reason, infinity
    where it holds at the largest strength looked at. ``confident`` allows for chance too: up to this strength the
    interval of the bootstrap replicates agrees with the conclusion; NaN without replicates. Both are NaN where a policy
    has no estimate.
    """

    Lambda: float
    confident: float


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """Bounds on costs for unmeasured reasons of growing strength.

    Attributes
    ----------
    table : DataFrame
        One line per policy and Lambda: ``bound_lower`` and ``bound_upper``, and ``lower`` and ``upper``, the confidence
        interval around both.
    benchmark : DataFrame
        How strong each given group is as a reason, in the units of Lambda.
    relaxed : int
        Rows that can stop in more than 16 sets, whose weights are ordered along chains of sets only: bounds are a
        little wider than need be.
    """

    table: pd.DataFrame
    confidence: float
    study: WeightStudy
    plan: Plan
    propensities: Propensities

    @property
    def policies(self) -> list[str]:
        """Names of the policies."""
        return list(self.study.tables)

    @property
    def relaxed(self) -> int:
        """Rows whose weights are ordered along chains only."""
        return sum(self.study.states(name).orders.relaxed for name in self.policies)

    def estimate(self, policy: str) -> float:
        """The trajectory-normalised estimate, to which both bounds shrink at Lambda = 1."""
        return self.study.nominal(self._known(policy, "policy"))

    def bounds(self, policy: str, Lambda: float) -> tuple[float, float]:
        """Bounds at one more strength."""
        (strength,) = _checked_lambdas([Lambda])
        lower, upper = self.study.bounds(self._known(policy, "policy"), [strength])
        return float(lower[0]), float(upper[0])

    def tipping(
        self,
        a: str,
        b: str | None = None,
        *,
        limit: float | None = None,
        largest: float = _LARGEST,
        bootstrap: int | None = None,
    ) -> Tipping:
        """Least strength at which it is no longer certain that a costs less than b, or than a limit.

        Two policies are judged on the same rows, and an unmeasured reason gives them the same true weights. So this is
        not where their bounds meet, but where *some* possible weights make a as dear as b, which is later
        (see `afape.sensitivity_analysis.tipping.certainly_cheaper`). Found by bisection, to a thousandth.

        Parameters
        ----------
        a, b : str
            Policies; or
        limit : float
            a number, such as a budget, in place of b.
        largest : float
            Where to stop looking.
        bootstrap : int, optional
            Replicates for ``confident``, each with a bisection of its own; default as many as the table has, 0 for
            none.
        """
        if (b is None) == (limit is None):
            raise ValueError("'tipping' compares with another policy 'b' or with a number 'limit': give one of them.")
        other = self._known(b, "b") if b is not None else _checked_number(limit, "limit")
        self._known(a, "a")
        if not isinstance(largest, Real) or not largest > 1:
            raise ValueError(f"'largest' must be a number above 1, but is {largest!r}.")
        plan = self.plan
        found = run_bootstrap(
            partial(self.study.tipping_replicate, a, other, largest),
            plan.data,
            Bootstrap(plan.n_replicates if bootstrap is None else bootstrap),
            plan.bootstrap_seed,
            n_jobs=plan.n_jobs,
        ).of(a, "Lambda")
        inside = found[~np.isnan(found)]
        confident = float("nan")
        if len(inside):  # "lower": between infinity and a number there is nothing to interpolate
            confident = float(np.quantile(inside, (1 - self.confidence) / 2, method="lower"))
        return Tipping(self.study.tipping(a, other, largest), confident)

    @cached_property
    def benchmark(self) -> pd.DataFrame:
        """How strong each given group is as a reason, in the units of Lambda.

        For each group that missingness is given, the propensity is learned again without it. ``median``, ``q95`` and
        ``max`` describe max(OR, 1/OR) between the odds of the two models over the pairs of rows and sets in which the
        policies stop. Read: had this group not been recorded, weights would have been wrong by this much. "An
        unmeasured reason as strong as age would have a Lambda of about 1.4" is the line of age with ``q95`` 1.4; a
        conclusion that tips only at 3 then needs a reason that is much stronger than age, beyond all that age
        explains already. Models differ by chance too: a group of many columns in few rows looks stronger than it is.
        """
        (spec,) = self.plan.propensities.values()
        if isinstance(spec, KnownPropensity):
            raise ValueError(
                "A benchmark learns the propensity with and without each group, but it is known here. Call sensitivity "
                "with propensity=None to see how strong the given groups are."
            )
        given, data = self.propensities.conditioning, self.plan.data
        problem = data.problem
        table = self.study.states(*self.policies).table
        full = self.study.view.weigh(table).weight
        reasons: list[tuple[str, int | None]] = [(problem.group_names[g], int(g)) for g in np.flatnonzero(given.groups)]
        reasons += [(f"{problem.label} (the label)", None)] if given.label else []
        lines = []
        for name, group in reasons:
            learned = bind_propensity(spec, data, given.without(group), self.plan.recipe.fold, self.propensities.asked)
            view = View(learned, self.study.view.recorded, self.study.view.adjust)
            lines.append({"group": name, **odds_ratios(full, view.weigh(table).weight)})
        return pd.DataFrame(lines, columns=["group", "median", "q95", "max"])

    def plot(self, ax: Any = None) -> Any:
        """Draw the bounds as bands over Lambda, on the given axes or new ones; needs matplotlib."""
        from .bands import draw_bands

        return draw_bands(self, ax)

    def figure(self, path: str | Path) -> None:
        """Write the plot to a file, in the format of its ending; needs matplotlib."""
        from .bands import save_bands

        save_bands(self, Path(path))

    def _known(self, policy: Any, argument: str) -> str:
        if policy not in self.study.tables:
            raise ValueError(f"{argument!r} must be one of the policies {self.policies}, but is {policy!r}.")
        return str(policy)

    def _repr_html_(self) -> str:
        from html import escape

        head = f"{self.study.kind} bounds of the {self.study.target} cost, {len(self.plan.data)} rows"
        return f"<p>{escape(head)}</p>{self.table.drop(columns='target').round(4).to_html(index=False, border=0)}"

    def __repr__(self) -> str:
        level = f"{100 * self.confidence:g} % intervals"
        head = f"{self.study.kind} bounds of the {self.study.target} cost, {len(self.plan.data)} rows, {level}"
        return f"{head}\n{self.table.drop(columns='target').to_string(index=False, float_format='{:.4g}'.format)}"


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
    r"""Bound costs where recording may have had reasons that were not measured.

    The nominal weight of a row i in a set S is :math:`w^0_{iS} = 1 / P(R \ge S \mid X_o)`, and the cost, with one
    normaliser for the whole trajectory,

    .. math:: J(w) = \frac{\sum_i \sum_S f_{iS} w_{iS} (C_{iS} + c(S))}{\sum_i \sum_S f_{iS} w_{iS}}

    where f is the flow that stops in S, C the cost of the label given there and c(S) the prices of its groups. Under the
    marginal sensitivity model the true odds of R >= S, given also what was not measured, differ from the modelled odds
    by a factor of at most :math:`\Lambda`. Then :math:`1 + (w^0 - 1)/\Lambda \le w \le 1 + \Lambda (w^0 - 1)`, and
    :math:`w_{iS} \le w_{iT}` for S inside T. The least and largest J(w) over these weights are the *valid* bounds. The
    *sharp* ones use in addition that true weights balance whatever missingness is given (see
    `afape.sensitivity_analysis.balance.Balance`); they are tighter and take longer, a linear programme each.

    Parameters
    ----------
    data, classifier, missingness, propensity, n_folds, n_jobs, walk, progress
        As in `evaluate`; one propensity, learned or known. By design all policies share it, also where `evaluate` would
        choose a method for each: policies are compared under the same true weights, so the nominal weights of a set that
        two of them reach must be the same too.
    policies : policy, or mapping from name to policy
        What to judge, on the same rows.
    lambdas : sequence of float
        Strengths, ascending from 1 or more. At 1 both bounds are the trajectory-normalised estimate.
    target : {"total", "acquisition", "misclassification"}
        Which cost.
    kind : {"valid", "sharp"}
        Which bounds.
    bootstrap : int or Bootstrap
        Replicates for the confidence intervals, 0 for none. Each learns the propensity again and bounds anew; the
        intervals go from the lower quantile of the lower bounds to the upper quantile of the upper ones.
    confidence : float
        Level of the intervals.
    random_state : int or None
        Seed of folds, sampled walks and bootstrap.

    Returns
    -------
    Sensitivity
    """
    strengths = _checked_lambdas(lambdas)
    if target not in TARGETS:
        raise ValueError(f"'target' must be one of {list(TARGETS)}, but is {target!r}.")
    if kind not in _KINDS:
        raise ValueError(f"'kind' must be one of {list(_KINDS)}, but is {kind!r}.")
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
    bound = {name: bind(policy, data.problem, argument) for name, (policy, argument) in named.items()}
    with told_by(progress) as told:
        steps = Steps(told, len(data) * len(bound) + plan.n_replicates)
        walked = walk_policies(plan, bound, steps.walked)
        propensities = bind_propensities(plan, walked.values())
        study = _study(plan, propensities, walked, _Asked(strengths, target, kind))
        lines, intervals = [], replicated(plan, study, steps.add)
    for name in walked:
        low, high = study.bounds(name, strengths)
        ends = dict(zip(("lower", "upper"), intervals[name], strict=True))
        part = {"Lambda": strengths, "bound_lower": low, "bound_upper": high, **ends}
        lines.append(pd.DataFrame({"policy": name, "target": target, **part}))
    return Sensitivity(pd.concat(lines, ignore_index=True), confidence, study, plan, propensities)


class _Asked(NamedTuple):
    strengths: tuple[float, ...]
    target: str
    kind: str


def _study(plan: Plan, propensities: Propensities, walked: Mapping[str, Walked], asked: _Asked) -> WeightStudy:
    """Weights of all policies, and which of them want too much that is not supported."""
    data, given = plan.data, propensities.conditioning
    if asked.kind == "sharp" and given.gaps.any():
        raise ValueError(
            "'kind' must be 'valid' where recording depends on groups with gaps: sharp bounds need the modelled probability "
            "to be right on average, which the records can tell only for what is always recorded."
        )
    shares = {}
    for name, policy in walked.items():
        views = views_of(plan, propensities, policy)
        shares[name] = support_of(data, policy.tables, views.search, views.semi, None).unsupported
    (learned,) = propensities.of_sets.values()
    study = WeightStudy(
        data,
        {name: WalkTable.concatenate([stop_lines(t) for t in policy.tables]) for name, policy in walked.items()},
        View(learned, data.recorded, given.gaps),
        given.matrix(data),
        asked.target,
        asked.kind,
        asked.strengths,
        plan.bootstrap is None or plan.bootstrap.refit,
        frozenset(name for name, share in shares.items() if share > plan.thresholds.share),
    )
    tell(study, shares)
    return study


def _named(policies: Any) -> dict[str, tuple[Policy, str]]:
    """Policies by name, each with the argument that an error names."""
    if isinstance(policies, Mapping):
        if not policies:
            raise TypeError("'policies' must be a policy or a mapping from names to policies, but is empty.")
        return {str(name): (policy, f"policies[{name!r}]") for name, policy in policies.items()}
    if isinstance(policies, list | tuple | set | str) or policies is None:
        raise TypeError(
            f"'policies' must be a policy or a mapping from names to policies, but is {type(policies).__name__}."
        )
    return {name_of(policies): (policies, "policies")}


def _checked_lambdas(lambdas: Any) -> tuple[float, ...]:
    if isinstance(lambdas, str) or not isinstance(lambdas, Sequence | np.ndarray) or len(lambdas) == 0:
        raise ValueError(f"'lambdas' must be a list of at least one number, but is {lambdas!r}.")
    for value in lambdas:
        if not isinstance(value, Real) or not isfinite(value) or value < 1:
            raise ValueError(f"'lambdas' are odds ratios, finite and at least 1, but one of them is {value!r}.")
    strengths = tuple(float(v) for v in lambdas)
    if any(b <= a for a, b in pairwise(strengths)):
        raise ValueError(f"'lambdas' must ascend, but are {list(lambdas)!r}.")
    return strengths


def _checked_number(value: Any, argument: str) -> float:
    if not isinstance(value, Real) or not isfinite(value):
        raise ValueError(f"{argument!r} must be a finite number, but is {value!r}.")
    return float(value)
