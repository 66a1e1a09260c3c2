"""DM-Semi and DM-Semi-Miss: the direct method, the mean state value at the start over all rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..walk.columns import Columns, added
from ..walk.table import WalkTable
from .amounts import ReplicatedAmounts
from .answer import Answer, PartAmounts
from .booking import Booking, Lines
from .endings import endings_of
from .evidence import Evidence
from .flows import Flows
from .normalisers import weighed
from .weighted import Weighted

__all__ = ["DirectMethod", "direct_method"]


def direct_method(evidence: Evidence) -> DirectMethod:
    """Apply DM in the view of the evidence."""
    assert evidence.fitted.table is not None
    assert evidence.view is not None
    table = evidence.fitted.table.at_depth_zero()
    ends = None if evidence.largest is None else endings_of(table, evidence.data, evidence.view)
    once = np.ones(len(table.row))  # every row starts once, and its weight at the start is its final weight
    roots = (weighed(evidence, table, replace(Flows.of(table, ends), reach=once, stop=once)),)
    return DirectMethod(evidence, Weighted(evidence, StartValues(evidence), evidence.recipe.normalize, tables=roots))


@dataclass(frozen=True, eq=False)
class StartValues:
    r"""V(root) of every row, with the weight of the root.

    .. math:: V(S_0) = \sum_a \pi(a \mid S_0) \, Q(S_0, a)
    """

    evidence: Evidence

    def lines(self, table: WalkTable, flows: Flows, columns: Columns) -> Iterator[Lines]:
        """Yield decisions, stops and values of edges at the starts; ``table`` has only the starts."""
        whole, values = self.evidence.fitted.table, self.evidence.action_values(columns)
        assert whole is not None
        states, zero = np.arange(len(table.row)), np.zeros(len(table.row), dtype=np.intp)
        learned = values.stops(np.flatnonzero(whole.depth == 0))
        stops = columns.stops(table, states) if learned is None else learned
        yield Lines(columns.decisions(table), (Booking(flows.decided, states, zero),))
        yield Lines(stops, (Booking(flows.decided * table.stop, states, zero),))
        edges, state = np.flatnonzero(whole.depth[whole.edge_state] == 0), table.edge_state
        wanted = Booking(flows.decided[state] * table.edge_probability, state, zero[state])
        yield Lines(values.edges(edges), (wanted,))
        for left, stop, at, flow in flows.whole(columns):
            yield Lines(added(left, stop), (Booking(flow, at, zero[at]),))


@dataclass(frozen=True, eq=False)
class DirectMethod:
    r"""Mean over all rows of V(root) (von Kleist et al. 2023, estimator DM-Semi).

    If the groups to adjust for have gaps, V is known only in rows that have them, and the mean is weighted:
    :math:`\frac1n \sum_i \frac{1(R_{adj} = 1)}{P(R_{adj} = 1 | X_{adj})} V_i(root)`, normalised by the mean weight. The
    estimate then depends on the propensity of adj as well as on the values.

    Theory gives no influence values, because the errors of the regressions do not average out. Only the refitting bootstrap
    gives standard errors and intervals.
    """

    evidence: Evidence
    weighted: Weighted

    def answer(self) -> Answer:
        """Return costs without standard errors; the bootstrap adds them."""
        found = self.weighted.answer()
        if found.costs is None:
            return found
        costs = replace(found.costs, amounts=_without_errors(found.costs.amounts.values, self.evidence))
        rows = float((self.evidence.fitted.row_weight > 0).sum())
        ess = found.ess if self.weighted.view.adjust.any() else rows
        return replace(found, costs=costs, ess=ess, error_method="none without bootstrap", reduction=self)

    def parts(self) -> PartAmounts | None:
        """Return parts of the costs without standard errors."""
        found = self.weighted.parts()
        return None if found is None else replace(found, amounts=_without_errors(found.amounts.values, self.evidence))


def _without_errors(values: np.ndarray, evidence: Evidence) -> ReplicatedAmounts:
    return ReplicatedAmounts(values, evidence.sample)
