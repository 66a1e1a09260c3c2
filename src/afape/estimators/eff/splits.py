"""Ways to split the cost of the runs in a set into components of its subsets."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import comb

from ..._arrays import Bools, Floats, Ints, every

__all__ = ["Lattice", "Split", "splits_up_to"]

_N_ORDERS = 4  # orders 0, 1, 2 and 3 are candidates, and the largest order


class Split(NamedTuple):
    r"""One way to split :math:`g_S`, the cost of the runs in S, into components :math:`f_{S,T}` of the subsets T of S.

    With :math:`m_{S,T} = E[g_S \mid x_T, X_o, Y]`, components of at most ``order`` groups are separated, and the rest of
    :math:`g_S` belongs to S. In the Hoeffding split (first formula), a component is the part of :math:`m_{S,T}` that the
    means of smaller sets do not explain. In the split step by step (second formula), it is the part that one further group
    explains, averaged over all orders of the groups:

    .. math::
        f_{S,T} = \sum_{T' \le T} (-1)^{|T \setminus T'|} m_{S,T'}, \qquad
        f_{S,T} = \binom{|S|}{|T|}^{-1} \Big( m_{S,T} - \frac{1}{|T|} \sum_{j \in T} m_{S,T - j} \Big) .

    The components of either split add up to :math:`g_S`. All except that of the empty set have mean zero given :math:`X_o`
    and Y. The first split has the least variance if groups are independent and the conditional means are known. A component
    of the second split contains few conditional means, so large weights amplify their errors less.
    """

    order: int
    stepwise: bool = False

    @property
    def name(self) -> str:
        """Name in reports."""
        return "step by step" if self.stepwise else f"order {self.order}"


def splits_up_to(order: int) -> tuple[Split, ...]:
    """Return the candidates, the largest order last."""
    orders = [q for q in range(order) if q < _N_ORDERS] + [order]
    return (*([Split(order, stepwise=True)] if order else []), *(Split(q) for q in orders))


@dataclass(frozen=True, eq=False)
class Lattice:
    """Reached sets, and all sets that have components.

    Parameters
    ----------
    every_set : ndarray of bool, shape (L, G)
        All sets; the reached ones come first.
    n_reached : int
        Number of reached sets.
    is_inner : ndarray of bool, shape (L,)
        True for sets with conditional means. Only these have separate components.
    """

    every_set: Bools
    n_reached: int
    is_inner: Bools

    @cached_property
    def _size(self) -> Ints:
        return np.asarray(self.every_set.sum(axis=1))

    @cached_property
    def _inside(self) -> Bools:
        """True if the set (column) is a strict subset of the reached set (row), (n_reached, L)."""
        reached = self.every_set[: self.n_reached].astype(np.float32)
        common = reached @ self.every_set.T.astype(np.float32)
        size = self._size
        return np.asarray((common == size) & (size < size[: self.n_reached, None]))

    @cached_property
    def _depth(self) -> Ints:
        """Largest size up to which all subsets of a reached set have conditional means, (n_reached,)."""
        size, top = self._size, int(self._size.max(initial=0))
        by_size = np.eye(top + 1)[size] * self.is_inner[:, None]
        have = self._inside @ by_size  # (n_reached, top + 1)
        lacks = have < comb(size[: self.n_reached, None], np.arange(top + 1)) - 0.5
        return np.asarray(np.where(lacks.any(axis=1), lacks.argmax(axis=1), top + 1) - 1)

    def signs(self, split: Split, t: Bools) -> Floats:
        """Return the coefficient of :math:`m_{S,t}` in the sum that :math:`w_T` multiplies, for every S and T, (n_reached, L).

        It is 0 unless t is a strict subset of S.
        """
        n = self.n_reached
        holds_t = every(self.every_set | ~t)
        larger = holds_t[:n] & (self._size[:n] > t.sum())
        share = self._stepwise(split.order, t, holds_t) if split.stepwise else self._at_once(split.order, t, holds_t)
        out = np.where(larger[:, None], share, 0.0)
        out[np.arange(n), np.arange(n)] -= out.sum(axis=1)  # the rest belongs to S; reached sets come first
        out[np.abs(out) < 1e-14] = 0.0
        return np.asarray(out)

    def _at_once(self, order: int, t: Bools, holds_t: Bools) -> Floats:
        separate = holds_t & (self._size <= order) & self.is_inner
        return np.asarray(self._inside * np.where(separate, (-1.0) ** (self._size - t.sum()), 0.0))

    def _stepwise(self, order: int, t: Bools, holds_t: Bools) -> Floats:
        size, n = int(t.sum()), self.n_reached
        depth = np.minimum(self._depth, order)[:, None]
        # probability that the groups of T come first in a random order of S
        chance = 1 / np.maximum(comb(self._size[:n, None], self._size), 1)
        itself = (self._size == size) & holds_t & (size <= depth)
        following = (self._size == size + 1) & holds_t & (size + 1 <= depth)
        return np.asarray(self._inside * chance * (itself - following / (size + 1)))
