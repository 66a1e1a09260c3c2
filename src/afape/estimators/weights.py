"""Inverse-probability weights of the states of a walk."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..arrays import Bools, Floats, Ints, every
from ..nuisance import BoundPropensity
from ..support import SupportMap
from ..walk import WalkTable

__all__ = ["View", "WeightedStates"]


class WeightedStates(NamedTuple):
    """The states that a view can use, with their weights; lines point into the walk's table."""

    lines: Ints
    sets: Bools  # (u, G) sets S + adj, one a set S
    set_of: Ints  # (m,) place of each line's set
    raw: Floats  # (m,) P(R >= S + adj | given) before clipping
    weight: Floats  # (m,) its inverse, after clipping
    clipped: Bools  # (m,)

    def only(self, keep: Bools) -> WeightedStates:
        """A part of the states."""
        if keep.all():
            return self
        return WeightedStates(
            self.lines[keep], self.sets, self.set_of[keep], self.raw[keep], self.weight[keep], self.clipped[keep]
        )


@dataclass(frozen=True, eq=False)
class View:
    r"""Which rows may speak, and how loudly.

    The weight of a state S is :math:`1(R \ge S + adj) / P(R \ge S + adj \mid given)`. With ``adjust`` empty this is
    the semi-offline view (IPW-Semi), with all groups the missing-data view (IPW-Miss), and between them, with
    the groups that recording depends on where these have gaps, the hybrid view (IPW-Semi-Miss).

    States whose set is unsupported have no say. Where that goes for the start of a row, the row itself stands in, at
    weight 1, for runs of which nothing but bounds is known (`Endings`).
    """

    propensity: BoundPropensity
    recorded: Bools  # (n, G)
    adjust: Bools  # (G,)
    unsupported: SupportMap = field(default_factory=SupportMap)
    refusal: str = ""  # why there can be no answer in this view

    def lacks(self, table: WalkTable) -> Bools:
        """States whose set is unsupported."""
        return self.unsupported.lacks(table.row, table.sets | self.adjust, table.set_index)

    def weigh(self, table: WalkTable) -> WeightedStates:
        """Weights of the states in this table."""
        sets, index = table.sets | self.adjust, table.set_index
        if self.adjust.any():
            usable = every(self.recorded | ~self.adjust)
            lines = np.flatnonzero(usable[table.row])
            index = index[lines]
        else:
            lines = np.arange(len(table.row))
        if self.unsupported:
            lacks = self.lacks(table)
            roots = np.flatnonzero(lacks & (table.depth == 0))
            lines = np.concatenate([lines[~lacks[lines]], roots])
            index = table.set_index[lines]
            index[len(lines) - len(roots) :] = len(sets)
            sets = np.concatenate([sets, np.zeros((1, sets.shape[1]), dtype=bool)])  # of probability 1
        raw = self.propensity.probability(table.row[lines], sets, index)
        clipped = raw < self.propensity.min_propensity
        used = np.where(clipped, self.propensity.min_propensity, raw)
        with np.errstate(divide="ignore"):  # probability 0 without a floor: the estimator says that it has no answer
            weight = 1.0 / used
        return WeightedStates(lines, sets, index, raw, weight, clipped)
