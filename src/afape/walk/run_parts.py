"""What a run of the policy does in each row: reductions of a walk that need neither weights nor models."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from .._arrays import Floats, Ints
from ..data.retrospective import Retrospective
from .columns import PartColumns
from .table import WalkTable

__all__ = ["RunParts", "run_parts"]


@dataclass(frozen=True, eq=False)
class RunParts:
    """Expected parts of the cost of running a policy, one line per row."""

    parts: csr_array  # (n, P)
    columns: PartColumns

    def __add__(self, other: RunParts) -> RunParts:
        """Parts of rows that were walked in several walks."""
        return RunParts(self.parts + other.parts, self.columns)


def run_parts(
    tables: Iterable[WalkTable], data: Retrospective, *, blocked: bool = False, n_outcomes: int = 0
) -> RunParts:
    r"""Expected parts of the cost of each row, given what is available in it; 0 in rows that were not walked.

    Their costs are

    .. math:: \sum_S r_S \sum_a \pi(a|S) c_a, \qquad \sum_S r_S \pi(stop|S) C_S .

    With ``blocked`` the flow is that of the policy renormalised over what is available.
    """
    n, columns = len(data), PartColumns.of(data, n_outcomes)
    parts = csr_array((n, columns.width))
    for table in tables:
        flow = table.blocked_stop_flow if blocked else table.stop_flow
        if blocked:
            edges = np.flatnonzero(table.edge_blocked_flow)
            rows = table.row[table.edge_state[edges]]
            parts = parts + _by_row(rows, table.edge_blocked_flow[edges], n) @ columns.taken(table, edges)
        else:
            parts = parts + _by_row(table.row, table.reach, n) @ columns.decisions(table)
        stops = np.flatnonzero(flow)
        parts = parts + _by_row(table.row[stops], flow[stops], n) @ columns.stops(table, stops)
    return RunParts(parts, columns)


def _by_row(row: Ints, flow: Floats, n_rows: int) -> csr_array:
    return csr_array((flow, (row, np.arange(len(row)))), shape=(n_rows, len(row)))
