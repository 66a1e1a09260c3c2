"""EFF-Semi and EFF-Semi-Miss: every part of the cost weighted by just the groups that it needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from ..arrays import Floats, Ints, cluster_sums, lines_of
from ..imputation import Components, ShownParts
from ..nuisance.fitted import Evidence
from ..walk import PartColumns, WalkTable
from .booking import Block, Bookings, StateWeights, dense
from .drl import doubly_robust
from .estimate import TARGETS, Estimate, Outcome
from .linear import InfluenceParts, LinearParts, Origin, ReplicatedParts
from .mixture import Mixture
from .reduction import nothing
from .weighted import REACH, STOP, Flows, WeightedSums, weighted_sums

__all__ = ["EfficientSums", "efficient"]

_TOTAL = TARGETS.index("total")


class ComponentFormula:
    """Weighted means of the components' coefficients, one value of every target per order."""

    def __init__(self, components: Components, normalize: bool = True) -> None:
        self.components, self.normalize = components, normalize
        self.n_quantities = 2 + 2 * len(components.orders)

    def quantities(self, table: WalkTable, flows: Flows) -> Floats:
        """Coefficients of every line; the set without groups is reached and left by every row."""
        out = np.zeros((len(table.row), self.n_quantities))
        out[:, REACH] = out[:, STOP] = table.depth == 0
        out[:, 2:] = np.concatenate(list(self.components.coefficient), axis=1)
        return out

    def blocks(self, table: WalkTable, flows: Flows, columns: PartColumns, n_depths: int) -> Iterator[Block]:
        """Parts of components are booked with the mixture, see `EfficientSums`."""
        yield from ()

    def linearise(self, mean: Floats) -> tuple[dict[str, float], dict[str, Floats]]:
        """Values of the targets for every order, and their derivatives."""
        values, directions = {}, {}
        start = float(mean[0, REACH]) if self.normalize else 1.0  # mean weight of the rows: 1 but for the hybrid view
        for o in range(len(self.components.orders)):
            for target, columns in zip(TARGETS, ((0,), (1,), (0, 1)), strict=True):
                direction = np.zeros_like(mean)
                direction[:, [2 + 2 * o + c for c in columns]] = 1.0
                value = float((mean * direction).sum()) / start
                direction /= start
                if self.normalize:
                    direction[0, REACH] = -value / start
                directions[f"{target} {o}"] = direction
                values[f"{target} {o}"] = value
        return values, directions


def efficient(evidence: Evidence) -> EfficientSums:
    """EFF in whatever view the evidence is seen in."""
    components, composed = evidence.components, None
    assert evidence.view is not None
    covers = getattr(evidence.view.propensity, "covers", None)  # probabilities of reached sets alone may be known
    if covers is not None and not all(covers(s | evidence.view.adjust) for s in components.sets):
        components = replace(components, orders=())
    if components.orders:
        formula = ComponentFormula(components, evidence.recipe.normalize)
        composed = weighted_sums(evidence, formula, tables=(components.table,), scored=True)
    return EfficientSums(evidence, components, composed, doubly_robust(evidence, scored=True))


@dataclass(frozen=True, eq=False)
class EfficientSums:
    r"""A mixture of doubly robust estimators, of which the leading one weights each Hoeffding component by its own groups.

    Every row that has S recorded knows :math:`g_S(x_S, y)`, what the runs in S cost: :math:`r_S \pi(stop|S) C_S` for
    misclassification, :math:`r_S` times the expected price of the decision for acquisition. With
    :math:`m_{S,T} = E[g_S \mid x_T, X_o, Y]`, :math:`m_{S,S} = g_S` and
    :math:`f_{S,T} = m_{S,T} - \sum_{T' < T} f_{S,T'}`, the value of a row is

    .. math:: \phi_i = \sum_S \sum_{T \le S, T \le R_i} w_T f_{S,T}(i), \qquad w_T = 1 / P(R \ge T \mid X_o) .

    The components add up to :math:`g_S`, so with the right propensity this is unbiased for any cross-fitted m; all but the
    first have mean zero given :math:`X_o` and Y, so with the right m it is right for any propensity. Components of few
    groups, which hold most of the variance, get the small weights of few groups. It attains the semiparametric bound where
    groups are independent given :math:`(X_o, Y)`. Related: the restricted ANOVA hierarchy of Xu, Testa, Lei and Roeder
    (2025, arXiv 2509.24158) for data missing completely at random.

    *Order q* keeps components of at most q groups apart and leaves the rest of :math:`g_S` at :math:`w_S`. Orders 0, 1 and
    the largest affordable one, and DRL-Semi, are mixed with the weights of least variance, as far as the gain over the
    largest order is beyond chance: a share :math:`\max(0, 1 - 8/t^2)` of the way, t the robust t of the slope of the
    influence values on the difference. Shares of least variance make that variance look smaller than it is; standard errors
    are multiplied by `correction`, which tells by how much.

    Parameters
    ----------
    evidence : Evidence
        Records and row weights.
    components : Components
        Coefficients of every row and set.
    composed : WeightedSums or None
        Their weighted sums; None where the policy reaches too many sets to tell components apart, or where the known
        propensity does not cover theirs.
    doubly : WeightedSums
        DRL-Semi, one of the candidates.
    """

    evidence: Evidence
    components: Components
    composed: WeightedSums | None
    doubly: WeightedSums

    @cached_property
    def _candidates(self) -> tuple[Floats, Floats]:
        """Values (C, E) and influence values (C, E, n) of every candidate: orders ascending, then DRL."""
        values, influence = [], []
        for sums in (self.doubly,) if self.composed is None else (self.composed, self.doubly):
            found, phi = sums.linearised
            values.append(np.array(list(found.values())).reshape(-1, len(TARGETS)))
            influence.append(phi.reshape(-1, len(TARGETS), phi.shape[1]))
        return np.concatenate(values), np.concatenate(influence)

    @cached_property
    def _mixed(self) -> Mixture:
        """The candidates by their influence values of the total, from the largest order on."""
        phi, drawn = self._candidates[1][:, _TOTAL], self.evidence.fitted.drawn
        if drawn is not None:  # a row that was drawn twice counts as two rows in every sum of squares, not as four
            phi = np.divide(phi, np.sqrt(drawn), out=np.zeros_like(phi), where=drawn > 0)
        sums = np.array([cluster_sums(row, self.evidence.data.cluster) for row in phi])
        return Mixture(sums, max(len(self.components.orders) - 1, 0))

    @property
    def mixture(self) -> Floats:
        """Share of every candidate: orders ascending, then DRL."""
        return self._mixed.shares

    @property
    def correction(self) -> float:
        """Standard error with shares that were chosen on other rows, over the one with the shares chosen on all rows."""
        return self._mixed.correction

    @property
    def _reason(self) -> str:
        return ("" if self.composed is None else self.composed.reason) or self.doubly.reason

    @property
    def values(self) -> dict[str, float]:
        """Value of each target."""
        if self._reason:
            return nothing()
        return dict(zip(TARGETS, (self.mixture @ self._candidates[0]).tolist(), strict=True))

    def outcome(self, rows: str, confidence: float) -> Outcome:
        """Estimates of the targets; figures about weights are those of the runs."""
        if self._reason:
            return Outcome({}, reason=self._reason)
        influence = self.correction * np.einsum("c,cei->ei", self.mixture, self._candidates[1])
        estimates = {
            target: Estimate(value, phi, self.evidence.data.cluster, rows, confidence)
            for (target, value), phi in zip(self.values.items(), influence, strict=True)
        }
        found = replace(self.doubly.outcome(rows, confidence), estimates=estimates, caveat=self._words)
        if self.composed is None:
            return found
        tally = self.composed.tally
        largest = max(found.largest_weight, tally.largest_weight)
        return replace(found, clipped=max(found.clipped, tally.clipped), largest_weight=largest)

    def parts(self, rows: str, confidence: float) -> LinearParts | None:
        """Parts of the leading candidates, in the mixture that is chosen for the costs."""
        mixed: list[tuple[float, LinearParts]] = []
        if self.mixture[-1] > 0:
            doubly = self.doubly.parts(rows, confidence)
            if doubly is None:
                return None
            mixed.append((float(self.mixture[-1]), doubly))
        if self.composed is not None and self.mixture[:-1].any():
            mixed.append((1.0, self.composed.booked_parts(self._booked(self.composed), rows, confidence)))
        origin = Origin(self.evidence.data.cluster, rows, confidence)
        values = np.sum([share * part.values for share, part in mixed], axis=0)
        if self.evidence.replicated:
            return ReplicatedParts(values, origin)
        influence: Floats = np.zeros((len(self.evidence.data), len(values)))
        for share, part in mixed:
            assert part.influence is not None
            influence += self.correction * share * part.influence
        return InfluenceParts(values, influence, origin)

    def _booked(self, sums: WeightedSums) -> Bookings:
        """Every part of the components at the weight of its own groups."""
        components, view, shares = self.components, self.evidence.view, self.mixture[:-1]
        assert view is not None
        booked, table = sums.bookings(), components.table
        weighted = view.weigh(table)
        weighted = weighted.only(sums.tally.row_weight[table.row[weighted.lines]] > 0)
        weights = StateWeights(len(table.row), weighted)
        lines = _ComponentLines(components, shares, len(self.evidence.data))
        for part, coefficient in lines.spread(weights.weight):
            booked.book(part.amount, part.row, coefficient)
        booked.follow(lines, weights)
        booked.close(weights)
        return booked

    @property
    def _words(self) -> str:
        if self.composed is None:
            return "too many sets, or too few known propensities, to tell components apart: the doubly robust estimate alone"
        names = [*(f"order {q}" for q in self.components.orders), "doubly robust"]
        shares = [f"{name} {share:.2f}" for name, share in zip(names, self.mixture, strict=True) if share > 0.005]
        return f"components of up to {self.components.orders[-1]} groups; mixture: {', '.join(shares)}"


class _ComponentLines:
    """Parts of the components, orders mixed with these shares, as lines that are linear in the weights of the sets."""

    def __init__(self, components: Components, shares: Floats, n_rows: int) -> None:
        self.components, self.n_rows = components, n_rows
        self.signs = [components.signs(part.shown, shares) for part in components.parts]

    def spread(self, by_line: Floats) -> Iterator[tuple[ShownParts, Floats]]:
        """Of every part, the sum over sets T of the sign with which (S, t) enters T times what a row has of T."""
        components = self.components
        of_set = np.zeros((self.n_rows, len(components.sets)))
        of_set[components.row, components.place] = by_line
        for part, sign in zip(components.parts, self.signs, strict=True):
            used = np.flatnonzero((sign != 0).any(axis=0))
            yield part, np.asarray((of_set[:, used] @ sign[:, used].T)[part.row, part.reached])

    def forward(self, by_state: Floats, before: Floats) -> Iterator[tuple[csr_array | Floats, Ints, Floats]]:
        """The lines with their coefficients where the sets of rows weigh this much."""
        for part, coefficient in self.spread(by_state):
            yield part.amount, part.row, coefficient / before[0]

    def backward(self, out: Floats, before: Floats) -> None:
        """Add to ``out`` (l, P) what the weight of a set books in its row."""
        by_place = lines_of(self.components.place, len(self.components.sets))
        for part, sign in zip(self.components.parts, self.signs, strict=True):
            for place in np.flatnonzero((sign != 0).any(axis=0)):
                mine, share = by_place[place], sign[part.reached, place]
                used = np.flatnonzero(share)
                shape = self.n_rows, len(part.row)
                onto = csr_array((share[used] / before[0], (part.row[used], used)), shape=shape)
                out[mine] += dense(onto @ part.amount)[self.components.row[mine]]
