"""DM-Semi and DM-Semi-Miss: the direct method, the mean state value at the start over all rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from .._arrays import effective_size
from ..action_values.known import KnownValues
from ..walk.columns import Columns, added
from ..walk.table import WalkTable
from .amounts import Amounts
from .answer import Answer, Costs, PartAmounts
from .booking import Booking, Lines, Valued
from .endings import endings_of
from .evidence import Evidence
from .flows import Flows
from .normalisers import weighed
from .weighted import Booked, Included, Weighted

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
        starts = np.flatnonzero(whole.depth == 0)
        learned, stopped = values.stops(starts), Booking(flows.decided * table.stop, states, zero)
        yield Lines(columns.decisions(table), (Booking(flows.decided, states, zero),))
        if learned is None:  # Q_{S,stop} is C_S itself
            yield Lines(columns.stops(table, states), (stopped,))
        else:
            yield Lines(learned, (stopped,), Valued(stops=starts))
        edges, state = np.flatnonzero(whole.depth[whole.edge_state] == 0), table.edge_state
        wanted = Booking(flows.decided[state] * table.edge_probability, state, zero[state])
        yield Lines(values.edges(edges), (wanted,), Valued(edges=edges))
        for left, stop, at, flow in flows.whole(columns):
            yield Lines(added(left, stop), (Booking(flow, at, zero[at]),))


@dataclass(frozen=True, eq=False)
class DirectMethod:
    r"""Mean over all rows of V(root) (von Kleist et al. 2023, estimator DM-Semi).

    If the groups to adjust for have gaps, V is known only in rows that have them, and the mean is weighted:
    :math:`\frac1n \sum_i \frac{1(R_{adj} = 1)}{P(R_{adj} = 1 | X_{adj})} V_i(root)`, normalised by the mean weight. The
    estimate then depends on the propensity of adj as well as on the values.

    Influence values are those of the weighted mean plus the error of the ridge regressions (`learning_errors`). For other
    regressors theory gives none, because their errors do not average out; only the refitting bootstrap gives standard errors
    and intervals.
    """

    evidence: Evidence
    weighted: Weighted

    @property
    def _adjusts(self) -> bool:
        """True if rows are weighted, because the groups to adjust for have gaps."""
        return bool(self.weighted.view.adjust.any())

    def _booked(self, columns: Columns) -> Booked:
        booked = self.weighted.booked(columns)
        return booked if self._adjusts else booked._replace(included=Included(None, booked.included.values))

    @property
    def _has_theory(self) -> bool:
        """False if action values are learned by anything but ridge regression."""
        values = self.evidence.recipe.values
        return isinstance(values, KnownValues) or values.regressor.linear

    def _amounts(self, booked: Booked) -> Amounts:
        return (booked if self._has_theory else booked._replace(influence=None)).amounts(self.evidence.sample)

    def answer(self) -> Answer:
        """Return costs, without standard errors if the regressor is not a ridge regression; the bootstrap adds them."""
        if self.weighted.reason:
            return Answer(reason=self.weighted.reason)
        columns = self.evidence.cost_columns
        booked = self._booked(columns)
        found = replace(
            self.weighted.figures(booked), costs=Costs(self._amounts(booked), columns.tariff), reduction=self
        )
        if not self._has_theory:
            found = replace(found, error_method="none without bootstrap")
        return found if self._adjusts else replace(found, ess=effective_size(self.evidence.fitted.row_weight, None))

    def parts(self) -> PartAmounts | None:
        """Return parts of the costs; they have standard errors if the costs have."""
        columns = self.evidence.part_columns
        return None if columns is None else PartAmounts(self._amounts(self._booked(columns)), columns)
