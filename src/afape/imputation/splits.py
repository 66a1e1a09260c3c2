"""Ways to split what the runs in a set cost among the sets inside it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import comb

from ..arrays import Bools, Floats, Ints, every

__all__ = ["Lattice", "Split", "splits_up_to"]

_TOLD_APART = 4  # orders that are candidates, from 0 on, besides the largest


class Split(NamedTuple):
    r"""One way to split :math:`g_S`, the cost of the runs in S, into components :math:`f_{S,T}` of the sets T inside S.

    With :math:`m_{S,T} = E[g_S \mid x_T, X_o, Y]`, components of at most ``order`` groups are told apart and the rest of
    :math:`g_S` belongs to S itself. All at once (Hoeffding), a component is what the sets inside T do not explain; step by step,
    what one further group explains, groups in all orders with the same probability:

    .. math::
        f_{S,T} = \sum_{T' \le T} (-1)^{|T \setminus T'|} m_{S,T'}, \qquad
        f_{S,T} = \binom{|S|}{|T|}^{-1} \Big( m_{S,T} - \frac{1}{|T|} \sum_{j \in T} m_{S,T - j} \Big) .

    The components of either add up to :math:`g_S`, and all but the first have mean zero given :math:`X_o` and Y. The first way
    has the least variance where groups are independent and the conditional means are known. A component of the second way
    has few conditional means in it, so that their errors grow less under heavy weights.
    """

    order: int
    stepwise: bool = False

    @property
    def name(self) -> str:
        """What reports call it."""
        return "step by step" if self.stepwise else f"order {self.order}"


def splits_up_to(order: int) -> tuple[Split, ...]:
    """Candidates, the largest order last."""
    orders = [q for q in range(order) if q < _TOLD_APART] + [order]
    return (*([Split(order, stepwise=True)] if order else []), *(Split(q) for q in orders))


@dataclass(frozen=True, eq=False)
class Lattice:
    """Sets that are reached, and all that have components.

    Parameters
    ----------
    every_set : ndarray of bool, shape (L, G)
        All sets; those that are reached come first.
    n_reached : int
        How many are reached.
    is_inner : ndarray of bool, shape (L,)
        Sets with conditional means of their own; others are not told apart.
    """

    every_set: Bools
    n_reached: int
    is_inner: Bools

    @cached_property
    def _size(self) -> Ints:
        return np.asarray(self.every_set.sum(axis=1))

    @cached_property
    def _inside(self) -> Bools:
        """Whether a set is strictly inside a reached one, (n_reached, L)."""
        reached = self.every_set[: self.n_reached].astype(np.float32)
        common = reached @ self.every_set.T.astype(np.float32)
        size = self._size
        return np.asarray((common == size) & (size < size[: self.n_reached, None]))

    @cached_property
    def _depth(self) -> Ints:
        """Up to which size all sets inside a reached one have conditional means, (n_reached,)."""
        size, top = self._size, int(self._size.max(initial=0))
        by_size = np.eye(top + 1)[size] * self.is_inner[:, None]
        have = self._inside @ by_size  # (n_reached, top + 1)
        lacks = have < comb(size[: self.n_reached, None], np.arange(top + 1)) - 0.5
        return np.asarray(np.where(lacks.any(axis=1), lacks.argmax(axis=1), top + 1) - 1)

    def signs(self, split: Split, t: Bools) -> Floats:
        """What :math:`m_{S,t}`, S strictly larger than t, adds to the coefficient of every set, (n_reached, L)."""
        n = self.n_reached
        holds_t = every(self.every_set | ~t)
        larger = holds_t[:n] & (self._size[:n] > t.sum())
        share = self._stepwise(split.order, t, holds_t) if split.stepwise else self._at_once(split.order, t, holds_t)
        out = np.where(larger[:, None], share, 0.0)
        out[np.arange(n), np.arange(n)] -= out.sum(axis=1)  # the rest stays at S; reached sets come first
        out[np.abs(out) < 1e-14] = 0.0
        return np.asarray(out)

    def _at_once(self, order: int, t: Bools, holds_t: Bools) -> Floats:
        told_apart = holds_t & (self._size <= order) & self.is_inner
        return np.asarray(self._inside * np.where(told_apart, (-1.0) ** (self._size - t.sum()), 0.0))

    def _stepwise(self, order: int, t: Bools, holds_t: Bools) -> Floats:
        size, n = int(t.sum()), self.n_reached
        depth = np.minimum(self._depth, order)[:, None]
        # the probability that the groups of T come first of those of S
        chance = 1 / np.maximum(comb(self._size[:n, None], self._size), 1)
        itself = (self._size == size) & holds_t & (size <= depth)
        following = (self._size == size + 1) & holds_t & (size + 1 <= depth)
        return np.asarray(self._inside * chance * (itself - following / (size + 1)))
