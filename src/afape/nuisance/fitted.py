"""The fitted object: everything that the estimates of one policy are a function of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..arrays import Floats, Ints
from ..data import Retrospective
from ..missingness.assumptions import Conditioning
from ..walk import PartColumns, Tables, WalkTable
from .values.induction import ActionValues, Lessons, PartValues, TableValues
from .values.known import KnownValues
from .values.models import LearnedValues
from .weights import View
from .worst_case import Endings

__all__ = ["Evidence", "Fitted", "Recipe", "ViewKey"]

ViewKey = tuple[str, str]  # "sets" or "complete rows", and the name of the propensity
_ValueKey = tuple[ViewKey | None, bool | None]  # the view whose runs end early, and whether at the largest cost


@dataclass(frozen=True, eq=False)
class Recipe:
    """How estimates are made of what is fitted.

    Parameters
    ----------
    values : LearnedValues or KnownValues
        Where action values come from.
    normalize : bool
        Whether to divide by mean weights.
    acquisition_weight : {"before", "after"}
        Weight of a price: that before the decision, or after it.
    fold : ndarray of int, shape (n,)
        Fold of each row.
    averaged : ndarray of shape (n,), or None for all rows
        1 for rows that are averaged over, 0 for rows that are only learned from.
    own : tuple of str
        Names of the user's own outcomes.
    """

    values: LearnedValues | KnownValues
    normalize: bool
    acquisition_weight: str
    fold: Ints
    averaged: Floats | None
    own: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Fitted:
    """Records, walk, views with their propensities, action values and row weights of one policy.

    Attributes
    ----------
    data : Retrospective
        Records.
    recipe : Recipe
        How estimates are made.
    conditioning : Conditioning
        What recording depends on.
    tables : Tables
        The walk over what is recorded.
    runs : dict
        Costs of plain runs of the policy, by walk: see `afape.walk.runs`.
    views : dict
        Views that estimators use.
    valued : tuple
        Those of the views in which action values are needed.
    drawn : ndarray of shape (n,), optional
        How often each row was drawn in a bootstrap replicate.
    table : WalkTable or None
        All rows that have action values, in one table.
    values : dict
        Action values of ``table``: plain, or with runs into unsupported sets at their least or largest cost.
    part_values : dict
        The same of the parts of the costs; None where they are not known.
    fallbacks : int
        Action values that had no row like them to learn from.
    parted : bool
        Whether action values of the parts of the costs are learned too.
    """

    data: Retrospective
    recipe: Recipe
    conditioning: Conditioning
    tables: Tables
    runs: Mapping[str, Any]
    views: Mapping[ViewKey, View]
    valued: tuple[ViewKey, ...]
    drawn: Floats | None = None
    table: WalkTable | None = None
    values: Mapping[_ValueKey, TableValues] = field(default_factory=dict)
    part_values: Mapping[_ValueKey, PartValues | None] = field(default_factory=dict)
    fallbacks: int = 0
    parted: bool = True

    def learn(self) -> Fitted:
        """The same with its action values, where they are needed."""
        if not self.valued:
            return self
        table = self._valued_table() if self.table is None else self.table
        known = isinstance(self.recipe.values, KnownValues)
        values: dict[_ValueKey, TableValues] = {}
        parts: dict[_ValueKey, PartValues | None] = {}
        fallbacks = 0
        for key in self.valued:
            unsupported = bool(self.views[key].unsupported)
            if unsupported:
                for largest in (False, True):
                    ends = Endings(self.data, self.views[key], largest)
                    found = self._values(table, ends, self.columns(True))
                    values[key, largest], fallbacks, parts[key, largest] = found
            if (known or not unsupported) and (None, None) not in values:
                values[None, None], fallbacks, parts[None, None] = self._values(table, None, self.columns(False))
        return replace(self, table=table, values=values, part_values=parts, fallbacks=fallbacks)

    def columns(self, open: bool) -> PartColumns:
        """The parts that costs are made of; ``open`` where runs may end in unsupported sets."""
        return PartColumns.of(self.data, len(self.recipe.own), open)

    def refit(self, drawn: Floats) -> Fitted:
        """The replicate in which rows were drawn this often: propensities and action values learned again."""
        again = {p: p.refit(drawn) for p in dict.fromkeys(view.propensity for view in self.views.values())}
        views = {key: replace(view, propensity=again[view.propensity]) for key, view in self.views.items()}
        return replace(self, views=views, drawn=drawn).learn()

    def reweight(self, drawn: Floats) -> Fitted:
        """The replicate in which rows were drawn this often, with propensities and action values as they are."""
        return replace(self, drawn=drawn)

    def evidence(self, key: ViewKey | None, valued: bool = False, largest: bool | None = None) -> Evidence:
        """What a method reads in a view: at the least or largest cost of what is unsupported, or plainly."""
        view = None if key is None else self.views[key]
        ends = None if view is None or largest is None else Endings(self.data, view, largest)
        place: _ValueKey = (None, None) if largest is None else (key, largest)
        values = self.values[place] if valued else None
        parts = self.part_values.get(place) if valued else None
        return Evidence(self, view, ends, values, key, parts)

    @property
    def row_weight(self) -> Floats:
        """Weight of each row in every mean."""
        used = np.ones(len(self.data)) if self.recipe.averaged is None else self.recipe.averaged
        return used if self.drawn is None else self.drawn * used

    def _valued_table(self) -> WalkTable:
        """All rows that have what is given recorded, and those that nothing but bounds is known of."""
        usable, table = self.conditioning.usable(self.data), self.tables.whole()
        if usable is None:
            return table
        roots = table.at_depth_zero()
        kept = usable.copy()
        for key in self.valued:
            kept[roots.row[self.views[key].lacks(roots)]] = True
        return table.without(np.flatnonzero(~kept))

    def _values(
        self, table: WalkTable, ends: Endings | None, parts: PartColumns
    ) -> tuple[TableValues, int, PartValues | None]:
        recipe, given = self.recipe, self.conditioning
        columns = given.columns(self.data)
        if isinstance(recipe.values, KnownValues):
            known = recipe.values.values(self.data, table, columns)
            lost = None if ends is None else ends.fixed(table).edges
            found = recipe.values.part_values(self.data, table, columns, parts, lost) if self.parted else None
            return known if ends is None else ends.bound(known, table), 0, found
        averaged = None if recipe.averaged is None else recipe.averaged > 0
        label = recipe.values.augment_label or given.label  # where recording depends on the label, values have to
        learned = LearnedValues(recipe.values.regressor, label)
        lessons = Lessons(columns, recipe.fold, learned, self.drawn, averaged, given.usable(self.data))
        learned_too = parts if self.parted else None
        model = ActionValues(self.data, table, lessons, None if ends is None else ends.fixed(table), learned_too)
        values = model.values()
        values = values if ends is None else ends.started(values, table)
        return values, model.fallbacks, model if self.parted else None


@dataclass(frozen=True, eq=False)
class Evidence:
    """What one method reads: the fitted object in one view.

    Attributes
    ----------
    fitted : Fitted
        Everything.
    view : View or None
        The view of the method; None where it weighs nothing.
    ends : Endings or None
        What runs into unsupported sets cost, at the least or at the most.
    values : TableValues or None
        Action values, where the method needs them.
    key : tuple or None
        Which view it is.
    part_values : PartValues or None
        Action values of the parts of the costs, where they are known.
    """

    fitted: Fitted
    view: View | None
    ends: Endings | None = None
    values: TableValues | None = None
    key: ViewKey | None = None
    part_values: PartValues | None = None

    @property
    def data(self) -> Retrospective:
        """The records."""
        return self.fitted.data

    @property
    def recipe(self) -> Recipe:
        """How estimates are made."""
        return self.fitted.recipe

    @property
    def tables(self) -> Iterable[WalkTable]:
        """The walk over what is recorded; one table where there are action values."""
        return self.fitted.tables if self.values is None or self.fitted.table is None else (self.fitted.table,)

    @property
    def components(self) -> Any:
        """Components of the policy's costs in this view, at the least or largest cost of what is unsupported."""
        return self.fitted.runs["components"][self.key, None if self.ends is None else self.ends.largest]

    @property
    def columns(self) -> PartColumns:
        """The parts that costs are made of."""
        return self.fitted.columns(self.ends is not None)

    @property
    def replicated(self) -> bool:
        """Whether this is a bootstrap replicate, of which only the value matters."""
        return self.fitted.drawn is not None
