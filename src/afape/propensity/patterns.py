"""Recording patterns: models of the indicators in order, and sums over all patterns that contain a set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from .._arrays import Bools, Floats, Ints
from .factor import Crossfit
from .logistic import EXACT, ROUGH, LogisticFit, fit_logistic, rows_of, sigmoid

__all__ = ["CELLS", "Gradient", "PatternModel", "summed_moments", "summed_probability"]

CELLS = 2**21  # numbers held at a time


class PatternModel:
    """Logistic model of one indicator given the design and the earlier indicators, one fit per fold.

    Parameters
    ----------
    given : ndarray of shape (n, p)
        Design.
    recorded : ndarray of bool, shape (n, j + 1)
        The earlier indicators, and this one last.
    crossfit : Crossfit
        Folds and row weights.
    ridge : float
        Penalty of the fits.
    never : list of tuple
        Pairs of earlier groups (j,) and rows (n,): the group cannot be recorded in these rows together with all of these
        groups. It is not learned from such rows.
    start : int
        Place of the first coefficient among those of all models.
    """

    weighting = None  # rows are not weighted by other models

    def __init__(
        self,
        given: Floats,
        recorded: Bools,
        crossfit: Crossfit,
        ridge: float,
        never: list[tuple[Bools, Bools]],
        start: int,
    ) -> None:
        self.given, self.earlier, self.response = given, recorded[:, :-1], recorded[:, -1]
        self.crossfit, self.never = crossfit, never
        self.place = slice(start, start + given.shape[1] + self.earlier.shape[1])
        self.fits: list[LogisticFit | None] = []  # None if the rows of a fit have one class
        self.coefficients: list[Floats] = []  # (p + j,) per fold; an infinite intercept if they have one class
        design = self.design
        for k in range(crossfit.n_folds):
            fit = self._fit(design, np.flatnonzero(self.training(k)), ridge)
            self.fits.append(fit if np.isfinite(fit.coefficients).all() else None)
            self.coefficients.append(fit.coefficients)

    def _fit(self, design: Floats, rows: Ints, ridge: float) -> LogisticFit:
        y, weight = self.response[rows], self.crossfit.row_weight
        if y.all() or not y.any():  # one class only
            coefficients = np.zeros(design.shape[1])
            coefficients[0] = np.inf if y.all() else -np.inf
            return LogisticFit(coefficients, np.zeros((len(coefficients),) * 2), True)
        if weight is None:
            return fit_logistic(rows_of(design, rows), y, ridge=ridge, tolerance=EXACT)
        return fit_logistic(rows_of(design, rows), y, weight[rows], ridge=ridge, tolerance=ROUGH)

    @property
    def design(self) -> Floats:
        """Regressors of all rows (n, p + j), built on demand: those of all models would need much memory."""
        return np.concatenate([self.given.T, self.earlier.T]).T

    def training(self, k: int) -> Bools:
        """Rows that the model of fold k is fitted on, (n,)."""
        rows = self.crossfit.training(k)
        for needed, where in self.never:
            rows &= ~(where & np.logical_and.reduce(self.earlier | ~needed, axis=1))
        return rows

    def fitted(self, k: int) -> Floats:
        """Probability in every row by the model of fold k, (n,)."""
        return sigmoid(self.design @ self.coefficients[k])

    def log_odds(self, k: int, rows: Ints) -> Floats:
        """Log-odds in these rows by the model of fold k if no earlier group is recorded; independent of the chunk."""
        return np.asarray(np.einsum("ij,j->i", rows_of(self.given, rows), self.coefficients[k][: self.given.shape[1]]))

    def effects(self, k: int) -> Floats:
        """Effects of the earlier indicators on the log-odds by the model of fold k, (j,)."""
        return self.coefficients[k][self.given.shape[1] :]


class Gradient(NamedTuple):
    """d log P / d theta of pairs of row and set in all coefficients, and the lines that have these pairs."""

    lines: Ints  # (l,)
    place: Ints  # (l,) the pair of each line
    fold: int  # fold whose models give the probabilities
    columns: Floats  # (c, p)


class _PatternLaw(NamedTuple):
    """The law of the pattern in some rows: log-odds of each indicator given the earlier ones."""

    log_odds: Floats  # (n, q), if no earlier group is recorded
    offsets: list[Floats]  # (2^j,), what each earlier pattern, as a bit mask, adds to the log-odds of j
    never: list[tuple[int, Bools, Bools]]  # j, earlier patterns (2^j,), rows (n,): j is not recorded after these

    @staticmethod
    def of(models: Sequence[PatternModel], k: int, rows: Ints) -> _PatternLaw:
        """The law in these rows by the models of fold k."""
        log_odds, offsets, never = np.empty((len(rows), len(models))), [], []
        for j, model in enumerate(models):
            log_odds[:, j] = model.log_odds(k, rows)
            patterns = np.arange(1 << j)
            offsets.append(((patterns[:, None] >> np.arange(j) & 1) * model.effects(k)).sum(axis=1))
            for needed, where in model.never:
                mask = int((needed * (1 << np.arange(j))).sum())
                never.append((j, patterns & mask == mask, where[rows]))
        return _PatternLaw(log_odds, offsets, never)

    def conditionals(self, rows: Ints) -> Iterator[Floats]:
        """P(r_j = 1 | r_1, ..., r_{j-1}) of all earlier patterns as bit masks, shape (b, 2^j), for one j after the other."""
        for j, offset in enumerate(self.offsets):
            p = sigmoid(self.log_odds[rows, j][:, None] + offset[None, :])
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


def summed_probability(models: Sequence[PatternModel], fold: Ints, rows: Ints, sets: Bools, index: Ints) -> Floats:
    """P(R >= sets[index]) in these rows (m,) for sets (u, q), each by the models of the row's fold."""
    q = len(models)
    mask = (sets * (1 << np.arange(q))).sum(axis=1)[index]
    who, place = np.unique(rows, return_inverse=True)
    out = np.empty(len(rows))
    step = max(CELLS >> q, 1)
    order = np.argsort(place, kind="stable")
    bounds = np.searchsorted(place[order], np.arange(0, len(who) + step, step))
    for b, start in enumerate(range(0, len(who), step)):
        table = _supersets(models, fold, who[start : start + step])
        lines = order[bounds[b] : bounds[b + 1]]
        out[lines] = table[place[lines] - start, mask[lines]]
    return out


def _supersets(models: Sequence[PatternModel], fold: Ints, rows: Ints) -> Floats:
    """P(R >= S) for all S as bit masks, shape (len(rows), 2^q)."""
    q = len(models)
    out = np.empty((len(rows), 1 << q))
    for k in np.unique(fold[rows]):
        mine = np.flatnonzero(fold[rows] == k)
        law = _PatternLaw.of(models, int(k), rows[mine])
        joint = law.joint(law.conditionals(np.arange(len(mine))), len(mine))
        for j in range(q):  # sum over supersets, one bit at a time
            cube = joint.reshape(len(mine), -1, 2, 1 << j)
            cube[:, :, 0] += cube[:, :, 1]
        out[mine] = joint
    return out


class _Jobs(NamedTuple):
    """Jobs of sums over patterns. A job serves one or all sets of a row.

    ``common`` is the intersection of these sets, ``union`` their union.
    """

    of_pair: Ints  # (m,)
    row: Ints  # (b,)
    common: Ints  # (b,) bit masks
    union: Ints  # (b,)


def summed_moments(models: Sequence[PatternModel], k: int, rows: Ints, sets: Bools) -> Iterator[tuple[Ints, Floats]]:
    r"""Moments of the patterns that contain a set, which give the gradient of its log probability.

    .. math:: E[r_j - p_j \mid R \ge S], \qquad E[(r_j - p_j) \, r_l \mid R \ge S], \quad p_j = P(r_j = 1 \mid r_{<j}),

    because :math:`\partial P(R = r) / \partial\eta_j = P(R = r) \, (r_j - p_j)` for the log-odds of j. The sets of a row are
    summed together, one group at a time as for the probabilities, unless one by one is less work.

    Parameters
    ----------
    models : sequence of PatternModel
        Models of the indicators.
    k : int
        Fold of the rows.
    rows, sets : ndarray of int, shape (m,), and of bool, shape (m, q)
        Different pairs of row and set, sorted by row; no empty set.

    Yields
    ------
    pairs : ndarray of int
        Which pairs.
    moments : ndarray of shape (len(pairs), q, 1 + q)
        The first at [:, j, 0], the second at [:, j, 1 + l].
    """
    who, place = np.unique(rows, return_inverse=True)
    law, masks = _PatternLaw.of(models, k, who), (sets * (1 << np.arange(len(models)))).sum(axis=1)
    q = len(models)
    size = np.array([bin(mask).count("1") for mask in range(1 << q)])
    jobs = _jobs(place, masks, size)
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
            now, asked = mine[start : start + step], pairs[bounds[b] : bounds[b + 1]]
            sums, positions = _sums(law, jobs.row[now], jobs.common[now], jobs.union[now], bits)
            job = np.searchsorted(now, jobs.of_pair[asked])
            corner = ((masks[asked][:, None] >> positions[job] & 1) << np.arange(bits)).sum(axis=1)
            found = sums[job, corner]
            total = found[:, -1:]
            share = np.divide(found[:, :-1], total, out=np.zeros_like(found[:, :-1]), where=total > 0)
            yield asked, share.reshape(len(asked), q, 1 + q)


def _jobs(rows: Ints, masks: Ints, size: Ints) -> _Jobs:
    """All sets of a row in one job, or one job per set, whichever is less work."""
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


def _sums(law: _PatternLaw, rows: Ints, common: Ints, union: Ints, bits: int) -> tuple[Floats, Ints]:
    """Sums over the patterns that contain ``common``, for each subset of the other groups of ``union``, and these groups.

    The sums are (b, 2^bits, q (1 + q) + 1): P(r) (r_j - p_j) times 1 and r_l, and P(r) last.
    """
    q, b = law.log_odds.shape[1], len(rows)
    rest, outside = _members(union & ~common, q, bits), _members(~union, q, None)
    code = common[:, None, None] + _subsets(rest)[:, :, None] + _subsets(outside)[:, None, :]
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
    left, right = (each.reshape(len(each), *shape).transpose(1, 0, 2) for each in (residual, beside))
    out = np.empty((b << bits, q * (1 + q) + 1))
    out[:, :-1] = (left @ right.transpose(0, 2, 1)).reshape(shape)
    out[:, -1] = joint.reshape(shape).sum(axis=1)
    for j in range(bits):  # sum over supersets, one group at a time
        cube = out.reshape(b, -1, 2, out.shape[1] << j)
        cube[:, :, 0] += cube[:, :, 1]
    return out.reshape(b, 1 << bits, -1), rest


def _members(masks: Ints, q: int, bits: int | None) -> Ints:
    """Groups of each mask, the same number in all of them, (b, bits)."""
    has = (masks[:, None] >> np.arange(q) & 1) > 0
    bits = int(has[0].sum()) if bits is None else bits
    return np.nonzero(has)[1].reshape(len(masks), bits)


def _subsets(groups: Ints) -> Ints:
    """Masks of all subsets of these groups (b, k), shape (b, 2^k), the first group's bit the lowest."""
    k = groups.shape[1]
    chosen = np.arange(1 << k)[:, None] >> np.arange(k) & 1
    return np.asarray((1 << groups) @ chosen.T)
