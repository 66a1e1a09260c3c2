"""P(R_adj = 1 | X_adj): the probability that all groups to adjust for are recorded, as a product of learned blocks."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logit

from .._arrays import Bools, Floats, Ints, every
from .._models import takes_weights
from ..data.retrospective import Retrospective
from ..missingness.assumptions import Conditioning, regressors
from ..missingness.factors import OddsBlock, OddsTerm
from .factor import Crossfit, Factor
from .forms import CERTAIN, Inputs

__all__ = ["AdjustmentPropensity", "FitWeights"]

Derivatives = list[tuple[Factor, Floats]]  # d log probability / d log-odds of factors, one number per row


class LearnedBlock:
    r"""P(R_B = 1 | x, R_E = 1) from the log-odds :math:`\eta_D` of its factors; see `FactorBlock` for B, E and K.

    .. math:: \log w_D = -\sum_{D' \subseteq D} \eta_{D'}, \qquad
       P(R_B = 1 \mid x) = \frac{\sum_{D \subseteq K \setminus B} w_D}{\sum_{D \subseteq K} w_D}
    """

    def __init__(self, block: OddsBlock, factors: dict[tuple[int, ...], Factor]) -> None:
        self.factors = factors
        self._subsets = [frozenset(d) for r in range(len(block.together) + 1) for d in combinations(block.together, r)]
        self._kept = [d for d in self._subsets if not d & set(block.groups)]

    def by_fold(self, k: int, rows: Ints) -> tuple[Floats, Derivatives]:
        """Probability in these rows by the models of fold k, and its derivatives."""
        return self._combine(lambda f: f.log_odds(k, rows), lambda f: np.full(len(rows), np.isnan(f.constant[k])))

    def outside(self, rows: Ints) -> tuple[Floats, Derivatives]:
        """Probability in these rows by models that were not fitted on them, and its derivatives."""
        return self._combine(lambda f: _log_odds(f, rows), lambda f: f.moves(rows))

    def _combine(
        self, log_odds: Callable[[Factor], Floats], moves: Callable[[Factor], Bools]
    ) -> tuple[Floats, Derivatives]:
        eta = {frozenset(groups): log_odds(factor) for groups, factor in self.factors.items()}
        zero = np.zeros_like(next(iter(eta.values())))
        with np.errstate(invalid="ignore", over="ignore"):  # infinite odds: a probability of 0, with derivative 0
            weight = {d: np.exp(-sum((eta[inner] for inner in eta if inner <= d), zero)) for d in self._subsets}
            total, kept = (np.sum([weight[d] for d in sets], axis=0) for sets in (self._subsets, self._kept))
            derivatives = []
            for groups, factor in self.factors.items():
                above = [d for d in self._subsets if d >= set(groups)]
                slope = np.sum([weight[d] for d in above], axis=0) / total
                if both := [d for d in above if d in self._kept]:
                    slope = slope - np.sum([weight[d] for d in both], axis=0) / kept
                derivatives.append((factor, np.where(moves(factor), slope, 0.0)))
            return kept / total, derivatives


def _log_odds(factor: Factor, rows: Ints) -> Floats:
    """Log-odds by models that were not fitted on the rows; infinite only where the rows of a fit have one class."""
    p = factor.probability[rows]
    return np.asarray(logit(np.where(factor.moves(rows), np.clip(p, CERTAIN, 1 - CERTAIN), p)))


class LowerOdds(NamedTuple):
    r"""In an odds-ratio form, rows with response 1 have the weight :math:`e^{-\eta}` of the smaller terms."""

    factor: Factor
    everyone: bool = False

    def log(self, k: int, rows: Ints) -> tuple[Floats, Derivatives]:
        """Log weight of these rows by the models of fold k, and its derivatives."""
        return -self.factor.log_odds(k, rows), [(self.factor, np.full(len(rows), -1.0))]


class BlockWeight(NamedTuple):
    """Rows have the probability of a block as weight, or its inverse."""

    block: LearnedBlock
    inverse: bool
    everyone: bool

    def log(self, k: int, rows: Ints) -> tuple[Floats, Derivatives]:
        """Log weight of these rows by the models of fold k, and its derivatives."""
        p, derivatives = self.block.by_fold(k, rows)
        sign = -1.0 if self.inverse else 1.0
        with np.errstate(divide="ignore"):  # a probability of 0 is refused by the fit
            return sign * np.log(p), [(factor, sign * slope) for factor, slope in derivatives]


class FitWeights:
    r"""Row weights of a fit: a product of weights, some of them only for rows with response 1.

    They are scaled to sum to the effective number of cases, :math:`(\sum w)^2 / \sum w^2`. The scale does not change the
    maximum-likelihood fit. Firth's correction depends on the information of the fit, which then is about as large as that in
    the rows.
    """

    def __init__(self, *weights: LowerOdds | BlockWeight) -> None:
        self.weights = weights

    def of(self, k: int, rows: Ints, response: Bools, cases: Floats | None = None) -> tuple[Floats, Derivatives]:
        """Return the weights of these rows in the model that serves fold k, (m,), and their derivatives.

        ``response`` is True for rows in which the modelled group is recorded; ``cases`` (m,) is how many cases the rows stand
        for, which these weights do not contain. The derivatives are those of the log weights
        with respect to the log-odds of each factor, (m,) per factor.
        """
        total, derivatives = np.zeros(len(rows)), []
        having = np.flatnonzero(response)  # other rows may lack the regressors of the factors
        for each in self.weights:
            where = np.arange(len(rows)) if each.everyone else having
            log, found = each.log(k, rows[where])
            total[where] += log
            for factor, slope in found:
                full = np.zeros(len(rows))
                full[where] = slope
                derivatives.append((factor, full))
        with np.errstate(over="ignore"):  # infinite weights are refused by the fit
            weight = np.exp(total)
        largest = weight.max(initial=0.0)
        if 0 < largest < np.inf:
            weight = weight / largest
            if cases is None:
                weight *= weight.sum() / (weight @ weight)
            else:
                weight *= (cases @ weight) / (cases @ weight**2)
        return weight, derivatives


class AdjustmentPropensity:
    r"""The product of the blocks of a `Conditioning`, each term learned on the rows that identify it.

    A block over the indicators K has terms :math:`\eta_D`, the log-odds of :math:`R_D = 1` against :math:`R_D = 0` where the
    rest of K is recorded, minus the smaller terms. With :math:`\log w_D = -\sum_{D' \subseteq D} \eta_{D'}`,

    .. math:: P(R_B = 1 \mid x) = \frac{\sum_{D \subseteq K \setminus B} w_D}{\sum_{D \subseteq K} w_D}, \qquad
       E[1(R_D = 0) \mid z] = E[1(R_D = 1) \, w_D \mid z] \text{ among rows with } R_{K \setminus D} = 1.

    The second equation is a logistic regression in which each smaller term :math:`\eta_{D'}` multiplies the weight of the
    rows with :math:`R_D = 1` by :math:`e^{-\eta_{D'}}`. A single term is a plain regression. The rows of a block may be
    weighted by probabilities of other blocks, which are learned first.

    Parameters
    ----------
    data : Retrospective
        Records.
    given : Conditioning
        Groups to adjust for, and the blocks.
    crossfit : Crossfit
        Folds and row weights.
    estimator : scikit-learn classifier, or None for logistic regression
        The model of every term.
    usable : ndarray of bool
        Rows that have all of adj recorded.
    near : AdjustmentPropensity, optional
        The propensity before resampling, to start the fits from.
    lost : ndarray of bool, optional
        Rows to leave out of the fits, because adj is unsupported there.
    """

    def __init__(
        self,
        data: Retrospective,
        given: Conditioning,
        crossfit: Crossfit,
        estimator: Any,
        usable: Bools,
        near: AdjustmentPropensity | None = None,
        lost: Bools | None = None,
    ) -> None:
        _check_model(estimator, given)
        self.data, self.crossfit, self.estimator, self._lost = data, crossfit, estimator, lost
        self._near = {} if near is None else near._by_key
        self._inputs: dict[tuple[object, ...], Inputs] = {} if near is None else near._inputs
        self._learned: dict[OddsBlock, LearnedBlock] = {}
        self._by_key: dict[tuple[object, ...], Factor] = {}
        self.probability = np.ones(len(data))  # P(R_adj = 1 | X_adj) in usable rows
        self.derivatives: Derivatives = []
        blocks = [self._learn(block) for block in given.blocks]
        rows = np.flatnonzero(usable)
        for block in blocks:
            p, derivatives = block.outside(rows)
            self.probability[rows] *= p
            for factor, slope in derivatives:
                full = np.zeros(len(data))
                full[rows] = slope
                self.derivatives.append((factor, full))
        # If the product also depends on indicators outside adj, rows that have adj are weighted by its inverse. Only then do
        # they show how often further groups are recorded given x alone.
        inverse = (BlockWeight(block, inverse=True, everyone=True) for block in blocks)
        self.weighting = FitWeights(*inverse) if given.beside else None

    @property
    def factors(self) -> list[Factor]:
        """All factors, each after those that its weights depend on."""
        return list(self._by_key.values())

    def _learn(self, block: OddsBlock) -> LearnedBlock:
        """Learn a block after the blocks that its rows are weighted by; smaller terms come first."""
        if block in self._learned:
            return self._learned[block]
        by_blocks = [BlockWeight(self._learn(w.block), w.inverse, w.everyone) for w in block.weights]
        found: dict[tuple[int, ...], Factor] = {}
        for term in block.terms:
            lower = [LowerOdds(f) for groups, f in found.items() if set(groups) < set(term.groups)]
            weighting = FitWeights(*lower, *by_blocks) if lower or by_blocks else None
            key = len(self._learned), term.groups
            eligible, response = self._rows(term)
            found[term.groups] = self._by_key[key] = Factor(
                self.crossfit,
                self.estimator,
                eligible,
                response,
                self._columns(term),
                self._near.get(key),
                weighting,
            )
        self._learned[block] = LearnedBlock(block, found)
        return self._learned[block]

    def _rows(self, term: OddsTerm) -> tuple[Bools, Bools]:
        """Rows that a term is learned from, and its response."""
        recorded = self.data.recorded
        response = every(recorded[:, list(term.groups)])
        neither = every(~recorded[:, list(term.groups)])
        eligible = (response & every(recorded[:, list(term.having)])) | (
            neither & every(recorded[:, list(term.lacking)])
        )
        eligible &= every(recorded[:, list(term.rows)]) & every(~recorded[:, list(term.absent)])
        if self._lost is not None:
            eligible &= ~self._lost
        return eligible, response

    def _columns(self, term: OddsTerm) -> Inputs:
        key = term.regressors, term.label, term.indicators
        if key not in self._inputs:
            groups = np.zeros(self.data.problem.n_groups, dtype=bool)
            groups[list(term.regressors)] = True
            columns = regressors(self.data, groups, term.label)
            indicators = self.data.recorded[:, list(term.indicators)].astype(float)
            self._inputs[key] = Inputs(np.column_stack([columns, indicators]), weight=self.data.weight)
        return self._inputs[key]


def _check_model(estimator: Any, given: Conditioning) -> None:
    weighted = given.beside or any(block.weights or len(block.terms) > 1 for block in given.blocks)
    if weighted and estimator is not None and not takes_weights(estimator):
        raise TypeError(
            f"'estimator' must accept 'sample_weight' in fit, because under this graph rows are weighted by other factors, "
            f"but {type(estimator).__name__} does not. Use one that does, such as LogisticRegression or a forest, or leave "
            "'estimator' out."
        )
