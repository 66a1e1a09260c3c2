"""Walked policies whose weights may be wrong: bounds, replicates, tipping strengths and benchmarks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..arrays import Floats, units_of
from ..bootstrap import Bootstrap, Values, run_bootstrap
from ..data import Retrospective
from ..notices import ClippedWeightsWarning, PropensityFitWarning, SupportWarning, warn
from ..nuisance.weights import View
from ..plan import Plan
from ..walk import WalkTable
from .balance import Balance, SharpWeights, balanced_lines, balanced_sets
from .marginal import Ratio, StopStates, WeightSet, bounds
from .tipping import certainly_below, certainly_cheaper, tipping_strength

__all__ = ["WeightStudy", "odds_ratios", "replicated", "tell"]


@dataclass(eq=False)
class WeightStudy:
    """Policies on the same rows, and the weights that their costs rest on.

    Parameters
    ----------
    data : Retrospective
        Records.
    tables : dict
        Lines of the walk in which each policy stops.
    view : View
        Gives the nominal weights.
    given_matrix : ndarray of shape (n, k)
        Columns that missingness depends on; the sharp bounds balance them.
    target : str
        Which cost.
    kind : {"valid", "sharp"}
        Which bounds.
    lambdas : tuple of float
        Strengths at which replicates are bounded.
    refit : bool
        Whether replicates learn the propensity again.
    unsupported : frozenset of str
        Policies that want sets without support: bounds around what is supported would be no bounds.
    """

    data: Retrospective
    tables: dict[str, WalkTable]
    view: View
    given_matrix: Floats
    target: str
    kind: str
    lambdas: tuple[float, ...]
    refit: bool = True
    unsupported: frozenset[str] = frozenset()
    _states: dict[tuple[str, ...], StopStates] = field(default_factory=dict)
    _balanced: dict[tuple[str, ...], tuple[StopStates, Balance]] = field(default_factory=dict)

    def states(self, *names: str) -> StopStates:
        """Pairs of these policies, from the cache or made now."""
        if names not in self._states:
            tables = [self.tables[name] for name in names]
            self._states[names] = StopStates.of(tables, self.view, self.data.problem.prices, self.target)
        return self._states[names]

    def balanced(self, *names: str) -> tuple[StopStates, Balance]:
        """Pairs of these policies and of the balanced sets, with the functions to balance."""
        if names not in self._balanced:
            tables = [self.tables[name] for name in names]
            sets = balanced_sets(tables, self.view)
            extra = balanced_lines(sets, self.view)
            states = StopStates.of(tables, self.view, self.data.problem.prices, self.target, extra)
            nominal = self.view.weigh(states.table).weight
            excess = [r.amount - r.at(nominal) * r.flow for r in (states.ratio(k) for k in range(len(names)))]
            self._balanced[names] = (
                states,
                Balance.of(states, sets, self.given_matrix, excess, units_of(len(self.data), self.data.cluster)),
            )
        return self._balanced[names]

    def nominal(self, name: str) -> float:
        """The trajectory-normalised estimate, which every bound at Lambda = 1 equals; NaN without support."""
        if name in self.unsupported:
            return float("nan")
        states = self.states(name)
        return states.ratio().at(self.view.weigh(states.table).weight)

    def bounds(
        self, name: str, strengths: Sequence[float], view: View | None = None, row_weight: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Least and largest cost of a policy at each strength; NaN without support."""
        if name in self.unsupported:
            return np.full(len(strengths), np.nan), np.full(len(strengths), np.nan)
        view = view or self.view
        states = self.states(name)
        lower, upper = bounds(states.ratio(0, row_weight), states.valid(view), strengths)
        if self.kind == "sharp" and np.isfinite(lower).all():
            states, balance = self.balanced(name)
            sharp = SharpWeights(states, view, balance, row_weight)
            # Both hold, so the tighter does; they differ from it by the solver's tolerance, or where a row has too many
            # sets to order them all.
            low, high = bounds(states.ratio(0, row_weight), sharp, strengths)
            lower, upper = np.maximum(lower, low), np.minimum(upper, high)
        return lower, upper

    def replicate(self, row_weight: Floats) -> Values:
        """Bounds of every policy with these row weights."""
        view = self._view(row_weight)
        out: Values = {}
        for name in self.tables:
            lower, upper = self.bounds(name, self.lambdas, view, row_weight)
            out[name] = {f"lower {k}": float(v) for k, v in enumerate(lower)}
            out[name] |= {f"upper {k}": float(v) for k, v in enumerate(upper)}
        return out

    def _view(self, row_weight: Floats | None) -> View:
        if row_weight is None or not self.refit:
            return self.view
        return View(self.view.propensity.refit(row_weight), self.view.recorded, self.view.adjust)

    def tipping(self, a: str, b: str | float, largest: float, row_weight: Floats | None = None) -> float:
        """Strength up to which a certainly costs less than policy b, or than the number b."""
        view = self._view(row_weight)
        names = (a, b) if isinstance(b, str) else (a,)
        if self.unsupported & set(names):
            return float("nan")
        states = self.states(*names)
        options: list[tuple[StopStates, WeightSet]] = [(states, states.valid(view))]
        nominal = options[0][1].nominal
        if any(np.isnan(states.ratio(k, row_weight).at(nominal)) for k in range(len(names))):
            return float("nan")
        if self.kind == "sharp":
            wider, balance = self.balanced(*names)
            options.append((wider, SharpWeights(wider, view, balance, row_weight)))

        def certain(strength: float) -> bool:
            return any(_certain(s, w, b, strength, row_weight) for s, w in options)

        return tipping_strength(certain, largest)

    def tipping_replicate(self, a: str, b: str | float, largest: float, row_weight: Floats) -> Values:
        """The same with these row weights, as the bootstrap wants it."""
        return {a: {"Lambda": self.tipping(a, b, largest, row_weight)}}


def _certain(
    states: StopStates, weights: WeightSet, b: str | float, strength: float, row_weight: Floats | None
) -> bool:
    first: Ratio = states.ratio(0, row_weight)
    if isinstance(b, str):
        return certainly_cheaper(first, states.ratio(1, row_weight), weights, strength)
    return certainly_below(first, float(b), weights, strength)


def odds_ratios(full: Floats, reduced: Floats) -> dict[str, float]:
    """Median, 95 % quantile and maximum of max(OR, 1/OR) between the recording odds of two models, by their weights."""
    open_pairs = (full > 1) & (reduced > 1)
    ratio = (full[open_pairs] - 1) / (reduced[open_pairs] - 1)
    ratio = np.maximum(ratio, 1 / ratio)
    if len(ratio) == 0:
        return {"median": np.nan, "q95": np.nan, "max": np.nan}
    return {"median": float(np.median(ratio)), "q95": float(np.quantile(ratio, 0.95)), "max": float(ratio.max())}


def replicated(plan: Plan, study: WeightStudy, told: Callable[[int], None]) -> dict[str, tuple[Floats, Floats]]:
    """Ends of the confidence interval of each policy at each strength; NaN without replicates."""
    bootstrap = plan.bootstrap or Bootstrap(0)
    found = run_bootstrap(study.replicate, plan.data, bootstrap, plan.bootstrap_seed, n_jobs=plan.n_jobs, told=told)
    found.tell()
    tail = (1 - plan.confidence) / 2
    ends = {}
    for name in study.tables:
        low = [_quantile(found.of(name, f"lower {k}"), tail) for k in range(len(study.lambdas))]
        high = [_quantile(found.of(name, f"upper {k}"), 1 - tail) for k in range(len(study.lambdas))]
        ends[name] = np.array(low), np.array(high)
    return ends


def _quantile(replicates: Floats, level: float) -> float:
    """Quantile of those replicates that have a value."""
    inside = replicates[np.isfinite(replicates)]
    return float(np.quantile(inside, level)) if len(inside) else float("nan")


def tell(study: WeightStudy, shares: dict[str, float]) -> None:
    """Warn of what makes bounds doubtful."""
    for name, share in shares.items():
        if name in study.unsupported:
            warn(
                f"An estimated {100 * share:.2g} % of the runs of {name!r} want a set of groups that no row like theirs has "
                "recorded. Bounds around what is supported would be none, so there are no bounds; afape.evaluate bounds "
                "what is unsupported, and afape.check_support says what can be done.",
                SupportWarning,
            )
        clipped = int(study.view.weigh(study.states(name).table).clipped.sum())
        if clipped:
            warn(
                f"{name!r}: {clipped} learned propensities fell below 'min_propensity' and were raised to it; the bounds "
                "lie around the raised ones.",
                ClippedWeightsWarning,
            )
    if not getattr(study.view.propensity, "converged", True):
        warn(
            "A logistic propensity did not converge, most likely because some rows are always or never recorded.",
            PropensityFitWarning,
        )
