"""What a run of the policy costs in each row: reductions of a walk that need neither weights nor models."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from ..arrays import Floats, Ints, tally
from ..data import Retrospective
from .columns import PartColumns
from .table import FREE, WalkTable

__all__ = ["RunCosts", "run_costs"]


@dataclass(frozen=True, eq=False)
class RunCosts:
    """Expected costs of running a policy, one number per row."""

    acquisition: Floats  # (n,)
    misclassification: Floats  # (n,)
    parts: csr_array  # (n, P) the parts that both are made of

    @property
    def by_target(self) -> dict[str, Floats]:
        """Costs by the name of the target."""
        return {
            "acquisition": self.acquisition,
            "misclassification": self.misclassification,
            "total": self.acquisition + self.misclassification,
        }

    def __add__(self, other: RunCosts) -> RunCosts:
        """Costs of rows walked in several parts."""
        paid, wrong = self.acquisition + other.acquisition, self.misclassification + other.misclassification
        return RunCosts(paid, wrong, self.parts + other.parts)


def run_costs(
    tables: Iterable[WalkTable], data: Retrospective, *, blocked: bool = False, n_outcomes: int = 0
) -> RunCosts:
    r"""Expected cost of each row, given what is available in it; 0 in rows that were not walked.

    .. math:: \sum_S r_S \sum_a \pi(a|S) c_a, \qquad \sum_S r_S \pi(stop|S) C_S

    With ``blocked`` the flow is that of the policy renormalised over what is available.
    """
    n, columns = len(data), PartColumns.of(data, n_outcomes)
    parts = csr_array((n, columns.width))
    acquisition, misclassification = np.zeros(n), np.zeros(n)
    for table in tables:
        flow = table.blocked_stop_flow if blocked else table.stop_flow
        paid = np.where(flow > 0, flow * table.cost, 0.0)  # C_S is NaN where nobody stops
        misclassification += tally(table.row, paid, n)
        if blocked:
            price = np.where(table.edge_group == FREE, 0.0, data.problem.prices[table.edge_group])
            acquisition += tally(table.row[table.edge_state], price * table.edge_blocked_flow, n)
            edges = np.flatnonzero(table.edge_blocked_flow)
            rows = table.row[table.edge_state[edges]]
            parts = parts + _by_row(rows, table.edge_blocked_flow[edges], n) @ columns.taken(table, edges)
        else:
            acquisition += tally(table.row, table.reach * table.price, n)
            once = np.ones(len(table.row))
            parts = parts + _by_row(table.row, once, n) @ columns.decisions(table, table.reach)
        stops = np.flatnonzero(flow)
        parts = parts + _by_row(table.row[stops], flow[stops], n) @ columns.stops(table, stops)
    return RunCosts(acquisition, misclassification, parts)


def _by_row(row: Ints, flow: Floats, n_rows: int) -> csr_array:
    return csr_array((flow, (row, np.arange(len(row)))), shape=(n_rows, len(row)))
