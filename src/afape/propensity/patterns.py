"""Recording patterns: models of the indicators in order, and sums over all patterns that contain a set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from .._arrays import Bools, Floats, Ints
from .factor import Crossfit
from .logistic import (
    LogisticFit,
    fit_logistic,
    log_odds_variance,
    rows_of,
    sigmoid,
)

__all__ = ["CELLS", "Gradient", "PatternModel", "summed_moments", "summed_probability"]

CELLS = 2**21  # numbers held at a time
_ROUNDING = 1e-10  # a probability of being missing below this is 0 up to rounding


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
        self._variances: dict[int, Floats] = {}
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
        weight = None if weight is None else weight[rows]
        firth, tolerance = self.crossfit.n_folds > 1, self.crossfit.tolerance  # as in a chain
        return fit_logistic(rows_of(design, rows), y, weight, firth=firth, ridge=ridge, tolerance=tolerance)

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

    def variance(self, k: int) -> Floats:
        """Covariance of the coefficients of fold k, (p + j, p + j), with clusters if rows have them; 0 if nothing was learned."""
        if k not in self._variances:
            fit = self.fits[k]
            if fit is None:
                self._variances[k] = np.zeros((len(self.coefficients[k]),) * 2)
            else:
                rows = np.flatnonzero(self.training(k))
                self._variances[k] = self.crossfit.covariance(
                    fit, rows_of(self.design, rows), self.response[rows], rows
                )
        return self._variances[k]

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


def summed_probability(
    models: Sequence[PatternModel], fold: Ints, rows: Ints, sets: Bools, index: Ints, corrected: bool = False
) -> Floats:
    r"""P(R >= sets[index]) in these rows (m,) for sets (u, q), each by the models of the row's fold.

    ``corrected``: shifted so that the weight 1 / P is unbiased to second order, as the factors of a chain are. For P as a
    function of the coefficients, with errors of covariance V, :math:`E[1 / \hat P] \approx e^{s} / P` with

    .. math:: s = \tfrac12 \, tr \, V (\nabla \log P \, \nabla \log P' - \nabla^2 \log P)
       = \sum_j \Big( m_j' V_j m_j - \tfrac12 E[(r_j - p_j)(1 - 2 p_j) \, z_j' V_j z_j \mid R \ge S] \Big),

    where :math:`m_j = E[(r_j - p_j) z_j \mid R \ge S]`. The models have a block V_j each, because each is fitted given the
    earlier indicators. The log-odds of P are raised by s / (1 - P); with one group, that is v / 2.
    """
    q = len(models)
    mask = (sets * (1 << np.arange(q))).sum(axis=1)[index]
    who, place = np.unique(rows, return_inverse=True)
    out = np.empty(len(rows))
    step = max(CELLS // ((q + 2 if corrected else 1) << q), 1)
    order = np.argsort(place, kind="stable")
    bounds = np.searchsorted(place[order], np.arange(0, len(who) + step, step))
    for b, start in enumerate(range(0, len(who), step)):
        lines, here = order[bounds[b] : bounds[b + 1]], who[start : start + step]
        of_line = fold[here][place[lines] - start]
        for k in np.unique(of_line):
            mine, chunk = lines[of_line == k], here[fold[here] == k]
            at = np.searchsorted(chunk, who[place[mine]])
            out[mine] = _chunk_probability(models, int(k), chunk, at, mask[mine], corrected)
    return out


def _chunk_probability(
    models: Sequence[PatternModel], k: int, rows: Ints, at: Ints, masks: Ints, corrected: bool
) -> Floats:
    """P(R >= S) of the sets ``masks`` in rows[at], by the models of fold k."""
    law = _PatternLaw.of(models, k, rows)
    given = list(law.conditionals(np.arange(len(rows))))
    joint = law.joint(given, len(rows))
    if not corrected:
        return np.asarray(_over_supersets(joint)[at, masks])
    shift, curved = np.zeros(len(at)), np.zeros((len(rows), 1))
    moments = _tables(given, joint)
    p = _over_supersets(joint.copy())[at, masks]
    inverse = np.divide(1.0, p, out=np.zeros_like(p), where=p > 0)
    for j, (model, share, table) in enumerate(zip(models, given, moments, strict=True)):
        variance = _Variance.of(model, k, rows)
        first = table[at, masks] * inverse
        second = table[at[:, None], masks[:, None] | 1 << np.arange(j)] * inverse[:, None]
        shift += variance.of_moments(at, first, second)
        bent = (1 - 2 * share) * variance.of_patterns(j)
        curved = np.concatenate([curved - share * bent, curved + (1 - share) * bent], axis=1)
    shift -= _over_supersets(joint * curved)[at, masks] * inverse / 2
    missing = 1 - p
    learned = (p > 0) & (missing > _ROUNDING)
    factor = np.exp(-np.divide(shift, missing, out=np.zeros_like(p), where=learned))
    weight = 1 + np.divide(missing * factor, p, out=np.zeros_like(p), where=learned)
    return np.asarray(np.where(learned, 1 / weight, p))


class _Variance(NamedTuple):
    """Variance of the log-odds of one model, as a quadratic function of the earlier indicators r."""

    constant: Floats  # (n,)
    linear: Floats  # (n, j)
    quadratic: Floats  # (j, j)

    @staticmethod
    def of(model: PatternModel, k: int, rows: Ints) -> _Variance:
        x, v = rows_of(model.given, rows), model.variance(k)
        own, beside = v[: x.shape[1], : x.shape[1]], v[: x.shape[1], x.shape[1] :]
        return _Variance(log_odds_variance(own, x), x @ beside, v[x.shape[1] :, x.shape[1] :])

    def of_moments(self, at: Ints, first: Floats, second: Floats) -> Floats:
        """M' V m for m = (first times x, second), (c,)."""
        cross = np.einsum("cl,cl->c", self.linear[at], second)
        return np.asarray(
            first**2 * self.constant[at] + 2 * first * cross + np.einsum("cl,cl->c", second @ self.quadratic, second)
        )

    def of_patterns(self, j: int) -> Floats:
        """Z' V z for all earlier patterns, (n, 2^j)."""
        bits = (np.arange(1 << j)[:, None] >> np.arange(j) & 1).astype(float)
        alone = np.einsum("rl,rl->r", bits @ self.quadratic, bits)
        return np.asarray(self.constant[:, None] + 2 * self.linear @ bits.T + alone)


def _over_supersets(table: Floats) -> Floats:
    """Sums over the supersets of every set, (n, 2^q), in place: one group at a time."""
    n, size = table.shape
    for j in range(size.bit_length() - 1):
        cube = table.reshape(n, -1, 2, 1 << j)
        cube[:, :, 0] += cube[:, :, 1]
    return table


def _tables(given: Sequence[Floats], joint: Floats) -> Iterator[Floats]:
    r"""For each j in turn, the sums :math:`\sum_{r \ge S} P(r) (r_j - p_j)` for all S as bit masks, (n, 2^q)."""
    for j, p in enumerate(given):
        table = joint.copy()
        cube = table.reshape(len(p), -1, 2, 1 << j)
        cube[:, :, 0] *= -p[:, None]
        cube[:, :, 1] *= 1 - p[:, None]
        yield _over_supersets(table)


def summed_moments(models: Sequence[PatternModel], k: int, rows: Ints, sets: Bools) -> Iterator[tuple[Ints, Floats]]:
    r"""Moments of the patterns that contain a set, which give the gradient of its log probability.

    .. math:: E[r_j - p_j \mid R \ge S], \qquad E[(r_j - p_j) \, r_l \mid R \ge S], \quad p_j = P(r_j = 1 \mid r_{<j}),

    because :math:`\partial P(R = r) / \partial\eta_j = P(R = r) \, (r_j - p_j)` for the log-odds of j. The
    second, times P(R >= S), is the sum of the first over the patterns that contain S and l.

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
        The first at [:, j, 0], the second at [:, j, 1 + l] for l before j; 0 for other l.
    """
    q = len(models)
    who, place = np.unique(rows, return_inverse=True)
    masks, step = (sets * (1 << np.arange(q))).sum(axis=1), max(CELLS // (4 << q), 1)
    for start in range(0, len(who), step):
        low, high = np.searchsorted(place, [start, start + step])
        chunk, at, asked = who[start : start + step], place[low:high] - start, masks[low:high]
        law = _PatternLaw.of(models, k, chunk)
        given = list(law.conditionals(np.arange(len(chunk))))
        joint = law.joint(given, len(chunk))
        total = _over_supersets(joint.copy())[at, asked]
        out = np.zeros((len(at), q, 1 + q))
        for j, table in enumerate(_tables(given, joint)):
            out[:, j, 0] = table[at, asked]
            out[:, j, 1 : 1 + j] = table[at[:, None], asked[:, None] | 1 << np.arange(j)]
        inverse = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
        out *= inverse[:, None, None]
        yield np.arange(low, high), out
