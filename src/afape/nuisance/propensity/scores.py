"""Stacked errors: what the learning of a propensity does to the influence values of an estimate."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from scipy.sparse import csr_array

from ...arrays import Bools, Floats, Ints, tally
from .answer import FactorParts, PatternParts
from .logistic import LogisticFit
from .patterns import Gradient, PatternModel

if TYPE_CHECKING:
    from .root import RootPropensity
    from .weighting import Weighting

__all__ = ["FactorScores", "PatternScores", "ScoredModel", "Slopes", "StackedScores"]


class ScoredModel(Protocol):
    """A logistic regression, one fit per fold, None where there is nothing to learn."""

    outcome: Bools
    fits: list[LogisticFit | None]

    @property
    def weighting(self) -> Weighting | None:
        """What other models weigh its rows with."""
        ...

    @property
    def design(self) -> Floats:
        """Regressors of all rows."""
        ...

    def training(self, k: int) -> Ints:
        """Rows that the model of fold k is fitted on."""
        ...

    def fitted(self, k: int) -> Floats:
        """Probability in every row by the model of fold k."""
        ...


Slopes = dict[Any, Floats]  # derivatives by model, the parameters last


class _ByFactors(Protocol):
    """A propensity with one model per fold and factor."""

    fold: Ints
    n_folds: int

    @property
    def root(self) -> RootPropensity | None:
        """What is to adjust for."""
        ...


class _ByPatterns(_ByFactors, Protocol):
    """A propensity whose probabilities are sums over patterns."""

    models: list[PatternModel]

    def gradients(self, parts: PatternParts) -> Iterator[Gradient]:
        """Derivatives of log P of these lines in all coefficients, chunk by chunk."""
        ...


class StackedScores(ABC):
    r"""Collects the derivative of an estimate in the parameters of its logistic propensities.

    An estimate is a smooth function of row means of sums :math:`\sum_S w_S q_S` over states. With
    :math:`\theta_{fk}` the coefficients of model f of fold k,
    :math:`\partial w_S / \partial\theta_{fk} = -w_S \, \partial \log P_S / \partial\theta_{fk}` for every state S of a row
    in fold k whose probability contains f. With :math:`D_{fk}` the derivative of the estimate, times n, the influence value
    of row j gains

    .. math:: \sum_{f, k} D_{fk}' A_{fk}^{-1} s_{fk, j}

    with score s and information A of the fit (`LogisticFit`). Where rows of the fit of f are weighted by other factors
    f' its score depends on them; :math:`D_{fk}' A_{fk}^{-1} \, \partial s_{fk} / \partial\theta_{f'k}`, with
    :math:`\partial s_{fk} / \partial\theta_{f'k} = \sum_j s_{fk,j} \, (\partial \log w_j / \partial\eta_{f'}) \, z_j'`, is
    then added to :math:`D_{f'k}`, from what was learned last to what was learned first.
    """

    def __init__(self, propensity: _ByFactors, row_weight: Floats) -> None:
        self.propensity = propensity
        self._share = tally(propensity.fold, row_weight, propensity.n_folds) / row_weight.sum()
        self._derivative: Slopes = {}  # (K, T, Q, p)
        self.whole = True  # whether every factor so far has a score

    @abstractmethod
    def add(self, rows: Ints, parts: FactorParts | PatternParts, depth: Ints, weighted: Floats) -> None:
        """Add states: ``weighted`` (m, Q) holds w_S q_S, 0 where a clipped weight does not move."""

    def _slot(self, model: ScoredModel, t: int, n_quantities: int) -> Floats:
        old = self._derivative.get(model)
        if old is None or old.shape[1] <= t:
            p = model.design.shape[1] if old is None else old.shape[-1]
            new = np.zeros((self.propensity.n_folds, t + 1, n_quantities, p))
            if old is not None:
                new[:, : old.shape[1]] = old
            self._derivative[model] = new
        return self._derivative[model]

    def influence(self, directions: Floats, more: Mapping[Any, Floats] | None = None) -> Floats:
        """Additions (E, n) to the influence values of E estimates with derivatives (E, T, Q) in the means.

        ``more`` are derivatives of the estimates themselves, by factor and fold (K, E, p).
        """
        out = np.zeros((len(directions), len(self.propensity.fold)))
        if not self.whole:  # a part of the correction may make errors too small; none of it makes them too large
            return out
        slopes = {f: _pooled(f, d, directions) for f, d in self._derivative.items()}
        for factor, by_fold in (more or {}).items():
            own = by_fold[[fit is not None for fit in factor.fits]].sum(axis=0)
            slopes[factor] = slopes[factor] + own if factor in slopes else own
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

    def _backwards(self, slopes: Slopes) -> list[Any]:
        """Every factor before those that its rows are weighted by."""
        root = [] if self.propensity.root is None else self.propensity.root.factors
        inner = set(root)
        return [*(f for f in slopes if f not in inner), *reversed(root)]

    def _through(self, factor: ScoredModel, k: int, slope: Floats, slopes: Slopes) -> Floats:
        """Score of the model of fold k times ``slope`` (E, p), in every row; what its weights pass on goes to ``slopes``."""
        used = np.zeros(len(self.propensity.fold))
        rows = factor.training(k)
        used[rows] = 1.0
        # All rows at once, then a mask: quicker than picking rows out and putting them back.
        residual = used * (factor.outcome - factor.fitted(k))
        pulls: list[tuple[Any, Floats]] = []
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


class FactorScores(StackedScores):
    r"""Scores of a product of factors.

    With log-odds :math:`\eta_f` of factor f,
    :math:`\partial \log P_S / \partial\theta_{fk} = (\partial \log P_S / \partial \eta_f) \, z_i`; in a chain the bracket
    is 1 - p.
    """

    def add(self, rows: Ints, parts: FactorParts | PatternParts, depth: Ints, weighted: Floats) -> None:
        """Add states, set by set."""
        assert isinstance(parts, FactorParts)
        chain = self.propensity
        for lines, _, factors in parts:
            if len(lines) == 0:
                continue
            t = int(depth[lines[0]])  # a set has one depth: the number of its costly groups
            fold, q = chain.fold[rows[lines]], weighted[lines]
            for factor, slack in factors:
                if factor.of.estimator is not None:
                    self.whole = False
                    continue
                z = factor.design[rows[lines]]
                total = self._slot(factor, t, q.shape[1])
                for k in range(chain.n_folds):
                    mine = fold == k
                    total[k, t] -= (q[mine] * slack[mine, None]).T @ z[mine]


class PatternScores(StackedScores):
    """Scores of sums over recording patterns, whose gradients the propensity computes chunk by chunk."""

    def __init__(self, propensity: _ByPatterns, row_weight: Floats) -> None:
        super().__init__(propensity, row_weight)
        self.patterns = propensity

    def add(self, rows: Ints, parts: FactorParts | PatternParts, depth: Ints, weighted: Floats) -> None:
        """Add states, all depths of a chunk at once."""
        assert isinstance(parts, PatternParts)
        moving = np.flatnonzero(weighted.any(axis=1))
        n_depths, n_quantities = int(depth.max(initial=0)) + 1, weighted.shape[1]
        for lines, place, fold, columns in self.patterns.gradients(parts.only(moving)):
            mine = moving[lines]
            cell = depth[mine, None] * n_quantities + np.arange(n_quantities)
            pair = np.broadcast_to(place[:, None], cell.shape)
            shape = n_depths * n_quantities, len(columns)
            found = csr_array((weighted[mine].ravel(), (cell.ravel(), pair.ravel())), shape=shape) @ columns
            for model in self.patterns.models:
                slot = self._slot(model, n_depths - 1, n_quantities)
                slot[fold, :n_depths] -= found[:, model.place].reshape(n_depths, n_quantities, -1)

    def pull(self, parts: PatternParts, weighted: Floats, slopes: Slopes) -> None:
        """Add to ``slopes`` (K, P, p) what lines pull that enter P sums with ``weighted`` (m, P)."""
        moving = np.flatnonzero(weighted.any(axis=1))
        for lines, place, fold, columns in self.patterns.gradients(parts.only(moving)):
            gathered = csr_array(
                (np.ones(len(lines)), (place, np.arange(len(lines)))), shape=(len(columns), len(lines))
            )
            found = np.asarray(gathered @ weighted[moving[lines]]).T @ columns
            for model in self.patterns.models:
                if model not in slopes:
                    width = model.place.stop - model.place.start
                    slopes[model] = np.zeros((self.propensity.n_folds, weighted.shape[1], width))
                slopes[model][fold] -= found[:, model.place]


def _pooled(model: ScoredModel, derivative: Floats, directions: Floats) -> Floats:
    """Derivative (E, p) of the estimates: the folds estimate one and the same per row, so pool it, a fifth of the noise."""
    fitted = np.array([fit is not None for fit in model.fits])
    return np.asarray(np.einsum("etq,tqp->ep", directions[:, : derivative.shape[1]], derivative[fitted].sum(axis=0)))
