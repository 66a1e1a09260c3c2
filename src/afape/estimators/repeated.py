"""Means of estimates that were repeated with other folds and donors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from .amounts import Amounts, InfluenceAmounts, ReplicatedAmounts
from .answer import Answer, PartAmounts, Reduction

__all__ = ["Repeated"]


@dataclass(frozen=True, eq=False)
class Repeated:
    r"""The mean of one method over several repeats on the same rows.

    Each repeat deals the rows into other folds and draws from other donors. With values :math:`v_r` and influence values
    :math:`\phi_{ri}` of repeat r, the value is :math:`\frac{1}{R} \sum_r v_r` and the influence value of row i is
    :math:`\frac{1}{R} \sum_r \phi_{ri}`. Figures about weights are those of the first repeat.

    Parameters
    ----------
    repeats : sequence of Reduction
        The method, applied to every repeat.
    """

    repeats: Sequence[Reduction]

    @cached_property
    def _answers(self) -> list[Answer]:
        return [one.answer() for one in self.repeats]

    def answer(self) -> Answer:
        """Return the mean of the costs, or the first reason why there is none."""
        first = self._answers[0]
        refused = next((found for found in self._answers if found.costs is None), None)
        if refused is not None or first.costs is None:
            return refused or first
        amounts = _mean([found.costs.amounts for found in self._answers if found.costs is not None])
        return replace(first, costs=replace(first.costs, amounts=amounts), reduction=self)

    def parts(self) -> PartAmounts | None:
        """Return the mean of the parts; None if a repeat has none."""
        found = [parts for one in self.repeats if (parts := one.parts()) is not None]
        if len(found) < len(self.repeats):
            return None
        return replace(found[0], amounts=_mean([parts.amounts for parts in found]))


def _mean(found: Sequence[Amounts]) -> Amounts:
    """Return the mean amounts; without influence values if a repeat has none."""
    values, first = np.mean([one.values for one in found], axis=0), found[0]
    influence = [one.influence for one in found if one.influence is not None]
    assert isinstance(first, InfluenceAmounts | ReplicatedAmounts)
    if len(influence) < len(found):
        return ReplicatedAmounts(values, first.sample)
    return InfluenceAmounts(values, np.mean(influence, axis=0), first.sample)
