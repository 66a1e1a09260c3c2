"""What the rows of a fit weigh, and blocks of a propensity made of several fits."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.special import logit

from ...arrays import Bools, Floats, Ints
from ...missingness.factors import OddsBlock
from .factor import NEVER, Factor

__all__ = ["BlockWeight", "LearnedBlock", "LowerOdds", "Weighting"]

Pulls = list[tuple[Factor, Floats]]  # d log / d log-odds of factors, a number per row


class LearnedBlock:
    r"""P(R_B = 1 | x, R_E = 1) from the log odds :math:`\eta_D` of its factors.

    .. math:: \log w_D = -\sum_{D' \subseteq D} \eta_{D'}, \qquad
       P(R_B = 1 \mid x) = \frac{\sum_{D \subseteq K \setminus B} w_D}{\sum_{D \subseteq K} w_D}
    """

    def __init__(self, block: OddsBlock, factors: dict[tuple[int, ...], Factor]) -> None:
        self.factors = factors
        self._inside = [frozenset(d) for r in range(len(block.together) + 1) for d in combinations(block.together, r)]
        self._kept = [d for d in self._inside if not d & set(block.groups)]

    def by_fold(self, k: int, rows: Ints) -> tuple[Floats, Pulls]:
        """Probability in these rows by the models of fold k, and its d log / d log-odds."""
        return self._combine(lambda f: f.log_odds(k, rows), lambda f: np.full(len(rows), np.isnan(f.constant[k])))

    def outside(self, rows: Ints) -> tuple[Floats, Pulls]:
        """The same by the models that have not seen the rows."""
        return self._combine(lambda f: _log_odds(f, rows), lambda f: f.moves(rows))

    def _combine(self, log_odds: Callable[[Factor], Floats], moves: Callable[[Factor], Bools]) -> tuple[Floats, Pulls]:
        eta = {frozenset(groups): log_odds(factor) for groups, factor in self.factors.items()}
        nothing = np.zeros_like(next(iter(eta.values())))
        with np.errstate(invalid="ignore", over="ignore"):  # infinite odds: a probability of 0, which does not move
            weight = {d: np.exp(-sum((eta[part] for part in eta if part <= d), nothing)) for d in self._inside}
            everything, kept = (np.sum([weight[d] for d in part], axis=0) for part in (self._inside, self._kept))
            pulls = []
            for groups, factor in self.factors.items():
                above = [d for d in self._inside if d >= set(groups)]
                slack = np.sum([weight[d] for d in above], axis=0) / everything
                if both := [d for d in above if d in self._kept]:
                    slack = slack - np.sum([weight[d] for d in both], axis=0) / kept
                pulls.append((factor, np.where(moves(factor), slack, 0.0)))
            return kept / everything, pulls


def _log_odds(factor: Factor, rows: Ints) -> Floats:
    """Log odds by the models that have not seen the rows; a model may call something certain, only records may be."""
    p = factor.predict(rows)
    return np.asarray(logit(np.where(factor.moves(rows), np.clip(p, NEVER, 1 - NEVER), p)))


class LowerOdds(NamedTuple):
    r"""In an odds-ratio form, rows with the outcome weigh :math:`e^{-\eta}` of the smaller terms."""

    factor: Factor
    everyone: bool = False

    def log(self, k: int, rows: Ints) -> tuple[Floats, Pulls]:
        """Log weight in these rows by the models of fold k, and its derivatives."""
        return -self.factor.log_odds(k, rows), [(self.factor, np.full(len(rows), -1.0))]


class BlockWeight(NamedTuple):
    """Rows weigh the probability of a block, or one over it."""

    block: LearnedBlock
    inverse: bool
    everyone: bool

    def log(self, k: int, rows: Ints) -> tuple[Floats, Pulls]:
        """Log weight in these rows by the models of fold k, and its derivatives."""
        p, pulls = self.block.by_fold(k, rows)
        sign = -1.0 if self.inverse else 1.0
        with np.errstate(divide="ignore"):  # a probability of 0 is refused by the fit
            return sign * np.log(p), [(factor, sign * slack) for factor, slack in pulls]


class Weighting:
    r"""The product of weights; those not for everyone are for rows with the outcome, and 1 elsewhere.

    They are scaled to sum to the effective number of rows, :math:`(\sum w)^2 / \sum w^2`: the fit stays the same, and its
    information, by which Firth's correction and that of the weights go, is about as large as the information in the rows.
    """

    def __init__(self, *parts: LowerOdds | BlockWeight) -> None:
        self.parts = parts

    def of(self, k: int, rows: Ints, outcome: Bools) -> tuple[Floats, Pulls]:
        """Weights of these rows in the fit of fold k, and d log weight / d log-odds of the factors in them."""
        total, pulls = np.zeros(len(rows)), []
        having = np.flatnonzero(outcome)  # other rows may lack what the factors look at
        for part in self.parts:
            where = np.arange(len(rows)) if part.everyone else having
            log, inner = part.log(k, rows[where])
            total[where] += log
            for factor, slack in inner:
                full = np.zeros(len(rows))
                full[where] = slack
                pulls.append((factor, full))
        with np.errstate(over="ignore"):  # infinite weights are refused by the fit
            weight = np.exp(total)
        largest = weight.max(initial=0.0)
        if 0 < largest < np.inf:
            weight = weight / largest
            weight *= weight.sum() / (weight @ weight)
        return weight, pulls
