"""Superset propensity by the chain rule over groups."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from ...arrays import Bools, Floats, Ints, every, lines_of
from ...data import Retrospective
from ...missingness.assumptions import Conditioning
from ...support import SupportMap
from .answer import Answer, FactorParts, Part
from .factor import Crossfit, Factor, Form, Forms, boosted
from .root import RootPropensity
from .scores import FactorScores

__all__ = ["ChainPropensity", "canonical_order"]


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
