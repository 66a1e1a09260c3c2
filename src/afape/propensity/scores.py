"""Scores of learned propensities. They add the error of the learning to standard errors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy.sparse import csr_array

from .._arrays import Floats, Ints, tally
from .factor import Factor
from .logistic import rows_of
from .patterns import PatternModel
from .probabilities import FactorLines, PatternLines

if TYPE_CHECKING:
    from .autoregressive import AutoregressivePropensity
    from .chain import ChainPropensity

__all__ = ["FactorScores", "PatternScores", "StackedScores"]

ScoredModel: TypeAlias = Factor | PatternModel  # logistic regressions, one fit per fold
_Slopes = dict[ScoredModel, Floats]  # derivatives by model, the coefficients last


class StackedScores(ABC):
    r"""Sums up the derivative of an estimate with respect to the parameters of its logistic propensities.

    An estimate is a smooth function of row means of sums :math:`\sum_S w_S q_S` over states. With
    :math:`\theta_{fk}` the coefficients of model f of fold k,
    :math:`\partial w_S / \partial\theta_{fk} = -w_S \, \partial \log P_S / \partial\theta_{fk}` for every state S of a row
    in fold k whose probability contains f. With :math:`D_{fk}` the derivative of the estimate, times n, the influence value
    of row j gains

    .. math:: \sum_{f, k} D_{fk}' A_{fk}^{-1} s_{fk, j}

    with score s and information A of the fit (`LogisticFit`). If the rows of the fit of f are weighted by other factors
    f', its score depends on them: :math:`D_{fk}' A_{fk}^{-1} \, \partial s_{fk} / \partial\theta_{f'k}`, with
    :math:`\partial s_{fk} / \partial\theta_{f'k} = \sum_j s_{fk,j} \, (\partial \log w_j / \partial\eta_{f'}) \, z_j'`, is
    then added to :math:`D_{f'k}`, the factors that were learned last first.
    """

    def __init__(self, propensity: ChainPropensity | AutoregressivePropensity, row_weight: Floats) -> None:
        self.propensity = propensity
        self._share = tally(propensity.fold, row_weight, propensity.n_folds) / row_weight.sum()
        self._derivative: _Slopes = {}  # (K, T, Q, p)
        self.whole = True  # False once a factor without a score was added

    @abstractmethod
    def add(self, rows: Ints, made_of: FactorLines | PatternLines, depth: Ints, weighted: Floats) -> None:
        """Add states: ``weighted`` (m, Q) holds w_S q_S, 0 where a weight is clipped and has derivative 0."""

    def _slot(self, model: ScoredModel, t: int, n_quantities: int) -> Floats:
        old = self._derivative.get(model)
        if old is None or old.shape[1] <= t:
            p = model.design.shape[1] if old is None else old.shape[-1]
            new = np.zeros((self.propensity.n_folds, t + 1, n_quantities, p))
            if old is not None:
                new[:, : old.shape[1]] = old
            self._derivative[model] = new
        return self._derivative[model]

    def influence(self, directions: Floats) -> Floats:
        """Additions (E, n) to the influence values of E estimates with derivatives (E, T, Q) in the means."""
        out = np.zeros((len(directions), len(self.propensity.fold)))
        if not self.whole:  # a partial correction may make errors too small; no correction makes them too large
            return out
        slopes = {f: _pooled(f, d, directions) for f, d in self._derivative.items()}
        for model in self._backwards(slopes):
            if model not in slopes:
                continue
            share = self._share * np.array([fit is not None for fit in model.fits])
            for k, fit in enumerate(model.fits):
                if fit is not None and share[k] > 0:
                    slope = slopes[model] * (share[k] / share.sum()) @ fit.inverse_information
                    self._add_scores(out, model, k, slope, slopes)
        return out

    def _backwards(self, slopes: _Slopes) -> list[ScoredModel]:
        """List every factor before those that its rows are weighted by."""
        adjusted: list[Factor] = [] if self.propensity.adjustment is None else self.propensity.adjustment.factors
        inner = set(adjusted)
        return [*(f for f in slopes if f not in inner), *reversed(adjusted)]

    def _add_scores(self, out: Floats, model: ScoredModel, k: int, slope: Floats, slopes: _Slopes) -> None:
        """Add ``slope`` (E, p) times the scores of fold k to ``out`` (E, n), and the effect of its weights to ``slopes``."""
        used, design = model.training(k), model.design
        # All rows at once, then a mask: faster than selecting rows.
        cases = used if model.crossfit.weight is None else used * model.crossfit.weight
        residual = cases * (model.response - model.fitted(k))
        if model.weighting is not None:
            rows = np.flatnonzero(used)
            weight, derivatives = model.weighting.of(k, rows, model.response[rows], model.crossfit.cases_of(rows))
            residual[rows] *= weight
            scores = (slope @ rows_of(design, rows).T) * residual[rows]
            for other, derivative in derivatives:
                passed = (scores * derivative) @ rows_of(other.design, rows)
                slopes[other] = slopes[other] + passed if other in slopes else passed
        added = slope @ design.T
        added *= residual
        centre = slope @ (residual @ design) / cases.sum()  # Firth's scores do not sum to 0
        added -= centre[:, None] * cases
        out += added


class FactorScores(StackedScores):
    r"""Scores of a product of factors.

    With log-odds :math:`\eta_f` of factor f,
    :math:`\partial \log P_S / \partial\theta_{fk} = (\partial \log P_S / \partial \eta_f) \, z_i`; in a chain the bracket
    is 1 - p.
    """

    def add(self, rows: Ints, made_of: FactorLines | PatternLines, depth: Ints, weighted: Floats) -> None:
        """Add states, set by set."""
        assert isinstance(made_of, FactorLines)
        n_folds = self.propensity.n_folds
        for mine, factors in made_of:
            if len(mine) == 0 or not factors:
                continue
            t = int(depth[mine[0]])  # a set has one depth: the number of its costly groups
            fold = self.propensity.fold[rows[mine]].astype(np.min_scalar_type(n_folds))
            order = np.argsort(fold, kind="stable")
            bounds = np.append(0, np.cumsum(np.bincount(fold, minlength=n_folds)))
            who, q = rows[mine[order]], np.take(weighted.T, mine[order], axis=1)
            for factor, slope in factors:
                if not factor.scored:
                    self.whole = False
                    continue
                z = rows_of(factor.design, who)
                z *= slope(who)[:, None]
                total = self._slot(factor, t, len(q))
                for k in range(n_folds):
                    span = slice(bounds[k], bounds[k + 1])
                    total[k, t] -= q[:, span] @ z[span]


class PatternScores(StackedScores):
    """Scores of sums over recording patterns; the propensity computes their gradients chunk by chunk."""

    def __init__(self, propensity: AutoregressivePropensity, row_weight: Floats) -> None:
        super().__init__(propensity, row_weight)
        self.patterns = propensity

    def add(self, rows: Ints, made_of: FactorLines | PatternLines, depth: Ints, weighted: Floats) -> None:
        """Add states, all depths of a chunk at once."""
        assert isinstance(made_of, PatternLines)
        moving = np.flatnonzero(weighted.any(axis=1))
        n_depths, n_quantities = int(depth.max(initial=0)) + 1, weighted.shape[1]
        for chunk, place, fold, columns in self.patterns.gradients(made_of.only(moving)):
            mine = moving[chunk]
            cell = depth[mine, None] * n_quantities + np.arange(n_quantities)
            pair = np.broadcast_to(place[:, None], cell.shape)
            shape = n_depths * n_quantities, len(columns)
            found = csr_array((weighted[mine].ravel(), (cell.ravel(), pair.ravel())), shape=shape) @ columns
            for model in self.patterns.models:
                slot = self._slot(model, n_depths - 1, n_quantities)
                slot[fold, :n_depths] -= found[:, model.place].reshape(n_depths, n_quantities, -1)


def _pooled(model: ScoredModel, derivative: Floats, directions: Floats) -> Floats:
    """Derivatives (E, p) of the estimates, summed over folds.

    All folds estimate the same coefficients, so the sum has less noise.
    """
    fitted = np.array([fit is not None for fit in model.fits])
    return np.asarray(np.einsum("etq,tqp->ep", directions[:, : derivative.shape[1]], derivative[fitted].sum(axis=0)))
