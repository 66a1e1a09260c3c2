"""The result of a sensitivity analysis: bounds on costs, and the strength up to which a conclusion is certain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from html import escape
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from .._arguments import (
    check_between,
    check_choice,
    check_count,
    check_list,
    check_mapping,
    check_number,
    check_target,
    shown,
)
from .._arrays import Floats
from .._copies import HandsOutCopies
from ..missingness.known_propensity import KnownPropensity
from ..propensity.binding import Propensities, bind_propensity
from ..propensity.weights import View
from ..results.provenance import Provenance, provenance_of
from ..run.bootstrap import Bootstrap, run_bootstrap
from ..run.plan import Plan
from .stops import StopStates
from .uncertain_costs import UncertainCosts

__all__ = ["Sensitivity", "Tipping", "checked_lambdas"]

_LARGEST = 100.0  # largest strength searched for a tipping point


class Tipping(NamedTuple):
    """Strength of an unmeasured reason at which a conclusion is no longer certain.

    ``Lambda`` is found from the estimates: 1 if the conclusion does not hold even without such a reason, infinity if it
    holds at the largest strength searched. ``confident`` includes sampling error: up to this strength, the interval of
    the bootstrap replicates agrees with the conclusion. Both are NaN if a policy has no estimate, ``confident`` also
    without replicates; ``reason`` says which.
    """

    Lambda: float
    confident: float
    reason: str = ""


@dataclass(frozen=True, eq=False)
class Sensitivity(HandsOutCopies):
    """Bounds on costs for unmeasured reasons of growing strength.

    Attributes
    ----------
    table : DataFrame
        One line per policy and Lambda: ``bound_lower`` and ``bound_upper``, and ``lower`` and ``upper``, the confidence
        interval around both.
    benchmark : DataFrame
        Strength of each given group as a reason, in the units of Lambda.
    relaxed : int
        Rows that can stop in more than 16 sets (sum over policies). Their weights are ordered along chains of sets
        only, so the bounds are a little wider than necessary.
    """

    table: pd.DataFrame
    confidence: float
    costs: UncertainCosts
    plan: Plan
    propensities: Propensities

    @property
    def provenance(self) -> Provenance:
        """What the analysis was made from, see `Evaluation.provenance`."""
        return provenance_of(self.plan)

    @property
    def policies(self) -> list[str]:
        """Names of the policies."""
        return list(self.costs.stops)

    @property
    def relaxed(self) -> int:
        """Rows whose weights are ordered along chains only."""
        return sum(self.costs.alone[name][0].orders.relaxed for name in self.policies)

    def estimate(self, policy: str) -> float:
        """The estimate at which both bounds start at Lambda = 1: trajectory-normalised, unless `starting_from` moved it."""
        return self.costs.nominal(self._known(policy, "policy"))

    def starting_from(self, estimates: Mapping[str, float]) -> Sensitivity:
        """Return the analysis with bounds that start from other estimates of the same costs.

        What an unmeasured reason changes is known for inverse-probability weights only. This change is added to the estimates
        given here, such as those of `eff-semi`: every bound of a policy moves by the difference between the given estimate
        and `estimate`, and tipping points compare the moved costs. Other policies keep their bounds.

        Parameters
        ----------
        estimates : mapping from policy to float
            Where the bounds of these policies start. A policy without support has no bounds, wherever they would start.
        """
        named = check_mapping("estimates", estimates, "from policies to numbers", empty=True)
        start = {
            self._known(name, "estimates"): check_between("estimates", value, -inf) for name, value in named.items()
        }
        moves = {name: value - self.estimate(name) for name, value in start.items()}
        moves = {name: move for name, move in moves.items() if np.isfinite(move)}
        table = self.table
        move = table["policy"].map(moves).fillna(0.0)
        for column in ("bound_lower", "bound_upper", "lower", "upper"):
            table[column] += move
        return replace(self, table=table, costs=self.costs.moved(moves))

    def bounds(self, policy: str, Lambda: float) -> tuple[float, float]:
        """Least and largest cost at another strength."""
        strength = check_between("Lambda", Lambda, 1)
        lower, upper = self.costs.bounds(self._known(policy, "policy"), [strength])
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

        Both policies are evaluated on the same rows, and an unmeasured reason gives both the same true weights. So this is
        the strength at which *some* possible weights make a as expensive as b. It is at least the strength at which
        their bounds meet (see `afape.sensitivity_analysis.tipping.certainly_cheaper`). Found by bisection, to 0.1 %.

        Parameters
        ----------
        a, b : str
            Policies.
        limit : float
            Number to compare with instead of b, such as a budget.
        largest : float
            Largest strength to search.
        bootstrap : int, optional
            Replicates for ``confident``, each with its own bisection; default as many as for the table, 0 for none.
        """
        if (b is None) == (limit is None):
            raise ValueError("'tipping' compares with another policy 'b' or with a number 'limit': give one of them.")
        names = [self._known(a, "a"), *([] if b is None else [self._known(b, "b")])]
        number = None if limit is None else check_between("limit", limit, -inf)
        check_between("largest", largest, 1, above=True)
        plan, costs = self.plan, self.costs
        bootstrapped = Bootstrap(plan.n_replicates if bootstrap is None else check_count("bootstrap", bootstrap, 0))
        if lacking := sorted(costs.unsupported & set(names)):
            wanted = f"the records do not support what {lacking[0]!r} wants, so its cost has no estimate here"
            return Tipping(float("nan"), float("nan"), wanted)
        tip = partial(costs.tipping, costs.together(*names), number, largest)
        drawn = run_bootstrap(tip, plan.data, bootstrapped, plan.bootstrap_seed, n_jobs=plan.n_jobs)
        inside = [strength for strength in drawn.values if not np.isnan(strength)]
        confident = float("nan")
        if len(inside):  # "lower": there is nothing to interpolate between a number and infinity
            confident = float(np.quantile(inside, (1 - self.confidence) / 2, method="lower"))
        reason = "" if len(inside) else "there are no bootstrap replicates, so only the estimates were compared"
        return Tipping(tip(), confident, reason)

    @cached_property
    def benchmark(self) -> pd.DataFrame:
        """Strength of each given group as a reason, in the units of Lambda.

        For each group that recording depends on, the propensity is learned again without it. ``median``, ``q95`` and
        ``max`` describe max(OR, 1/OR) between the odds of the two models, over the pairs of rows and sets in which the
        policies stop: if this group had not been recorded, the odds would have been wrong by this factor. If ``q95`` of
        age is 1.4, an unmeasured reason as strong as age has a Lambda of about 1.4. If a conclusion is certain up to 3,
        only a reason much stronger than age, beyond all that age explains already, can change it. Models also differ by
        chance: with many columns in few rows, a group looks stronger than it is.
        """
        (spec,) = self.plan.propensities.values()
        if isinstance(spec, KnownPropensity):
            raise ValueError(
                "'benchmark' learns the propensity with and without each given group, but here the propensity is known. Call "
                "sensitivity with propensity=None."
            )
        given, data = self.propensities.conditioning, self.plan.data
        problem, view = data.problem, self.costs.view
        table = StopStates.of([self.costs.stops[name] for name in self.policies], view).table
        full = view.weigh(table).weight
        reasons: list[tuple[str, int | None]] = [(problem.group_names[g], int(g)) for g in np.flatnonzero(given.groups)]
        reasons += [(f"{problem.label} (the label)", None)] if given.label else []
        lines = []
        for name, group in reasons:
            learned = bind_propensity(spec, data, given.without(group), self.plan.recipe.fold, self.propensities.asked)
            reduced = View(learned, view.recorded, view.adjust).weigh(table).weight
            lines.append((name, *_odds_ratios(full, reduced)))
        return pd.DataFrame(lines, columns=["group", "median", "q95", "max"])

    def plot(self, ax: Any = None) -> Any:
        """Draw the bounds as bands over Lambda, on the given axes or on new ones; needs matplotlib."""
        from .. import plots

        return plots.sensitivity(self, ax)

    def figure(self, path: str | Path) -> None:
        """Write the plot to a file in the format of its suffix; needs matplotlib."""
        from ..plots.bands import save_bands

        save_bands(self, check_target("path", path))

    def _known(self, policy: Any, argument: str) -> str:
        return check_choice(argument, policy, self.policies)

    @property
    def _title(self) -> str:
        return f"{self.costs.kind} bounds of the {self.costs.target} cost, {len(self.plan.data)} rows"

    def _repr_html_(self) -> str:
        table = self.table.drop(columns="target").round(4).to_html(index=False, border=0)
        return f"<p>{escape(self._title)}</p>{table}"

    def __repr__(self) -> str:
        table = self.table.drop(columns="target").to_string(index=False, float_format="{:.4g}".format)
        return f"{self._title}, {100 * self.confidence:g} % intervals\n{table}"


def _odds_ratios(full: Floats, reduced: Floats) -> tuple[float, float, float]:
    """Median, 95 % quantile and maximum of max(OR, 1/OR) between the recording odds of two models, from their weights."""
    both = (full > 1) & (reduced > 1)
    ratio = (full[both] - 1) / (reduced[both] - 1)
    ratio = np.maximum(ratio, 1 / ratio)
    if len(ratio) == 0:
        return float("nan"), float("nan"), float("nan")
    return float(np.median(ratio)), float(np.quantile(ratio, 0.95)), float(ratio.max())


def checked_lambdas(lambdas: Any) -> tuple[float, ...]:
    """Strengths as numbers; an error if they do not ascend from 1 or more."""
    listed = check_list("lambdas", lambdas, "numbers")
    if not listed:
        raise ValueError("'lambdas' must be a list of at least one number, but is empty.")
    for value in listed:
        check_number("lambdas", value, "be finite odds ratios of at least 1", lambda v: 1 <= v < inf)
    strengths = tuple(float(v) for v in listed)
    if any(b <= a for a, b in pairwise(strengths)):
        raise ValueError(f"'lambdas' must ascend, but are {shown(listed)}.")
    return strengths
