"""Superset propensity from one model of the whole recording pattern."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from ...arrays import Bools, Floats, Ints, every, index_of, merge
from ...data import Retrospective
from ...missingness.assumptions import Conditioning
from ...support import SupportMap
from .chain import Answer, canonical_order
from .factor import Form, Forms
from .logistic import LogisticFit, fit_logistic

__all__ = ["MAX_GROUPS", "AutoregressivePropensity"]


MAX_GROUPS = 14  # groups with gaps: 2^14 patterns per row; with more of them, patterns are sampled
_CELLS = 2**21  # patterns times rows held at a time
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
    """

    learned = True
    estimator = None

    def __init__(
        self,
        data: Retrospective,
        given: Conditioning,
        fold: Ints,
        min_propensity: float = 0.0,
        row_weight: Floats | None = None,
        unsupported: SupportMap | None = None,
        form: str = "linear",
        forms: Forms | None = None,
    ) -> None:
        self.unsupported, self.form = unsupported, form
        self.data, self.given, self.fold, self.min_propensity = data, given, fold, min_propensity
        self.order = canonical_order(data)
        forms = Forms(given.matrix(data), data.recorded, None, data.cluster, form) if forms is None else forms
        self.forms = forms
        self.designs = [forms.inputs(_logistic(forms.of(g))).design for g in self.order]
        n_folds = int(fold.max()) + 1
        recorded = data.recorded[:, self.order]
        everyone = np.ones(len(fold), dtype=bool) if row_weight is None else row_weight > 0
        self.fits = [
            [
                _fit(
                    self.designs[j],
                    self._ridge(j),
                    recorded[:, :j],
                    recorded[:, j],
                    (everyone & (fold != k) if n_folds > 1 else everyone) & ~self._never(j, recorded),
                    row_weight,
                )
                for j in range(len(self.order))
            ]
            for k in range(n_folds)
        ]

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
        return Answer(self.probability(rows, sets, index_of(lines, len(rows))))

    def probability(self, rows: Ints, sets: Bools, index: Ints) -> Floats:
        """P(R >= sets[index] | given) in these rows, before any clipping."""
        if self.sampled:
            return self._drawn(rows, sets[:, self.order][index])
        bits = 1 << np.arange(len(self.order))
        mask = (sets[:, self.order] * bits).sum(axis=1)[index]
        who, place = np.unique(rows, return_inverse=True)
        out = np.empty(len(rows))
        step = max(_CELLS >> len(self.order), 1)
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
        for k, fits in enumerate(self.fits):
            mine = np.flatnonzero(self.fold[rows] == k)
            if len(mine) == 0:
                continue
            joint = np.ones((len(mine), 1))
            patterns = np.zeros((1, 0))
            for j, fit in enumerate(fits):
                z = self.designs[j][rows[mine]]
                given, earlier = np.split(fit.coefficients, [z.shape[1]])
                p = expit((z * given).sum(axis=1)[:, None] + (patterns * earlier).sum(axis=1)[None, :])
                for needed, where in self._last(j):
                    p[np.ix_(where[rows[mine]], every((patterns > 0) | ~needed))] = 0.0
                joint = np.concatenate([joint * (1 - p), joint * p], axis=1)
                half = len(patterns)
                patterns = np.column_stack([np.tile(patterns, (2, 1)), np.repeat([0.0, 1.0], half)])
            for j in range(q):  # sum over supersets, one bit at a time
                cube = joint.reshape(len(mine), -1, 2, 1 << j)
                cube[:, :, 0] += cube[:, :, 1]
            out[mine] = joint
        return out

    def _drawn(self, rows: Ints, required: Bools) -> Floats:
        """P(R >= S) of the sets ``required`` (m, q), from drawn patterns; a pair of row and set counts once."""
        first, place = _distinct(rows, required)
        rows, required = rows[first], required[first]
        out, step = np.empty(len(rows)), max(_CELLS // (_DRAWS * len(self.order)), 1)
        for k, fits in enumerate(self.fits):
            mine = np.flatnonzero(self.fold[rows] == k)
            for start in range(0, len(mine), step):
                part = mine[start : start + step]
                out[part] = self._block(fits, rows[part], required[part])
        return out[place]

    def _block(self, fits: list[LogisticFit], rows: Ints, required: Bools) -> Floats:
        uniform = _latin_hypercube(len(self.order))
        pattern = np.zeros((len(self.order), len(rows), _DRAWS))  # groups first: sums over them are then quick
        weight = np.ones((len(rows), _DRAWS))
        for j, fit in enumerate(fits):
            z = self.designs[j][rows]
            given, earlier = np.split(fit.coefficients, [z.shape[1]])
            drawn = (earlier @ pattern[:j].reshape(j, len(rows) * _DRAWS)).reshape(weight.shape)
            p = expit((z * given).sum(axis=1)[:, None] + drawn)
            for needed, where in self._last(j):
                p[where[rows][:, None] & (pattern[:j][needed] > 0).all(axis=0)] = 0.0
            needed_now = required[:, [j]]
            weight *= np.where(needed_now, p, 1.0)
            pattern[j] = needed_now | (uniform[:, j] < p)
        return np.asarray(weight.mean(axis=1))

    def refit(self, row_weight: Floats) -> AutoregressivePropensity:
        """Learn again with these row weights."""
        return AutoregressivePropensity(
            self.data, self.given, self.fold, self.min_propensity, row_weight, self.unsupported, self.form, self.forms
        )

    def excluding(self, unsupported: SupportMap) -> AutoregressivePropensity:
        """Learn each model from the rows in which its group can be recorded."""
        return AutoregressivePropensity(
            self.data, self.given, self.fold, self.min_propensity, None, unsupported, self.form, self.forms
        )

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
