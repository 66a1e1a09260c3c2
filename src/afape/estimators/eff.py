"""EFF-Semi and EFF-Semi-Miss: every part of the cost weighted by just the groups that it needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from ..arrays import Floats, Ints, lines_of
from ..imputation import Components, ShownParts
from ..nuisance.fitted import Evidence
from ..walk import WalkTable
from .booking import Bookings, StateWeights, dense
from .drl import doubly_robust
from .estimate import TARGETS, Estimate, Outcome
from .linear import InfluenceParts, LinearParts, Origin, ReplicatedParts
from .mixture import Alike, Mixed
from .reduction import nothing
from .weighted import REACH, STOP, Flows, WeightedSums, weighted_sums

__all__ = ["EfficientSums", "efficient"]

_TOTAL = TARGETS.index("total")  # comes last: the sum of the others
_TOLD = 4  # mixtures that are told of


class ComponentFormula:
    """Weighted means of the components' coefficients, one value of every target per split."""

    def __init__(self, components: Components, normalize: bool = True) -> None:
        self.components, self.normalize = components, normalize
        self.n_quantities = 2 + 2 * len(components.splits)

    def quantities(self, table: WalkTable, flows: Flows) -> Floats:
        """Coefficients of every line; the set without groups is reached and left by every row."""
        out = np.zeros((len(table.row), self.n_quantities))
        out[:, REACH] = out[:, STOP] = table.depth == 0
        out[:, 2:] = np.concatenate(list(self.components.coefficient), axis=1)
        return out

    def linearise(self, mean: Floats) -> tuple[dict[str, float], dict[str, Floats]]:
        """Values of the targets for every split, and their derivatives."""
        values, directions = {}, {}
        start = float(mean[0, REACH]) if self.normalize else 1.0  # mean weight of the rows: 1 but for the hybrid view
        for o in range(len(self.components.splits)):
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
        components = replace(components, splits=())
    if components.splits:
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

    *Order q* keeps components of at most q groups apart and leaves the rest of :math:`g_S` at :math:`w_S`. Another split goes
    step by step, one group after the other (`Split`); its components have fewer conditional means in them, whose errors
    grow less under heavy weights. Orders 0 to 3 and the largest affordable one, the split step by step, and DRL-Semi are
    mixed with the shares of least variance, as far as the gain over the largest order is beyond chance: a share
    :math:`\max(0, 1 - 8/t^2)` of the way, t the robust t of the slope of the influence values on the difference. The
    mixture is right for any propensity where m and the action values are right.

    Parts of the costs are mixed, not costs: all that is acquired with the shares that are best for the rates of acquisition and
    their sum, all that is predicted in rows of one label with those that are best for the errors there. No price enters, so
    that other prices are answered by the same parts. Right predictions are what errors leave of the rows of a label. Shares of
    least variance make that variance look smaller than it is; influence values have shares that were chosen on other rows
    (`Mixture.left_out`). Action values of parts are learned by ridge regression, whatever regressor costs have.

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

    @property
    def _parted(self) -> bool:
        """Whether parts are mixed; costs are where action values are known of these alone."""
        return self.doubly.parted

    @property
    def _largest(self) -> bool:
        return self.evidence.ends is not None and self.evidence.ends.largest

    @cached_property
    def _mixed(self) -> Mixed:
        """The candidates, splits and then DRL, mixed from the largest order on."""
        found = self._candidates_by_part if self._parted else self._candidates_by_cost
        start = max(len(self.components.splits) - 1, 0)
        return Mixed(found, self._kinds, start, self.evidence.data.cluster, self.evidence.fitted.drawn)

    @property
    def _candidates_by_part(self) -> list[tuple[Floats, Floats]]:
        """Values (P,) and influence values (n, P) of every candidate."""
        found = []
        for one in np.eye(len(self.components.splits)):
            assert self.composed is not None
            booked = self._booked(self.composed, one)
            found.append((booked.values, self.composed.part_influence(booked)))
        booked = self.doubly.booked()
        return [*found, (booked.values, self.doubly.part_influence(booked))]

    @property
    def _candidates_by_cost(self) -> list[tuple[Floats, Floats]]:
        """The same of both costs."""
        found = []
        for sums in (self.doubly,) if self.composed is None else (self.composed, self.doubly):
            values, influence = sums.linearised
            each = np.array(list(values.values())).reshape(-1, len(TARGETS))[:, :_TOTAL]
            phi = influence.reshape(-1, len(TARGETS), influence.shape[1])[:, :_TOTAL]
            found += [(v, f.T) for v, f in zip(each, phi, strict=True)]
        return found

    @property
    def _kinds(self) -> list[Alike]:
        """What is mixed alike: all that is acquired, all that is predicted for rows of one label, every own outcome."""
        if not self._parted:
            return [Alike(TARGETS[j], np.array([j]), np.eye(_TOTAL)[:, [j]]) for j in range(_TOTAL)]
        columns, classes = self.evidence.columns, self.evidence.data.classes
        number, one = np.arange(columns.width), np.eye(columns.width)
        acquired = np.concatenate([number[: len(columns.costly)], number[columns.counts], number[columns.left]])
        unit = [columns.priced(price, self._largest) for price in np.eye(len(columns.costly))]  # every group by itself,
        unit.append(columns.priced(np.ones(len(columns.costly)), self._largest))  # and how many there are
        kinds = [Alike("acquisitions", acquired, np.array(unit).T)]
        for y, label in enumerate(classes.tolist()):
            cells, ended = number[columns.cells].reshape(len(classes), -1)[y], number[columns.ended][y : y + 1]
            wrong = one[:, np.delete(cells, y)]
            if self._largest:
                wrong = wrong + one[:, ended]
            kinds.append(Alike(f"label {label}", np.append(cells, ended), wrong))
        own = zip(self.evidence.recipe.own, number[columns.own], strict=True)
        return kinds + [Alike(name, np.array([j]), one[:, [j]]) for name, j in own]

    @cached_property
    def _rest(self) -> Floats:
        """What is mixed as it is, and what follows from that because shares add up, as a map (P, P).

        Every run stops with some number of acquisitions and some prediction, or ends in an unsupported set, and labels are
        recorded in every row. So the right predictions of a label are its rows without its errors, and the most frequent
        number of acquisitions is what the others leave.
        """
        columns, n_classes = self.evidence.columns, len(self.evidence.data.classes)
        number, out = np.arange(columns.width), np.eye(columns.width)
        for y, cells in enumerate(number[columns.cells].reshape(n_classes, -1)):
            out[cells[y]] = 0.0
            out[cells[y], np.delete(cells, y)] = out[cells[y], number[columns.ended][y : y + 1]] = -1.0
        counts = number[columns.counts]
        most = counts[np.argmax(self._mixed.values[counts])]
        out[most] = 0.0
        out[most, np.setdiff1d(counts, most)] = out[most, number[columns.ended]] = -1.0
        return out

    @cached_property
    def _found(self) -> Floats:
        """Values of what is mixed, (P,)."""
        if not self._parted:
            return self._mixed.values
        whole = np.where(self._rest.diagonal() == 0, 1.0, 0.0)  # the number of acquisitions: all runs
        whole[self._right] = self._label_shares
        return np.asarray(self._rest @ self._mixed.values + whole)

    @cached_property
    def _influence(self) -> Floats:
        """Their influence values, (n, P)."""
        if not self._parted:
            return self._mixed.influence
        weight = self.evidence.fitted.row_weight
        out = self._mixed.influence @ self._rest.T
        out[:, self._right] += (self._labels - self._label_shares) * (weight / weight.mean())[:, None]
        return np.asarray(out)

    @property
    def _right(self) -> Ints:
        """Columns of right predictions, by label."""
        columns, n_classes = self.evidence.columns, len(self.evidence.data.classes)
        return np.arange(columns.width)[columns.cells].reshape(n_classes, -1).diagonal()

    @property
    def _labels(self) -> Floats:
        """Indicators of the labels, (n, K)."""
        return np.eye(len(self.evidence.data.classes))[self.evidence.data.labels]

    @property
    def _label_shares(self) -> Floats:
        weight = self.evidence.fitted.row_weight
        return np.asarray(weight @ self._labels / weight.sum())

    @property
    def _coefficients(self) -> Floats:
        """The targets as combinations of what is mixed, (E, P)."""
        if not self._parted:
            return np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
        columns, data = self.evidence.columns, self.evidence.data
        paid = columns.priced(data.problem.prices[columns.costly], self._largest)
        wrong = columns.judged(data.costs, self._largest)
        return np.array([paid, wrong, paid + wrong])

    @property
    def _reason(self) -> str:
        return ("" if self.composed is None else self.composed.reason) or self.doubly.reason

    @property
    def values(self) -> dict[str, float]:
        """Value of each target."""
        if self._reason:
            return nothing()
        return dict(zip(TARGETS, (self._coefficients @ self._found).tolist(), strict=True))

    def outcome(self, rows: str, confidence: float) -> Outcome:
        """Estimates of the targets; figures about weights are those of the runs."""
        if self._reason:
            return Outcome({}, reason=self._reason)
        influence = self._coefficients @ self._influence.T
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
        """What is mixed, where these are the parts of the costs."""
        if not self._parted:
            return None
        origin = Origin(self.evidence.data.cluster, rows, confidence)
        if self.evidence.replicated:
            return ReplicatedParts(self._found, origin)
        return InfluenceParts(self._found, self._influence, origin)

    @cached_property
    def _weights(self) -> StateWeights:
        """Weights of the sets of the components, the same for every split."""
        table, view = self.components.table, self.evidence.view
        assert view is not None
        weighted = view.weigh(table)
        weighted = weighted.only(self.evidence.fitted.row_weight[table.row[weighted.lines]] > 0)
        return StateWeights(len(table.row), weighted)

    def _booked(self, sums: WeightedSums, shares: Floats) -> Bookings:
        """Every part of the components at the weight of its own groups, splits mixed with these shares."""
        booked, weights = sums.bookings(), self._weights
        lines = _ComponentLines(self.components, shares, len(self.evidence.data))
        for part, coefficient in lines.spread(weights.weight):
            booked.book(part.amount, part.row, coefficient)
        booked.follow(lines, weights)
        booked.close(weights)
        return booked

    @property
    def _words(self) -> str:
        if self.composed is None:
            return "too many sets, or too few known propensities, to tell components apart: the doubly robust estimate alone"
        names = [*(split.name for split in self.components.splits), "doubly robust"]
        told = []
        for kind, mixture in zip(self._mixed.kinds, self._mixed.mixtures, strict=True):
            used = [f"{name} {share:.2f}" for name, share in zip(names, mixture.shares, strict=True) if share > 0.005]
            told.append(f"{kind.name}: {', '.join(used)}")
        more = f"; and {len(told) - _TOLD} more" if len(told) > _TOLD else ""
        return f"components of up to {self.components.splits[-1].order} groups; {'; '.join(told[:_TOLD])}{more}"


class _ComponentLines:
    """Parts of the components, splits mixed with these shares, as lines that are linear in the weights of the sets."""

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
