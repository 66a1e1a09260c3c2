"""The verdict on a suspicious region: unsupported, undecided, or low by chance."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from itertools import product

import numpy as np

from .._arrays import Bools
from .boxes import Box, RegionScan
from .intervals import Axis
from .smoothness import contradicts_smoothness

__all__ = ["RegionVerdict", "judge"]


class RegionVerdict(Enum):
    """What the records say about a region in which few rows have a set."""

    LIKE_NEIGHBOURS = "rows beside the region are recorded as seldom"
    CHANCE = "a smooth probability explains the region, and rows beyond it are recorded more often"
    UNDECIDED = "recording falls towards the region, and it may go on there"
    UNSUPPORTED = "the set is not recorded there"


def judge(scan: RegionScan, box: Box, n_tries: float, others: Sequence[Axis]) -> RegionVerdict:
    """Judge a box whose rows contradict a healthy probability; ``n_tries`` boxes were searched.

    ``others`` are columns that a smooth probability may depend on, apart from those of the box.

    The box is unsupported if it has fewer recorded rows than its neighbours and if one of two things is true. Either no
    smooth probability explains its counts. Or the rows in it and beyond it, in the direction in which recording falls,
    contradict four times the threshold: a smooth probability that falls can only be smaller there. Both tests allow for
    the number of boxes searched, whatever the number of rows.
    """
    if not scan.stands_out(box, n_tries):
        return RegionVerdict.LIKE_NEIGHBOURS
    criterion = scan.criterion
    if criterion.floor == 0 or contradicts_smoothness(scan, box, n_tries, others):
        return RegionVerdict.UNSUPPORTED
    pooled = with_beyond(scan, box)
    if not criterion.suspicious(*scan.count(pooled)):
        return RegionVerdict.CHANCE
    certain = criterion.surely_unsupported(pooled, scan.recorded, n_tries)
    return RegionVerdict.UNSUPPORTED if certain else RegionVerdict.UNDECIDED


def with_beyond(scan: RegionScan, box: Box) -> Bools:
    """Mask (n,) of the rows in the box and of all rows beyond it, on one side of each axis.

    Recording falls towards the side for which there is most evidence.
    """
    sides = [((j, i._replace(low=-np.inf)), (j, i._replace(high=np.inf))) for j, i in box.items()]
    wide = [scan.inside(dict(one_each)) for one_each in product(*sides)]
    return max(wide, key=lambda inside: scan.criterion.score(*scan.count(inside)))
