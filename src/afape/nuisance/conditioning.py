"""What the probability of being recorded is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..arrays import Bools, Floats, Ints, every
from ..data import Retrospective

__all__ = ["Conditioning", "OddsBlock", "OddsTerm", "OddsWeight", "regressors"]


class OddsTerm(NamedTuple):
    """Log odds of groups being all recorded rather than all missing, learned on rows that have the groups ``rows``."""

    groups: tuple[int, ...]
    regressors: tuple[int, ...]
    label: bool
    rows: tuple[int, ...]
    indicators: tuple[int, ...] = ()  # groups whose being recorded is a regressor
    absent: tuple[int, ...] = ()  # groups missing in these rows
    having: tuple[int, ...] = ()  # groups recorded too in rows with the outcome
    lacking: tuple[int, ...] = ()  # groups recorded too in rows without


class OddsWeight(NamedTuple):
    """Rows weigh the probability of a block or one over it: all of them, or those with the outcome."""

    block: OddsBlock
    inverse: bool
    everyone: bool


class OddsBlock(NamedTuple):
    """P(R_B = 1 | x, R_E = 1) by a regression (one term), or by odds ratios of the indicators ``together``."""

    groups: tuple[int, ...]
    together: tuple[int, ...]
    terms: tuple[OddsTerm, ...]
    weights: tuple[OddsWeight, ...] = ()


@dataclass(frozen=True, eq=False)
class Conditioning:
    """The groups X_adj (X_o, if always recorded) and perhaps the label, given which recording is independent of all else.

    Attributes
    ----------
    groups : ndarray of bool, shape (G,)
        Groups that recording depends on.
    label : bool
        Whether it depends on the label too.
    gaps : ndarray of bool, shape (G,)
        Those of the groups that are not always recorded.
    blocks : tuple of OddsBlock
        How P(R_gaps = 1 | given) is learned; the blocks' product. Where it depends on further indicators too
        (``beside``), one over it still has mean one given the groups, rows without the gaps counted as 0.
    """

    groups: Bools
    label: bool
    gaps: Bools
    blocks: tuple[OddsBlock, ...] = ()

    @property
    def beside(self) -> bool:
        """Whether the blocks also depend on the indicators of groups not given."""
        return any(not self.gaps[g] for block in self.blocks for term in block.terms for g in term.indicators)

    def columns(self, data: Retrospective) -> Ints:
        """Columns of the given groups."""
        return np.flatnonzero(self.groups[data.column_group])

    def matrix(self, data: Retrospective) -> Floats:
        """What to condition on, a line a row: columns of the given groups, then the label's classes but the first."""
        return regressors(data, self.groups, self.label)

    def searched(self, data: Retrospective) -> tuple[tuple[str, ...], Floats]:
        """Names and columns in which regions are told: as `matrix`, but with every class where there are several."""
        names = [data.columns[j] for j in self.columns(data)]
        values = regressors(data, self.groups, False)
        if self.label:
            codes = np.arange(1 if len(data.classes) == 2 else 0, len(data.classes))
            names += [f"{data.problem.label}={data.classes[c]}" for c in codes]
            values = np.column_stack([values, data.labels[:, None] == codes])
        return tuple(names), values

    def without(self, group: int | None) -> Conditioning:
        """The same without one of the groups, or without the label, as a regressor; gaps still count as recorded together."""
        groups = self.groups.copy()
        if group is not None:
            groups[group] = False
        blocks = tuple(_without(block, group) for block in self.blocks)
        return Conditioning(groups, self.label and group is not None, self.gaps, blocks)

    def usable(self, data: Retrospective) -> Bools | None:
        """Rows that have everything given recorded; None where all rows do."""
        return every(data.recorded[:, self.gaps]) if self.gaps.any() else None


def _without(block: OddsBlock, group: int | None) -> OddsBlock:
    terms = tuple(
        term._replace(
            regressors=tuple(g for g in term.regressors if g != group), label=term.label and group is not None
        )
        for term in block.terms
    )
    weights = tuple(weight._replace(block=_without(weight.block, group)) for weight in block.weights)
    return block._replace(terms=terms, weights=weights)


def regressors(data: Retrospective, groups: Bools, label: bool) -> Floats:
    """Columns of groups, and the label's classes but the first."""
    columns = data.values[:, np.flatnonzero(groups[data.column_group])]
    if not label:
        return columns
    return np.column_stack([columns, data.labels[:, None] == np.arange(1, len(data.classes))])
