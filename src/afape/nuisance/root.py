"""P(R_adj = 1 | X_adj): the probability that everything to adjust for is recorded."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.special import logit

from ..arrays import Bools, Floats, Ints, every
from ..data import Retrospective
from .conditioning import Conditioning, OddsBlock, OddsTerm, regressors
from .factor import Crossfit, Factor, Inputs

__all__ = ["RootPropensity"]


class RootPropensity:
    r"""The product of the blocks of a `Conditioning`, learned on the rows that each term is identified on.

    A block over the indicators K has terms :math:`\eta_D`, the log odds of :math:`R_D = 1` against :math:`R_D = 0` where the
    rest of K is recorded, in excess of what the smaller terms say. With :math:`\log w_D = -\sum_{D' \subseteq D} \eta_{D'}`,

    .. math:: P(R_B = 1 \mid x) = \frac{\sum_{D \subseteq K \setminus B} w_D}{\sum_{D \subseteq K} w_D}, \qquad
       E[1(R_D = 0) \mid z] = E[1(R_D = 1) \, w_D \mid z] \text{ among rows with } R_{K \setminus D} = 1,

    the latter being a logistic regression in which rows with :math:`R_D = 1` weigh the odds of the smaller terms. One term
    alone is the plain regression.

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
    """

    def __init__(
        self,
        data: Retrospective,
        given: Conditioning,
        fits: Crossfit,
        usable: Bools,
        near: RootPropensity | None = None,
    ) -> None:
        self.data, self.of = data, fits
        self._near = {} if near is None else {factor.key: factor for factor in near.factors}
        self._inputs: dict[tuple[tuple[int, ...], bool], Inputs] = {} if near is None else near._inputs
        self.factors: list[Factor] = []
        self.probability = np.ones(len(data))
        self.slack: list[tuple[Factor, Floats]] = []  # d log probability / d log-odds, by row
        rows = np.flatnonzero(usable)
        for number, block in enumerate(given.blocks):
            self._multiply(block, self._learn(block, number), rows)

    def _learn(self, block: OddsBlock, number: int) -> dict[tuple[int, ...], Factor]:
        """Factors by their groups; smaller sets of groups come first."""
        found: dict[tuple[int, ...], Factor] = {}
        recorded = self.data.recorded
        for term in block.terms:
            groups = recorded[:, list(term.groups)]
            outcome = every(groups)
            eligible = outcome | every(~groups)  # all of them, or none
            if term.rows:
                eligible &= every(recorded[:, list(term.rows)])
            lower = tuple(f for key, f in found.items() if set(key) < set(term.groups))
            key = ("root", number, term.groups)
            found[term.groups] = Factor(
                self.of, key, eligible, outcome, self._columns(term), self._near.get(key), lower
            )
        self.factors += found.values()
        return found

    def _columns(self, term: OddsTerm) -> Inputs:
        key = term.regressors, term.label
        if key not in self._inputs:
            groups = np.zeros(self.data.problem.n_groups, dtype=bool)
            groups[list(term.regressors)] = True
            self._inputs[key] = Inputs(regressors(self.data, groups, term.label))
        return self._inputs[key]

    def _multiply(self, block: OddsBlock, factors: dict[tuple[int, ...], Factor], rows: Ints) -> None:
        eta = {frozenset(groups): _log_odds(factor, rows) for groups, factor in factors.items()}
        inside = [frozenset(d) for r in range(len(block.together) + 1) for d in combinations(block.together, r)]
        outside_b = [d for d in inside if not d & set(block.groups)]
        weight = {}
        for d in inside:
            total = np.zeros(len(rows))
            for part, values in eta.items():
                if part <= d:
                    total -= values
            weight[d] = np.exp(total)
        everything, kept = (np.sum([weight[d] for d in part], axis=0) for part in (inside, outside_b))
        self.probability[rows] *= kept / everything
        for groups, factor in factors.items():
            above = [d for d in inside if d >= set(groups)]
            slack = np.sum([weight[d] for d in above], axis=0) / everything
            if both := [d for d in above if d in outside_b]:
                slack = slack - np.sum([weight[d] for d in both], axis=0) / kept
            full = np.zeros(len(self.data))
            full[rows] = slack * factor.moves(rows)
            self.slack.append((factor, full))


def _log_odds(factor: Factor, rows: Ints) -> Floats:
    return np.asarray(logit(factor.predict(rows)))
