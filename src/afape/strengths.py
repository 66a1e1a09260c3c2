"""Walked policies whose weights may be wrong: bounds, replicates, tipping strengths and benchmarks."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from .agents.policy import Policy
from .arrays import Floats, units_of
from .bootstrap import Values, run_bootstrap
from .data import Retrospective
from .estimators import SupportReduction, View
from .estimators.balance import Balance, SharpWeights, balanced_lines, balanced_sets
from .estimators.marginal import Ratio, StopStates, WeightSet, bounds, stop_lines
from .estimators.tipping import certainly_below, certainly_cheaper, tipping_strength
from .notices import ClippedWeightsWarning, InterruptedBootstrapWarning, PropensityFitWarning, SupportWarning
from .positivity import Positivity, wanted_sets
from .task import Task
from .walk import Ground, WalkTable, walk

__all__ = ["WeightStudy", "odds_ratios", "replicated", "tell", "walked"]

Progress = Callable[[int, int], None]


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
    given : ndarray of shape (n, k)
        Columns that missingness depends on; the sharp bounds balance them.
    target : str
        Which cost.
    kind : {"valid", "sharp"}
        Which bounds.
    lambdas : tuple of float
        Strengths at which replicates are bounded.
    refit : bool
        Whether replicates learn the propensity again.
    uncarried : frozenset of str
        Policies that want sets without support: bounds around what is supported would be no bounds.
    """

    data: Retrospective
    tables: dict[str, WalkTable]
    view: View
    given: Floats
    target: str
    kind: str
    lambdas: tuple[float, ...]
    refit: bool = True
    uncarried: frozenset[str] = frozenset()
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
                Balance.of(states, sets, self.given, excess, units_of(len(self.data), self.data.cluster)),
            )
        return self._balanced[names]

    def nominal(self, name: str) -> float:
        """The trajectory-normalised estimate, which every bound at Lambda = 1 equals; NaN without support."""
        if name in self.uncarried:
            return float("nan")
        states = self.states(name)
        return states.ratio().at(self.view.weigh(states.table).weight)

    def bounds(
        self, name: str, strengths: Sequence[float], view: View | None = None, row_weight: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Least and largest cost of a policy at each strength; NaN without support."""
        if name in self.uncarried:
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
        if self.uncarried & set(names):
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


def walked(
    task: Task, policies: dict[str, Policy], view: View, positivity: Positivity, progress: Progress | None
) -> tuple[dict[str, WalkTable], dict[str, float]]:
    """Lines in which each policy stops, and the share of its runs that want a set without support."""
    tables, unsupported = {}, {}
    total = len(task.data) * len(policies) + task.bootstrap.n_replicates
    done = 0
    for name, policy in policies.items():
        parts = []
        ground = Ground.recorded(task.data, policy, task.classifier)
        for table in walk(ground, None, task.options, task.walk_seed, task.n_jobs):
            parts.append(table)
            done += int((table.depth == 0).sum())
            if progress is not None:
                progress(done, total)
        unsupported[name] = _unsupported(task, view, positivity, parts)
        tables[name] = WalkTable.concatenate([stop_lines(table) for table in parts])
    return tables, unsupported


def _unsupported(task: Task, view: View, positivity: Positivity, tables: list[WalkTable]) -> float:
    wanted = wanted_sets(tables, task.data)
    found = positivity.view(view.propensity, view.adjust, wanted, lambda: tables)
    support = SupportReduction(task.data, task.thresholds, view.adjust)
    for table in tables:
        support.add(table, found.weigh(table), found)
    return support.result(pd.DataFrame(), found, None, positivity.names).unsupported


def replicated(task: Task, study: WeightStudy, progress: Progress | None) -> dict[str, tuple[Floats, Floats]]:
    """Ends of the confidence interval of each policy at each strength; NaN without replicates."""
    n_boot, walked_rows = task.bootstrap.n_replicates, len(task.data) * len(study.tables)
    found = run_bootstrap(
        study.replicate,
        len(task.data),
        task.data.cluster,
        n_boot,
        task.bootstrap_seed,
        n_jobs=task.n_jobs,
        progress=progress and (lambda done, todo: progress(walked_rows + done, walked_rows + todo)),
    )
    if found.interrupted:
        warnings.warn(
            f"The bootstrap was interrupted after {len(found.values)} of {n_boot} replicates; intervals rest on these.",
            InterruptedBootstrapWarning,
            stacklevel=3,
        )
    tail = (1 - task.confidence) / 2
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


def tell(study: WeightStudy, unsupported: dict[str, float]) -> None:
    """Warn of what makes bounds doubtful."""
    for name, share in unsupported.items():
        if name in study.uncarried:
            warnings.warn(
                f"An estimated {100 * share:.2g} % of the runs of {name!r} want a set of groups that no row like theirs has "
                "recorded. Bounds around what is supported would be none, so there are no bounds; afape.evaluate bounds "
                "what is unsupported, and afape.check_support says what can be done.",
                SupportWarning,
                stacklevel=3,
            )
        clipped = int(study.view.weigh(study.states(name).table).clipped.sum())
        if clipped:
            warnings.warn(
                f"{name!r}: {clipped} learned propensities fell below 'min_propensity' and were raised to it; the bounds "
                "lie around the raised ones.",
                ClippedWeightsWarning,
                stacklevel=3,
            )
    if not getattr(study.view.propensity, "converged", True):
        warnings.warn(
            "A logistic propensity did not converge, most likely because some rows are always or never recorded.",
            PropensityFitWarning,
            stacklevel=3,
        )
