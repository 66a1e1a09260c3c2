"""Superset propensity from one model of the whole recording pattern."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy

import numpy as np
from scipy.special import expit

from ...arrays import Bools, Floats, Ints, any_of, every, index_of, merge
from ...data import Retrospective
from ...missingness.assumptions import Conditioning
from ...support import SupportMap
from .answer import Answer, PatternParts
from .chain import canonical_order
from .factor import Form, Forms
from .logistic import LogisticFit, fit_logistic
from .pattern_scores import PatternScores
from .patterns import CELLS, Gradient, PatternLaw, PatternModel, moments

__all__ = ["MAX_GROUPS", "AutoregressivePropensity"]


MAX_GROUPS = 14  # groups with gaps: 2^14 patterns per row; with more of them, patterns are sampled
_DRAWS = 64  # sampled patterns per row and set


class AutoregressivePropensity:
    r"""P(R >= S | given) for every S at once.

    .. math:: P(R = r \mid X_o) = \prod_j P(R_{g_j} = r_j \mid X_o, r_1, \dots, r_{j-1}), \qquad
       P(R \ge S \mid X_o) = \sum_{r \ge S} P(R = r \mid X_o)

    One logistic model per group, with the earlier indicators as regressors, so G fits per fold where the chain
    rule needs one fit per set. It assumes more than the chain: earlier indicators act additively on the log-odds.

    With more than 14 groups, the sum runs over patterns that are drawn: with the groups of S recorded and every other
    indicator drawn from its model, in order,

    .. math:: P(R \ge S \mid X_o) = E\Big[\prod_{j \in S} P(R_{g_j} = 1 \mid X_o, r_1, \dots, r_{j-1})\Big],

    the mean of 64 draws. These are the same for every row and set, a Latin hypercube, so that the answer is a function of
    X_o and S alone. Parameters are those of `ChainPropensity`.

    Standard errors know that it was learned (`PatternScores`): with :math:`z_j = (X_o, r_1, \dots, r_{j-1})` the regressors
    of model j,

    .. math:: \frac{\partial \log P(R \ge S \mid X_o)}{\partial\theta_j} = E[(r_j - p_j) \, z_j \mid R \ge S, X_o],

    over all patterns, or over the drawn ones in proportion to their product. The latter is the derivative of the sum over
    all patterns, estimated from the draws, not that of the draws, which jump where a drawn indicator changes.
    """

    learned = True
    estimator = None
    root = None  # nothing to adjust for
    stacked = True  # whether standard errors are to know of the learning

    def __init__(
        self,
        data: Retrospective,
        given: Conditioning,
        fold: Ints,
        min_propensity: float = 0.0,
        row_weight: Floats | None = None,
        unsupported: SupportMap | None = None,
        form: str = "linear",
    ) -> None:
        self.unsupported = unsupported
        self.data, self.given, self.fold, self.min_propensity = data, given, fold, min_propensity
        self.order = canonical_order(data)
        self.forms = Forms(given.matrix(data), data.recorded, None, data.cluster, form)
        self.designs = [self.forms.inputs(_logistic(self.forms.of(g))).design for g in self.order]
        self.n_folds = int(fold.max()) + 1
        self._learn(row_weight)

    def _learn(self, row_weight: Floats | None) -> None:
        recorded, fold = self.data.recorded[:, self.order], self.fold
        everyone = np.ones(len(fold), dtype=bool) if row_weight is None else row_weight > 0
        self.models: list[PatternModel] = []
        self.fits: list[list[LogisticFit]] = [[] for _ in range(self.n_folds)]  # by fold, then in order
        start = 0
        for j, design in enumerate(self.designs):
            earlier, outcome, training = recorded[:, :j], recorded[:, j], []
            for k, fits in enumerate(self.fits):
                rows = (everyone & (fold != k) if self.n_folds > 1 else everyone) & ~self._never(j, recorded)
                fits.append(_fit(design, self._ridge(j), earlier, outcome, rows, row_weight))
                training.append(np.flatnonzero(rows))
            mine = [fits[j] for fits in self.fits]
            self.models.append(PatternModel(design, earlier, outcome, training, mine, start))
            start = self.models[-1].place.stop

    @property
    def sampled(self) -> bool:
        """Whether patterns are drawn, because there are too many to add up."""
        return len(self.order) > MAX_GROUPS

    def _ridge(self, j: int) -> float:
        return _logistic(self.forms.of(self.order[j])).ridge

    def _last(self, j: int) -> list[tuple[Bools, Bools]]:
        """Violations whose last group in order is j: the earlier groups (j,), and the rows."""
        found = []
        for violation in self.unsupported.violations if self.unsupported else ():
            required = violation.required[self.order]
            if violation.n_recorded:  # rare, not impossible: the model may say how rare
                continue
            if required[j] and not required[j + 1 :].any():
                found.append((required[:j], violation.rows))
        return found

    def _never(self, j: int, recorded: Bools) -> Bools:
        """Rows in which group j cannot be recorded, given what is: its model is not learned from them."""
        out = np.zeros(len(recorded), dtype=bool)
        for earlier, rows in self._last(j):
            out |= rows & every(recorded[:, :j] | ~earlier)
        return out

    def answer(self, rows: Ints, sets: Bools, lines: list[Ints]) -> Answer:
        """The same where ``lines`` says which rows go with each set."""
        index = index_of(lines, len(rows))
        return Answer(self.probability(rows, sets, index), PatternParts(rows, sets[:, self.order], index))

    def scores(self, row_weight: Floats) -> PatternScores | None:
        """What standard errors have to know of the learning; None where they are to know nothing."""
        return PatternScores(self, row_weight) if self.stacked else None

    def gradients(self, parts: PatternParts) -> Iterator[Gradient]:
        """Derivatives of log P of these lines in all coefficients, chunk by chunk; lines that ask for no group have none."""
        fold = np.where(any_of(parts.sets)[parts.set_of], self.fold[parts.rows], -1)
        for k in range(self.n_folds):
            lines = np.flatnonzero(fold == k)
            if len(lines) == 0:
                continue
            first, place = _distinct(parts.rows[lines], parts.sets[parts.set_of[lines]])
            by_pair = np.argsort(place, kind="stable")
            starts = np.searchsorted(place[by_pair], np.arange(len(first) + 1))
            rows, sets = parts.rows[lines[first]], parts.sets[parts.set_of[lines[first]]]
            for pairs, found in self._moments(k, rows, sets):
                counts = starts[pairs + 1] - starts[pairs]
                offset = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
                mine = lines[by_pair[np.repeat(starts[pairs], counts) + offset]]
                yield Gradient(mine, np.repeat(np.arange(len(pairs)), counts), k, self._columns(rows[pairs], found))

    def _moments(self, k: int, rows: Ints, sets: Bools) -> Iterator[tuple[Ints, Floats]]:
        """Moments of the patterns that contain each set, pieces of which fit into memory."""
        step = max(CELLS // (self.models[-1].place.stop + len(self.order) ** 2), 1)
        if self.sampled:
            step = min(step, max(CELLS // (4 * _DRAWS * len(self.order)), 1))
            found: Iterator[tuple[Ints, Floats]] = (
                (np.arange(i, min(i + step, len(rows))), self._drawn_moments(k, rows[i : i + step], sets[i : i + step]))
                for i in range(0, len(rows), step)
            )
        else:
            who, place = np.unique(rows, return_inverse=True)
            found = moments(self._law(k, who), place, (sets * (1 << np.arange(len(self.order)))).sum(axis=1))
        for pairs, each in found:
            for i in range(0, len(pairs), step):
                yield pairs[i : i + step], each[i : i + step]

    def _columns(self, rows: Ints, found: Floats) -> Floats:
        """The gradient in the coefficients of all models, of moments (c, q, 1 + q) in these rows."""
        blocks = []
        for j, design in enumerate(self.designs):
            blocks += [found[:, j, :1] * design[rows], found[:, j, 1 : 1 + j]]
        return np.concatenate(blocks, axis=1)

    def _law(self, k: int, rows: Ints) -> PatternLaw:
        """The law of the pattern in these rows by the models of fold k."""
        log_odds, offsets, never = np.empty((len(rows), len(self.order))), [], []
        patterns = np.zeros((1, 0))
        for j, fit in enumerate(self.fits[k]):
            z = self.designs[j][rows]
            given, earlier = np.split(fit.coefficients, [z.shape[1]])
            log_odds[:, j] = (z * given).sum(axis=1)
            offsets.append((patterns * earlier).sum(axis=1))
            half = len(patterns)
            patterns = np.column_stack([np.tile(patterns, (2, 1)), np.repeat([0.0, 1.0], half)])
            for needed, where in self._last(j):
                required = int((needed * (1 << np.arange(j))).sum())
                never.append((j, np.arange(1 << j) & required == required, where[rows]))
        return PatternLaw(log_odds, offsets, never)

    def probability(self, rows: Ints, sets: Bools, index: Ints) -> Floats:
        """P(R >= sets[index] | given) in these rows, before any clipping."""
        if self.sampled:
            return self._drawn(rows, sets[:, self.order][index])
        bits = 1 << np.arange(len(self.order))
        mask = (sets[:, self.order] * bits).sum(axis=1)[index]
        who, place = np.unique(rows, return_inverse=True)
        out = np.empty(len(rows))
        step = max(CELLS >> len(self.order), 1)
        order = np.argsort(place, kind="stable")
        bounds = np.searchsorted(place[order], np.arange(0, len(who) + step, step))
        for b, start in enumerate(range(0, len(who), step)):
            table = self._supersets(who[start : start + step])
            lines = order[bounds[b] : bounds[b + 1]]
            out[lines] = table[place[lines] - start, mask[lines]]
        return out

    def _supersets(self, rows: Ints) -> Floats:
        """P(R >= S) for all S as bit masks, shape (len(rows), 2^q)."""
        q = len(self.order)
        out = np.empty((len(rows), 1 << q))
        for k in range(self.n_folds):
            mine = np.flatnonzero(self.fold[rows] == k)
            if len(mine) == 0:
                continue
            law = self._law(k, rows[mine])
            joint = law.joint(law.conditionals(np.arange(len(mine))), len(mine))
            for j in range(q):  # sum over supersets, one bit at a time
                cube = joint.reshape(len(mine), -1, 2, 1 << j)
                cube[:, :, 0] += cube[:, :, 1]
            out[mine] = joint
        return out

    def _drawn(self, rows: Ints, required: Bools) -> Floats:
        """P(R >= S) of the sets ``required`` (m, q), from drawn patterns; a pair of row and set counts once."""
        first, place = _distinct(rows, required)
        rows, required = rows[first], required[first]
        out, step = np.empty(len(rows)), max(CELLS // (_DRAWS * len(self.order)), 1)
        for k, fits in enumerate(self.fits):
            mine = np.flatnonzero(self.fold[rows] == k)
            for start in range(0, len(mine), step):
                part = mine[start : start + step]
                out[part] = self._block(fits, rows[part], required[part])
        return out[place]

    def _block(self, fits: list[LogisticFit], rows: Ints, required: Bools) -> Floats:
        weight = np.ones((len(rows), _DRAWS))
        for j, (p, _) in enumerate(self._draw(fits, rows, required)):
            weight *= np.where(required[:, [j]], p, 1.0)
        return np.asarray(weight.mean(axis=1))

    def _draw(self, fits: list[LogisticFit], rows: Ints, required: Bools) -> Iterator[tuple[Floats, Floats]]:
        """Group by group its probability (m, 64) given what was drawn, and the patterns (q, m, 64) up to it."""
        uniform = _latin_hypercube(len(self.order))
        pattern = np.zeros((len(self.order), len(rows), _DRAWS))  # groups first: sums over them are then quick
        for j, fit in enumerate(fits):
            z = self.designs[j][rows]
            given, earlier = np.split(fit.coefficients, [z.shape[1]])
            drawn = (earlier @ pattern[:j].reshape(j, len(rows) * _DRAWS)).reshape(len(rows), _DRAWS)
            p = expit((z * given).sum(axis=1)[:, None] + drawn)
            for needed, where in self._last(j):
                p[where[rows][:, None] & (pattern[:j][needed] > 0).all(axis=0)] = 0.0
            pattern[j] = required[:, [j]] | (uniform[:, j] < p)
            yield p, pattern

    def _drawn_moments(self, k: int, rows: Ints, required: Bools) -> Floats:
        r"""Moments (m, q, 1 + q) of the patterns that contain each set, as `moments` gives them, from drawn patterns.

        With W the product over the groups of S and :math:`W_{<j}` that over those before j, patterns count W; for j outside
        S it is :math:`W - W_{<j} \bar W / \bar W_{<j}`, because :math:`E[r_j - p_j \mid r_{<j}] = 0` there, which takes most of
        the noise away and all of it where j comes after S.
        """
        q, weight = len(self.order), np.ones((len(rows), _DRAWS))
        residual, before = np.empty((2, q, len(rows), _DRAWS))
        for j, (p, pattern) in enumerate(self._draw(self.fits[k], rows, required)):
            before[j] = weight
            weight = weight * np.where(required[:, [j]], p, 1.0)
            residual[j] = pattern[j] - p
        total = weight.sum(axis=1)
        earlier = before.sum(axis=2)
        expected = np.divide(total, earlier, out=np.zeros_like(earlier), where=earlier > 0)
        expected[required.T] = 0.0
        residual *= weight - before * expected[:, :, None]
        beside = np.concatenate([np.ones((1, *weight.shape)), pattern])
        found = residual.transpose(1, 0, 2) @ beside.transpose(1, 2, 0)
        total = total[:, None, None]
        return np.asarray(np.divide(found, total, out=np.zeros_like(found), where=total > 0))

    def _again(self, row_weight: Floats | None, unsupported: SupportMap | None) -> AutoregressivePropensity:
        new = copy(self)
        new.unsupported = unsupported
        new._learn(row_weight)
        return new

    def refit(self, row_weight: Floats) -> AutoregressivePropensity:
        """Learn again with these row weights."""
        return self._again(row_weight, self.unsupported)

    def excluding(self, unsupported: SupportMap) -> AutoregressivePropensity:
        """Learn each model from the rows in which its group can be recorded."""
        return self._again(None, unsupported)

    @property
    def converged(self) -> bool:
        """Whether every logistic fit converged."""
        return all(fit.converged for fits in self.fits for fit in fits)


def _logistic(form: Form) -> Form:
    """The form itself, or splines in place of trees, which have no coefficients for the earlier indicators."""
    return form if form.kind != "boosting" else Form("spline")


def _latin_hypercube(q: int) -> Floats:
    """Points (64, q) in the unit cube, each coordinate spread evenly; always the same."""
    rng = np.random.default_rng(0)
    return np.column_stack([(rng.permutation(_DRAWS) + 0.5) / _DRAWS for _ in range(q)])


def _fit(
    design: Floats, ridge: float, earlier: Bools, outcome: Bools, rows: Bools, weight: Floats | None
) -> LogisticFit:
    regressors = np.column_stack([design[rows], earlier[rows]])
    y = outcome[rows]
    if y.all() or not y.any():  # one class only: certain, and no fit
        coefficients = np.zeros(regressors.shape[1])
        coefficients[0] = np.inf if y.all() else -np.inf
        return LogisticFit(coefficients, np.zeros((len(coefficients),) * 2), True)
    return fit_logistic(regressors, y, None if weight is None else weight[rows], ridge=ridge)


def _distinct(rows: Ints, sets: Bools) -> tuple[Ints, Ints]:
    """One representative of each pair of row and set, and the place of every pair among them."""
    order = np.argsort(rows, kind="stable")
    first, inverse = merge(rows[order], sets[order])
    place = np.empty(len(rows), dtype=np.intp)
    place[order] = inverse
    return order[first], place
