"""Sharp bounds: weights that also balance the columns that missingness depends on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array

from .._arrays import Bools, Floats, Ints, every, tally, unique_sets
from ..action_values.ridge import QuadraticRidge
from ..propensity.logistic import logistic_design
from ..propensity.weights import View
from .marginal import odds_box
from .order import RowOrders
from .stops import Stops, StopStates

__all__ = ["ORDERED_STATES", "SharpWeights", "balance_functions", "balanced_sets", "balanced_stops"]

ORDERED_STATES = 64  # a row with more states keeps the order along chains only
_MOST_SETS = 16  # sets that are balanced: those in which most stops happen
_FOLDS, _ROWS_PER_COLUMN = 5, 50
_STRATA = 5


def balance_functions(states: StopStates, sets: Bools, given: Floats, excess: list[Floats], units: Ints) -> csr_array:
    r"""Functions (constraints, states) that the true weights balance (Dorn and Guo 2022).

    The true weights satisfy :math:`E[1(R \ge S) w_S \mid X_o] = 1` for every set S, hence
    :math:`E[1(R \ge S) w_S h(X_o)] = E[h(X_o)]` for every function h. In the records,

    .. math:: \sum_{i: R_i \ge S} w_{iS} h_S(x_i) = \sum_{i: R_i \ge S} w^0_{iS} h_S(x_i)

    for a few functions h_S. The sum runs over *all* rows that have S recorded. If the policy never stops in S in a row,
    the weight of the row has no effect on the cost, but it is as unknown as the others and takes part in the balance. The
    right side has the sums of the nominal weights and not :math:`\sum_i h_S(x_i)`, because learned weights balance
    only approximately; so the nominal weights are always possible.

    Bounds are sharp if the right conditional quantile of the gain of a weight is balanced, and valid with any other
    function. The quantile depends on Lambda, and bounds that use it need not widen with Lambda. So the same functions
    are used for all Lambda: a constant, the columns of X_o, and indicators of strata of two regressions on X_o: of the
    flow that stops in S, and of its cost in excess of the policy's cost. If a cost has two values, its quantile is a
    step function of the second regression, which the strata approximate. Regressions are cross-fitted: strata that
    used a row's own cost would balance the cost itself. Columns are used only if a set has many rows per column: exact
    balance of many columns in few rows fixes the weights at the modelled ones.

    Parameters
    ----------
    states : StopStates
        Pairs, including all pairs of the balanced sets.
    sets : ndarray of bool, shape (b, G)
        Sets to balance.
    given : ndarray of shape (n, k)
        X_o.
    excess : list of ndarray, shape (s,)
        Amounts in excess of the policy's own cost, per policy.
    units : ndarray of int, shape (n,)
        Cluster of each row, or the row itself, numbered by content.
    """
    fold = np.random.default_rng(0).permutation(int(units.max()) + 1)[units] % _FOLDS
    known = ~np.isnan(given).any(axis=1)  # rows without an adjustment group have no weights
    design = np.ones((len(given), 1 + given.shape[1]))
    design[known] = logistic_design(given[known])
    lines, columns, values = [], [], []
    k = 0
    for required in sets:
        mine = np.flatnonzero(every(states.sets == required))
        rows = states.row[mine]
        scores = [score[mine] for flow, over in zip(states.flows, excess, strict=True) for score in (flow, over)]
        few = len(rows) < _ROWS_PER_COLUMN * design.shape[1]
        plain = design[rows][:, : 1 if few else None]
        block = np.column_stack([plain, *(_strata(given[rows], score, fold[rows]) for score in scores)])
        for h in block.T:
            lines.append(np.full(len(mine), k))
            columns.append(mine)
            values.append(h)
            k += 1
    entries = (np.concatenate(values), (np.concatenate(lines), np.concatenate(columns)))
    return csr_array(entries, shape=(k, len(states.row)))


def _strata(given: Floats, score: Floats, fold: Ints) -> Floats:
    """Indicators of the fifths of the score predicted from X_o by a model of other folds, without the first fifth."""
    if given.shape[1] == 0 or len(given) < 4 * _STRATA or np.ptp(score) == 0:
        return np.zeros((len(given), 0))
    predicted = np.zeros(len(given))
    for k in np.unique(fold):
        rest, mine = fold != k, fold == k
        if rest.any():
            model = QuadraticRidge().fit(given[rest], score[rest, None])
            predicted[mine] = np.asarray(model.predict(given[mine])).reshape(-1)
    cuts = np.unique(np.quantile(predicted, np.arange(1, _STRATA) / _STRATA))
    return np.asarray(predicted[:, None] > cuts, dtype=float)


def balanced_sets(policies: Sequence[Stops], view: View) -> Bools:
    """Distinct sets S + adj in which most of the flow stops, (b, G)."""
    sets, index = unique_sets(np.concatenate([stops.acquired for stops in policies]) | view.adjust)
    flow = tally(index, np.concatenate([stops.flow for stops in policies]), len(sets))
    return sets[np.argsort(-flow, kind="stable")[:_MOST_SETS]]


def balanced_stops(sets: Bools, view: View) -> Stops:
    """All pairs of these sets and the rows that have them recorded, without flow."""
    has = [np.flatnonzero(every(view.recorded | ~required)) for required in sets]
    row: Ints = np.concatenate(has) if has else np.zeros(0, np.intp)
    nothing = np.zeros(len(row))
    return Stops(row, np.repeat(sets, [len(rows) for rows in has], axis=0), nothing, nothing)


@dataclass(frozen=True, eq=False)
class SharpWeights:
    """Weights of the marginal sensitivity model that also balance functions of X_o."""

    nominal: Floats  # (s,)
    order: csr_array  # (o, s) order @ w <= 0
    functions: csr_array  # (c, s) functions @ w = functions @ nominal
    tolerance: float = 1e-8

    @staticmethod
    def of(
        states: StopStates, orders: RowOrders, functions: csr_array, view: View, row_weight: Floats | None = None
    ) -> SharpWeights:
        """Constraints around the weights of this view; ``row_weight`` (n,) are those of a bootstrap replicate."""
        nominal = view.weigh(states.table).weight
        small, large = orders.under(nominal).pairs
        k, ones = np.arange(len(small)), np.ones(len(small))
        entries = (np.concatenate([ones, -ones]), (np.tile(k, 2), np.concatenate([small, large])))
        if row_weight is not None:
            functions = csr_array(functions.multiply(row_weight[states.row]))
        size = np.asarray(abs(functions).sum(axis=1)).reshape(-1)
        scaled = csr_array(functions.multiply(1 / np.where(size > 0, size, 1.0)[:, None]))
        return SharpWeights(nominal, csr_array(entries, (len(small), len(nominal))), scaled)

    def maximise(self, gain: Floats, strength: float) -> Floats:
        """Weights (s,) with the largest sum of gain times weight, by HiGHS."""
        lower, upper = odds_box(self.nominal, strength)
        # In units of the box, so that the solver's tolerances are the same for small and large weights.
        width = upper - lower
        scale = float(np.abs(gain * width).max())
        if scale == 0:
            return self.nominal.copy()
        order, functions = self.order * width, self.functions * width
        found = linprog(  # type: ignore[call-overload]  # its stubs know nothing of sparse constraints
            -gain * width / scale,
            A_ub=order if order.shape[0] else None,
            b_ub=-(self.order @ lower) if order.shape[0] else None,
            A_eq=functions,
            b_eq=self.functions @ (self.nominal - lower),
            bounds=(0, 1),
            method="highs-ds",
        )
        if found.x is None:
            raise RuntimeError(f"The linear programme of the sharp bounds was not solved: {found.message}")
        return np.asarray(lower + width * np.clip(found.x, 0.0, 1.0))
