"""P(R_adj = 1 | X_adj): the probability that everything to adjust for is recorded."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays import Bools, Floats, every
from ...data import Retrospective
from ...missingness.assumptions import Conditioning, regressors
from ...missingness.factors import OddsBlock, OddsTerm
from ..fitting import takes_weights
from .factor import Crossfit, Factor, Inputs
from .weighting import BlockWeight, LearnedBlock, LowerOdds, Weighting

__all__ = ["RootPropensity"]


class RootPropensity:
    r"""The product of the blocks of a `Conditioning`, learned on the rows that each term is identified on.

    A block over the indicators K has terms :math:`\eta_D`, the log odds of :math:`R_D = 1` against :math:`R_D = 0` where the
    rest of K is recorded, in excess of what the smaller terms say. With :math:`\log w_D = -\sum_{D' \subseteq D} \eta_{D'}`,

    .. math:: P(R_B = 1 \mid x) = \frac{\sum_{D \subseteq K \setminus B} w_D}{\sum_{D \subseteq K} w_D}, \qquad
       E[1(R_D = 0) \mid z] = E[1(R_D = 1) \, w_D \mid z] \text{ among rows with } R_{K \setminus D} = 1,

    the latter being a logistic regression in which rows with :math:`R_D = 1` weigh the odds of the smaller terms. One term
    alone is the plain regression. Rows of a block may weigh other blocks' probabilities, which are learned first.

    Parameters
    ----------
    data : Retrospective
        Records.
    given : Conditioning
        Groups to adjust for, and the blocks.
    fits : Crossfit
        Folds and model.
    usable : ndarray of bool
        Rows that have all of adj recorded.
    near : RootPropensity, optional
        The same before resampling.
    lost : ndarray of bool, optional
        Rows that nothing is learned from, because adj is never recorded in rows like them.
    """

    def __init__(
        self,
        data: Retrospective,
        given: Conditioning,
        fits: Crossfit,
        usable: Bools,
        near: RootPropensity | None = None,
        lost: Bools | None = None,
    ) -> None:
        self.data, self.of, self._lost = data, fits, lost
        _check_model(fits.estimator, given)
        self._near = {} if near is None else {factor.key: factor for factor in near.factors}
        self._inputs: dict[tuple[object, ...], Inputs] = {} if near is None else near._inputs
        self._learned: dict[OddsBlock, LearnedBlock] = {}
        self.factors: list[Factor] = []  # each after those that its weights need
        self.probability = np.ones(len(data))
        self.slack: list[tuple[Factor, Floats]] = []  # d log probability / d log-odds, by row
        blocks = [self._learn(block) for block in given.blocks]
        rows = np.flatnonzero(usable)
        for block in blocks:
            p, pulls = block.outside(rows)
            self.probability[rows] *= p
            for factor, slack in pulls:
                full = np.zeros(len(data))
                full[rows] = slack
                self.slack.append((factor, full))
        # Where the product depends on indicators beyond adj, only weighted by one over it do rows that have adj show
        # how often more is recorded given x alone.
        weights = (BlockWeight(block, inverse=True, everyone=True) for block in blocks)
        self.weighting = Weighting(*weights) if given.beside else None

    def _learn(self, block: OddsBlock) -> LearnedBlock:
        """Learn a block, unless it is known, after those that its rows are weighted by; smaller terms come first."""
        if block in self._learned:
            return self._learned[block]
        by_blocks = [BlockWeight(self._learn(w.block), w.inverse, w.everyone) for w in block.weights]
        found: dict[tuple[int, ...], Factor] = {}
        for term in block.terms:
            lower = [LowerOdds(f) for groups, f in found.items() if set(groups) < set(term.groups)]
            weighting = Weighting(*lower, *by_blocks) if lower or by_blocks else None
            key = ("root", len(self._learned), term.groups)
            eligible, outcome = self._rows(term)
            found[term.groups] = Factor(
                self.of, key, eligible, outcome, self._columns(term), self._near.get(key), weighting
            )
        self.factors += found.values()
        self._learned[block] = LearnedBlock(block, found)
        return self._learned[block]

    def _rows(self, term: OddsTerm) -> tuple[Bools, Bools]:
        """Rows that a term learns from, and those with its outcome."""
        recorded = self.data.recorded
        outcome = every(recorded[:, list(term.groups)])
        neither = every(~recorded[:, list(term.groups)])
        eligible = (outcome & every(recorded[:, list(term.having)])) | (
            neither & every(recorded[:, list(term.lacking)])
        )
        eligible &= every(recorded[:, list(term.rows)]) & every(~recorded[:, list(term.absent)])
        if self._lost is not None:
            eligible &= ~self._lost
        return eligible, outcome

    def _columns(self, term: OddsTerm) -> Inputs:
        key = term.regressors, term.label, term.indicators
        if key not in self._inputs:
            groups = np.zeros(self.data.problem.n_groups, dtype=bool)
            groups[list(term.regressors)] = True
            columns = regressors(self.data, groups, term.label)
            beside = self.data.recorded[:, list(term.indicators)].astype(float)
            self._inputs[key] = Inputs(np.column_stack([columns, beside]))
        return self._inputs[key]


def _check_model(estimator: Any, given: Conditioning) -> None:
    weighted = given.beside or any(block.weights or len(block.terms) > 1 for block in given.blocks)
    if weighted and estimator is not None and not takes_weights(estimator):
        raise TypeError(
            f"'estimator' must take 'sample_weight' in fit, because under this graph rows are weighted by other factors, but "
            f"{type(estimator).__name__} does not. Use one that does, such as LogisticRegression or a forest, or none."
        )
