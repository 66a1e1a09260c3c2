"""Propensity of sets from one model of the whole recording pattern."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np

from .._arrays import Bools, Floats, Ints, any_of, index_of, merge
from ..data.retrospective import Retrospective
from ..missingness.assumptions import Conditioning
from .chain import canonical_order
from .drawn_patterns import drawn_moments, drawn_probability
from .factor import Crossfit
from .forms import Form, Forms
from .learned import LearnedPropensity
from .logistic import rows_of
from .patterns import CELLS, Gradient, PatternModel, summed_moments, summed_probability
from .probabilities import PatternLines, Probabilities
from .scores import PatternScores
from .unsupported import SupportMap

__all__ = ["MAX_CORRECTED", "MAX_SUMMED", "AutoregressivePropensity"]

MAX_SUMMED = 14  # groups with gaps up to which all 2^14 patterns are summed; patterns are drawn for more groups
MAX_CORRECTED = 10  # groups with gaps up to which the second-order correction is computed; it takes long for more
_MAX_KEPT = 2**23  # probabilities that are kept


class AutoregressivePropensity:
    r"""P(R >= S | given) for every S at once.

    .. math:: P(R = r \mid X_o) = \prod_j P(R_{g_j} = r_j \mid X_o, r_1, \dots, r_{j-1}), \qquad
       P(R \ge S \mid X_o) = \sum_{r \ge S} P(R = r \mid X_o)

    One logistic model per group, with the earlier indicators as regressors, so G fits per fold where the chain
    rule needs one fit per set. It assumes more than the chain: earlier indicators act additively on the log-odds.

    With more than 14 groups, patterns are drawn. The groups of S are recorded in them, and the other indicators are drawn in
    order, each from its model. Then

    .. math:: P(R \ge S \mid X_o) = E\Big[\prod_{j \in S} P(R_{g_j} = 1 \mid X_o, r_1, \dots, r_{j-1})\Big],

    estimated by the mean of 64 draws. All rows and sets use the same draws, a Latin hypercube, so the result depends only on
    X_o and S.

    Standard errors account for the learning (`PatternScores`): with :math:`z_j = (X_o, r_1, \dots, r_{j-1})` the regressors
    of model j,

    .. math:: \frac{\partial \log P(R \ge S \mid X_o)}{\partial\theta_j} = E[(r_j - p_j) \, z_j \mid R \ge S, X_o],

    over all patterns, or over the drawn ones with the product above as weight. The latter estimates the derivative of the
    sum over all patterns. The mean over draws has no useful derivative, because a drawn
    indicator is 0 or 1 and does not change smoothly.

    With at most ten groups, cross-fitted probabilities are shifted so that the weight is unbiased to second order
    (`summed_probability`).

    Sums over patterns take long, and several estimators need those of the same states: the results of `probabilities` are
    kept, up to 2^23 numbers.

    Parameters
    ----------
    data, given, fold, spec, drawn, unsupported, forms
        As in `ChainPropensity`.
    """

    learned = True
    adjustment = None  # no groups to adjust for

    def __init__(
        self,
        data: Retrospective,
        given: Conditioning,
        fold: Ints,
        spec: LearnedPropensity,
        drawn: Floats | None = None,
        unsupported: SupportMap | None = None,
        forms: Forms | None = None,
    ) -> None:
        self.data, self.given, self.fold, self.spec, self.unsupported = data, given, fold, spec, unsupported
        self.min_propensity = spec.min_propensity
        self.order = canonical_order(data)
        self.forms = forms or Forms(given.matrix(data), data.recorded, None, data.unit, spec.form, data.weight)
        crossfit = Crossfit(fold, drawn, data.cluster, data.weight)
        self.n_folds = crossfit.n_folds
        self.models: list[PatternModel] = []
        recorded, start = data.recorded[:, self.order], 0
        for j, g in enumerate(self.order):
            form = _logistic(self.forms.of(g))
            design, never = self.forms.inputs(form).design, self._never(j)
            self.models.append(PatternModel(design, recorded[:, : j + 1], crossfit, form.ridge, never, start))
            start = self.models[-1].place.stop
        self._kept: dict[bytes, Floats] = {}

    def _never(self, j: int) -> list[tuple[Bools, Bools]]:
        """Violations whose last group in order is j: the earlier groups (j,) and the rows (n,)."""
        found = []
        for violation in self.unsupported.violations if self.unsupported else ():
            required = violation.required[self.order]
            if violation.n_recorded:  # rare, not impossible: left to the model
                continue
            if required[j] and not required[j + 1 :].any():
                found.append((required[:j], violation.rows))
        return found

    @property
    def corrected(self) -> bool:
        """True if weights are unbiased to second order: in cross-fitted models of at most ten groups."""
        return self.n_folds > 1 and len(self.order) <= MAX_CORRECTED

    @property
    def too_many(self) -> bool:
        """True if there are too many groups for the correction."""
        return self.n_folds > 1 and len(self.order) > MAX_CORRECTED

    @property
    def drawn(self) -> bool:
        """True if patterns are drawn, because there are too many to sum over."""
        return len(self.order) > MAX_SUMMED

    def probability(self, rows: Ints, sets: Bools, index: Ints) -> Floats:
        """P(R >= sets[index] | given) in these rows (m,), before clipping."""
        sets = sets[:, self.order]
        if not self.drawn:
            return summed_probability(self.models, self.fold, rows, sets, index, self.corrected)
        required = sets[index]
        first, place = _distinct(rows, required)  # every pair of row and set once
        return drawn_probability(self.models, self.fold, rows[first], required[first])[place]

    def probabilities(self, rows: Ints, sets: Bools, lines: list[Ints]) -> Probabilities:
        """Probabilities of these rows (m,), where ``lines`` lists the rows of each set; results are kept for further calls."""
        index = index_of(lines, len(rows))
        key = hashlib.blake2b(rows.tobytes() + index.tobytes() + sets.tobytes(), digest_size=16).digest()
        found = self._kept.get(key)
        if found is None:
            found = self.probability(rows, sets, index)
            if sum(map(len, self._kept.values())) + len(found) <= _MAX_KEPT:
                self._kept[key] = found
        return Probabilities(found, PatternLines(rows, sets[:, self.order], index))

    def scores(self, row_weight: Floats) -> PatternScores | None:
        """Return an empty sum of scores for standard errors; None if the propensity is to be treated as known."""
        return PatternScores(self, row_weight) if self.spec.stacked else None

    def gradients(self, lines: PatternLines) -> Iterator[Gradient]:
        """Derivatives of log P of these lines in all coefficients, chunk by chunk; lines with an empty set have none."""
        fold = np.where(any_of(lines.sets)[lines.set_of], self.fold[lines.rows], -1)
        for k in range(self.n_folds):
            mine = np.flatnonzero(fold == k)
            if len(mine) == 0:
                continue
            first, place = _distinct(lines.rows[mine], lines.sets[lines.set_of[mine]])
            by_pair = np.argsort(place, kind="stable")
            starts = np.searchsorted(place[by_pair], np.arange(len(first) + 1))
            rows, sets = lines.rows[mine[first]], lines.sets[lines.set_of[mine[first]]]
            for pairs, moments in self._moments(k, rows, sets):
                counts = starts[pairs + 1] - starts[pairs]
                offset = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
                those = mine[by_pair[np.repeat(starts[pairs], counts) + offset]]
                yield Gradient(those, np.repeat(np.arange(len(pairs)), counts), k, self._columns(rows[pairs], moments))

    def _moments(self, k: int, rows: Ints, sets: Bools) -> Iterator[tuple[Ints, Floats]]:
        """Moments of the patterns that contain each set, in pieces that fit into memory."""
        step = max(CELLS // (self.models[-1].place.stop + len(self.order) ** 2), 1)
        found = (drawn_moments if self.drawn else summed_moments)(self.models, k, rows, sets)
        for pairs, moments in found:
            for i in range(0, len(pairs), step):
                yield pairs[i : i + step], moments[i : i + step]

    def _columns(self, rows: Ints, moments: Floats) -> Floats:
        """Gradient in the coefficients of all models (c, p), from moments (c, q, 1 + q) in these rows."""
        blocks = []
        for j, model in enumerate(self.models):
            blocks += [moments[:, j, :1] * rows_of(model.given, rows), moments[:, j, 1 : 1 + j]]
        return np.concatenate(blocks, axis=1)

    def _again(self, drawn: Floats | None, unsupported: SupportMap | None) -> AutoregressivePropensity:
        return AutoregressivePropensity(self.data, self.given, self.fold, self.spec, drawn, unsupported, self.forms)

    def refit(self, drawn: Floats) -> AutoregressivePropensity:
        """Return the propensity learned again, with rows that were drawn so often, (n,)."""
        return self._again(drawn, self.unsupported)

    def excluding(self, unsupported: SupportMap) -> AutoregressivePropensity:
        """Return the propensity with each model learned from the rows in which its group can be recorded."""
        return self._again(None, unsupported)

    @property
    def converged(self) -> bool:
        """True if every logistic fit converged."""
        return all(fit is None or fit.converged for model in self.models for fit in model.fits)


def _logistic(form: Form) -> Form:
    """Return the form, or splines if the form is trees: trees have no coefficients for the earlier indicators."""
    return form if form.kind != "boosting" else Form("spline")


def _distinct(rows: Ints, sets: Bools) -> tuple[Ints, Ints]:
    """One representative of each pair of row and set, and the place of every pair among them."""
    order = np.argsort(rows, kind="stable")
    first, inverse = merge(rows[order], sets[order])
    place = np.empty(len(rows), dtype=np.intp)
    place[order] = inverse
    return order[first], place
