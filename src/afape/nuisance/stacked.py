"""Stacked estimating equations: what a learned propensity does to the influence values."""

from __future__ import annotations

import numpy as np

from ..arrays import Bools, Floats, Ints, tally
from .chain import ChainPropensity

__all__ = ["StackedScores"]


class StackedScores:
    r"""Collects the derivative of an estimate in the parameters of its logistic propensities.

    An estimate is a smooth function of row means of sums :math:`\sum_S w_S q_S` over states. For the factor f
    of the chain and the model of fold k, :math:`\partial w_S / \partial\theta_{fk} = -w_S (1 - p_f(x_i)) z_i` for
    every state S of a row i in fold k whose chain contains f. With :math:`D_{fk}` the derivative of the
    estimate, times n, the influence value of row j gains

    .. math:: \sum_{f, k} D_{fk}' A_{fk}^{-1} s_{fk, j}

    with score s and information A of the fit (`LogisticFit`).
    """

    def __init__(self, propensity: ChainPropensity, row_weight: Floats) -> None:
        self.propensity = propensity
        self._share = tally(propensity.fold, row_weight, propensity.n_folds) / row_weight.sum()
        self._derivative: dict[tuple[tuple[int, ...], int], Floats] = {}  # (K, T, Q, p)

    def add(self, rows: Ints, sets: Bools, index: Ints, depth: Ints, weighted: Floats) -> None:
        """Add states: ``weighted`` (m, Q) holds w_S q_S, 0 where a clipped weight does not move."""
        chain = self.propensity
        for lines, factors in chain.factors_of(rows, sets, index):
            if len(lines) == 0 or not factors:
                continue
            t = int(depth[lines[0]])  # a set has one depth: the number of its costly groups
            fold = chain.fold[rows[lines]]
            z, q = chain.design[rows[lines]], weighted[lines]
            for factor, p in factors:
                slack = (1 - p) * np.isnan(factor.constant)[fold]
                total = self._slot(factor.key, t, q.shape[1])
                for k in range(chain.n_folds):
                    mine = fold == k
                    total[k, t] -= (q[mine] * slack[mine, None]).T @ z[mine]

    def _slot(self, key: tuple[tuple[int, ...], int], t: int, n_quantities: int) -> Floats:
        p = self.propensity.design.shape[1]
        old = self._derivative.get(key)
        if old is None or old.shape[1] <= t:
            new = np.zeros((self.propensity.n_folds, t + 1, n_quantities, p))
            if old is not None:
                new[:, : old.shape[1]] = old
            self._derivative[key] = new
        return self._derivative[key]

    def influence(self, directions: Floats) -> Floats:
        """Additions (E, n) to the influence values of E estimates with derivatives (E, T, Q) in the means."""
        chain = self.propensity
        out = np.zeros((len(directions), len(chain.fold)))
        for key, derivative in self._derivative.items():
            factor = chain.factor(key)
            # The folds estimate one and the same derivative per row, so pool it: a fifth of the noise.
            fitted = np.array([fit is not None for fit in factor.fits])
            share = self._share * fitted
            pooled = np.einsum("etq,tqp->ep", directions[:, : derivative.shape[1]], derivative[fitted].sum(axis=0))
            for k, fit in enumerate(factor.fits):
                if fit is None or share[k] == 0:
                    continue
                d = pooled * (share[k] / share.sum())
                used = np.zeros(len(chain.fold))
                used[factor.training(k)] = 1.0
                # All rows at once, then a mask: quicker than picking rows out and putting them back.
                residual = used * (factor.outcome - factor.fitted(k))
                added = (d @ fit.inverse_information @ chain.design.T) * residual
                out += added - used * (added.sum(axis=1, keepdims=True) / used.sum())  # Firth's scores do not sum to 0
        return out
