"""What a run of the policy costs in each row: reductions of a walk that need neither weights nor models."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ..arrays import Floats, tally
from ..data import Retrospective
from .table import FREE, WalkTable

__all__ = ["RunCosts", "run_costs"]


@dataclass(frozen=True, eq=False)
class RunCosts:
    """Expected costs of running a policy, one number per row."""

    acquisition: Floats  # (n,)
    misclassification: Floats  # (n,)

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
        return RunCosts(self.acquisition + other.acquisition, self.misclassification + other.misclassification)


def run_costs(tables: Iterable[WalkTable], data: Retrospective, *, blocked: bool = False) -> RunCosts:
    r"""Expected cost of each row, given what is available in it; 0 in rows that were not walked.

    .. math:: \sum_S r_S \sum_a \pi(a|S) c_a, \qquad \sum_S r_S \pi(stop|S) C_S

    With ``blocked`` the flow is that of the policy renormalised over what is available.
    """
    n = len(data)
    acquisition, misclassification = np.zeros(n), np.zeros(n)
    for table in tables:
        flow = table.blocked_stop_flow if blocked else table.stop_flow
        paid = np.where(flow > 0, flow * table.cost, 0.0)  # C_S is NaN where nobody stops
        misclassification += tally(table.row, paid, n)
        if blocked:
            price = np.where(table.edge_group == FREE, 0.0, data.problem.prices[table.edge_group])
            acquisition += tally(table.row[table.edge_state], price * table.edge_blocked_flow, n)
        else:
            acquisition += tally(table.row, table.reach * table.price, n)
    return RunCosts(acquisition, misclassification)
