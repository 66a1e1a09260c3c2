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
from .nuisance import ActionValues, KnownValues, TableValues, ValueRegressor
from .nuisances import DIRECT, DOUBLY_ROBUST, IMPUTED, MISSING, Nuisances, base_of
from .walk import Ground, WalkOptions, WalkTable, walk

__all__ = ["Recipe", "Reductions"]


@dataclass(frozen=True, eq=False)
class Recipe:
    """How estimates are made of the walk."""

    values: ValueRegressor | KnownValues
    augment_label: bool
    normalize: bool
    acquisition_weight: str
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
        nuisances: Nuisances,
        recipe: Recipe,
        keep: bool,
    ) -> None:
        self.data, self.policy, self.classifier, self.names, self.recipe = data, policy, classifier, names, recipe
        self.nuisances = nuisances
        problem, weight = data.problem, recipe.row_weight
        self.plain: dict[str, RunCosts] = {}
        if "imp-mean" in names:
            self.plain["imp-mean"] = RunCosts(data, row_weight=weight)
        if "blocking" in names:
            self.plain["blocking"] = RunCosts(data, blocked=True, row_weight=weight)
        if "cc" in names:
            self.plain["cc"] = RunCosts(data, only=data.complete, row_weight=weight)
        self.imputed = MultipleImputation(data, recipe.imputations, weight) if IMPUTED in names else None
        formula = InverseProbability(problem.prices, recipe.normalize, recipe.acquisition_weight)
        self.weighted: dict[str, WeightedEstimator] = {}
        everything = np.ones(problem.n_groups, dtype=bool)
        adjusted, complete = (
            {suffix: View(p, data.recorded, adjust) for suffix, p in propensities.items()}
            for propensities, adjust in (
                (nuisances.propensities, nuisances.given.gaps),
                (nuisances.complete, everything),
            )
        )
        self.views: dict[str, View] = {}
        for name in names:
            base = base_of(name)
            if name not in (*self.plain, IMPUTED):
                views = complete if base == MISSING else adjusted
                # The direct method of the semi-offline view weighs nothing, so that any propensity will do.
                self.views[name] = views.get(name.removeprefix(base)) or next(iter(views.values()))
            if name in self.views and base not in (*DIRECT, *DOUBLY_ROBUST):
                self.weighted[name] = WeightedEstimator(data, self.views[name], formula, weight)
        self.valued = any(base_of(name) in (*DIRECT, *DOUBLY_ROBUST) for name in names)
        self.keep = keep or self.valued
        # Support speaks of the semi-offline or hybrid view; weights computed for an estimator serve it as well.
        self.support = SupportReduction(data)
        self._support_view = next(iter(adjusted.values()))
        self.table: WalkTable | None = None
        self.valued_table: WalkTable | None = None  # rows that have everything given recorded
        self.values: TableValues | None = None
        self.direct: dict[str, DirectMethod] = {}
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
        for estimator in self.weighted.values():
            weighted = estimator.view.weigh(table)
            estimator.add(table, weighted)
            if estimator.view is self._support_view:
                states = weighted
        self.support.add(table, states or self._support_view.weigh(table))

    def _learn_values(self) -> None:
        usable, recipe = self.nuisances.given.usable(self.data), self.recipe
        table = self._table if usable is None else self._table.without(np.flatnonzero(~usable))
        self.valued_table = table
        self.values = self._values(None)
        formula = DoublyRobust(self.values, recipe.normalize)
        for name in self.names:
            if base_of(name) in DIRECT:
                self.direct[name] = DirectMethod(
                    self.data, table, self.views[name], recipe.normalize, recipe.row_weight
                )
            elif base_of(name) in DOUBLY_ROBUST:
                estimator = WeightedEstimator(self.data, self.views[name], formula, recipe.row_weight)
                estimator.add(table, estimator.view.weigh(table))
                self.weighted[name] = estimator

    @property
    def _table(self) -> WalkTable:
        assert self.table is not None, "the walk comes first"
        return self.table

    def _values(self, row_weight: Floats | None) -> TableValues:
        recipe, given, table = self.recipe, self.nuisances.given, self.valued_table
        assert table is not None, "the walk comes first"
        columns = given.columns(self.data)
        if isinstance(recipe.values, KnownValues):
            return recipe.values.values(self.data, table, columns)
        learned = ActionValues(
            self.data,
            table,
            columns,
            recipe.fold,
            recipe.values,
            recipe.augment_label or given.label,  # values of a label that decides what is recorded need it
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
        for name, direct in self.direct.items():
            assert self.values is not None
            out[name] = direct.outcome(self.values, rows, confidence)
        if self.imputed is not None:
            out[IMPUTED] = self.imputed.outcome(rows, confidence)
        return {name: out[name] for name in self.names}

    def replicate(self, row_weight: Floats) -> dict[str, dict[str, float]]:
        """Every estimate with these row weights, nuisances learned again."""
        refitted = self.nuisances.refitted(row_weight)
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
            table, formula = self._table, estimator.formula
            if values is not None and self.valued_table is not None and isinstance(formula, DoublyRobust):
                table, formula = self.valued_table, DoublyRobust(values, self.recipe.normalize)
            out[name] = estimator.replicate(table, views[name], used, formula)
        if values is not None:
            for name, direct in self.direct.items():
                out[name] = direct.replicate(values, used, views[name])
        return out
