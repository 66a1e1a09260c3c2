"""Linear programmes over the weights of each row: boxes, and larger sets weigh no less."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from ..arrays import Bools, Floats, Ints, pack

__all__ = ["EXACT_STATES", "RowOrders"]

EXACT_STATES = 16  # a row with more states keeps the order along chains only
_CELLS = 2**21  # array elements held at a time

Words = NDArray[np.uint64]


class RowOrders:
    r"""Which weights of a row are ordered, and the best weights under a linear gain.

    States S and T of one row with S inside T and nominal weights :math:`w^0_S \le w^0_T` get the constraint
    :math:`w_S \le w_T`. (True probabilities obey it whatever the nominal ones do. Where nominal weights that were
    learned set by set break it, the pair has none: fewer constraints give wider bounds, which stay valid, and the
    nominal weights stay possible.) Rows with more than 16 states keep the constraints along chains of sets, as few
    chains as cover them.

    Parameters
    ----------
    row : ndarray of int, shape (s,)
        Row of each state, ascending.
    sets : ndarray of bool, shape (s, G)
        Set of each state; a row has each set once.
    exact : int
        Rows with more states keep the order along chains only.
    """

    def __init__(self, row: Ints, sets: Bools, exact: int = EXACT_STATES) -> None:
        starts = np.flatnonzero(np.concatenate([[True], row[1:] != row[:-1]])) if len(row) else np.zeros(0, np.intp)
        sizes = np.diff(np.append(starts, len(row)))
        words = pack(sets)
        self.blocks: list[tuple[Ints, Bools]] = []  # states (r, m), and which lie inside which (r, m, m)
        for m in np.unique(sizes[(sizes > 1) & (sizes <= exact)]):
            states = starts[sizes == m][:, None] + np.arange(m)
            self.blocks.append((states, _inside(words[states])))
        chained: list[Ints] = []
        known: dict[bytes, list[Ints]] = {}  # rows often share their sets
        long = np.flatnonzero(sizes > exact)
        for s, m in zip(starts[long], sizes[long], strict=True):
            key = words[s : s + m].tobytes()
            if key not in known:
                known[key] = _chains(words[s : s + m])
            chained += [s + chain for chain in known[key]]
        self.relaxed = len(long)
        self.chain_states = np.concatenate(chained) if chained else np.zeros(0, np.intp)
        self.chain_of = np.repeat(np.arange(len(chained)), [len(c) for c in chained])

    def under(self, nominal: Floats) -> OrderedWeights:
        """The constraints that these nominal weights obey."""
        blocks = []
        for states, inside in self.blocks:
            w = nominal[states]
            order = inside & (w[:, :, None] <= w[:, None, :])
            some = _some(order, (1, 2))
            blocks.append((states[some], order[some]))
        return OrderedWeights(blocks, self._segments(nominal))

    def _segments(self, nominal: Floats) -> list[Ints]:
        """Pieces of chains along which the nominal weights rise, by length."""
        if len(self.chain_states) == 0:
            return []
        w = nominal[self.chain_states]
        new = np.ones(len(w), dtype=bool)
        new[1:] = (self.chain_of[1:] != self.chain_of[:-1]) | (w[1:] < w[:-1])
        first = np.flatnonzero(new)
        sizes = np.diff(np.append(first, len(w)))
        return [self.chain_states[first[sizes == k][:, None] + np.arange(k)] for k in np.unique(sizes[sizes > 1])]


class OrderedWeights:
    """Weights within boxes that obey the order; boxes must rise along it too."""

    def __init__(self, blocks: list[tuple[Ints, Bools]], segments: list[Ints]) -> None:
        self.blocks, self.segments = blocks, segments

    @property
    def pairs(self) -> tuple[Ints, Ints]:
        """Pairs of states whose weights are ordered, without those that follow from others: the smaller, the larger."""
        small, large = [np.zeros(0, np.intp)], [np.zeros(0, np.intp)]
        for states, order in self.blocks:
            between = np.matmul(order, order)  # of booleans: whether some state lies in between
            r, j, k = np.nonzero(order & ~between)
            small.append(states[r, j])
            large.append(states[r, k])
        for chain in self.segments:
            small.append(chain[:, :-1].ravel())
            large.append(chain[:, 1:].ravel())
        return np.concatenate(small), np.concatenate(large)

    def maximise(self, gain: Floats, lower: Floats, upper: Floats) -> Floats:
        r"""Weights that maximise :math:`\sum_S gain_S w_S`.

        States that gain want their upper bound, the others their lower. That breaks the order only between a state S
        that gains and a larger T that does not, with :math:`upper_S > lower_T`; all other constraints then hold of
        themselves. The programme falls apart into levels: with :math:`w_S = l_S + \int_{l_S}^{u_S} 1(S \in A_t) dt`,
        the set :math:`A_t` of the states above t must be closed upwards and is otherwise free at each t, so it is
        the heaviest closed set among the states whose box contains t.
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
    """Whether set j lies strictly inside set k, (r, m, m), of packed sets (r, m, words)."""
    r, m, n_words = words.shape
    out = np.empty((r, m, m), dtype=bool)
    step = max(_CELLS // (m * m * n_words), 1)
    for i in range(0, r, step):
        a, b = words[i : i + step, :, None, :], words[i : i + step, None, :, :]
        out[i : i + step] = ((a & ~b) == 0).all(axis=3) & (a != b).any(axis=3)
    return out


def _chains(words: Words) -> list[Ints]:
    """Fewest chains that cover the sets of one row (Dilworth), each from small to large."""
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
    """Best weights (r, m) of rows with conflicts; ``w`` holds those of the states without."""
    rises, yields = _some(conflict, 2), _some(conflict, 1)
    n_rises, n_yields = rises.sum(axis=1), yields.sum(axis=1)
    kind = n_rises * (EXACT_STATES + 1) + n_yields
    for value in np.unique(kind):
        mine = np.flatnonzero(kind == value)
        p, q = divmod(int(value), EXACT_STATES + 1)
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
    # Either list which gainers are up, and the losers that they force; or which losers are, and the gainers that
    # they allow. A loser whose box starts above the level is up anyway and costs nothing.
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
    """Whether some element along the axis is true."""
    return np.asarray(np.logical_or.reduce(mask, axis=axis))


def _along_chain(gain: Floats, low: Floats, high: Floats) -> Floats:
    """Best weights of chains (r, k), smallest set first: at each level the heaviest end of the open states."""
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
