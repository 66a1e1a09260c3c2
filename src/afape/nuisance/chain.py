"""Superset propensity by the chain rule over groups, one model a factor, fitted when first asked for."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from scipy.special import expit

from ..arrays import Bools, Floats, Ints, every, row_dot
from ..data import Retrospective
from ..support import SupportMap
from ..walk.sets import lines_of
from .fitting import fit_weighted
from .logistic import LogisticFit, fit_logistic, log_odds_variance, logistic_design

__all__ = ["ChainPropensity", "Factor", "canonical_order"]


def canonical_order(data: Retrospective) -> list[int]:
    """Groups that are not always recorded: most recorded first, then by name."""
    share = data.recorded.mean(axis=0)
    names = data.problem.group_names
    sometimes = np.flatnonzero(~data.always_recorded)
    return sorted((int(g) for g in sometimes), key=lambda g: (-share[g], names[g]))


class Factor:
    """P(R_g = 1 | given, R_earlier = 1), one model a fold, each fitted on the rows outside the fold."""

    def __init__(self, owner: ChainPropensity, earlier: tuple[int, ...], group: int) -> None:
        self.eligible = every(owner.data.recorded[:, list(earlier)]) if earlier else None  # None: all rows
        self.outcome = owner.data.recorded[:, group]
        if owner.unsupported:  # rows that can never show the outcome would pull the model away from those that can
            lacking = owner.unsupported.lacking(np.isin(np.arange(owner.data.problem.n_groups), (*earlier, group)))
            self.eligible = ~lacking if self.eligible is None else self.eligible & ~lacking
        self.owner, self.key = owner, (earlier, group)
        n_folds = owner.n_folds
        self.constant = np.full(n_folds, np.nan)  # where the rows show one class only
        self.fits: list[LogisticFit | None] = [None] * n_folds
        self.models: list[Any] = [None] * n_folds
        for k in range(n_folds):
            self._fit(k)
        self.coefficients = np.array(
            [np.zeros(owner.design.shape[1]) if fit is None else fit.coefficients for fit in self.fits]
        )

    def training(self, k: int) -> Ints:
        """Rows that the model of fold k is fitted on."""
        rows = self.owner.outside[k]
        return rows if self.eligible is None else rows[self.eligible[rows]]

    def _fit(self, k: int) -> None:
        rows = self.training(k)
        outcome = self.outcome[rows]
        owner = self.owner
        weight = None if owner.row_weight is None else owner.row_weight[rows]
        # No rows at all: nothing is known of the earlier groups being recorded, so their factor is 0 already.
        if outcome.all() or not outcome.any():
            self.constant[k] = float(len(outcome) > 0 and outcome[0])
        elif owner.estimator is None:
            self.fits[k] = fit_logistic(
                owner.design[rows], outcome, weight, firth=owner.n_folds > 1, start=self._near(k)
            )
        elif owner.columns.shape[1] == 0:
            self.constant[k] = np.average(outcome, weights=weight)
        else:
            self.models[k] = fit_weighted(owner.estimator, owner.columns[rows], outcome.astype(int), weight)

    def _near(self, k: int) -> Floats | None:
        """Coefficients to start from: the same model before resampling, or another fold's."""
        before = self.owner.base.factors.get(self.key) if self.owner.base is not None else None
        fits = [before.fits[k]] if before is not None else self.fits
        return next((fit.coefficients for fit in fits if fit is not None and fit.converged), None)

    def fitted(self, k: int) -> Floats:
        """Probability in every row by the logistic model of fold k."""
        return np.asarray(expit(self.owner.design @ self.coefficients[k]))

    def _shift(self, rows: Ints, fold: Ints) -> Floats:
        r"""What to add to the log-odds so that the *weight* is unbiased to second order.

        A weight has factors :math:`1 + e^{-\eta}`. Outside the rows of its fit, the fitted log-odds vary around the
        true ones with variance v and, by Firth's correction, no bias to that order, so that
        :math:`E[e^{-\hat\eta}] = e^{-\eta + v/2}`: cross-fitted weights come out too large on average. Adding v/2
        undoes it; a cell of N rows, k of them recorded, then gets about (N + 1) / (k + 1), finite also for k = 0.
        The errors of the factors of a chain are uncorrelated, so the product needs no more. Models used on
        their own rows are left as they are: there row and fit move together, and most of the bias cancels.
        """
        shift = np.zeros(len(rows))
        if self.owner.n_folds > 1:
            for k, fit in enumerate(self.fits):
                if fit is not None:
                    mine = np.flatnonzero(fold == k)
                    shift[mine] = log_odds_variance(fit.inverse_information, self.owner.design[rows[mine]]) / 2
        return shift

    def predict(self, rows: Ints) -> Floats:
        """Probability in these rows by the model that has not seen them."""
        fold = self.owner.fold[rows]
        if self.owner.estimator is None:
            p = expit(row_dot(self.owner.design[rows], self.coefficients[fold]) + self._shift(rows, fold))
        else:
            p = np.empty(len(rows))
            for k, model in enumerate(self.models):
                mine = fold == k
                if model is not None and mine.any():
                    proba = model.predict_proba(self.owner.columns[rows[mine]])
                    p[mine] = proba[:, list(model.classes_).index(1)]
        constant = self.constant[fold]
        return np.where(np.isnan(constant), p, constant)


class ChainPropensity:
    r"""Learned P(R >= S | given), cross-fitted.

    .. math:: P(R \ge S \mid X_o) = \prod_{j} P(R_{g_j} = 1 \mid X_o, R_{g_1} = \dots = R_{g_{j-1}} = 1)

    over the groups of S in canonical order. Recorded groups are correlated in real records (panels are
    ordered together), so each factor is fitted on the rows that have the earlier groups. A factor whose rows
    show one class only is exactly 0 or 1; groups that are always recorded have no factor.

    Parameters
    ----------
    data : Retrospective
        Records.
    given : ndarray of int
        Columns that missingness depends on.
    fold : ndarray of int
        Fold of each row.
    estimator : scikit-learn classifier, optional
        Default: unpenalised logistic regression.
    independent : bool
        Take groups as independent given X_o: every factor fitted on all rows.
    min_propensity : float
        Smallest probability used; smaller ones are raised to it and counted.
    row_weight : ndarray of shape (n,), optional
        Weights of a bootstrap replicate.
    base : ChainPropensity, optional
        The same without weights, to start the fits from.
    """

    learned = True
    unsupported: SupportMap | None = None  # where sets have no support; their factors are fitted elsewhere

    def __init__(
        self,
        data: Retrospective,
        given: Ints,
        fold: Ints,
        estimator: Any = None,
        independent: bool = False,
        min_propensity: float = 0.0,
        row_weight: Floats | None = None,
        base: ChainPropensity | None = None,
    ) -> None:
        self.data, self.fold, self.estimator = data, fold, estimator
        self.row_weight, self.base = row_weight, base
        self.independent, self.min_propensity = independent, min_propensity
        self.stacked = estimator is None  # whether the models have a score that standard errors can use
        self.n_folds = int(fold.max()) + 1
        self.columns = data.values[:, given]
        self.design = logistic_design(self.columns)
        self.outside = self._outside()
        self.order = canonical_order(data)
        self.factors: dict[tuple[tuple[int, ...], int], Factor] = {}
        self._answer: tuple[Ints, list[tuple[Ints, list[tuple[Factor, Floats]]]]] | None = None

    def chain(self, required: Bools) -> list[tuple[tuple[int, ...], int]]:
        """Keys of the factors of this set."""
        groups = [g for g in self.order if required[g]]
        return [(() if self.independent else tuple(groups[:j]), g) for j, g in enumerate(groups)]

    def factor(self, key: tuple[tuple[int, ...], int]) -> Factor:
        """Fitted factor, from the cache or fitted now."""
        if key not in self.factors:
            self.factors[key] = Factor(self, *key)
        return self.factors[key]

    def probability(self, rows: Ints, sets: Bools, index: Ints) -> Floats:
        """P(R >= sets[index] | given) in these rows, before any clipping."""
        out = np.ones(len(rows))
        for lines, factors in self.factors_of(rows, sets, index, anew=True):
            for _, p in factors:
                out[lines] *= p
        return out

    def factors_of(
        self, rows: Ints, sets: Bools, index: Ints, anew: bool = False
    ) -> list[tuple[Ints, list[tuple[Factor, Floats]]]]:
        """For each set its lines, and the factors of its chain with their probabilities there.

        Whoever asks a second time about the very same states, as the standard errors do, gets the same again.
        """
        known = self._answer is not None and self._answer[0] is index
        if anew or not known:
            lines = [part for part, _ in self._answer[1]] if known and self._answer else lines_of(index, len(sets))
            parts = []
            for u, part in enumerate(lines):
                factors = [self.factor(key) for key in self.chain(sets[u])] if len(part) else []
                parts.append((part, [(factor, factor.predict(rows[part])) for factor in factors]))
            self._answer = index, parts
        assert self._answer is not None
        return self._answer[1]

    def refit(self, row_weight: Floats) -> ChainPropensity:
        """Learn again with these row weights."""
        new = copy(self)
        new.factors, new.row_weight, new.base = {}, row_weight, self
        new.outside = new._outside()
        return new

    def excluding(self, unsupported: SupportMap) -> ChainPropensity:
        """Learn each factor from the rows in which its set is supported."""
        new = copy(self)
        new.factors, new.unsupported, new.base, new._answer = {}, unsupported, None, None
        return new

    def _outside(self) -> list[Ints]:
        """Rows that count, outside each fold."""
        rows = np.arange(len(self.fold)) if self.row_weight is None else np.flatnonzero(self.row_weight > 0)
        if self.n_folds == 1:
            return [rows]
        return [rows[self.fold[rows] != k] for k in range(self.n_folds)]

    @property
    def converged(self) -> bool:
        """Whether every logistic fit so far converged."""
        return all(f is None or f.converged for factor in self.factors.values() for f in factor.fits)
