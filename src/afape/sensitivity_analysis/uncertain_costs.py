"""Costs of policies as functions of weights that may be wrong: bounds, replicates and tipping strengths."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array

from .._arrays import Floats
from ..data.retrospective import Retrospective, drawn_weight
from ..propensity.weights import View
from ..run.bootstrap import Bootstrap, run_bootstrap
from ..run.plan import Plan
from ..warnings import ClippedWeightsWarning, PropensityFitWarning, SupportWarning, warn
from .balance import ORDERED_STATES, SharpWeights, balance_functions, balanced_sets, balanced_stops
from .marginal import ValidWeights, WeightSet, bounds
from .order import RowOrders
from .stops import Stops, StopStates
from .tipping import certainly_below, certainly_cheaper, tipping_strength

__all__ = ["Constraints", "UncertainCosts", "confidence_intervals", "constraints_on", "warn_about"]


@dataclass(frozen=True, eq=False)
class Constraints:
    """Constraints on the true weights of some policies' stops, apart from their boxes."""

    states: StopStates
    orders: RowOrders
    functions: csr_array | None = None  # (c, s) functions to balance, for sharp bounds

    cases: Floats | None = None  # (n,) how many cases each row stands for

    def weights(self, view: View, row_weight: Floats | None) -> WeightSet:
        """Possible weights around those of this view; ``row_weight`` (n,) are those of a bootstrap replicate."""
        if self.functions is not None:
            if self.cases is not None:
                row_weight = self.cases if row_weight is None else self.cases * row_weight
            return SharpWeights.of(self.states, self.orders, self.functions, view, row_weight)
        nominal = view.weigh(self.states.table).weight
        return ValidWeights(nominal, self.orders.under(nominal))


def constraints_on(
    policies: Sequence[Stops], data: Retrospective, view: View, balanced: Floats | None
) -> tuple[Constraints, ...]:
    """Constraints of the valid bounds and, with columns (n, k) to balance, those of the sharp bounds."""
    states = StopStates.of(policies, view)
    valid = Constraints(states, RowOrders.of(states.row, states.sets))
    if balanced is None:
        return (valid,)
    sets = balanced_sets(policies, view)
    states = StopStates.of(policies, view, balanced_stops(sets, view))
    nominal = view.weigh(states.table).weight
    excess = [r.amount - r.at(nominal) * r.flow for r in (states.ratio(k) for k in range(len(policies)))]
    functions = balance_functions(states, sets, balanced, excess, data.unit)
    return valid, Constraints(states, RowOrders.of(states.row, states.sets, ORDERED_STATES), functions, data.weight)


@dataclass(frozen=True, eq=False)
class UncertainCosts:
    """Policies on the same rows, and the weights by which their costs are estimated.

    Attributes
    ----------
    data : Retrospective
        Records.
    stops : dict
        Where each policy stops.
    view : View
        Gives the nominal weights.
    balanced : ndarray of shape (n, k), or None
        Columns that missingness depends on, for sharp bounds; None for valid bounds.
    target : str
        Which cost.
    lambdas : tuple of float
        Strengths at which replicates are bounded.
    refit : bool
        True if replicates learn the propensity again.
    unsupported : frozenset of str
        Policies that want unsupported sets: they have no bounds.
    alone : dict
        Constraints of each policy.
    """

    data: Retrospective
    stops: dict[str, Stops]
    view: View
    balanced: Floats | None
    target: str
    lambdas: tuple[float, ...]
    refit: bool
    unsupported: frozenset[str]
    alone: dict[str, tuple[Constraints, ...]]

    def together(self, *names: str) -> tuple[Constraints, ...]:
        """Constraints on the weights of these policies together."""
        return constraints_on([self.stops[name] for name in names], self.data, self.view, self.balanced)

    def moved(self, moves: Mapping[str, float]) -> UncertainCosts:
        """Return the costs with a constant added to those of each named policy, whatever the weights are."""
        stops = {name: s.dearer(moves[name]) if name in moves else s for name, s in self.stops.items()}
        alone = {
            name: tuple(replace(c, states=c.states.dearer(moves[name])) for c in kept) if name in moves else kept
            for name, kept in self.alone.items()
        }
        return replace(self, stops=stops, alone=alone)

    @property
    def kind(self) -> str:
        """Which bounds: "valid" or "sharp"."""
        return "valid" if self.balanced is None else "sharp"

    def nominal(self, name: str) -> float:
        """The trajectory-normalised estimate, which equals both bounds at Lambda = 1; NaN if unsupported."""
        if name in self.unsupported:
            return float("nan")
        states = self.alone[name][0].states
        return states.ratio().at(self.view.weigh(states.table).weight)

    def bounds(
        self, name: str, strengths: Sequence[float], view: View | None = None, row_weight: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Least and largest cost of a policy at each strength; NaN if unsupported.

        Valid and sharp bounds both hold, so the tighter ones do. They are in the wrong order only by the tolerance of the
        solver, or if a row has too many sets to order them all.
        """
        if name in self.unsupported:
            return np.full(len(strengths), np.nan), np.full(len(strengths), np.nan)
        lower, upper = np.full(len(strengths), -np.inf), np.full(len(strengths), np.inf)
        for constraints in self.alone[name]:
            weights = constraints.weights(view or self.view, row_weight)
            low, high = bounds(constraints.states.ratio(0, row_weight), weights, strengths)
            lower, upper = np.maximum(lower, low), np.minimum(upper, high)
            if np.isnan(low).any():
                break
        return lower, upper

    def replicate(self, drawn: Floats) -> Floats:
        """Least and largest cost of every policy at every strength, with rows drawn so often, (n,): (policies, 2, strengths)."""
        view, row_weight = self._view(drawn), drawn_weight(self.data, drawn) / self.data.row_weight
        return np.array([self.bounds(name, self.lambdas, view, row_weight) for name in self.stops])

    def _view(self, row_weight: Floats | None) -> View:
        if row_weight is None or not self.refit:
            return self.view
        return View(self.view.propensity.refit(row_weight), self.view.recorded, self.view.adjust)

    def tipping(
        self,
        constraints: Sequence[Constraints],
        limit: float | None,
        largest: float,
        row_weight: Floats | None = None,
    ) -> float:
        """Strength up to which the first policy certainly costs less than the second, or than the limit if there is one.

        ``constraints`` are those of the policies together. NaN if a policy has no estimate.
        """
        view = self._view(row_weight)
        options = [(c.states, c.weights(view, row_weight)) for c in constraints]
        states, weights = options[0]
        if any(np.isnan(states.ratio(k, row_weight).at(weights.nominal)) for k in range(len(states.flows))):
            return float("nan")

        def certain(strength: float) -> bool:
            return any(_certain(s, w, limit, strength, row_weight) for s, w in options)

        return tipping_strength(certain, largest)


def _certain(
    states: StopStates, weights: WeightSet, limit: float | None, strength: float, row_weight: Floats | None
) -> bool:
    first = states.ratio(0, row_weight)
    if limit is None:
        return certainly_cheaper(first, states.ratio(1, row_weight), weights, strength)
    return certainly_below(first, limit, weights, strength)


def warn_about(costs: UncertainCosts, shares: Mapping[str, float]) -> None:
    """Warn about policies without support (``shares`` of their runs), clipped weights and fits that did not converge."""
    for name, share in shares.items():
        if name in costs.unsupported:
            warn(
                f"An estimated {100 * share:.2g} % of the runs of {name!r} want a set of groups that no similar row "
                "records, so sensitivity gives no bounds for this policy. afape.evaluate bounds its cost if there are "
                "no unmeasured reasons, and afape.check_support says what you can do.",
                SupportWarning,
            )
        clipped = int(costs.view.weigh(costs.alone[name][0].states.table).clipped.sum())
        if clipped:
            warn(
                f"{name!r}: {clipped} learned propensities were below 'min_propensity' and were raised to it. The bounds are "
                "computed from the raised values.",
                ClippedWeightsWarning,
            )
    if not getattr(costs.view.propensity, "converged", True):
        warn(
            "A logistic propensity did not converge, probably because a group is always (or never) "
            "recorded in some kind of rows.",
            PropensityFitWarning,
        )


def confidence_intervals(
    plan: Plan, costs: UncertainCosts, told: Callable[[int], None]
) -> dict[str, tuple[Floats, Floats]]:
    """Lower and upper ends of the confidence interval of each policy at each strength; NaN without replicates."""
    bootstrap = plan.bootstrap or Bootstrap(0)
    drawn = run_bootstrap(costs.replicate, plan.data, bootstrap, plan.bootstrap_seed, n_jobs=plan.n_jobs, report=told)
    drawn.warn()
    tail, n_strengths = (1 - plan.confidence) / 2, len(costs.lambdas)
    found = np.array(drawn.values).reshape(-1, len(costs.stops), 2, n_strengths)
    ends = {}
    for p, name in enumerate(costs.stops):
        low = [_quantile(found[:, p, 0, k], tail) for k in range(n_strengths)]
        high = [_quantile(found[:, p, 1, k], 1 - tail) for k in range(n_strengths)]
        ends[name] = np.array(low), np.array(high)
    return ends


def _quantile(replicates: Floats, level: float) -> float:
    """Quantile of the finite replicates; NaN if there are none."""
    inside = replicates[np.isfinite(replicates)]
    return float(np.quantile(inside, level)) if len(inside) else float("nan")
