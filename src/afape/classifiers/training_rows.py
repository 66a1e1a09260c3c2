"""The rows that a model was trained on, and how many of them are among other records."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._arrays import Ints
from ..data.retrospective import Retrospective

__all__ = ["KnowsRows", "TrainingRows"]

# Rows of separately built tables are recognised by their values. If columns have few values, different cases can have
# equal rows, so a small share of equal rows gives no warning.
_LOOKALIKE_SHARE = 0.01


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Identity of training rows.

    Parameters
    ----------
    source : str
        Identity of the table.
    positions : ndarray of int, shape (m,)
        Positions of the rows in this table.
    fingerprints : ndarray of uint64, shape (m,)
        Hashes of the values and labels of the rows.
    """

    source: str
    positions: Ints
    fingerprints: NDArray[np.uint64]

    @staticmethod
    def of(data: Retrospective) -> TrainingRows:
        """Return the rows of these records."""
        return TrainingRows(data.source, data.positions, data.fingerprints())

    def count_in(self, data: Retrospective) -> int:
        """Count the rows of ``data`` that are training rows.

        Rows of the same table are recognised by their position, rows of another table by their values and label.
        """
        if data.source == self.source:
            return int(np.isin(data.positions, self.positions).sum())
        ours, place, count = np.unique(self.fingerprints, return_inverse=True, return_counts=True)
        # Training rows and new rows are exchangeable: both have an equal row among the others equally often.
        chance = float((count[place] > 1).mean())
        alike = float(np.isin(data.fingerprints(), ours).mean())
        error = np.sqrt(chance * (1 - chance) * (1 / len(data) + 1 / len(place)))
        if alike - chance <= _LOOKALIKE_SHARE + 4 * error:
            return 0
        return round((alike - chance) / (1 - chance) * len(data))


class KnowsRows:
    """A model that knows the rows that it was trained on, ``rows_``."""

    rows_: TrainingRows

    def seen(self, data: Retrospective) -> int:
        """Count the rows of ``data`` that this model was trained on; 0 if it was saved by an older version."""
        return self.rows_.count_in(data) if hasattr(self, "rows_") else 0
