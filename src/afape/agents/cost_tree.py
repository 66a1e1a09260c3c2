"""A decision tree that is grown to lower the total cost; its branches decide which group is acquired next."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from .._arguments import check_between, check_count
from .._arrays import Bools, Floats, Ints, standard_error, tally
from ..classifiers import Classifier
from ..data.retrospective import Retrospective
from .learned_agent import Layout, LearnedAgent, stop_cost
from .state import AgentState

__all__ = ["CostSensitiveTree"]

STOP, ACQUIRE, SPLIT = 0, 1, 2
_MAX_CUTS = 64  # thresholds tried per column


class CostSensitiveTree(LearnedAgent):
    r"""Cost-sensitive decision tree.

    The tree grows from the free groups. In a node with set S, group g saves :math:`D_{ig} = C_{iS} - c_g - C_{i,S+g}` in row
    i: the cost of stopping now, minus the price, minus the cost of stopping afterwards. It is known if g is recorded. The
    best single move in a set N of rows saves

    .. math:: B(N) = |N| \max\Big(0, \max_g \operatorname{mean}_{i \in N,\, R_{ig} = 1} D_{ig}\Big).

    A node splits on the acquired column and threshold that maximise B(left) + B(right), if this exceeds B(N) by more than
    ``min_z`` standard errors. Otherwise it makes the best move: it acquires g and continues, or stops if no group saves.

    Parameters
    ----------
    max_depth : int
        Largest number of splits from the root to a leaf.
    min_rows : int
        Smallest number of rows on each side of a threshold, and of rows that record a group, for its saving to count.
    min_z : float
        Standard errors that the saving of a split must exceed. The threshold is chosen among many, so 2 or 3 is not a
        strict test.

    Notes
    -----
    The paper grows a tree over discrete attributes, splits by the reduction of test plus misclassification cost, and labels
    its leaves. Here columns may be continuous and belong to groups, and the given classifier predicts at the leaves. Savings
    are means over the rows that record a group: the paper's sums over known values would prefer groups that are recorded
    often. A row without the value at a split goes to the side with more rows.

    References
    ----------
    C. X. Ling, Q. Yang, J. Wang, S. Zhang (2004). Decision trees with minimal costs. ICML.
    """

    def __init__(self, max_depth: int = 6, min_rows: int = 200, min_z: float = 2.0) -> None:
        self.max_depth = max_depth
        self.min_rows = min_rows
        self.min_z = min_z

    def _check_arguments(self) -> None:
        check_count("max_depth", self.max_depth, 0)
        check_count("min_rows", self.min_rows, 1)
        check_between("min_z", self.min_z, 0.0)

    def _learn(self, data: Retrospective, classifier: Classifier) -> None:
        grower = _Grower(data, classifier, self.max_depth, self.min_rows, self.min_z)
        free = data.problem.free
        grower.grow(np.flatnonzero(data.recorded[:, free].all(axis=1)), free.copy(), 0)
        self.kind_, self.target_, self.left_, self.right_, default = np.array(grower.nodes, dtype=np.intp).T
        self.default_left_ = default.astype(bool)
        self.threshold_ = np.array(grower.thresholds)

    def _actions(self, values: Floats, acquired: Bools) -> Ints:
        rows = np.arange(len(values))
        node = np.zeros(len(values), dtype=np.intp)
        moving = rows
        while len(moving):
            at = node[moving]
            kind, target = self.kind_[at], self.target_[at]
            column = np.where(kind == SPLIT, target, 0)
            value = values[moving, column]
            left = np.where(np.isnan(value), self.default_left_[at], value <= self.threshold_[at])
            passes = (kind == ACQUIRE) & acquired[moving, np.where(kind == ACQUIRE, target, 0)]
            node[moving] = np.where(
                kind == SPLIT, np.where(left, self.left_[at], self.right_[at]), np.where(passes, self.left_[at], at)
            )
            moving = moving[(kind == SPLIT) | passes]
        return np.asarray(np.where(self.kind_[node] == ACQUIRE, self.target_[node], acquired.shape[1]), dtype=np.intp)

    def describe(self) -> str:
        """Return the tree as indented text."""
        self._check_trained()
        lines: list[str] = []
        waiting: list[tuple[int, int | str]] = [(0, 0)]  # depth, and a node or a line of text
        while waiting:
            depth, node = waiting.pop()
            if isinstance(node, str):
                lines.append("  " * depth + node)
                continue
            target = int(self.target_[node])
            if self.kind_[node] == STOP:
                lines.append("  " * depth + "stop")
            elif self.kind_[node] == ACQUIRE:
                lines.append("  " * depth + f"acquire {self.layout_.groups[target]}")
                waiting.append((depth, int(self.left_[node])))
            else:
                lines.append("  " * depth + f"if {self.layout_.columns[target]} <= {self.threshold_[node]:.4g}:")
                waiting += [(depth + 1, int(self.right_[node])), (depth, "else:"), (depth + 1, int(self.left_[node]))]
        return "\n".join(lines)

    def state(self) -> AgentState:
        """Return arguments and nodes."""
        self._check_trained()
        arrays = {name: getattr(self, f"{name}_") for name in _ARRAYS}
        return AgentState({"arguments": self.get_params(), "layout": self.layout_.to_json()}, arrays)

    @classmethod
    def from_state(cls, state: AgentState) -> Self:
        """Restore the agent."""
        agent = cls(**state.settings["arguments"])
        agent.layout_ = Layout.from_json(state.settings["layout"])
        for name in _ARRAYS:
            setattr(agent, f"{name}_", state.arrays[name])
        index = np.arange(len(agent.kind_))
        on, split = agent.kind_ != STOP, agent.kind_ == SPLIT
        if (agent.left_[on] <= index[on]).any() or (agent.right_[split] <= index[split]).any():
            raise ValueError("The nodes of this tree must lead to later nodes, but do not: the file is damaged.")
        return agent


_ARRAYS = ("kind", "target", "left", "right", "default_left", "threshold")


class _Cut(NamedTuple):
    saving: float
    column: int
    threshold: float


@dataclass
class _Grower:
    """Grows a tree. A node is (kind, target, left, right, default left)."""

    data: Retrospective
    classifier: Classifier
    max_depth: int
    min_rows: int
    min_z: float
    nodes: list[tuple[int, int, int, int, bool]] = field(default_factory=list)
    thresholds: list[float] = field(default_factory=list)

    def grow(self, rows: Ints, acquired: Bools, depth: int) -> int:
        """Add a node for these rows, with all nodes below it; return its number."""
        groups = np.flatnonzero(~acquired)
        saving = self._savings(rows, acquired, groups)
        return self._place(rows, acquired, groups, saving, depth)

    def _place(self, rows: Ints, acquired: Bools, groups: Ints, saving: Floats, depth: int) -> int:
        node = len(self.nodes)
        self.nodes.append((STOP, 0, -1, -1, True))
        self.thresholds.append(0.0)
        weight = self._cases[rows]
        move = self._best_move(saving, weight)
        cut = self._best_cut(rows, acquired, saving) if depth < self.max_depth and len(groups) else None
        left = None if cut is None else self.data.values[rows, cut.column] <= cut.threshold
        if cut is not None and left is not None and self._worthwhile(saving, weight, left, move):
            # both sides have the same set, so their savings are already computed
            below = [self._place(rows[side], acquired, groups, saving[side], depth + 1) for side in (left, ~left)]
            self.nodes[node] = (SPLIT, cut.column, below[0], below[1], bool(weight @ left >= weight.sum() / 2))
            self.thresholds[node] = cut.threshold
        elif move >= 0:
            g = int(groups[move])
            larger = acquired.copy()
            larger[g] = True
            child = self.grow(rows[self.data.recorded[rows, g]], larger, depth)
            self.nodes[node] = (ACQUIRE, g, child, -1, True)
        return node

    def _savings(self, rows: Ints, acquired: Bools, groups: Ints) -> Floats:
        """D for each row and each group that is not acquired, shape (rows, groups); NaN if the group is not recorded."""
        now = stop_cost(self.data, self.classifier, acquired, rows)
        saving = np.full((len(rows), len(groups)), np.nan)
        for j, g in enumerate(groups):
            larger = acquired.copy()
            larger[g] = True
            then = stop_cost(self.data, self.classifier, larger, rows)
            saving[:, j] = now - then - self.data.problem.prices[g]
        return saving

    @cached_property
    def _cases(self) -> Floats:
        """Weight of each row, on average 1."""
        return np.asarray(self.data.row_weight / self.data.row_weight.mean())

    def _best_move(self, saving: Floats, weight: Floats) -> int:
        """Return the position of the group with the largest mean saving, -1 if no group saves."""
        mean = self._mean_savings(np.nansum(weight[:, None] * saving, axis=0), weight @ ~np.isnan(saving))
        return int(mean.argmax()) if mean.max(initial=0.0) > 0 else -1

    def _worthwhile(self, saving: Floats, weight: Floats, left: Bools, move: int) -> bool:
        """Return True if the best moves on the two sides save significantly more than one move for all rows."""
        gain = variance = 0.0
        padded = np.column_stack([saving, np.zeros(len(saving))])  # the last column stops
        for side in (left, ~left):
            extra = padded[side, self._best_move(saving[side], weight[side])] - padded[side, move]
            known = ~np.isnan(extra)
            extra, share, size = extra[known], weight[side][known], float(weight[side].sum())
            if len(extra) > 1:
                mean = float(share @ extra / share.sum())
                gain += size * mean
                error = standard_error(share / share.mean() * (extra - mean), None)
                variance += size**2 * error**2
        return bool(gain > max(self.min_z * np.sqrt(variance), 1e-9))

    def _mean_savings(self, total: Floats, count: NDArray[Any]) -> Floats:
        """Mean saving, 0 if fewer than ``min_rows`` rows know it."""
        return np.asarray(np.where(count >= self.min_rows, total / np.maximum(count, 1), 0.0))

    def _best_cut(self, rows: Ints, acquired: Bools, saving: Floats) -> _Cut | None:
        weight = self._cases[rows]
        known = weight[:, None] * ~np.isnan(saving)
        filled = weight[:, None] * np.nan_to_num(saving)
        best: _Cut | None = None
        for column in np.flatnonzero(acquired[self.data.column_group]):
            value = self.data.values[rows, column]
            cuts = _thresholds(value)
            if not len(cuts):
                continue
            side = np.searchsorted(cuts, value, side="left")  # value <= cuts[k] from k = side on
            size: Floats = np.cumsum(tally(side, weight, len(cuts) + 1))
            total, count = (
                np.cumsum([np.bincount(side, weights=w, minlength=len(cuts) + 1) for w in table.T], axis=1)
                for table in (filled, known)
            )
            left = self._best_moves(size[:-1], total[:, :-1], count[:, :-1])
            rest = size[-1] - size[:-1]
            right = self._best_moves(rest, total[:, -1:] - total[:, :-1], count[:, -1:] - count[:, :-1])
            enough = (size[:-1] >= self.min_rows) & (rest >= self.min_rows)
            gain = np.where(enough, left + right, -np.inf)
            k = int(gain.argmax())
            if gain[k] > (best.saving if best else -np.inf):
                best = _Cut(float(gain[k]), int(column), float(cuts[k]))
        return best

    def _best_moves(self, size: Floats, total: Floats, count: Floats) -> Floats:
        """B of each set of rows, from its size, its sums of savings (groups, sets) and the counts of these sums."""
        return np.asarray(size * np.maximum(self._mean_savings(total, count).max(axis=0), 0.0))


def _thresholds(value: Floats) -> Floats:
    """Return midpoints between neighbouring values, at most ``_MAX_CUTS``."""
    levels = np.unique(value)
    if len(levels) > _MAX_CUTS:
        levels = np.unique(np.quantile(value, np.linspace(0, 1, _MAX_CUTS + 1)))
    return np.asarray((levels[1:] + levels[:-1]) / 2)
