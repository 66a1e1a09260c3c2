"""Superset propensity by the chain rule over groups, and what learning it does to the influence values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from copy import copy
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ...arrays import Bools, Floats, Ints, every, lines_of, tally
from ...data import Retrospective
from ...missingness.assumptions import Conditioning
from ...support import SupportMap
from .answer import Answer, FactorParts, Part, PatternParts
from .factor import Crossfit, Factor, Form, Forms, boosted
from .root import RootPropensity

if TYPE_CHECKING:
    from .logistic import LogisticFit
    from .weighting import Weighting

__all__ = [
    "ChainPropensity",
    "FactorScores",
    "ScoredModel",
    "ScoredPropensity",
    "Slopes",
    "StackedScores",
    "canonical_order",
]


def canonical_order(data: Retrospective) -> list[int]:
    """Groups that are not always recorded: most recorded first, then by name."""
    share = data.recorded.mean(axis=0)
    names = data.problem.group_names
    sometimes = np.flatnonzero(~data.always_recorded)
    return sorted((int(g) for g in sometimes), key=lambda g: (-share[g], names[g]))


class ChainPropensity:
    r"""Learned P(R >= S | given), cross-fitted.

    .. math:: P(R \ge S \mid X_o) = \prod_{j} P(R_{g_j} = 1 \mid X_o, R_{g_1} = \dots = R_{g_{j-1}} = 1)

    over the groups of S in canonical order. Recorded groups are correlated in real records (panels are
    ordered together), so each factor is fitted on the rows that have the earlier groups. A factor whose rows
    show one class only is exactly 0 or 1; groups that are always recorded have no factor.

    Where what is given has gaps itself, it is the propensity of S + adj:
    :math:`P(R_{adj} = 1 \mid X_{adj}) \, P(R \ge S \mid X_{adj}, R_{adj} = 1)`, the first factor by the blocks of the
    conditioning, the second by the chain among rows that have adj. Where the first depends on indicators of groups outside
    adj too, the rows of the chain are weighted by one over it, which makes one over the product have mean one given X_adj.

    Parameters
    ----------
    data : Retrospective
        Records.
    given : Conditioning
        What missingness depends on.
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
    form : {"auto", "linear", "spline", "boosting"}
        Form of the default models; see `Forms`.
    """

    learned = True
    unsupported: SupportMap | None = None  # where sets have no support; their factors are fitted elsewhere

    def __init__(
        self,
        data: Retrospective,
        given: Conditioning,
        fold: Ints,
        estimator: Any = None,
        independent: bool = False,
        min_propensity: float = 0.0,
        row_weight: Floats | None = None,
        form: str = "linear",
    ) -> None:
        self.data, self.given, self.fold, self.estimator = data, given, fold, estimator
        self.independent, self.min_propensity = independent, min_propensity
        self.stacked = estimator is None  # whether the models have a score that standard errors can use
        self.usable = given.usable(data)
        self.forms = Forms(given.matrix(data), data.recorded, self.usable, data.cluster, form)
        self.order = [g for g in canonical_order(data) if not given.gaps[g]]
        self.n_folds = int(fold.max()) + 1
        self.base: ChainPropensity | None = None  # the same before resampling, to start the fits from
        self._learn(row_weight)

    def _learn(self, row_weight: Floats | None) -> None:
        self.fits = Crossfit(self.fold, self.estimator, row_weight)
        self.boosted = Crossfit(self.fold, boosted(), row_weight)
        self.factors: dict[tuple[tuple[int, ...], int], Factor] = {}
        self.root: RootPropensity | None = None
        if self.usable is not None:
            near = None if self.base is None else self.base.root
            lost = self._lost(self.given.gaps)
            self.root = RootPropensity(self.data, self.given, self.fits, self.usable, near, lost)

    def _lost(self, required: Bools) -> Bools | None:
        """Rows that can never show a set: they would pull its model away from those that can."""
        return self.unsupported.lacking(required | self.given.gaps) if self.unsupported else None

    def chain(self, required: Bools) -> list[tuple[tuple[int, ...], int]]:
        """Keys of the factors of this set, adjusted groups not included."""
        groups = [g for g in self.order if required[g]]
        return [(() if self.independent else tuple(groups[:j]), g) for j, g in enumerate(groups)]

    def factor(self, key: tuple[tuple[int, ...], int]) -> Factor:
        """Fitted factor, from the cache or fitted now."""
        if key not in self.factors:
            earlier, group = key
            eligible = self.usable
            if earlier:
                having = every(self.data.recorded[:, list(earlier)])
                eligible = having if eligible is None else eligible & having
            lost = self._lost(np.isin(np.arange(self.data.problem.n_groups), (*earlier, group)))
            if lost is not None:
                eligible = ~lost if eligible is None else eligible & ~lost
            near = None if self.base is None else self.base.factors.get(key)
            outcome = self.data.recorded[:, group]
            weighting = None if self.root is None else self.root.weighting
            form = self.forms.of(group) if self.estimator is None else Form()
            fits = self.boosted if form.kind == "boosting" else self.fits
            self.factors[key] = Factor(fits, key, eligible, outcome, self.forms.inputs(form), near, weighting)
        return self.factors[key]

    def probability(self, rows: Ints, sets: Bools, index: Ints) -> Floats:
        """P(R >= sets[index] | given) in these rows, before any clipping."""
        return self.answer(rows, sets, lines_of(index, len(sets))).probability

    def answer(self, rows: Ints, sets: Bools, lines: list[Ints]) -> Answer:
        """The same where ``lines`` says which rows go with each set, with the factors of every probability."""
        parts = [self._part(mine, rows[mine], required) for mine, required in zip(lines, sets, strict=True)]
        probability = np.ones(len(rows))
        for part in parts:
            probability[part.lines] = part.probability
        return Answer(probability, FactorParts(parts))

    def _part(self, lines: Ints, rows: Ints, required: Bools) -> Part:
        p, factors = np.ones(len(lines)), []
        if len(lines):
            for factor in (self.factor(key) for key in self.chain(required)):
                step = factor.predict(rows)
                factors.append((factor, (1 - step) * factor.moves(rows)))
                p = p * step
            if self.root is not None and required.any():  # nothing required: a row that represents only itself
                p = p * self.root.probability[rows]
                factors += [(factor, slack[rows]) for factor, slack in self.root.slack]
        return Part(lines, p, factors)

    def scores(self, row_weight: Floats) -> FactorScores | None:
        """What standard errors have to know of the learning; None where the models have no scores."""
        return FactorScores(self, row_weight) if self.stacked else None

    def refit(self, row_weight: Floats) -> ChainPropensity:
        """Learn again with these row weights."""
        new = copy(self)
        new.base = self
        new._learn(row_weight)
        return new

    def excluding(self, unsupported: SupportMap) -> ChainPropensity:
        """Learn each factor from the rows in which its set is supported."""
        new = copy(self)
        new.unsupported, new.base = unsupported, None
        new._learn(self.fits.row_weight)
        return new

    @property
    def converged(self) -> bool:
        """Whether every logistic fit so far converged."""
        factors = [*self.factors.values(), *(() if self.root is None else self.root.factors)]
        return all(f is None or f.converged for factor in factors for f in factor.fits)


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


class ScoredPropensity(Protocol):
    """A propensity of logistic models, cross-fitted."""

    fold: Ints
    n_folds: int

    @property
    def root(self) -> RootPropensity | None:
        """What is to adjust for."""
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

    def __init__(self, propensity: ScoredPropensity, row_weight: Floats) -> None:
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


def _pooled(model: ScoredModel, derivative: Floats, directions: Floats) -> Floats:
    """Derivative (E, p) of the estimates: the folds estimate one and the same per row, so pool it, a fifth of the noise."""
    fitted = np.array([fit is not None for fit in model.fits])
    return np.asarray(np.einsum("etq,tqp->ep", directions[:, : derivative.shape[1]], derivative[fitted].sum(axis=0)))
