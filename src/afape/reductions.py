"""One pass over the rows: every estimator reduces the same tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from .agents.policy import Policy
from .arrays import Floats, Ints, every
from .classifiers import Classifier, column_means
from .data import Retrospective
from .estimators import (
    BoundedEstimator,
    DirectMethod,
    DoublyRobust,
    Endings,
    InverseProbability,
    MultipleImputation,
    Outcome,
    RunCosts,
    SupportReduction,
    View,
    WeightedEstimator,
    bounded_values,
)
from .imputation import Imputations
from .nuisance import ActionValues, BoundPropensity, KnownValues, NotLearnableError, TableValues, ValueRegressor
from .nuisances import DIRECT, DOUBLY_ROBUST, IMPUTED, MISSING, Nuisances, base_of
from .positivity import Positivity, wanted_sets
from .walk import Ground, WalkOptions, WalkTable, walk

__all__ = ["Recipe", "Reductions"]

Pair = tuple[TableValues, TableValues]  # action values for the least and the largest cost

_HELD_LINES = 2**20  # states held to be walked once; past these the rows are walked twice


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
        positivity: Positivity,
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
        self.positivity = positivity
        self._formula = InverseProbability(problem.prices, recipe.normalize, recipe.acquisition_weight)
        self.weighted: dict[str, WeightedEstimator | BoundedEstimator] = {}
        self.views: dict[str, View] = {}  # by the name of the estimator
        self.valued = any(base_of(name) in (*DIRECT, *DOUBLY_ROBUST) for name in names)
        self.keep = keep or self.valued
        # Support speaks of the semi-offline or hybrid view; weights computed for an estimator serve it as well.
        self.support = SupportReduction(data, positivity.thresholds, nuisances.given.gaps)
        self._support_views: tuple[View, View | None] | None = None
        self.table: WalkTable | None = None
        self.valued_table: WalkTable | None = None  # rows of which something is known or at least bounded
        self.values: dict[str, Pair] = {}  # by suffix
        self.direct: dict[str, DirectMethod] = {}
        self.fallbacks = 0

    def _make_views(self, tables: list[WalkTable] | None, again: Callable[[], Iterator[WalkTable]]) -> None:
        """Search for what is unsupported, and set up the estimators: those that meet it answer with bounds."""
        nuisances, everything = self.nuisances, np.ones(self.data.problem.n_groups, dtype=bool)

        def held() -> Iterator[WalkTable]:
            return again() if tables is None else iter(tables)

        wanted = wanted_sets(held(), self.data)
        adjusted = {
            suffix: self.positivity.view(p, nuisances.given.gaps, wanted, held)
            for suffix, p in nuisances.propensities.items()
        }
        complete = {
            suffix: replace(self.positivity, given=nuisances.whole or nuisances.given).view(
                p, everything, everything[None], held
            )
            for suffix, p in nuisances.complete.items()
        }
        self._support_views = next(iter(adjusted.values())), next(iter(complete.values()), None)
        for name in self.names:
            base = base_of(name)
            if name not in (*self.plain, IMPUTED):
                self.views[name] = (complete if base == MISSING else adjusted)[_suffix(name)]
            if name in self.views and base not in (*DIRECT, *DOUBLY_ROBUST):
                self.weighted[name] = self._estimator(self.views[name], self._priced)

    def _priced(self, endings: Endings | None) -> InverseProbability:
        if endings is None:
            return self._formula
        return InverseProbability(self._formula.prices, self.recipe.normalize, self.recipe.acquisition_weight, endings)

    def _estimator(
        self, view: View, formula: Callable[[Endings | None], InverseProbability | DoublyRobust]
    ) -> WeightedEstimator | BoundedEstimator:
        data, weight = self.data, self.recipe.row_weight
        if not view.unsupported:
            return WeightedEstimator(data, view, formula(None), weight)
        both = [Endings(data, view.unsupported, view.adjust, largest) for largest in (False, True)]
        least, largest = (WeightedEstimator(data, view, formula(e), weight) for e in both)
        return BoundedEstimator(least, largest, both[0])

    @property
    def support_views(self) -> tuple[View, View | None]:
        """The views that support speaks of, with the first propensity: semi-offline or hybrid, and missing-data."""
        assert self._support_views is not None, "the walk comes first"
        return self._support_views

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

        ground = Ground.recorded(data, self.policy, self.classifier)
        kept: list[WalkTable] | None = []
        lines = 0
        for table in walk(ground, None, options, seed, n_jobs):
            for name, costs in self.plain.items():
                if name != "imp-mean":
                    costs.add(table)
            lines += len(table.row)
            if kept is not None:
                kept.append(table)
                if lines > _HELD_LINES and not self.keep:
                    kept = None
            told(table)

        def again() -> Iterator[WalkTable]:
            return walk(ground, None, options, seed, n_jobs)

        self._make_views(kept, again)
        for table in again() if kept is None else kept:
            self._reduce(table)
        if self.keep and kept is not None:
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
        states, (view, _) = None, self.support_views
        for estimator in self.weighted.values():
            weighted = estimator.view.weigh(table)
            estimator.add(table, weighted)
            if estimator.view is view:
                states = weighted
        self.support.add(table, states or view.weigh(table), view)

    def _learn_values(self) -> None:
        recipe, table = self.recipe, self._rows_with_a_say()
        self.valued_table = table
        self.values = self._values(None)
        for name in self.names:
            view = self.views.get(name)
            if view is None or base_of(name) not in (*DIRECT, *DOUBLY_ROBUST):
                continue
            if base_of(name) in DIRECT:
                self.direct[name] = DirectMethod(self.data, table, view, recipe.normalize, recipe.row_weight)
                continue
            estimator = self._estimator(view, partial(self._doubly_robust, self.values[_suffix(name)]))
            estimator.add(table, estimator.view.weigh(table))
            self.weighted[name] = estimator

    def _rows_with_a_say(self) -> WalkTable:
        """The table without rows that lack what is given, unless they stand for themselves within bounds."""
        usable, table = self.nuisances.given.usable(self.data), self._table
        if usable is None:
            return table
        roots = table.at_depth_zero()
        view, _ = self.support_views
        kept = usable.copy()
        kept[roots.row[view.lacks(roots)]] = True
        return table.without(np.flatnonzero(~kept))

    def _doubly_robust(self, values: Pair, endings: Endings | None) -> DoublyRobust:
        largest = endings is not None and endings.largest
        return DoublyRobust(values[largest], self.recipe.normalize, endings)

    @property
    def _table(self) -> WalkTable:
        assert self.table is not None, "the walk comes first"
        return self.table

    def _values(self, row_weight: Floats | None) -> dict[str, Pair]:
        """Action values for the least and the largest cost of what is unsupported; the same where nothing is."""
        plain: TableValues | None = None
        out: dict[str, Pair] = {}
        valued = {_suffix(n): v for n, v in self.views.items() if base_of(n) in (*DIRECT, *DOUBLY_ROBUST)}
        for suffix, view in valued.items():
            if view.unsupported:
                both = (Endings(self.data, view.unsupported, view.adjust, largest) for largest in (False, True))
                least, largest = (self._values_with(endings, row_weight) for endings in both)
                out[suffix] = least, largest
            else:
                plain = self._values_with(None, row_weight) if plain is None else plain
                out[suffix] = plain, plain
        return out

    def _values_with(self, endings: Endings | None, row_weight: Floats | None) -> TableValues:
        recipe, given, table = self.recipe, self.nuisances.given, self.valued_table
        assert table is not None, "the walk comes first"
        columns, usable = given.columns(self.data), given.usable(self.data)
        if isinstance(recipe.values, KnownValues):
            known = recipe.values.values(self.data, table, columns)
            return known if endings is None else endings.bound(known, table)
        learned = ActionValues(
            self.data,
            table,
            columns,
            recipe.fold,
            recipe.values,
            recipe.augment_label or given.label,  # values of a label that decides what is recorded need it
            row_weight,
            averaged=None if recipe.row_weight is None else recipe.row_weight > 0,
            fixed=None if endings is None else endings.fixed(table),
            usable=usable,
        )
        found = learned.values()
        if endings is not None:
            endings.start(found, table)
        if row_weight is None:
            self.fallbacks = learned.fallbacks
        return found

    def outcomes(self, rows: str, confidence: float) -> dict[str, Outcome]:
        """Estimates of every estimator, in the order asked for."""
        reductions: dict[str, RunCosts | WeightedEstimator | BoundedEstimator] = {**self.plain, **self.weighted}
        out = {name: reduction.outcome(rows, confidence) for name, reduction in reductions.items()}
        for name, direct in self.direct.items():
            least, largest = self._direct_values(name, self.values)
            if least is largest:
                out[name] = direct.outcome(least, rows, confidence)
            else:
                out[name] = direct.bounds(least, largest, self.support.lost, rows, confidence)
        if self.imputed is not None:
            out[IMPUTED] = self.imputed.outcome(rows, confidence)
        return {name: out[name] for name in self.names}

    def _direct_values(self, name: str, values: dict[str, Pair]) -> Pair:
        """Values for the direct method: known ones need no support, learned ones are bounded where there is none."""
        if isinstance(self.recipe.values, KnownValues) and not self.views[name].adjust.any():
            known = self._values_with(None, None)
            return known, known
        return values[_suffix(name)]

    def replicate(self, row_weight: Floats) -> dict[str, dict[str, float]]:
        """Every estimate with these row weights, nuisances learned again; NaN where the draw cannot teach them."""
        refitted: dict[int, BoundPropensity] = {}
        try:
            for view in self.views.values():
                if id(view.propensity) not in refitted:
                    refitted[id(view.propensity)] = view.propensity.refit(row_weight)
        except NotLearnableError:
            return {name: _Lost() for name in self.names}
        views = {name: replace(view, propensity=refitted[id(view.propensity)]) for name, view in self.views.items()}
        return self._replicate(row_weight, views, self._values(row_weight) if self.valued else {})

    def replicate_frozen(self, row_weight: Floats) -> dict[str, dict[str, float]]:
        """Every estimate with these row weights, nuisances as they are."""
        return self._replicate(row_weight, self.views, self.values)

    def _replicate(
        self, row_weight: Floats, views: dict[str, View], values: dict[str, Pair]
    ) -> dict[str, dict[str, float]]:
        used = row_weight if self.recipe.row_weight is None else row_weight * self.recipe.row_weight
        out = {name: costs.replicate(row_weight) for name, costs in self.plain.items()}
        for name, estimator in self.weighted.items():
            table, formulas = self._table, [part.formula for part in estimator.parts]
            if base_of(name) in DOUBLY_ROBUST:
                assert self.valued_table is not None
                table = self.valued_table
                formulas = [
                    self._doubly_robust(values[_suffix(name)], f.endings)  # type: ignore[attr-defined]
                    for f in formulas
                ]
            out[name] = estimator.replicate(table, views[name], used, *formulas)
        for name, direct in self.direct.items():
            least, largest = self._direct_values(name, values)
            found = direct.replicate(least, used, views[name])
            out[name] = (
                found if least is largest else bounded_values(found, direct.replicate(largest, used, views[name]))
            )
        return out


class _Lost(dict[str, float]):
    """No value of anything."""

    def __missing__(self, key: str) -> float:
        return float("nan")


def _suffix(name: str) -> str:
    return name.removeprefix(base_of(name))
