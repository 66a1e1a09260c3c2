"""How much sampled walks add to standard errors."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .._arrays import Floats, tally
from ..data.retrospective import Retrospective
from ..estimators.answer import Answer
from ..propensity.weights import View
from ..walk.table import Tables, WalkTable
from .plan import Plan

__all__ = ["sampling_error", "sampling_note"]


def sampling_note(plan: Plan, tables: Tables, view: View, answers: Mapping[str, Answer]) -> tuple[str, ...]:
    """Note on the rows whose walks were sampled, and on what that adds to the standard error of plain weighting."""
    n_sampled = sum(len(table.sampled) for table in tables)
    if not n_sampled:
        return ()
    options = plan.walk.within(len(plan.data), plan.data.problem.n_groups)
    assert options.n_trajectories is not None
    start = (
        f"The runs of {n_sampled:,} of {len(plan.data):,} rows were sampled, {options.n_trajectories} per row, because they "
        "reach too many sets"
    )
    if options.simulation is not None or options.n_trajectories == 1 or view.refusal:
        return (f"{start}. Standard errors include the error of sampling.",)
    added = sampling_error(plan.data, tables, view, options.n_trajectories)
    share = ""
    for name in ("ipw-semi", "ipw-semi-miss"):
        answer = answers.get(name)
        whole = answer.estimates["total"].std_error if answer is not None and answer.costs is not None else np.nan
        if added < whole:
            share = f", so that of {name} is {100 * (1 / np.sqrt(1 - (added / whole) ** 2) - 1):.1f} % larger"
    return (
        f"{start}. That adds about {added:.2g} to the standard errors of weighted estimates (as a root of squares){share}; "
        "standard errors include it. More trajectories (WalkOptions) take more time and add less.",
    )


def sampling_error(data: Retrospective, tables: Tables, view: View, n_trajectories: int) -> float:
    r"""Standard error of the weighted mean cost that comes from the draws of trajectories, given the rows.

    Of M trajectories of a row, :math:`n_S = M b_S` stop in S, with b the blocked flow from which they are drawn. Each of them
    adds :math:`x = \rho_S w_S C_S / M` to the estimate, with C the cost of the run, w its weight, and :math:`\rho = f_S / b_S`
    the likelihood ratio for the flow f. The variance of the sum is

    .. math:: \frac{1}{M - 1} \Big( \sum_S \frac{(f_S w_S C_S)^2}{b_S} - \big( \sum_S f_S w_S C_S \big)^2 \Big) ,

    summed over sampled rows and divided by the squared number of rows. Row weights multiply the amounts of their rows.
    """
    total = sum(_row_variances(data, table, view) for table in tables if len(table.sampled))
    return float(np.sqrt(total / (n_trajectories - 1)) / data.row_weight.sum())


def _row_variances(data: Retrospective, table: WalkTable, view: View) -> float:
    """Sum over the sampled rows of the variance of one trajectory."""
    found = view.weigh(table)
    at = found.lines
    stops = (table.blocked_stop_flow[at] > 0) & (table.stop_flow[at] > 0) & np.isin(table.row[at], table.sampled)
    at, weight = at[stops], found.weight[stops] * data.row_weight[table.row[at[stops]]]
    amount: Floats = table.stop_flow[at] * weight * (table.cost[at] + table.acquired[at] @ data.problem.prices)
    squares = tally(table.row[at], amount**2 / table.blocked_stop_flow[at], len(data))
    return float((squares - tally(table.row[at], amount, len(data)) ** 2).clip(0).sum())
