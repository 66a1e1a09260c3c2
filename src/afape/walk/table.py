"""The table that every estimator reduces, one line per state and one per edge, and tables that can be read again."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays import Bools, Floats, Ints, lines_of, unique_sets

__all__ = ["FREE", "TableStore", "Tables", "WalkTable"]

FREE = -1  # the group of the forced edge that reveals all free groups at once


@dataclass(frozen=True, eq=False)
class WalkTable:
    """States and edges that a policy reaches in a chunk of rows.

    States are (row, set) pairs. *Flow* is probability under the policy, over what is available in the row;
    *blocked* flow is probability under the policy renormalised over what is available. In a sampled walk both
    are means over trajectories of the likelihood ratio, this step's ratio included.
    """

    row: Ints  # (s,) the row of the data
    acquired: Bools  # (s, G)
    depth: Ints  # (s,) decisions taken so far
    reach: Floats  # (s,) r_S, the incoming flow
    stop: Floats  # (s,) pi(stop | S)
    stop_flow: Floats  # (s,) r_S pi(stop | S)
    blocked_stop_flow: Floats  # (s,)
    price: Floats  # (s,) expected price of the next decision, sum over all wanted a of pi(a | S) c_a
    cost: Floats  # (s,) C_S, NaN where nobody stops
    predicted: Ints  # (s,) predicted label code, -1 where the classifier was not asked
    outcomes: Floats  # (s, O) outcomes of the user's own, NaN where nobody stops
    edge_state: Ints  # (e,) the state that the edge leaves
    edge_group: Ints  # (e,) the group it acquires, or FREE
    edge_probability: Floats  # (e,) pi(a | S), recorded or not
    edge_available: Bools  # (e,)
    edge_flow: Floats  # (e,) 0 where not available
    edge_blocked_flow: Floats  # (e,)
    edge_child: Ints  # (e,) the state it leads to, -1 where there is no flow
    sampled: Ints  # rows whose states were sampled, not enumerated

    @cached_property
    def _unique(self) -> tuple[Bools, Ints]:
        return unique_sets(self.acquired)

    @property
    def sets(self) -> Bools:
        """Distinct sets of the states, (u, G)."""
        return self._unique[0]

    @property
    def set_index(self) -> Ints:
        """Place of each state's set in ``sets``."""
        return self._unique[1]

    @cached_property
    def set_lines(self) -> list[Ints]:
        """States of each of ``sets``."""
        return lines_of(self.set_index, len(self.sets))

    @property
    def n_depths(self) -> int:
        """One more than the greatest depth."""
        return int(self.depth.max()) + 1 if len(self.depth) else 0

    def edge_sets(self, free: Bools) -> tuple[Bools, Ints]:
        """Distinct sets that edges lead to (u, G), and the place of each edge's among them.

        By way of the few pairs of set and group that occur, not edge by edge.
        """
        n_groups = self.acquired.shape[1]
        code = self.set_index[self.edge_state] * (n_groups + 1) + self.edge_group + 1
        present = np.flatnonzero(np.bincount(code, minlength=len(self.sets) * (n_groups + 1)))
        target, group = self.sets[present // (n_groups + 1)].copy(), present % (n_groups + 1) - 1
        plain = np.flatnonzero(group != FREE)
        target[plain, group[plain]] = True
        target[group == FREE] |= free
        sets, index = unique_sets(target)
        place = np.zeros(len(self.sets) * (n_groups + 1), dtype=np.intp)
        place[present] = index
        return sets, place[code]

    def without(self, rows: Ints) -> WalkTable:
        """Drop the lines of these rows."""
        return self if len(rows) == 0 else self._states(~np.isin(self.row, rows))

    def at_depth_zero(self) -> WalkTable:
        """Only where rows start, with the edges that leave from there, leading nowhere."""
        return self._states(self.depth == 0)

    def _states(self, keep: Bools) -> WalkTable:
        """Some states with their edges; an edge to a state that is not kept leads nowhere."""
        place = np.cumsum(keep) - 1
        edges = keep[self.edge_state]
        parts = {}
        for column in fields(self):
            values = getattr(self, column.name)
            if column.name == "sampled":
                parts[column.name] = values
            else:
                parts[column.name] = values[edges if column.name.startswith("edge_") else keep]
        parts["edge_state"] = place[parts["edge_state"]]
        child = parts["edge_child"]
        parts["edge_child"] = np.where((child >= 0) & keep[child], place[child], -1)
        return WalkTable(**parts)

    @staticmethod
    def of_states(row: Ints, acquired: Bools, depth: Ints) -> WalkTable:
        """States without flow and without edges, to be weighed."""
        zero, nothing, none = np.zeros(len(row)), np.zeros(0), np.zeros(0, np.intp)
        states = dict.fromkeys(("reach", "stop", "stop_flow", "blocked_stop_flow", "price", "cost"), zero)
        edges = dict.fromkeys(("edge_probability", "edge_flow", "edge_blocked_flow"), nothing)
        ends = dict.fromkeys(("edge_state", "edge_group", "edge_child", "sampled"), none)
        available = np.zeros(0, dtype=bool)
        parts: dict[str, Any] = {**states, **edges, **ends, "edge_available": available}
        parts |= {"predicted": np.full(len(row), -1), "outcomes": np.zeros((len(row), 0))}
        return WalkTable(row=row, acquired=acquired, depth=depth, **parts)

    @staticmethod
    def concatenate(tables: list[WalkTable]) -> WalkTable:
        """One table of all, for estimators that learn from every row."""
        if len(tables) == 1:
            return tables[0]
        shift = np.cumsum([0] + [len(t.row) for t in tables[:-1]])
        parts = {}
        for column in fields(WalkTable):
            columns = [getattr(t, column.name) for t in tables]
            if column.name == "edge_state":
                columns = [c + s for c, s in zip(columns, shift, strict=True)]
            elif column.name == "edge_child":
                columns = [np.where(c >= 0, c + s, -1) for c, s in zip(columns, shift, strict=True)]
            parts[column.name] = np.concatenate(columns)
        return WalkTable(**parts)


_NAMES = tuple(f.name for f in fields(WalkTable))


class _Folder:
    """A temporary folder, removed with the last object that knows it."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="afape-walk-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


class Tables:
    """The tables of one walk, in the order of their rows.

    Reading them asks neither policy nor classifier. A copy in another process reads the same files, and leaves it to the
    original to remove them.
    """

    def __init__(self, parts: list[WalkTable | Path], folder: _Folder | None = None) -> None:
        self._parts, self._folder = parts, folder

    def __iter__(self) -> Iterator[WalkTable]:
        for part in self._parts:
            yield _read(part) if isinstance(part, Path) else part

    @property
    def held(self) -> bool:
        """Whether all of them are in memory."""
        return not any(isinstance(part, Path) for part in self._parts)

    def whole(self) -> WalkTable:
        """One table of all rows, for what is learned from all of them."""
        return WalkTable.concatenate(list(self))

    def __getstate__(self) -> dict[str, Any]:
        return {"_parts": self._parts, "_folder": None}


@dataclass(eq=False)
class TableStore:
    """Where the tables of one or several walks are kept.

    Parameters
    ----------
    budget : int
        States held in memory over all walks; further tables are written to a temporary folder, which is removed with the
        last of its tables.
    """

    budget: int = 2**20
    _held: int = 0
    _folder: _Folder | None = None
    _written: int = 0

    def keep(self, walk: Iterable[WalkTable], told: Callable[[WalkTable], None] | None = None) -> Tables:
        """Walk to the end; ``told`` hears of every table."""
        parts: list[WalkTable | Path] = []
        for table in walk:
            self._held += len(table.row)
            parts.append(table if self._held <= self.budget else self._write(table))
            if told is not None:
                told(table)
        return Tables(parts, self._folder)

    def _write(self, table: WalkTable) -> Path:
        if self._folder is None:
            self._folder = _Folder()
        path = self._folder.path / f"{self._written}.npy"
        self._written += 1
        with path.open("wb") as file:
            for name in _NAMES:
                np.save(file, getattr(table, name), allow_pickle=False)
        return path


def _read(path: Path) -> WalkTable:
    with path.open("rb") as file:
        return WalkTable(**{name: np.load(file, allow_pickle=False) for name in _NAMES})
