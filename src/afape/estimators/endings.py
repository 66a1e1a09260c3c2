"""Runs that want an unsupported set end before it. Only bounds of their further cost are known."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._arrays import Bools, Floats, Ints, tally
from ..data.retrospective import Retrospective
from ..propensity.unsupported import unsupported_edges
from ..propensity.weights import View
from ..walk.table import WalkTable

__all__ = ["Endings", "endings_of"]


class Endings(NamedTuple):
    r"""Flow that ends because the next set is unsupported, by state and by edge.

    In a supported set S, the policy wants a, but S + a is unsupported. The run ends in S. Further acquisitions cost at least
    0 and at most the prices of the groups outside S + a. The misclassification cost lies between the least and the largest
    entry in the cost matrix for the true label. With

    .. math:: m = \frac1n \sum_i \sum_{S\ supported} r_S w_S \sum_{a:\ S + a\ unsupported} \pi(a \mid S)

    where the inner sum is over all edges, recorded or not, each bound is the estimate of a policy that stops in S. It has
    the formula and the influence values of any other estimate. If it is normalised, its divisor (the mean final weight)
    includes m.
    """

    flow: Floats  # (s,) r_S times the sum of pi(a | S) over a with S + a unsupported
    whole: Bools  # (s,) starts that are unsupported, so that the run ends at once
    edges: Ints  # (l,) edges into unsupported sets, except those of such starts
    edge_flow: Floats  # (l,) flow along these edges, if they were supported


def endings_of(table: WalkTable, data: Retrospective, view: View) -> Endings:
    """Compute the flow that ends in each state of the table, because of the unsupported sets of the view."""
    edges = np.flatnonzero(unsupported_edges(table, data, view.unsupported, view.adjust))
    state = table.edge_state[edges]
    flow = table.reach[state] * table.edge_probability[edges]
    whole = (table.depth == 0) & view.lacks(table)
    by_state = np.where(whole, 1.0, tally(state, flow, len(table.row)))
    kept = ~whole[state]
    return Endings(by_state, whole, edges[kept], flow[kept])
