"""EFF-Semi and EFF-Semi-Miss: the mixture of component estimators with DRL."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from ..._arrays import Floats, Ints
from ...walk.columns import Columns, CostColumns, Matrix, PartColumns
from ...walk.table import WalkTable
from ..amounts import Amounts, InfluenceAmounts, ReplicatedAmounts
from ..answer import Answer, Costs, PartAmounts
from ..booking import Booking, Lines
from ..drl import doubly_robust
from ..evidence import Evidence
from ..flows import Flows
from ..normalisers import WeighedTable, weighed
from ..weighted import Booked, Weighted
from .components import Components
from .mean_errors import MeanErrors
from .mixture import Alike, Mixed
from .splits import Split

__all__ = ["ComponentFormula", "Efficient", "efficient"]

_NAMED = 4  # number of mixtures that the note names


@dataclass(frozen=True, eq=False)
class ComponentFormula:
    """Every component of one split, with the weight of its own groups."""

    components: Components
    split: Split

    def lines(self, table: WalkTable, flows: Flows, columns: Columns) -> Iterator[Lines]:
        """Yield amounts of the runs in S, booked at every set T that their components need; ``table`` has rows and sets."""
        components = self.components
        n_sets, low, high = len(components.sets), int(table.row[0]), int(table.row[-1]) + 1
        line_of = np.full((high - low) * n_sets, -1)
        line_of[np.flatnonzero(components.has[low:high])] = np.arange(len(table.row))
        for found in components.amounts:
            sign = csr_array(components.signs(found.shown, self.split))
            if sign.nnz == 0:
                continue
            start, end = np.searchsorted(found.row, (low, high))
            if start == end:
                continue
            row, spread = found.row[start:end].astype(np.intp), sign[found.reached[start:end]].tocoo()
            state = line_of[(row[spread.row] - low) * n_sets + spread.col]
            kept = np.flatnonzero(state >= 0)  # sets that the row has
            step = np.zeros(len(kept), dtype=np.intp)
            booking = Booking(spread.data[kept], state[kept], step, spread.row[kept].astype(np.intp))
            yield Lines(self._amounts(found.amount[start:end], columns), (booking,))

    def _amounts(self, parts: csr_array, columns: Columns) -> Matrix:
        if isinstance(columns, PartColumns):
            return parts
        assert isinstance(columns, CostColumns)
        matrix = self.components.columns.priced(columns.tariff, bool(columns.largest))
        return np.asarray(parts @ matrix[:, : columns.width])


def efficient(evidence: Evidence) -> Efficient:
    """Apply EFF in the view of the evidence."""
    components, view = evidence.components, evidence.view
    assert view is not None
    splits = components.splits
    covers = getattr(view.propensity, "covers", None)  # known probabilities may cover only the reached sets
    if covers is not None and not all(covers(s | view.adjust) for s in components.sets):
        splits = ()
    return Efficient(evidence, splits, doubly_robust(evidence, scored=True))


@dataclass(frozen=True, eq=False)
class Efficient:
    r"""A mixture of doubly robust estimators. The leading one weights each Hoeffding component by its own groups.

    In every row that has S recorded, :math:`g_S(x_S, y)` is known, the cost of the runs in S: :math:`r_S \pi(stop|S) C_S` for
    misclassification, :math:`r_S` times the expected price of the decision for acquisition. With
    :math:`m_{S,T} = E[g_S \mid x_T, X_o, Y]`, :math:`m_{S,S} = g_S` and
    :math:`f_{S,T} = m_{S,T} - \sum_{T' < T} f_{S,T'}`, the value of a row is

    .. math:: \phi_i = \sum_S \sum_{T \le S, T \le R_i} w_T f_{S,T}(i), \qquad w_T = 1 / P(R \ge T \mid X_o) .

    The components add up to :math:`g_S`, so with the right propensity this is unbiased for any cross-fitted m. All except
    that of the empty set have mean zero given :math:`X_o` and Y, so with the right m the estimator is unbiased for any
    propensity. Components of few groups, which hold most of the variance, get the small weights of few groups. The estimator
    attains the semiparametric bound where groups are independent given :math:`(X_o, Y)`. Related: the restricted ANOVA
    hierarchy of Xu, Testa, Lei and Roeder (2025, arXiv 2509.24158) for data missing completely at random.

    *Order q* separates components of at most q groups; the rest of :math:`g_S` keeps the weight :math:`w_S`. Another split
    adds one group after the other (`Split`). Its components contain fewer conditional means, so large weights amplify their
    errors less. The candidates are orders 0 to 3, the largest affordable order, the split step by step, and DRL-Semi. They
    are combined with minimum-variance shares, shrunk towards the split step by step unless the gain is significant: by the factor
    :math:`\max(0, 1 - 8/t^2)`, with t the robust t statistic of a regression: the influence values of that split on
    their difference from those of the mixture without shrinkage. The mixture is right for any propensity if m and the action
    values are right.

    Parts of the costs are mixed, not costs. All acquisitions use the shares that are best for the rates of acquisition and
    their sum. All predictions in rows of one label use the shares that are best for the errors there. No price enters, so
    other prices use the same parts. Right predictions are the rows of a label minus its errors. Minimum-variance shares
    make the variance look smaller than it is, and go with the values if costs are skewed. So values and influence values use
    shares that were chosen on other rows (`Mixture.left_out`). Influence values include the errors of learned propensities,
    action values and conditional means (`MeanErrors`, up to about 30,000 rows; beyond, m counts as known, which is right to
    first order if the propensity is right). Action values of parts are always learned by ridge regression. If known action
    values cover only the costs, the costs are mixed.

    Parameters
    ----------
    evidence : Evidence
        Records, components and row weights.
    splits : tuple of Split
        Splits among the candidates; empty if the policy reaches too many sets, or if the known propensity does not cover the
        sets of the components.
    doubly : Weighted
        DRL-Semi, one of the candidates.
    """

    evidence: Evidence
    splits: tuple[Split, ...]
    doubly: Weighted

    @cached_property
    def columns(self) -> PartColumns | CostColumns:
        """Columns that are mixed: parts, or costs if known action values cover only these."""
        parts = self.evidence.part_columns
        return self.evidence.cost_columns if parts is None else parts

    @cached_property
    def _tables(self) -> list[WeighedTable]:
        return [_weighed_roots(self.evidence, table) for table in self.evidence.components.tables()]

    @cached_property
    def _composed(self) -> list[Weighted]:
        """One estimator per split."""
        evidence, normalize = self.evidence, self.evidence.recipe.normalize
        formulas = [ComponentFormula(evidence.components, split) for split in self.splits]
        return [Weighted(evidence, formula, normalize, True, self._tables) for formula in formulas]

    @cached_property
    def _doubly_booked(self) -> Booked:
        booked = self.doubly.booked(self.columns)
        means = self._donors is not None if self.splits else None
        return booked._replace(included=booked.included._replace(means=means))

    @cached_property
    def _donors(self) -> MeanErrors | None:
        """Errors of the conditional means; None if there are none, or if too many rows were completed to keep them."""
        if not self.splits or self.evidence.replicated:
            return None
        row_weight, first = self.evidence.fitted.row_weight, self._composed[0]
        factor = row_weight / row_weight.mean() / (first.normalisers.before[0] if first.normalize else 1.0)
        found = MeanErrors(self.evidence.components, self._tables, factor)
        return found if found.known else None

    def _mean_errors(self, split: Split) -> Floats | None:
        if self._donors is None:
            return None
        columns = self.columns
        if isinstance(columns, PartColumns):
            return self._donors.of(split, None)
        matrix = self.evidence.components.columns.priced(columns.tariff, bool(columns.largest))
        return self._donors.of(split, matrix[:, : columns.width])

    @cached_property
    def _mixed(self) -> Mixed:
        """The mixture of the candidates: splits, then DRL. It starts from the first one, the split step by step."""
        booked = [*(one.booked(self.columns) for one in self._composed), self._doubly_booked]
        found = [(b.values, b.influence) for b in booked if b.influence is not None]
        data, drawn = self.evidence.data, self.evidence.fitted.drawn
        errors = [*(self._mean_errors(split) for split in self.splits), self._doubly_booked.errors]
        return Mixed(found, errors, self._kinds, 0, data.unit, drawn, data.weight)

    @property
    def _kinds(self) -> list[Alike]:
        """Columns with common shares: acquisitions, predictions in rows of one label, each outcome of the user."""
        columns, classes, own = self.columns, self.evidence.data.classes, self.evidence.recipe.tariff.own.names
        number, one = np.arange(columns.width), np.eye(columns.width)
        if isinstance(columns, CostColumns):
            names = ("acquisition", "misclassification", *own)
            return [Alike(names[j], number[[j]], one[:, [j]]) for j in number]
        groups = len(columns.costly)
        acquired = np.concatenate([number[:groups], number[columns.counts], number[columns.left]])
        each = one[:, :groups] + (one[:, columns.left] if self.evidence.largest else 0.0)
        kinds = [Alike("acquisitions", acquired, np.column_stack([each, each.sum(axis=1)]))]
        for y, label in enumerate(classes.tolist()):
            cells, ended = number[columns.cells].reshape(len(classes), -1)[y], number[columns.ended][y : y + 1]
            wrong = one[:, np.delete(cells, y)]
            if self.evidence.largest:
                wrong = wrong + one[:, ended]
            kinds.append(Alike(f"label {label}", np.append(cells, ended), wrong))
        return kinds + [Alike(name, number[[j]], one[:, [j]]) for name, j in zip(own, number[columns.own], strict=True)]

    @cached_property
    def amounts(self) -> Amounts:
        """Amounts of the mixture, completed by the parts that follow from the others."""
        values, influence, columns = self._mixed.values, self._mixed.influence, self.columns
        if isinstance(columns, PartColumns):
            weight = self.evidence.fitted.row_weight
            labels = np.eye(len(self.evidence.data.classes))[self.evidence.data.labels]  # (n, K)
            shares = weight @ labels / weight.sum()
            right = _right_predictions(columns)
            complete = _completion(columns, values)
            # 1 (all runs) for the most frequent number of acquisitions
            whole = np.where(complete.diagonal() == 0, 1.0, 0.0)
            whole[right] = shares
            values, influence = complete @ values + whole, influence @ complete.T
            influence[:, right] += (labels - shares) * (weight / weight.mean())[:, None]
        if self.evidence.replicated:
            return ReplicatedAmounts(values, self.evidence.sample)
        return InfluenceAmounts(values, influence, self.evidence.sample.weighted(self._doubly_booked.final))

    def answer(self) -> Answer:
        """Return the costs of the mixture; figures about weights are those of the policy's runs."""
        reason = next((one.reason for one in (*self._composed, self.doubly) if one.reason), "")
        if reason:
            return Answer(reason=reason)
        columns, tariff, amounts = self.columns, self.evidence.cost_columns.tariff, self.amounts
        if isinstance(columns, PartColumns):
            amounts = amounts.mapped(columns.priced(tariff, bool(self.evidence.largest)))
        costs = Costs(amounts, tariff)
        found = replace(self.doubly.figures(self._doubly_booked), costs=costs, caveat=self._note, reduction=self)
        if not self._composed:
            return found
        _, clipped, largest, _ = self._composed[0].normalisers
        return replace(found, clipped=max(found.clipped, clipped), largest_weight=max(found.largest_weight, largest))

    def parts(self) -> PartAmounts | None:
        """Return the mixture of the parts; None if costs are mixed."""
        columns = self.columns
        return PartAmounts(self.amounts, columns) if isinstance(columns, PartColumns) else None

    @property
    def _note(self) -> str:
        if not self.splits:
            return "too many sets, or too few known propensities, for components: this is the doubly robust estimate"
        names = [*(split.name for split in self.splits), "doubly robust"]
        shown = []
        for kind, mixture in zip(self._mixed.kinds, self._mixed.mixtures, strict=True):
            used = [f"{name} {share:.2f}" for name, share in zip(names, mixture.shares, strict=True) if share > 0.005]
            shown.append(f"{kind.name}: {', '.join(used)}")
        more = f"; and {len(shown) - _NAMED} more" if len(shown) > _NAMED else ""
        return f"components of up to {self.splits[-1].order} groups; {'; '.join(shown[:_NAMED])}{more}"


def _weighed_roots(evidence: Evidence, table: WalkTable) -> WeighedTable:
    """Compute the weights of the rows in their sets; as flow, every row starts and stops once in the empty set."""
    once = (table.depth == 0).astype(float)
    return weighed(evidence, table, Flows(table, once, once, once, once))


def _right_predictions(columns: PartColumns) -> Ints:
    """Return the columns of right predictions by label, (K,)."""
    return np.arange(columns.width)[columns.cells].reshape(columns.n_labels, -1).diagonal()


def _completion(columns: PartColumns, values: Floats) -> Floats:
    """Return the matrix (P, P) that completes the parts: shares sum to one, so some parts follow from the others.

    Every run stops with some number of acquisitions and some prediction, or ends before an unsupported set. So the right
    predictions of a label are its rows minus its errors, and the share of the most frequent number of acquisitions is 1 minus
    the other shares.
    """
    number, out = np.arange(columns.width), np.eye(columns.width)
    for y, cells in enumerate(number[columns.cells].reshape(columns.n_labels, -1)):
        out[cells[y]] = 0.0
        out[cells[y], np.delete(cells, y)] = out[cells[y], number[columns.ended][y : y + 1]] = -1.0
    counts = number[columns.counts]
    most = counts[np.argmax(values[counts])]
    out[most] = 0.0
    out[most, np.setdiff1d(counts, most)] = out[most, number[columns.ended]] = -1.0
    return out
