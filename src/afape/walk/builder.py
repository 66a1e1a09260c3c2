"""Collects the lines of a walk, depth by depth; shared by the exact and the sampled walk."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays import Bools, Floats, Ints, every
from .ground import Ground
from .table import FREE, WalkTable

__all__ = ["Step", "TableBuilder"]


class Step(NamedTuple):
    """Answers and wanted edges of one depth."""

    probability: Floats  # (m, G + 1); at a forced root the first column stands for the edge FREE
    blocked: Floats
    state: Ints  # (e,) state within this depth
    group: Ints  # (e,) column of ``probability``
    edge_available: Bools
    forced: bool
    free: Bools

    def target(self, acquired: Bools, edges: Ints) -> Bools:
        """Sets that these edges lead to."""
        target = acquired[self.state[edges]].copy()
        if self.forced:
            target |= self.free
        else:
            target[np.arange(len(edges)), self.group[edges]] = True
        return target


class TableBuilder:
    """One table in the making: `visit`, `stop`, `flow` and `lead` are called once a depth, in this order."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.columns: dict[str, list[NDArray[Any]]] = {name: [] for name in WalkTable.__annotations__}
        self.n_lines = 0
        self.depth = 0

    def visit(self, row: Ints, acquired: Bools, reach: Floats) -> Step:
        """Ask the models in these states and list their wanted edges."""
        forced = self.ground.rooted and self.depth == 0
        if forced:
            step, price, cost = self._root(row, acquired)
        else:
            answers = self.ground.ask(row, acquired)
            state, group = np.nonzero(answers.probability[:, :-1] > 0)
            available = answers.available[state, group]
            step = Step(answers.probability, answers.blocked, state, group, available, False, self._free)
            price, cost = answers.price, answers.cost
        edges = step.state
        probability = step.probability[edges, step.group]
        self._add(row=row, acquired=acquired, reach=reach, price=price, cost=cost)
        self._add(depth=np.full(len(row), self.depth), stop=step.probability[:, -1])
        self._add(edge_state=edges + self.n_lines, edge_probability=probability)
        self._add(edge_group=np.full(len(edges), FREE) if forced else step.group)
        self._add(edge_available=step.edge_available)
        self.n_lines += len(row)
        self.depth += 1
        return step

    @property
    def _free(self) -> Bools:
        return self.ground.data.problem.free

    def _root(self, row: Ints, acquired: Bools) -> tuple[Step, Floats, Floats]:
        """Nothing acquired, one forced edge of price 0, no question to anybody."""
        m = len(row)
        available = every(self.ground.available[row][:, self._free])
        p = np.zeros((m, acquired.shape[1] + 1))
        p[:, 0] = 1.0
        step = Step(
            p, p * available[:, None].astype(float), np.arange(m), np.zeros(m, np.intp), available, True, self._free
        )
        return step, np.zeros(m), np.full(m, np.nan)

    def stop(self, flow: Floats, blocked: Floats) -> None:
        """Flow that stops in each state of this depth."""
        self._add(stop_flow=flow, blocked_stop_flow=blocked)

    def flow(self, flow: Floats, blocked: Floats) -> None:
        """Flow over each wanted edge of this depth."""
        self._add(edge_flow=flow, edge_blocked_flow=blocked)

    def lead(self, edges: Ints, child: Ints) -> None:
        """Say which of the next depth's states these edges lead to."""
        column = np.full(len(self.columns["edge_flow"][-1]), -1, dtype=np.intp)
        column[edges] = child + self.n_lines
        self._add(edge_child=column)

    def abandon(self, keep: Bools) -> None:
        """Drop states of the next depth before they are visited."""
        place = np.where(keep, np.cumsum(keep) - 1, -1)
        child = self.columns["edge_child"][-1]
        inside = child >= 0
        moved = place[child[inside] - self.n_lines]
        child[inside] = np.where(moved >= 0, moved + self.n_lines, -1)

    def table(self, sampled: Ints | None = None) -> WalkTable:
        """Put the depths together."""
        self._add(sampled=np.array([], dtype=np.intp) if sampled is None else sampled)
        return WalkTable(**{name: np.concatenate(parts) for name, parts in self.columns.items()})

    def _add(self, **parts: NDArray[Any]) -> None:
        for name, part in parts.items():
            self.columns[name].append(part)
