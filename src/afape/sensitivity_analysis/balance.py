"""Sharp bounds: weights that also balance what missingness is given."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array

from ..arrays import Bools, Floats, Ints, every, tally, unique_sets
from ..nuisance.propensity.logistic import logistic_design
from ..nuisance.values.models import QuadraticRidge
from ..nuisance.weights import View
from ..walk import WalkTable
from .marginal import StopStates, odds_box
from .order import RowOrders

__all__ = ["BALANCED_SETS", "Balance", "SharpWeights", "balanced_lines", "balanced_sets"]

BALANCED_SETS = 16  # sets in which most stops happen; others go without balance
_FOLDS, _ROWS_PER_COLUMN = 5, 50
_STRATA = 5
_ORDERED_STATES = 64


@dataclass(frozen=True, eq=False)
class Balance:
    r"""Balance constraints of the sharp bounds (Dorn and Guo 2022).

    The true weights obey :math:`E[1(R \ge S) w_S \mid X_o] = 1` for every set S, hence
    :math:`E[1(R \ge S) w_S h(X_o)] = E[h(X_o)]` for every function h. In the records,

    .. math:: \sum_{i: R_i \ge S} w_{iS} h_S(x_i) = \sum_{i: R_i \ge S} w^0_{iS} h_S(x_i)

    for a few functions h_S. The sum runs over *all* rows that have S recorded: where the policy of a row never stops
    in S, its weight there earns nothing but is as unknown as the others, has its own box and order, and takes part. On
    the right stand the nominal weights' own sums and not :math:`\sum_i h_S(x_i)`, because learned weights balance
    only nearly; so the nominal weights are always among the possible ones.

    Balancing the right conditional quantile of what a weight earns makes bounds sharp, and balancing any other
    function leaves them valid. The quantile depends on Lambda, and with it the bounds need not rise with Lambda; so
    one family of functions serves all Lambda: a constant, the columns of X_o, and indicators of strata of two
    regressions on X_o, of the flow that stops in S and of its cost in excess of the policy's. The quantile of a cost
    that takes two values is a step function of the second of them, which the strata follow. Regressions are
    cross-fitted: a stratum that knew its own row's cost would balance the cost away. Columns take part only where a set
    has many rows for each of them, because exact balance of many columns in few rows pins the weights to the modelled ones.
    """

    functions: csr_array  # (constraints, states)

    @staticmethod
    def of(states: StopStates, sets: Bools, given: Floats, excess: list[Floats], units: Ints) -> Balance:
        """Functions of each set; ``excess`` are amounts beyond the policies' own costs, one per policy.

        ``units`` says which rows belong together.
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
        return Balance(csr_array(entries, shape=(k, len(states.row))))


def _strata(given: Floats, score: Floats, fold: Ints) -> Floats:
    """Indicators of fifths of the score predicted from what is given, by a model of other folds, but for the first."""
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


def balanced_sets(tables: list[WalkTable], view: View) -> Bools:
    """Distinct sets S + adj in which most of the flow stops."""
    table = WalkTable.concatenate(tables)
    sets, index = unique_sets(table.acquired | view.adjust)
    flow = tally(index, table.stop_flow, len(sets))
    return sets[np.argsort(-flow, kind="stable")[:BALANCED_SETS]]


def balanced_lines(sets: Bools, view: View) -> WalkTable:
    """One line for every row that has a set recorded; nothing flows there."""
    has = [np.flatnonzero(every(view.recorded | ~required)) for required in sets]
    row: Ints = np.concatenate(has) if has else np.zeros(0, np.intp)
    acquired = np.repeat(sets, [len(rows) for rows in has], axis=0)
    return WalkTable.of_states(row, acquired, np.zeros(len(row), np.intp))


class SharpWeights:
    """Weights of the marginal sensitivity model that also balance.

    Parameters
    ----------
    states : StopStates
        Pairs, those of the balanced sets included.
    view : View
        Gives the nominal weights.
    balance : Balance
        Constraints.
    row_weight : ndarray of shape (n,), optional
        Weights of a bootstrap replicate.
    """

    tolerance = 1e-8

    def __init__(self, states: StopStates, view: View, balance: Balance, row_weight: Floats | None = None) -> None:
        self.nominal = view.weigh(states.table).weight
        small, large = RowOrders(states.row, states.sets, _ORDERED_STATES).under(self.nominal).pairs
        k = np.arange(len(small))
        ones = np.ones(len(small))
        shape = (len(small), len(self.nominal))
        self._order = csr_array((np.concatenate([ones, -ones]), (np.tile(k, 2), np.concatenate([small, large]))), shape)
        functions = balance.functions
        if row_weight is not None:
            functions = csr_array(functions.multiply(row_weight[states.row]))
        size = np.asarray(abs(functions).sum(axis=1)).reshape(-1)
        self._functions = csr_array(functions.multiply(1 / np.where(size > 0, size, 1.0)[:, None]))

    def maximise(self, gain: Floats, strength: float) -> Floats:
        """Weights with the largest sum of gain times weight, by HiGHS."""
        lower, upper = odds_box(self.nominal, strength)
        # In units of the box, so that the solver's tolerances mean the same for small and large weights.
        width = upper - lower
        scale = float(np.abs(gain * width).max())
        if scale == 0:
            return self.nominal.copy()
        order, functions = self._order * width, self._functions * width
        found = linprog(  # type: ignore[call-overload]  # its stubs know nothing of sparse constraints
            -gain * width / scale,
            A_ub=order if order.shape[0] else None,
            b_ub=-(self._order @ lower) if order.shape[0] else None,
            A_eq=functions,
            b_eq=self._functions @ (self.nominal - lower),
            bounds=(0, 1),
            method="highs-ds",
        )
        if found.x is None:
            raise RuntimeError(f"The linear programme of the sharp bounds was not solved: {found.message}")
        return np.asarray(lower + width * np.clip(found.x, 0.0, 1.0))
