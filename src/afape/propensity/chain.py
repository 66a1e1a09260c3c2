"""Propensity of sets by the chain rule over groups."""

from __future__ import annotations

import numpy as np

from .._arrays import Bools, Floats, Ints, every, lines_of
from ..data.retrospective import Retrospective
from ..missingness.assumptions import Conditioning
from .adjustment import AdjustmentPropensity
from .factor import Crossfit, Factor
from .forms import Form, Forms, boosted
from .learned import LearnedPropensity
from .probabilities import FactorLines, Probabilities, SetFactors, Slope
from .scores import FactorScores
from .unsupported import SupportMap

__all__ = ["ChainPropensity", "canonical_order"]


def canonical_order(data: Retrospective) -> list[int]:
    """Groups that are not always recorded: most often recorded first, then by name."""
    share = data.recorded_share
    names = data.problem.group_names
    return sorted((int(g) for g in np.flatnonzero(share < 1)), key=lambda g: (-share[g], names[g]))


class ChainPropensity:
    r"""Learned P(R >= S | given), cross-fitted.

    .. math:: P(R \ge S \mid X_o) = \prod_{j} P(R_{g_j} = 1 \mid X_o, R_{g_1} = \dots = R_{g_{j-1}} = 1)

    over the groups of S in canonical order. Recorded groups are correlated in real records (panels are
    ordered together), so each factor is fitted on the rows that have the earlier groups. A factor whose rows
    have one class only is exactly 0 or 1; groups that are always recorded have no factor.

    If given groups have gaps, it is the propensity of S + adj: :math:`P(R_{adj} = 1 \mid X_{adj}) \, P(R \ge S \mid X_{adj},
    R_{adj} = 1)`, the first factor is the product of the blocks of the conditioning, and the second is learned by the chain
    among rows that have adj. If the first factor depends on indicators of groups outside adj, the rows of the chain are
    weighted by its inverse; the inverse of the product then has mean one given X_adj.

    A factor is fitted when a set that contains it is first asked for, and kept in ``factors``.

    Parameters
    ----------
    data : Retrospective
        Records.
    given : Conditioning
        What missingness depends on.
    fold : ndarray of int
        Fold of each row.
    spec : LearnedPropensity
        Model, form and smallest probability; method "independent" fits every factor on all rows.
    drawn : ndarray of shape (n,), optional
        How often each row was drawn in a bootstrap replicate.
    unsupported : SupportMap, optional
        Sets without support in some rows; their factors are fitted on the other rows.
    forms : Forms, optional
        Forms that were chosen before on these records; default: a new choice.
    near : ChainPropensity, optional
        The propensity before resampling, to start the fits from.
    """

    learned = True

    def __init__(
        self,
        data: Retrospective,
        given: Conditioning,
        fold: Ints,
        spec: LearnedPropensity,
        drawn: Floats | None = None,
        unsupported: SupportMap | None = None,
        forms: Forms | None = None,
        near: ChainPropensity | None = None,
    ) -> None:
        self.data, self.given, self.fold, self.spec, self.unsupported = data, given, fold, spec, unsupported
        self.min_propensity = spec.min_propensity
        self.usable = given.usable(data)
        self.forms = forms or Forms(given.matrix(data), data.recorded, self.usable, data.unit, spec.form, data.weight)
        self.order = [g for g in canonical_order(data) if not given.gaps[g]]
        self.crossfit = Crossfit(fold, drawn, data.cluster, data.weight)
        self.n_folds = self.crossfit.n_folds
        self.factors: dict[tuple[tuple[int, ...], int], Factor] = {}
        self._near = {} if near is None else near.factors
        self.adjustment: AdjustmentPropensity | None = None
        if self.usable is not None:
            before, lost = None if near is None else near.adjustment, self._lost(given.gaps)
            self.adjustment = AdjustmentPropensity(
                data, given, self.crossfit, spec.estimator, self.usable, before, lost
            )

    def _lost(self, required: Bools) -> Bools | None:
        """Rows in which a set is unsupported, and which would bias its model; None if there are none."""
        return self.unsupported.lacking(required | self.given.gaps) if self.unsupported else None

    def chain(self, required: Bools) -> list[tuple[tuple[int, ...], int]]:
        """Keys of the factors of this set, without the groups to adjust for."""
        groups = [g for g in self.order if required[g]]
        independent = self.spec.method == "independent"
        return [(() if independent else tuple(groups[:j]), g) for j, g in enumerate(groups)]

    def factor(self, key: tuple[tuple[int, ...], int]) -> Factor:
        """Fitted factor, kept or fitted now."""
        if key not in self.factors:
            earlier, group = key
            eligible = self.usable
            if earlier:
                having = every(self.data.recorded[:, list(earlier)])
                eligible = having if eligible is None else eligible & having
            lost = self._lost(np.isin(np.arange(self.data.problem.n_groups), (*earlier, group)))
            if lost is not None:
                eligible = ~lost if eligible is None else eligible & ~lost
            form = self.forms.of(group) if self.spec.estimator is None else Form()
            self.factors[key] = Factor(
                self.crossfit,
                boosted() if form.kind == "boosting" else self.spec.estimator,
                eligible,
                self.data.recorded[:, group],
                self.forms.inputs(form),
                self._near.get(key),
                None if self.adjustment is None else self.adjustment.weighting,
            )
        return self.factors[key]

    def probability(self, rows: Ints, sets: Bools, index: Ints) -> Floats:
        """P(R >= sets[index] | given) in these rows (m,), before clipping."""
        return self.probabilities(rows, sets, lines_of(index, len(sets))).probability

    def probabilities(self, rows: Ints, sets: Bools, lines: list[Ints]) -> Probabilities:
        """Probabilities of these rows (m,) with their factors, where ``lines`` lists the rows of each set."""
        out, found = np.ones(len(rows)), []
        for mine, required in zip(lines, sets, strict=True):
            out[mine], factors = self._product(rows[mine], required)
            found.append(SetFactors(mine, factors))
        return Probabilities(out, FactorLines(found))

    def _product(self, rows: Ints, required: Bools) -> tuple[Floats, list[tuple[Factor, Slope]]]:
        p, factors = np.ones(len(rows)), []  # type: Floats, list[tuple[Factor, Slope]]
        if len(rows) == 0:
            return p, factors
        for factor in (self.factor(key) for key in self.chain(required)):
            p *= factor.probability[rows]
            factors.append((factor, factor.slope))
        if self.adjustment is not None and required.any():  # an empty set: a row that represents only itself
            p *= self.adjustment.probability[rows]
            factors += [(factor, slope.__getitem__) for factor, slope in self.adjustment.derivatives]
        return p, factors

    def scores(self, row_weight: Floats) -> FactorScores | None:
        """Return an empty sum of scores for standard errors; None if the models have no scores."""
        return FactorScores(self, row_weight) if self.spec.stacked and self.spec.estimator is None else None

    def refit(self, drawn: Floats) -> ChainPropensity:
        """Return the propensity learned again, with rows that were drawn so often, (n,)."""
        return ChainPropensity(
            self.data, self.given, self.fold, self.spec, drawn, self.unsupported, self.forms, near=self
        )

    def excluding(self, unsupported: SupportMap) -> ChainPropensity:
        """Return the propensity with each factor learned from the rows in which its set is supported."""
        drawn = self.crossfit.drawn
        return ChainPropensity(self.data, self.given, self.fold, self.spec, drawn, unsupported, self.forms)

    @property
    def converged(self) -> bool:
        """True if every logistic fit so far converged."""
        factors = [*self.factors.values(), *(() if self.adjustment is None else self.adjustment.factors)]
        return all(fit is None or fit.converged for factor in factors for fit in factor.fits)
