"""Stacked estimating equations: what a learned propensity does to the influence values."""

from __future__ import annotations

import numpy as np

from ..arrays import Bools, Floats, Ints, tally
from .chain import ChainPropensity
from .factor import Factor

__all__ = ["StackedScores"]


class StackedScores:
    r"""Collects the derivative of an estimate in the parameters of its logistic propensities.

    An estimate is a smooth function of row means of sums :math:`\sum_S w_S q_S` over states. For a factor f with log-odds
    :math:`\eta_f` and the model of fold k,
    :math:`\partial w_S / \partial\theta_{fk} = -w_S \, (\partial \log P_S / \partial \eta_f) \, z_i` for every state S of a
    row i in fold k whose probability contains f (in a chain the bracket is 1 - p). With :math:`D_{fk}` the derivative of
    the estimate, times n, the influence value of row j gains

    .. math:: \sum_{f, k} D_{fk}' A_{fk}^{-1} s_{fk, j}

    with score s and information A of the fit (`LogisticFit`). Where rows of the fit of f are weighted by other factors
    f' its score depends on them; :math:`D_{fk}' A_{fk}^{-1} \, \partial s_{fk} / \partial\theta_{f'k}`, with
    :math:`\partial s_{fk} / \partial\theta_{f'k} = \sum_j s_{fk,j} \, (\partial \log w_j / \partial\eta_{f'}) \, z_j'`, is
    then added to :math:`D_{f'k}`, from what was learned last to what was learned first.
    """

    def __init__(self, propensity: ChainPropensity, row_weight: Floats) -> None:
        self.propensity = propensity
        self._share = tally(propensity.fold, row_weight, propensity.n_folds) / row_weight.sum()
        self._derivative: dict[Factor, Floats] = {}  # (K, T, Q, p)

    def add(self, rows: Ints, sets: Bools, index: Ints, depth: Ints, weighted: Floats) -> None:
        """Add states: ``weighted`` (m, Q) holds w_S q_S, 0 where a clipped weight does not move."""
        chain = self.propensity
        for lines, _, factors in chain.parts(rows, sets, index):
            if len(lines) == 0:
                continue
            t = int(depth[lines[0]])  # a set has one depth: the number of its costly groups
            fold, q = chain.fold[rows[lines]], weighted[lines]
            for factor, slack in factors:
                z = factor.design[rows[lines]]
                total = self._slot(factor, t, q.shape[1])
                for k in range(chain.n_folds):
                    mine = fold == k
                    total[k, t] -= (q[mine] * slack[mine, None]).T @ z[mine]

    def _slot(self, factor: Factor, t: int, n_quantities: int) -> Floats:
        p = factor.design.shape[1]
        old = self._derivative.get(factor)
        if old is None or old.shape[1] <= t:
            new = np.zeros((self.propensity.n_folds, t + 1, n_quantities, p))
            if old is not None:
                new[:, : old.shape[1]] = old
            self._derivative[factor] = new
        return self._derivative[factor]

    def influence(self, directions: Floats) -> Floats:
        """Additions (E, n) to the influence values of E estimates with derivatives (E, T, Q) in the means."""
        out = np.zeros((len(directions), len(self.propensity.fold)))
        slopes = {f: _pooled(f, d, directions) for f, d in self._derivative.items()}
        for factor in self._backwards(slopes):
            if factor not in slopes:
                continue
            fitted = np.array([fit is not None for fit in factor.fits])
            share = self._share * fitted
            for k, fit in enumerate(factor.fits):
                if fit is None or share[k] == 0:
                    continue
                slope = slopes[factor] * (share[k] / share.sum()) @ fit.inverse_information
                out += self._through(factor, k, slope, slopes)
        return out

    def _backwards(self, slopes: dict[Factor, Floats]) -> list[Factor]:
        """Every factor before those that its rows are weighted by."""
        root = [] if self.propensity.root is None else self.propensity.root.factors
        inner = set(root)
        return [*(f for f in slopes if f not in inner), *reversed(root)]

    def _through(self, factor: Factor, k: int, slope: Floats, slopes: dict[Factor, Floats]) -> Floats:
        """Score of the model of fold k times ``slope`` (E, p), in every row; what its weights pass on goes to ``slopes``."""
        used = np.zeros(len(self.propensity.fold))
        rows = factor.training(k)
        used[rows] = 1.0
        # All rows at once, then a mask: quicker than picking rows out and putting them back.
        residual = used * (factor.outcome - factor.fitted(k))
        pulls: list[tuple[Factor, Floats]] = []
        if factor.weighting is not None:
            weight, pulls = factor.weighting.of(k, rows, factor.outcome[rows])
            residual[rows] *= weight
        added = (slope @ factor.design.T) * residual
        for other, pull in pulls:
            passed = (added[:, rows] * pull) @ other.design[rows]
            slopes[other] = slopes[other] + passed if other in slopes else passed
        return np.asarray(
            added - used * (added.sum(axis=1, keepdims=True) / used.sum())
        )  # Firth's scores do not sum to 0


def _pooled(factor: Factor, derivative: Floats, directions: Floats) -> Floats:
    """Derivative (E, p) of the estimates: the folds estimate one and the same per row, so pool it, a fifth of the noise."""
    fitted = np.array([fit is not None for fit in factor.fits])
    return np.asarray(np.einsum("etq,tqp->ep", directions[:, : derivative.shape[1]], derivative[fitted].sum(axis=0)))
