"""What the user assumes about why values are missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays import Ints
from ..data import Retrospective

__all__ = ["MAR", "MCAR"]


@dataclass(frozen=True)
class MCAR:
    """Missing completely at random: what is recorded depends on nothing."""

    def given_columns(self, data: Retrospective) -> Ints:
        """No columns."""
        return np.array([], dtype=np.intp)


@dataclass(frozen=True)
class MAR:
    """Missing at random given groups that are always recorded.

    R is independent of all values and of the label, given these groups. The policy need not acquire them.

    Parameters
    ----------
    given : sequence of str
        Names of groups; every row must have them recorded.
    """

    given: Sequence[str]

    def given_columns(self, data: Retrospective) -> Ints:
        """Columns of the given groups; refuses groups that are not always recorded."""
        groups = data.problem.group_index(self.given, "given")
        if len(groups) == 0:
            raise ValueError("'given' must name at least one group; for none, use afape.MCAR().")
        for g in groups:
            gaps = int((~data.recorded[:, g]).sum())
            if gaps:
                raise ValueError(
                    f"'given' groups must always be recorded, but {data.problem.group_names[g]!r} is missing in {gaps} "
                    f"of {len(data)} rows. Where missingness depends on a group with gaps the data are missing not at "
                    "random (MNAR), and weights given that group cannot be computed in these rows."
                )
        return np.flatnonzero(np.isin(data.column_group, groups))
