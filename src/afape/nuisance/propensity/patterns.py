"""Recording patterns given a set: moments over them, of which the gradient of a set's probability is made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from ...arrays import Bools, Floats, Ints
from .logistic import LogisticFit

__all__ = ["CELLS", "Gradient", "PatternLaw", "PatternModel", "moments"]

CELLS = 2**21  # numbers held at a time


class PatternModel:
    """Model of one indicator given the design and the earlier indicators: one fit per fold, None where one class occurs."""

    weighting = None  # no other model weighs its rows

    def __init__(
        self, given: Floats, earlier: Bools, outcome: Bools, training: list[Ints], fits: list[LogisticFit], start: int
    ) -> None:
        self.given, self.earlier, self.outcome, self._training = given, earlier, outcome, training
        self.fits = [fit if np.isfinite(fit.coefficients).all() else None for fit in fits]
        self.place = slice(start, start + given.shape[1] + earlier.shape[1])  # among the coefficients of all models

    @property
    def design(self) -> Floats:
        """Regressors of all rows, put together when asked for: those of all models would take much memory."""
        return np.column_stack([self.given, self.earlier])

    def training(self, k: int) -> Ints:
        """Rows that the model of fold k is fitted on."""
        return self._training[k]

    def fitted(self, k: int) -> Floats:
        """Probability in every row by the model of fold k."""
        fit = self.fits[k]
        assert fit is not None
        return np.asarray(expit(self.design @ fit.coefficients))


class Gradient(NamedTuple):
    """d log P / d theta of pairs of row and set, in all coefficients, and the lines that ask for these pairs."""

    lines: Ints  # (l,)
    place: Ints  # (l,) the pair of each line
    fold: int  # whose models say the probabilities
    columns: Floats  # (c, p)


class PatternLaw(NamedTuple):
    """The law of the pattern in some rows: log-odds of each indicator given the earlier ones."""

    log_odds: Floats  # (n, q), with no earlier indicator
    offsets: list[Floats]  # (2^j,), what each earlier pattern, as a bit mask, adds to the log-odds of j
    never: list[tuple[int, Bools, Bools]]  # j, earlier patterns (2^j,), rows (n,): j is not recorded after these

    def conditionals(self, rows: Ints) -> Iterator[Floats]:
        """P(r_j = 1 | r_1, ..., r_{j-1}) of all earlier patterns as bit masks, shape (b, 2^j), for one j after the other."""
        for j, offset in enumerate(self.offsets):
            p = expit(self.log_odds[rows, j][:, None] + offset[None, :])
            for last, after, where in self.never:
                if last == j and (mine := where[rows]).any():
                    p[np.ix_(mine, after)] = 0.0
            yield p

    def joint(self, conditionals: Iterable[Floats], n: int) -> Floats:
        """P(R = r) of all patterns as bit masks in n rows, shape (n, 2^q)."""
        joint = np.ones((n, 1))
        for p in conditionals:
            joint = np.concatenate([joint * (1 - p), joint * p], axis=1)
        return joint


class _Jobs(NamedTuple):
    """Sets of a row that are summed together: patterns that have what is common to them, by what lies in their union."""

    of_pair: Ints  # (m,)
    row: Ints  # (b,)
    common: Ints  # (b,) bit masks
    union: Ints  # (b,)


def moments(law: PatternLaw, rows: Ints, masks: Ints) -> Iterator[tuple[Ints, Floats]]:
    r"""Moments of the patterns that contain a set, by which the logarithm of its probability moves.

    .. math:: E[r_j - p_j \mid R \ge S], \qquad E[(r_j - p_j) \, r_l \mid R \ge S], \quad p_j = P(r_j = 1 \mid r_{<j}),

    because :math:`\partial P(R = r) / \partial\eta_j = P(R = r) \, (r_j - p_j)` for the log-odds of j. The sets of a row are
    summed together, one group at a time as for the probabilities, unless one by one is less work.

    Parameters
    ----------
    law : PatternLaw
        Probabilities of patterns.
    rows, masks : ndarray of int, shape (m,)
        Different pairs of row and set (bit j: group j of the order), sorted by row; no empty set.

    Yields
    ------
    pairs : ndarray of int
        Which pairs.
    moments : ndarray of shape (len(pairs), q, 1 + q)
        The first at [:, j, 0], the second at [:, j, 1 + l].
    """
    q = law.log_odds.shape[1]
    size = np.array([bin(mask).count("1") for mask in range(1 << q)])
    jobs = _jobs(rows, masks, size)
    shared, inner = size[jobs.common], size[jobs.union] - size[jobs.common]
    kind = shared * (q + 1) + inner
    for each in np.unique(kind):
        mine = np.flatnonzero(kind == each)
        bits = int(inner[mine[0]])
        cells = (3 * q << (q - int(shared[mine[0]]))) + (q * (q + 1) << bits) + (4 << q)
        step = max(CELLS // cells, 1)
        pairs = np.flatnonzero(kind[jobs.of_pair] == each)
        bounds = np.searchsorted(jobs.of_pair[pairs], np.append(mine[::step], len(kind)))
        for b, start in enumerate(range(0, len(mine), step)):
            part, asked = mine[start : start + step], pairs[bounds[b] : bounds[b + 1]]
            sums, positions = _sums(law, jobs.row[part], jobs.common[part], jobs.union[part], bits)
            job = np.searchsorted(part, jobs.of_pair[asked])
            corner = ((masks[asked][:, None] >> positions[job] & 1) << np.arange(bits)).sum(axis=1)
            found = sums[job, corner]
            total = found[:, -1:]
            share = np.divide(found[:, :-1], total, out=np.zeros_like(found[:, :-1]), where=total > 0)
            yield asked, share.reshape(len(asked), q, 1 + q)


def _jobs(rows: Ints, masks: Ints, size: Ints) -> _Jobs:
    """All sets of a row in one job, or one job per set, whichever adds up less."""
    q = len(size).bit_length() - 1
    first = np.flatnonzero(np.append(True, rows[1:] != rows[:-1]))
    counts = np.diff(np.append(first, len(rows)))
    common, union = np.bitwise_and.reduceat(masks, first), np.bitwise_or.reduceat(masks, first)
    bits = size[union] - size[common]
    together = 2.0 ** (q - size[common]) + 2.0**bits * bits / 2
    alone = np.add.reduceat(2.0 ** (q - size[masks]), first)
    joined = np.repeat(together <= alone, counts)
    begins = ~joined
    begins[first] = True
    starts = np.flatnonzero(begins)
    return _Jobs(
        np.cumsum(begins) - 1,
        rows[starts],
        np.where(joined, np.repeat(common, counts), masks)[starts],
        np.where(joined, np.repeat(union, counts), masks)[starts],
    )


def _sums(law: PatternLaw, rows: Ints, common: Ints, union: Ints, bits: int) -> tuple[Floats, Ints]:
    """Sums over the patterns that contain ``common`` and a corner of the rest of ``union``, and the rest's groups.

    The sums are (b, 2^bits, q (1 + q) + 1): P(r) (r_j - p_j) times 1 and r_l, and P(r) last.
    """
    q, b = law.log_odds.shape[1], len(rows)
    rest, outside = _members(union & ~common, q, bits), _members(~union, q, None)
    code = common[:, None, None] + _corners(rest)[:, :, None] + _corners(outside)[:, None, :]
    code = code.reshape(b, -1)
    who, place = np.unique(rows, return_inverse=True)
    given = list(law.conditionals(who))
    joint = law.joint(given, len(who))[place[:, None], code]
    beside = np.ones((1 + q, *code.shape))  # groups first: they are filled one by one
    residual = np.empty((q, *code.shape))
    for j, p in enumerate(given):
        beside[1 + j] = code >> j & 1
        residual[j] = (beside[1 + j] - p[place[:, None], code & ((1 << j) - 1)]) * joint
    shape = b << bits, -1
    left, right = (part.reshape(len(part), *shape).transpose(1, 0, 2) for part in (residual, beside))
    out = np.empty((b << bits, q * (1 + q) + 1))
    out[:, :-1] = (left @ right.transpose(0, 2, 1)).reshape(shape)
    out[:, -1] = joint.reshape(shape).sum(axis=1)
    for j in range(bits):  # sum over supersets, one group at a time
        cube = out.reshape(b, -1, 2, out.shape[1] << j)
        cube[:, :, 0] += cube[:, :, 1]
    return out.reshape(b, 1 << bits, -1), rest


def _members(masks: Ints, q: int, bits: int | None) -> Ints:
    """Groups of each mask, as many in all of them, (b, bits)."""
    has = (masks[:, None] >> np.arange(q) & 1) > 0
    bits = int(has[0].sum()) if bits is None else bits
    return np.nonzero(has)[1].reshape(len(masks), bits)


def _corners(groups: Ints) -> Ints:
    """Masks of all subsets of these groups (b, k), shape (b, 2^k), the first group's bit the lowest."""
    k = groups.shape[1]
    chosen = np.arange(1 << k)[:, None] >> np.arange(k) & 1
    return np.asarray((1 << groups) @ chosen.T)
