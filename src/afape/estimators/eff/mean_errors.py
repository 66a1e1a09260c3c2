"""Errors of conditional means: what the donors of completed rows add to the influence values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array

from ..._arrays import Floats
from ...walk.columns import Matrix, dense
from ..normalisers import WeighedTable
from .components import Components
from .splits import Split

__all__ = ["MeanErrors"]

_CELLS = 2**22  # lines times sets per piece


class MeanErrors:
    r"""Influence values of the donors of conditional means.

    The estimate is linear in the conditional means. The mean :math:`m_{S,t}` of row i has the derivative

    .. math:: \kappa_{i,S,t} = \frac{1}{n} \sum_T \sigma_{S,t,T} w_T(i) 1(R_i \ge T) ,

    with the coefficients :math:`\sigma` of `Lattice.signs`. The mean is the average of :math:`g_S` over :math:`D_i` completions
    of the row, so donor j contributes :math:`\kappa_{i,S,t} (g_S - m_{S,t}) / D_i` for each of its completions. With the right
    propensity the derivatives of similar rows cancel on average. With a wrong one they do not, and intervals need this term.
    Values that a donor itself lacked and took from another row count as its own.

    Parameters
    ----------
    components : Components
        Components with their single completions.
    tables : sequence of WeighedTable
        `Components.tables` with weights.
    factor : ndarray of shape (n,)
        Weight of each row in the mean, relative to 1, divided by the mean weight of the empty set if estimates are normalised.
    """

    def __init__(self, components: Components, tables: Sequence[WeighedTable], factor: Floats) -> None:
        self.components = components
        n, n_sets = components.has.shape
        weight = np.zeros(n * n_sets)
        cells, start = np.flatnonzero(components.has), 0
        for table, weighted, _ in tables:
            weight[cells[start + weighted.lines]] = weighted.weight
            start += len(table.row)
        self.weight = weight.reshape(n, n_sets) * factor[:, None]

    @property
    def known(self) -> bool:
        """True if the single completions were kept."""
        return all(found.draws is not None for found in self.components.amounts if found.shown is not None)

    def of(self, split: Split, prices: Floats | None) -> Floats:
        """Influence values of the donors, (n, P); ``prices`` turn parts into costs, None keeps the parts."""
        n, out = len(self.weight), np.zeros((len(self.weight), self._width(prices)))
        for found in self.components.amounts:
            if found.shown is None or found.draws is None:
                continue
            sign, draws = self.components.signs(found.shown, split), found.draws
            slope = self._slopes(found.row, found.reached, sign)
            taken = draws.donor[draws.draw]
            used = np.flatnonzero(taken >= 0)
            booked = csr_array((slope[draws.line[used]], (taken[used], used)), shape=(n, len(taken)))
            out += dense(booked @ self._costs(draws.amount, prices))
            by_row = csr_array((slope, (found.row, np.arange(len(slope)))), shape=(n, len(slope)))
            lent = np.flatnonzero(draws.donor >= 0)
            shares = csr_array((draws.share[lent], (draws.donor[lent], draws.row[lent])), shape=(n, n))
            out -= dense(shares @ (by_row @ self._costs(found.amount, prices)))
        return out

    def _slopes(self, row: np.ndarray, reached: np.ndarray, sign: Floats) -> Floats:
        out, step = np.empty(len(row)), max(_CELLS // max(sign.shape[1], 1), 1)
        for start in range(0, len(row), step):
            piece = slice(start, start + step)
            out[piece] = np.einsum("ij,ij->i", self.weight[row[piece]], sign[reached[piece]])
        return out

    @staticmethod
    def _costs(parts: csr_array, prices: Floats | None) -> Matrix:
        return parts if prices is None else np.asarray(parts @ prices)

    def _width(self, prices: Floats | None) -> int:
        """Number of columns."""
        return self.components.columns.width if prices is None else prices.shape[1]
