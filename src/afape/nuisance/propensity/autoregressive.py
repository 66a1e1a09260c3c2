"""Superset propensity from one model of the whole recording pattern."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from ...arrays import Bools, Floats, Ints, every, index_of
from ...data import Retrospective
from ...missingness.assumptions import Conditioning
from ...support import SupportMap
from .chain import Answer, canonical_order
from .logistic import LogisticFit, fit_logistic, logistic_design

__all__ = ["MAX_GROUPS", "AutoregressivePropensity"]


MAX_GROUPS = 14  # groups with gaps: 2^14 patterns per row
_CELLS = 2**21  # patterns times rows held at a time


class AutoregressivePropensity:
    r"""P(R >= S | given) for every S at once.

    .. math:: P(R = r \mid X_o) = \prod_j P(R_{g_j} = r_j \mid X_o, r_1, \dots, r_{j-1}), \qquad
       P(R \ge S \mid X_o) = \sum_{r \ge S} P(R = r \mid X_o)

    One logistic model per group, with the earlier indicators as regressors, so G fits per fold where the chain
    rule needs one fit per set. It assumes more than the chain: earlier indicators act additively on the log-odds.

    Parameters are those of `ChainPropensity`.
    """

    learned = True

    def __init__(
        self,
        data: Retrospective,
        given: Conditioning,
        fold: Ints,
        min_propensity: float = 0.0,
        row_weight: Floats | None = None,
        unsupported: SupportMap | None = None,
    ) -> None:
        self.unsupported = unsupported
        self.data, self.given, self.fold, self.min_propensity = data, given, fold, min_propensity
        self.order = canonical_order(data)
        if len(self.order) > MAX_GROUPS:
            raise ValueError(
                f"The autoregressive propensity needs at most {MAX_GROUPS} groups with gaps, but there are "
                f"{len(self.order)}. Use method='chain'."
            )
        self.design = logistic_design(given.matrix(data))
        n_folds = int(fold.max()) + 1
        recorded = data.recorded[:, self.order]
        everyone = np.ones(len(fold), dtype=bool) if row_weight is None else row_weight > 0
        self.fits = [
            [
                _fit(
                    self.design,
                    recorded[:, :j],
                    recorded[:, j],
                    (everyone & (fold != k) if n_folds > 1 else everyone) & ~self._never(j, recorded),
                    row_weight,
                )
                for j in range(len(self.order))
            ]
            for k in range(n_folds)
        ]

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
            z = self.design[rows[mine]]
            patterns = np.zeros((1, 0))
            for j, fit in enumerate(fits):
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

    def refit(self, row_weight: Floats) -> AutoregressivePropensity:
        """Learn again with these row weights."""
        return AutoregressivePropensity(
            self.data, self.given, self.fold, self.min_propensity, row_weight, self.unsupported
        )

    def excluding(self, unsupported: SupportMap) -> AutoregressivePropensity:
        """Learn each model from the rows in which its group can be recorded."""
        return AutoregressivePropensity(self.data, self.given, self.fold, self.min_propensity, unsupported=unsupported)

    @property
    def converged(self) -> bool:
        """Whether every logistic fit converged."""
        return all(fit.converged for fits in self.fits for fit in fits)


def _fit(design: Floats, earlier: Bools, outcome: Bools, rows: Bools, weight: Floats | None) -> LogisticFit:
    regressors = np.column_stack([design[rows], earlier[rows]])
    y = outcome[rows]
    if y.all() or not y.any():  # one class only: certain, and no fit
        coefficients = np.zeros(regressors.shape[1])
        coefficients[0] = np.inf if y.all() else -np.inf
        return LogisticFit(coefficients, np.zeros((len(coefficients),) * 2), True)
    return fit_logistic(regressors, y, None if weight is None else weight[rows])
