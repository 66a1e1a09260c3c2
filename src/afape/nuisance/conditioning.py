"""What the probability of being recorded is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..arrays import Bools, Floats, Ints, every
from ..data import Retrospective

__all__ = ["Conditioning", "OddsBlock", "OddsTerm"]


class OddsTerm(NamedTuple):
    """Log odds of groups being recorded rather than missing, learned on rows that have the groups ``rows``."""

    groups: tuple[int, ...]
    regressors: tuple[int, ...]
    label: bool
    rows: tuple[int, ...]


class OddsBlock(NamedTuple):
    """P(R_B = 1 | x, R_E = 1) by a regression (one term), or by odds ratios of the indicators ``together``."""

    groups: tuple[int, ...]
    together: tuple[int, ...]
    terms: tuple[OddsTerm, ...]


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
        How P(R_gaps = 1 | given) is learned; the blocks' product.
    """

    groups: Bools
    label: bool
    gaps: Bools
    blocks: tuple[OddsBlock, ...] = ()

    def columns(self, data: Retrospective) -> Ints:
        """Columns of the given groups."""
        return np.flatnonzero(self.groups[data.column_group])

    def matrix(self, data: Retrospective) -> Floats:
        """What to condition on, a line a row: columns of the given groups, then the label's classes but the first."""
        return regressors(data, self.groups, self.label)

    def usable(self, data: Retrospective) -> Bools | None:
        """Rows that have everything given recorded; None where all rows do."""
        return every(data.recorded[:, self.gaps]) if self.gaps.any() else None


def regressors(data: Retrospective, groups: Bools, label: bool) -> Floats:
    """Columns of groups, and the label's classes but the first."""
    columns = data.values[:, np.flatnonzero(groups[data.column_group])]
    if not label:
        return columns
    return np.column_stack([columns, data.labels[:, None] == np.arange(1, len(data.classes))])
