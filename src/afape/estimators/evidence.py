"""Inputs of the methods: records, walk, weights and action values of one policy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._arrays import Bools, Floats, Ints
from ..action_values.induction import ActionValues, InducedValues, Lessons
from ..action_values.known import BoundKnownValues, KnownValues
from ..action_values.models import LearnedValues
from ..data.retrospective import Retrospective, drawn_weight
from ..imputation.imputations import CompletedRuns
from ..missingness.assumptions import Conditioning
from ..propensity.unsupported import unsupported_edges
from ..propensity.weights import View
from ..walk.columns import Columns, CostColumns, PartColumns
from ..walk.run_parts import RunParts
from ..walk.table import Tables, WalkTable
from ..walk.tariff import Tariff
from .amounts import Sample

if TYPE_CHECKING:
    from .eff.components import Components

__all__ = ["Evidence", "Fitted", "Recipe", "ViewKey", "extrapolated_key"]

ViewKey = tuple[str, str]  # "sets" or "complete rows", and the name of the propensity
_EXTRAPOLATED = ", extrapolated"
_Ending = tuple[ViewKey | None, bool | None]  # view in which runs end early, and True for their largest cost


class ValueSet(NamedTuple):
    """Action values of the costs, and of their parts if these were learned too."""

    costs: ActionValues
    parts: ActionValues | None = None
    fallbacks: int = 0  # values for which no row of the other folds had the same set and action


@dataclass(frozen=True, eq=False)
class Recipe:
    """Settings of the estimates.

    Parameters
    ----------
    values : LearnedValues or KnownValues
        Source of the action values.
    normalize : bool
        Divide by mean weights.
    acquisition_weight : {"before", "after"}
        Weight of a price: the weight before the decision, or after it.
    fold : ndarray of int, shape (n,)
        Fold of each row.
    averaged : ndarray of shape (n,), or None for all rows
        1 for rows that are averaged over, 0 for rows that are only learned from.
    tariff : Tariff
        Prices, costs of errors, outcomes of the user.
    confidence : float
        Level of intervals.
    """

    values: LearnedValues | KnownValues
    normalize: bool
    acquisition_weight: str
    fold: Ints
    averaged: Floats | None
    tariff: Tariff
    confidence: float = 0.95


def extrapolated_key(key: ViewKey) -> ViewKey:
    """Return the key of the view as if no region were unsupported."""
    return (key[0] + _EXTRAPOLATED, key[1])


@dataclass(frozen=True, eq=False)
class Fitted:
    """Records, walk, views with their propensities, action values and row weights of one policy.

    Attributes
    ----------
    data : Retrospective
        Records.
    recipe : Recipe
        Settings of the estimates.
    conditioning : Conditioning
        The groups that recording depends on.
    tables : Tables
        The walk over the recorded values.
    runs : dict
        Parts of plain runs of the policy, by walk.
    views : dict
        Views that estimators use.
    valued : tuple
        Views in which action values are needed.
    completed : CompletedRuns or None
        Runs on completed tables, for multiple imputation.
    components : dict
        Components of the costs by view, for EFF.
    drawn : ndarray of shape (n,), optional
        How often each row was drawn in a bootstrap replicate.
    table : WalkTable or None
        All rows that have action values, in one table.
    values : dict
        Action values of ``table``. The key is (None, None) if no run ends early, else the view and True or False: runs into
        unsupported sets then have their largest or least cost.
    with_parts : bool
        True if action values of the parts are learned in every view.
    """

    data: Retrospective
    recipe: Recipe
    conditioning: Conditioning
    tables: Tables
    runs: Mapping[str, RunParts]
    views: Mapping[ViewKey, View]
    valued: tuple[ViewKey, ...]
    completed: CompletedRuns | None = None
    components: Mapping[ViewKey, Components] = field(default_factory=dict)
    drawn: Floats | None = None
    table: WalkTable | None = None
    values: Mapping[_Ending, ValueSet] = field(default_factory=dict)
    with_parts: bool = False

    def learn(self, with_parts: bool = False) -> Fitted:
        """Add the action values that methods need: of the costs, and of their parts if EFF or ``with_parts`` needs them."""
        if not self.valued:
            return self
        table = self._valued_table() if self.table is None else self.table
        fitted = replace(self, table=table, with_parts=with_parts or self.with_parts)
        values: dict[_Ending, ValueSet] = {}
        for key in self.valued:
            unsupported = bool(self.views[key].unsupported)
            if unsupported:
                for largest in (False, True):
                    values[key, largest] = fitted.evidence(key, True, largest).learn_values()
            if (not unsupported or isinstance(self.recipe.values, KnownValues)) and (None, None) not in values:
                values[None, None] = fitted.evidence(key, True).learn_values()
        return replace(fitted, values=values)

    @cached_property
    def part_values(self) -> Mapping[_Ending, ActionValues]:
        """Action values of the parts. Those that were not learned with the costs are learned when first asked for."""
        found: dict[_Ending, ActionValues] = {}
        for (key, largest), values in self.values.items():
            evidence = self.evidence(self.valued[0] if key is None else key, True, largest)
            found[key, largest] = evidence.learn_parts() if values.parts is None else values.parts
        return found

    @property
    def fallbacks(self) -> int:
        """Number of action values for which no row of the other folds had the same set and action."""
        return max((found.fallbacks for found in self.values.values()), default=0)

    def refit(self, drawn: Floats) -> Fitted:
        """Return a bootstrap replicate with these row counts (n,); propensities and action values are learned again."""
        again = {p: p.refit(drawn) for p in dict.fromkeys(view.propensity for view in self.views.values())}
        views = {key: replace(view, propensity=again[view.propensity]) for key, view in self.views.items()}
        return replace(self, views=views, drawn=drawn, values={}).learn()

    def reweight(self, drawn: Floats) -> Fitted:
        """Return a bootstrap replicate with these row counts (n,); propensities and action values do not change."""
        return replace(self, drawn=drawn)

    def evidence(self, key: ViewKey | None, valued: bool = False, largest: bool | None = None) -> Evidence:
        """Return the inputs of a method in a view.

        ``largest`` sets the cost of runs into unsupported sets: True the largest, False the least, None if there are none.
        """
        return Evidence(self, key, None if key is None else self.views[key], valued, largest)

    @property
    def row_weight(self) -> Floats:
        """Weight of each row in all means, (n,)."""
        used = np.ones(len(self.data)) if self.recipe.averaged is None else self.recipe.averaged
        if self.data.weight is None:
            return used if self.drawn is None else self.drawn * used
        return used * (self.data.weight if self.drawn is None else drawn_weight(self.data, self.drawn))

    def _valued_table(self) -> WalkTable:
        """Return the table of the rows that have all given groups recorded, and of the rows that start in an unsupported set."""
        usable, table = self.conditioning.usable(self.data), self.tables.whole()
        if usable is None:
            return table
        roots = table.at_depth_zero()
        kept = usable.copy()
        for key in self.valued:
            kept[roots.row[self.views[key].lacks(roots)]] = True
        return table.without(np.flatnonzero(~kept))


@dataclass(frozen=True, eq=False)
class Evidence:
    """Inputs of one method: the fitted object in one view.

    Attributes
    ----------
    fitted : Fitted
        The fitted object.
    key : tuple or None
        Key of the view.
    view : View or None
        The view of the method; None if it does not weight rows.
    valued : bool
        True if the method uses action values.
    largest : bool or None
        Cost of runs into unsupported sets: True for the largest, False for the least; None if there are none.
    """

    fitted: Fitted
    key: ViewKey | None
    view: View | None
    valued: bool = False
    largest: bool | None = None

    @property
    def data(self) -> Retrospective:
        """The records."""
        return self.fitted.data

    @property
    def recipe(self) -> Recipe:
        """Settings of the estimates."""
        return self.fitted.recipe

    @property
    def sample(self) -> Sample:
        """The rows that estimates come from, with their row weights."""
        sample = Sample.of(self.data, self.recipe.confidence)
        return sample.weighted(self.fitted.row_weight)

    @property
    def tables(self) -> Iterable[WalkTable]:
        """The walk over the recorded values; a single table if the method uses action values."""
        if self.valued and self.fitted.table is not None:
            return (self.fitted.table,)
        return self.fitted.tables

    @property
    def components(self) -> Components:
        """Components of the policy's costs in this view."""
        assert self.key is not None
        return self.fitted.components[self.key]

    @property
    def replicated(self) -> bool:
        """True in a bootstrap replicate, which needs only the values."""
        return self.fitted.drawn is not None

    @property
    def _has_parts(self) -> bool:
        """False if known action values cover only the costs."""
        known = self.recipe.values
        return not (self.valued and isinstance(known, KnownValues) and not known.has_parts)

    @property
    def cost_columns(self) -> CostColumns:
        """Columns of the costs, and of outcomes of the user if these are known."""
        tariff = self.recipe.tariff if self._has_parts else self.recipe.tariff.without_own
        return CostColumns(tariff, self.data.labels, self.largest)

    @property
    def part_columns(self) -> PartColumns | None:
        """Columns of the parts; None if known action values cover only the costs."""
        if not self._has_parts:
            return None
        return PartColumns.of(self.data, len(self.recipe.tariff.own), self.largest is not None)

    def action_values(self, columns: Columns) -> ActionValues:
        """Return action values in the columns of costs or parts."""
        ending = (None, None) if self.largest is None else (self.key, self.largest)
        return self.fitted.values[ending].costs if isinstance(columns, CostColumns) else self.fitted.part_values[ending]

    def learn_values(self) -> ValueSet:
        """Learn action values of the costs, and of their parts if EFF needs them."""
        composed, parts = self.fitted.with_parts or self.key in self.fitted.components, self.part_columns
        recipe = self.recipe
        if isinstance(recipe.values, KnownValues):
            return ValueSet(self._known_costs(), self._known(parts) if parts is not None and composed else None)
        if not composed or parts is None:
            induced = self._induced(recipe.values, (self.cost_columns,))
            return ValueSet(induced.within(0), None, induced.fallbacks)
        if recipe.values.regressor.linear:  # one regression learns both
            induced = self._induced(recipe.values, (self.cost_columns, parts))
            return ValueSet(induced.within(0), induced.within(1), induced.fallbacks)
        induced = self._induced(recipe.values, (self.cost_columns,))
        return ValueSet(induced.within(0), self.learn_parts(), induced.fallbacks)

    def _known_costs(self) -> ActionValues:
        """Return known values of both costs, and of outcomes of the user if the values of the parts are known."""
        columns, parts, tariff = self.cost_columns, self.part_columns, self.recipe.tariff
        costs = self._known(CostColumns(tariff.without_own, self.data.labels, self.largest))
        if parts is None or columns.width == 2:
            return costs
        return costs.extended(self._known(parts), parts.priced(tariff, bool(self.largest))[:, 2:])

    def learn_parts(self) -> ActionValues:
        """Learn action values of the parts alone."""
        columns = self.part_columns
        assert columns is not None
        if isinstance(self.recipe.values, KnownValues):
            return self._known(columns)
        return self._induced(self.recipe.values.of_parts, (columns,)).within(0)

    def _lost(self, table: WalkTable) -> Bools | None:
        """Return True for edges into unsupported sets, (e,); None if runs do not end early."""
        if self.largest is None:
            return None
        assert self.view is not None
        return unsupported_edges(table, self.data, self.view.unsupported, self.view.adjust)

    def _known(self, columns: Columns) -> BoundKnownValues:
        table, known = self.fitted.table, self.recipe.values
        assert table is not None
        assert isinstance(known, KnownValues)
        return known.bind(self.data, table, self.fitted.conditioning.columns(self.data), columns, self._lost(table))

    def _induced(self, learned: LearnedValues, columns: tuple[Columns, ...]) -> InducedValues:
        fitted, given, averaged = self.fitted, self.fitted.conditioning, self.recipe.averaged
        assert fitted.table is not None
        label = learned.augment_label or given.label  # if recording depends on the label, values must too
        lessons = Lessons(
            given.columns(self.data),
            self.recipe.fold,
            LearnedValues(learned.regressor, label),
            fitted.drawn,
            None if averaged is None else averaged > 0,
            given.usable(self.data),
            keep=not self.replicated,
        )
        lost, tariff = self._lost(fitted.table), self.recipe.tariff
        return InducedValues(self.data, fitted.table, lessons, columns, tariff, lost, self.largest)
