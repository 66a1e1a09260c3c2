"""Weights of states: the inverse probability that a set is recorded, in a view that says which rows are used."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from .._arrays import Bools, Floats, Ints, every, lines_of
from ..walk.table import WalkTable
from .binding import BoundPropensity
from .probabilities import FactorLines, PatternLines
from .unsupported import SupportMap

__all__ = ["View", "WeightedStates"]


class WeightedStates(NamedTuple):
    """The states of a table that a view can use, with their weights."""

    lines: Ints  # (m,) place of each state in the table
    sets: Bools  # (u, G) sets S + adj, one per set S
    set_of: Ints  # (m,) place of each state's set
    raw: Floats  # (m,) P(R >= S + adj | given) before clipping
    weight: Floats  # (m,) its inverse, after clipping
    clipped: Bools  # (m,)
    made_of: FactorLines | PatternLines = FactorLines()  # factors or patterns of the probabilities, for standard errors

    def only(self, keep: Bools) -> WeightedStates:
        """Return the kept states."""
        if keep.all():
            return self
        lines, set_of, made_of = self.lines[keep], self.set_of[keep], self.made_of.only(keep)
        return WeightedStates(lines, self.sets, set_of, self.raw[keep], self.weight[keep], self.clipped[keep], made_of)


@dataclass(frozen=True, eq=False)
class View:
    r"""Which rows are used, and the weights of their states.

    The weight of a state S is :math:`1(R \ge S + adj) / P(R \ge S + adj \mid given)`. If ``adjust`` is empty, this is the
    semi-offline view (IPW-Semi). If it has all groups, it is the missing-data view (IPW-Miss). If it has the groups with
    gaps that recording depends on, it is the hybrid view (IPW-Semi-Miss).

    States whose set is unsupported are not used. If the start of a row is unsupported, the row represents only itself, with
    weight 1, and its runs only have bounds (`Endings`).
    """

    propensity: BoundPropensity
    recorded: Bools  # (n, G)
    adjust: Bools  # (G,)
    unsupported: SupportMap = field(default_factory=SupportMap)
    refusal: str = ""  # why this view gives no estimate

    def lacks(self, table: WalkTable) -> Bools:
        """True for states whose set is unsupported, (s,)."""
        return self.unsupported.lacks(table.row, table.sets | self.adjust, table.set_index)

    def weigh(self, table: WalkTable) -> WeightedStates:
        """Compute the weights of the states in this table."""
        sets, index = table.sets | self.adjust, table.set_index
        lines = np.arange(len(table.row))
        if self.adjust.any():
            lines = np.flatnonzero(every(self.recorded | ~self.adjust)[table.row])
            index = index[lines]
        if self.unsupported:
            lacks = self.lacks(table)
            roots = np.flatnonzero(lacks & (table.depth == 0))
            lines = np.concatenate([lines[~lacks[lines]], roots])
            index = table.set_index[lines]
            index[len(lines) - len(roots) :] = len(sets)
            sets = np.concatenate([sets, np.zeros((1, sets.shape[1]), dtype=bool)])  # of probability 1
        by_set = table.set_lines if index is table.set_index else lines_of(index, len(sets))
        raw, made_of = self.propensity.probabilities(table.row[lines], sets, by_set)
        clipped = raw < self.propensity.min_propensity
        with np.errstate(divide="ignore"):  # probability 0 with min_propensity 0: the estimators give no estimate
            weight = 1.0 / np.maximum(raw, self.propensity.min_propensity)
        return WeightedStates(lines, sets, index, raw, weight, clipped, made_of)
