"""One pass over the rows: every estimator reduces the same tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .agents.policy import Policy
from .arrays import Floats, Ints, every
from .classifiers import Classifier, column_means
from .data import Retrospective
from .estimators import (
    DirectMethod,
    DoublyRobust,
    InverseProbability,
    MultipleImputation,
    Outcome,
    RunCosts,
    SupportReduction,
    View,
    WeightedEstimator,
)
from .imputation import Imputations
from .nuisance import ActionValues, BoundPropensity, KnownValues, TableValues, ValueRegressor
from .walk import Ground, WalkOptions, WalkTable, walk

__all__ = ["BASELINES", "DIRECT", "DOUBLY_ROBUST", "IMPUTED", "WEIGHTED", "Recipe", "Reductions"]

BASELINES = ("imp-mean", "blocking", "cc")
WEIGHTED = ("ipw-miss", "ipw-semi")
IMPUTED = "mi"
DIRECT = "dm-semi"
DOUBLY_ROBUST = "drl-semi"


@dataclass(frozen=True, eq=False)
class Recipe:
    """How estimates are made of the walk."""

    values: ValueRegressor | KnownValues
    augment_label: bool
    normalize: bool
    acquisition_weight: str
    given: Ints
    fold: Ints
    row_weight: Floats | None  # 0 for rows that only teach
    imputations: Imputations  # drawn when first used


class Reductions:
    """Estimators of one policy, fed by its walk.

    Without action values and bootstrap, tables are dropped as soon as they are reduced, and memory stays bounded by
    the chunk. Otherwise one table of all rows is kept.
    """

    def __init__(
        self,
        data: Retrospective,
        policy: Policy,
        classifier: Classifier,
        names: list[str],
        propensities: dict[str, BoundPropensity],
        recipe: Recipe,
        keep: bool,
    ) -> None:
        self.data, self.policy, self.classifier, self.names, self.recipe = data, policy, classifier, names, recipe
        problem, weight = data.problem, recipe.row_weight
        self.plain: dict[str, RunCosts] = {}
        if "imp-mean" in names:
            self.plain["imp-mean"] = RunCosts(data, row_weight=weight)
        if "blocking" in names:
            self.plain["blocking"] = RunCosts(data, blocked=True, row_weight=weight)
        if "cc" in names:
            self.plain["cc"] = RunCosts(data, only=data.complete, row_weight=weight)
        self.imputed = MultipleImputation(data, recipe.imputations, weight) if IMPUTED in names else None
        none, everything = np.zeros(problem.n_groups, bool), np.ones(problem.n_groups, bool)
        formula = InverseProbability(problem.prices, recipe.normalize, recipe.acquisition_weight)
        self.weighted: dict[str, WeightedEstimator] = {}
        self.views: dict[str, View] = {}
        for suffix, propensity in propensities.items():
            semi, miss = (View(propensity, data.recorded, adjust) for adjust in (none, everything))
            self.views |= {f"ipw-miss{suffix}": miss, f"ipw-semi{suffix}": semi, f"{DOUBLY_ROBUST}{suffix}": semi}
        for name in names:
            if name in self.views and not name.startswith(DOUBLY_ROBUST):
                self.weighted[name] = WeightedEstimator(data, self.views[name], formula, weight)
        self.doubly_robust = [name for name in names if name.startswith(DOUBLY_ROBUST)]
        self.valued = DIRECT in names or bool(self.doubly_robust)
        self.keep = keep or self.valued
        # Support speaks of the semi-offline view; weights computed for an estimator serve it as well.
        self.support = SupportReduction(data)
        self._support_name = "ipw-semi" + next(iter(propensities))
        self.table: WalkTable | None = None
        self.values: TableValues | None = None
        self.direct: DirectMethod | None = None
        self.fallbacks = 0

    @property
    def weighted_names(self) -> list[str]:
        """Names of the weighted and doubly robust estimators."""
        return list(self.weighted)

    @property
    def steps(self) -> int:
        """Rows to walk, those of completed data included."""
        completed = 0 if self.imputed is None else self.imputed.steps
        return len(self.data) * (1 + ("imp-mean" in self.plain)) + completed

    def walk(self, options: WalkOptions, seed: int, n_jobs: int | None, progress: Callable[[int], None] | None) -> None:
        """Walk all rows and reduce their tables."""
        data = self.data
        done = 0

        def told(table: WalkTable) -> None:
            nonlocal done
            done += int((table.depth == 0).sum())  # each row starts in one state
            if progress is not None:
                progress(done)

        kept = []
        ground = Ground.recorded(data, self.policy, self.classifier)
        for table in walk(ground, None, options, seed, n_jobs):
            self._reduce(table)
            if self.keep:
                kept.append(table)
            told(table)
        if self.keep:
            self.table = WalkTable.concatenate(kept)
            kept.clear()
        if ground.rooted and "blocking" in self.plain:
            lacking = np.flatnonzero(~every(data.recorded[:, data.problem.free]))
            partly = Ground.partly_free(data, self.policy, self.classifier)
            for table in walk(partly, lacking, options, seed, n_jobs):
                self.plain["blocking"].add(table)
        if "imp-mean" in self.plain:
            completed = np.where(np.isnan(data.values), column_means(data), data.values)
            for table in walk(
                Ground.everything(data, completed, self.policy, self.classifier), None, options, seed, n_jobs
            ):
                self.plain["imp-mean"].add(table)
                told(table)
        if self.imputed is not None:
            self.imputed.walk(self.policy, self.classifier, options, seed, n_jobs, told)
        if self.valued:
            self._learn_values()

    def _reduce(self, table: WalkTable) -> None:
        for name, costs in self.plain.items():
            if name != "imp-mean":
                costs.add(table)
        states = None
        for name, estimator in self.weighted.items():
            weighted = estimator.view.weigh(table)
            estimator.add(table, weighted)
            if name == self._support_name:
                states = weighted
        self.support.add(table, states or self.views[self._support_name].weigh(table))

    def _learn_values(self) -> None:
        table = self._table
        self.values = self._values(None)
        self.direct = DirectMethod(self.data, table, self.recipe.row_weight)
        formula = DoublyRobust(self.values, self.recipe.normalize)
        for name in self.doubly_robust:
            estimator = WeightedEstimator(self.data, self.views[name], formula, self.recipe.row_weight)
            estimator.add(table, estimator.view.weigh(table))
            self.weighted[name] = estimator

    @property
    def _table(self) -> WalkTable:
        assert self.table is not None, "the walk comes first"
        return self.table

    def _values(self, row_weight: Floats | None) -> TableValues:
        recipe = self.recipe
        if isinstance(recipe.values, KnownValues):
            return recipe.values.values(self.data, self._table, recipe.given)
        learned = ActionValues(
            self.data,
            self._table,
            recipe.given,
            recipe.fold,
            recipe.values,
            recipe.augment_label,
            row_weight,
            averaged=None if recipe.row_weight is None else recipe.row_weight > 0,
        )
        found = learned.values()
        if row_weight is None:
            self.fallbacks = learned.fallbacks
        return found

    def outcomes(self, rows: str, confidence: float) -> dict[str, Outcome]:
        """Estimates of every estimator, in the order asked for."""
        reductions: dict[str, RunCosts | WeightedEstimator] = {**self.plain, **self.weighted}
        out = {name: reduction.outcome(rows, confidence) for name, reduction in reductions.items()}
        if self.direct is not None and self.values is not None:
            out[DIRECT] = self.direct.outcome(self.values, rows, confidence)
        if self.imputed is not None:
            out[IMPUTED] = self.imputed.outcome(rows, confidence)
        return {name: out[name] for name in self.names}

    def replicate(self, row_weight: Floats) -> dict[str, dict[str, float]]:
        """Every estimate with these row weights, nuisances learned again."""
        refitted: dict[int, BoundPropensity] = {}
        for view in self.views.values():
            if id(view.propensity) not in refitted:
                refitted[id(view.propensity)] = view.propensity.refit(row_weight)
        views = {
            name: View(refitted[id(view.propensity)], view.recorded, view.adjust) for name, view in self.views.items()
        }
        return self._replicate(row_weight, views, self._values(row_weight) if self.valued else None)

    def replicate_frozen(self, row_weight: Floats) -> dict[str, dict[str, float]]:
        """Every estimate with these row weights, nuisances as they are."""
        return self._replicate(row_weight, self.views, self.values)

    def _replicate(
        self, row_weight: Floats, views: dict[str, View], values: TableValues | None
    ) -> dict[str, dict[str, float]]:
        used = row_weight if self.recipe.row_weight is None else row_weight * self.recipe.row_weight
        out = {name: costs.replicate(row_weight) for name, costs in self.plain.items()}
        for name, estimator in self.weighted.items():
            formula = estimator.formula
            if values is not None and isinstance(formula, DoublyRobust):
                formula = DoublyRobust(values, self.recipe.normalize)
            out[name] = estimator.replicate(self._table, views[name], used, formula)
        if values is not None and self.direct is not None:
            out[DIRECT] = self.direct.replicate(values, used)
        return out
