"""Normalisers: mean weights before every decision and at the end. Modules `booking` and `weighted` divide by them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from .._arrays import Floats, Ints, tally, unique_sets
from ..propensity.weights import WeightedStates
from ..walk.table import WalkTable
from .evidence import Evidence
from .flows import Flows

__all__ = ["Normalisers", "WeighedTable", "normalisers_of", "weighed"]


class WeighedTable(NamedTuple):
    """A table with its flow, and with the weights of its states in rows of positive row weight."""

    table: WalkTable
    weighted: WeightedStates
    flows: Flows


def weighed(evidence: Evidence, table: WalkTable, flows: Flows) -> WeighedTable:
    """Compute the weights of the states of a table in the view of the evidence."""
    assert evidence.view is not None
    weighted = evidence.view.weigh(table)
    return WeighedTable(table, weighted.only(evidence.fitted.row_weight[table.row[weighted.lines]] > 0), flows)


class Normalisers(NamedTuple):
    """Result of the first pass over the tables: mean weights, and figures about the weights."""

    before: Floats  # (T + 1,) mean weight before each decision, and last the mean final weight
    clipped: int
    largest_weight: float
    bounded: bool  # False if a recorded set has probability 0


def normalisers_of(tables: Iterable[WeighedTable], row_weight: Floats) -> Normalisers:
    """Sum the weighted flow of all tables by depth."""
    clipped, largest, bounded = 0, 0.0, True
    reach, stop = np.zeros(1), np.zeros(1)
    for table, weighted, flows in tables:
        if len(weighted.lines) == 0:
            continue
        if not np.isfinite(weighted.weight).all():
            return Normalisers(np.full(2, np.nan), clipped, np.inf, False)
        lines, row = weighted.lines, table.row[weighted.lines]
        weight, depth = weighted.weight * row_weight[row], table.depth[lines]
        n_depths = max(int(depth.max()) + 1, len(reach))
        reach = _continued(reach, depth, weight * flows.reach[lines], n_depths)
        stop = _continued(stop, depth, weight * flows.stop[lines], n_depths)
        clipped += _n_clipped(weighted, row)
        largest = max(largest, float(weighted.weight.max()))
    stopped = np.concatenate([[0.0], np.cumsum(stop)])
    before = (np.append(reach, 0.0) + stopped) / row_weight.sum()
    return Normalisers(before, clipped, largest, bounded)


def _continued(sums: Floats, index: Ints, values: Floats, n: int) -> Floats:
    """Add values by index to earlier sums, (n,), one after the other, so that rounding does not depend on chunks."""
    return tally(np.concatenate([np.arange(len(sums)), index]), np.concatenate([sums, values]), n)


def _n_clipped(weighted: WeightedStates, row: Ints) -> int:
    """Count pairs of row and set with a clipped propensity. Sets that differ only in groups to adjust for count once."""
    if not weighted.clipped.any():
        return 0
    kinds = unique_sets(weighted.sets)[1]
    pairs = np.column_stack([row, kinds[weighted.set_of]])[weighted.clipped]
    return len(np.unique(pairs, axis=0))
