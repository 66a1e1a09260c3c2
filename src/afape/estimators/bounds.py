"""Bounds by any method, for policies that want sets that the records do not support.

`run.reduce` applies a method twice, at the least and at the largest cost; this module joins the two answers. `endings`
has the runs that end at such a set. `walk.columns` has their least and largest costs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..propensity.weights import View
from .amounts import joined
from .answer import Answer, Costs, PartAmounts, Reduction
from .endings import endings_of
from .evidence import Evidence
from .flows import Flows
from .weighted import why_nothing

__all__ = ["Bounded"]


@dataclass(frozen=True, eq=False)
class Bounded:
    """Lower and upper bound by one method.

    Parameters
    ----------
    least, largest : Reduction
        The method with runs into unsupported sets at their least and at their largest cost.
    evidence : Evidence
        Evidence of ``least``.
    extrapolated : Reduction or None
        The method without unsupported sets; None if nothing can be extrapolated.
    """

    least: Reduction
    largest: Reduction
    evidence: Evidence
    extrapolated: Reduction | None = None

    def answer(self) -> Answer:
        """Return bounds of every target; no answer if no row can be used."""
        data, view = self.evidence.data, self.evidence.view
        assert view is not None
        stopped, unsupported = self._shares
        if stopped <= 0 and view.adjust.all():  # such bounds would follow from labels and prices alone
            few = f"too few rows have every group recorded ({int(data.complete.sum())} of {len(data)})"
            return Answer(reason=few if data.complete.any() else why_nothing(view), unsupported=unsupported)
        least, largest = self.least.answer(), self.largest.answer()
        if least.costs is None or largest.costs is None:
            return replace(least, costs=None, reason=least.reason or largest.reason)
        further = None if self.extrapolated is None else self.extrapolated.answer().costs
        blocks = [costs.amounts for costs in (least.costs, largest.costs, further) if costs is not None]
        costs = Costs(joined(*blocks), least.costs.tariff, unsupported)
        return replace(least, costs=costs, unsupported=unsupported, reduction=self)

    def parts(self) -> PartAmounts | None:
        """Return the parts of the lower bound, of the upper bound, and of the extrapolated estimate."""
        least, largest = self.least.parts(), self.largest.parts()
        if least is None or largest is None:
            return None
        further = None if self.extrapolated is None else self.extrapolated.parts()
        blocks = [parts.amounts for parts in (least, largest, further) if parts is not None]
        return PartAmounts(joined(*blocks), least.columns, self._shares[1])

    @cached_property
    def _shares(self) -> tuple[float, float]:
        """Share of the runs that stop because the policy wants to, and share that ends before an unsupported set."""
        evidence, row_weight = self.evidence, self.evidence.fitted.row_weight
        view: View | None = evidence.view
        assert view is not None
        stopped = ended = 0.0
        for table in evidence.fitted.tables:
            weighted = view.weigh(table)
            flows = Flows.of(table, endings_of(table, evidence.data, view))
            weight = np.zeros(len(table.row))
            weight[weighted.lines] = weighted.weight * row_weight[table.row[weighted.lines]]
            stopped += float(weight @ flows.own)
            ended += float(weight @ (flows.stop - flows.own))
        return stopped / row_weight.sum(), ended / row_weight.sum()
