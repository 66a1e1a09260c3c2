"""Order of the weights of a row: the weight of a set is at least that of each of its subsets.

Linear programmes under this order, and under limits of each weight (boxes).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from .._arrays import Bools, Floats, Ints, pack

__all__ = ["OrderedWeights", "RowOrders"]

_EXACT_STATES = 16  # a row with more states keeps the order along chains only
_CELLS = 2**21  # array elements held at a time

Words = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class RowOrders:
    r"""Pairs of states of a row whose weights may be ordered.

    States S and T of one row with S inside T and nominal weights :math:`w^0_S \le w^0_T` have the constraint
    :math:`w_S \le w_T`. True probabilities satisfy it always. Nominal weights that were learned set by set may not; then
    the pair has no constraint, so that the nominal weights stay possible and bounds stay valid, though wider. Rows
    with more than 16 states have the constraints along chains of sets only, as few chains as cover the states.
    """

    blocks: list[tuple[Ints, Bools]]  # states (r, m) of rows with m states, and True if j lies inside k (r, m, m)
    chain_states: Ints  # (c,) states of the chains, one chain after the other
    chain_of: Ints  # (c,) chain of each
    relaxed: int  # rows that are ordered along chains only

    @staticmethod
    def of(row: Ints, sets: Bools, exact: int = _EXACT_STATES) -> RowOrders:
        """Order of the states (s,) with these rows, ascending, and distinct sets (s, G).

        Rows with more than ``exact`` states are ordered along chains only.
        """
        starts = np.flatnonzero(np.concatenate([[True], row[1:] != row[:-1]])) if len(row) else np.zeros(0, np.intp)
        sizes = np.diff(np.append(starts, len(row)))
        words = pack(sets)
        blocks = []
        for m in np.unique(sizes[(sizes > 1) & (sizes <= exact)]):
            states = starts[sizes == m][:, None] + np.arange(m)
            blocks.append((states, _inside(words[states])))
        chained: list[Ints] = []
        known: dict[bytes, list[Ints]] = {}  # rows often share their sets
        long = np.flatnonzero(sizes > exact)
        for s, m in zip(starts[long], sizes[long], strict=True):
            key = words[s : s + m].tobytes()
            if key not in known:
                known[key] = _chains(words[s : s + m])
            chained += [s + chain for chain in known[key]]
        states = np.concatenate(chained) if chained else np.zeros(0, np.intp)
        return RowOrders(blocks, states, np.repeat(np.arange(len(chained)), [len(c) for c in chained]), len(long))

    def under(self, nominal: Floats) -> OrderedWeights:
        """Keep the constraints that these nominal weights satisfy; the other pairs stay without order."""
        blocks = []
        for states, inside in self.blocks:
            w = nominal[states]
            order = inside & (w[:, :, None] <= w[:, None, :])
            some = _some(order, (1, 2))
            blocks.append((states[some], order[some]))
        return OrderedWeights(blocks, self._segments(nominal))

    def _segments(self, nominal: Floats) -> list[Ints]:
        """Pieces of chains along which the nominal weights do not fall, by length: (r, k) each."""
        if len(self.chain_states) == 0:
            return []
        w = nominal[self.chain_states]
        new = np.ones(len(w), dtype=bool)
        new[1:] = (self.chain_of[1:] != self.chain_of[:-1]) | (w[1:] < w[:-1])
        first = np.flatnonzero(new)
        sizes = np.diff(np.append(first, len(w)))
        return [self.chain_states[first[sizes == k][:, None] + np.arange(k)] for k in np.unique(sizes[sizes > 1])]


@dataclass(frozen=True, eq=False)
class OrderedWeights:
    """Weights within boxes that satisfy the order; the boxes must be ordered too."""

    blocks: list[tuple[Ints, Bools]]  # states (r, m), and True if j is ordered below k (r, m, m)
    segments: list[Ints]  # chains (r, k), the smallest set first

    @property
    def pairs(self) -> tuple[Ints, Ints]:
        """Pairs of ordered states, the smaller and the larger, without pairs that follow from others."""
        small, large = [np.zeros(0, np.intp)], [np.zeros(0, np.intp)]
        for states, order in self.blocks:
            between = np.matmul(order, order)  # True if some state lies in between
            r, j, k = np.nonzero(order & ~between)
            small.append(states[r, j])
            large.append(states[r, k])
        for chain in self.segments:
            small.append(chain[:, :-1].ravel())
            large.append(chain[:, 1:].ravel())
        return np.concatenate(small), np.concatenate(large)

    def maximise(self, gain: Floats, lower: Floats, upper: Floats) -> Floats:
        r"""Weights that maximise :math:`\sum_S gain_S w_S`.

        States with a positive gain are best at their upper bound, the others at their lower bound. This breaks the order only
        between a state S that gains and a larger T that does not, with :math:`upper_S > lower_T`. The programme separates
        into levels: with :math:`w_S = l_S + \int_{l_S}^{u_S} 1(S \in A_t) dt`, the set :math:`A_t` of the states above t must
        contain every state that is ordered above one of its members. So at each t it is the closed set of largest gain
        among the states whose box contains t.
        """
        w = np.where(gain > 0, upper, lower)
        for states, order in self.blocks:
            g, low, high = gain[states], lower[states], upper[states]
            conflict = order & (g > 0)[:, :, None] & (g <= 0)[:, None, :] & (high[:, :, None] > low[:, None, :])
            rows = np.flatnonzero(_some(conflict, (1, 2)))
            if len(rows):
                w[states[rows]] = _settle(g[rows], low[rows], high[rows], conflict[rows], w[states[rows]])
        for chains in self.segments:
            broken = chains[(np.diff(w[chains], axis=1) < 0).any(axis=1)]
            w[broken] = _along_chain(gain[broken], lower[broken], upper[broken])
        return w


def _inside(words: Words) -> Bools:
    """True if set j lies strictly inside set k, (r, m, m), for packed sets (r, m, words)."""
    r, m, n_words = words.shape
    out = np.empty((r, m, m), dtype=bool)
    step = max(_CELLS // (m * m * n_words), 1)
    for i in range(0, r, step):
        a, b = words[i : i + step, :, None, :], words[i : i + step, None, :, :]
        out[i : i + step] = ((a & ~b) == 0).all(axis=3) & (a != b).any(axis=3)
    return out


def _chains(words: Words) -> list[Ints]:
    """Fewest chains that cover the sets of one row (Dilworth), each from the smallest set to the largest."""
    inside = _inside(words[None])[0]
    after = maximum_bipartite_matching(csr_array(inside), perm_type="column")
    heads = np.setdiff1d(np.arange(len(words)), after[after >= 0])
    chains = []
    for head in heads:
        chain = [int(head)]
        while after[chain[-1]] >= 0:
            chain.append(int(after[chain[-1]]))
        if len(chain) > 1:
            chains.append(np.array(chain, dtype=np.intp))
    return chains


def _settle(g: Floats, low: Floats, high: Floats, conflict: Bools, w: Floats) -> Floats:
    """Best weights (r, m) of rows with conflicts; ``w`` has those of states without conflicts."""
    rises, yields = _some(conflict, 2), _some(conflict, 1)
    n_rises, n_yields = rises.sum(axis=1), yields.sum(axis=1)
    kind = n_rises * (_EXACT_STATES + 1) + n_yields
    for value in np.unique(kind):
        mine = np.flatnonzero(kind == value)
        p, q = divmod(int(value), _EXACT_STATES + 1)
        step = max(_CELLS // (max(p, q) << min(p, q)), 1)
        for i in range(0, len(mine), step):
            part = mine[i : i + step]
            a = np.argsort(~rises[part], axis=1, kind="stable")[:, :p]
            b = np.argsort(~yields[part], axis=1, kind="stable")[:, :q]
            r = part[:, None]
            pairs = conflict[part[:, None, None], a[:, :, None], b[:, None, :]]
            w[r, a], w[r, b] = _levels(g[r, a], low[r, a], high[r, a], g[r, b], low[r, b], pairs)
    return w


def _levels(
    gain: Floats, low: Floats, high: Floats, loss: Floats, floor: Floats, pairs: Bools
) -> tuple[Floats, Floats]:
    """Weights of p states that gain and q that lose, from the best closed set at each level."""
    p, q = pairs.shape[1:]
    # List either the subsets of gainers and the losers that they force up, or the subsets of losers and the gainers
    # that they allow. A loser whose box starts above the level is up anyway and costs nothing.
    if p <= q:
        up = _subsets(p)
        other = np.stack([_some(pairs[:, chosen], 1) for chosen in up], axis=1)  # (r, 2^p, q)
    else:
        up = _subsets(q)
        other = np.stack([~_some(pairs[:, :, ~chosen], 2) for chosen in up], axis=1)  # (r, 2^q, p)
    chosen_up = up.astype(float)
    dense = other.astype(float)
    raised, dragged = low.copy(), floor.copy()
    levels = np.sort(np.concatenate([low, high, floor], axis=1), axis=1)
    everyone = np.arange(len(gain))
    for k in range(levels.shape[1] - 1):
        t, width = levels[:, k : k + 1], levels[:, k + 1 : k + 2] - levels[:, k : k + 1]
        open_up, open_down = (low <= t) & (t < high), floor <= t
        g, c = np.where(open_up, gain, 0.0), np.where(open_down, loss, 0.0)
        if p <= q:
            best = (g @ chosen_up.T + np.einsum("rsq,rq->rs", dense, c)).argmax(axis=1)
            ups, downs = up[best], other[everyone, best]
        else:
            best = (c @ chosen_up.T + np.einsum("rsp,rp->rs", dense, g)).argmax(axis=1)
            ups, downs = other[everyone, best], up[best]
        raised += width * (ups & open_up)
        dragged += width * (downs & open_down)
    return raised, dragged


def _subsets(k: int) -> Bools:
    return np.asarray((np.arange(1 << k)[:, None] >> np.arange(k)) & 1 == 1)


def _some(mask: Bools, axis: int | tuple[int, int]) -> Bools:
    """True if some element along the axis is true."""
    return np.asarray(np.logical_or.reduce(mask, axis=axis))


def _along_chain(gain: Floats, low: Floats, high: Floats) -> Floats:
    """Best weights of chains (r, k), smallest set first: at each level the upper end of largest gain."""
    w = low.copy()
    levels = np.sort(np.concatenate([low, high], axis=1), axis=1)
    k = gain.shape[1]
    for j in range(2 * k - 1):
        t, width = levels[:, j : j + 1], levels[:, j + 1 : j + 2] - levels[:, j : j + 1]
        opened = (low <= t) & (t < high)
        ends = np.cumsum(np.where(opened, gain, 0.0)[:, ::-1], axis=1)[:, ::-1]
        best = ends.argmax(axis=1)
        up = (np.arange(k) >= best[:, None]) & (ends.max(axis=1) > 0)[:, None]
        w += width * (up & opened)
    return w
