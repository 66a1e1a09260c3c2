"""The table of states and edges that every estimator reduces, and its storage in memory or on disk."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import numpy as np

from .._arrays import Bools, Floats, Ints, lines_of, unique_sets
from .._processes import locked

__all__ = ["FREE", "TableStore", "Tables", "WalkTable"]

FREE = -1  # the group of the forced edge that reveals all free groups at once


@dataclass(frozen=True, eq=False)
class WalkTable:
    """States and edges that a policy reaches in a chunk of rows, with s states and e edges.

    A state is a row and a set. *Flow* is probability under the policy, along groups that are available in the row.
    *Blocked flow* is probability under the policy renormalised over the available groups. In a sampled walk both are
    means over trajectories of the likelihood ratio, including the ratio of this step.

    Attributes
    ----------
    row : ndarray of int, shape (s,)
        Row of the data.
    acquired : ndarray of bool, shape (s, G)
        The set.
    depth : ndarray of int, shape (s,)
        Number of decisions so far.
    reach : ndarray of shape (s,)
        r_S, the incoming flow.
    stop : ndarray of shape (s,)
        pi(stop | S).
    stop_flow, blocked_stop_flow : ndarray of shape (s,)
        r_S pi(stop | S), and the blocked flow that stops.
    price : ndarray of shape (s,)
        Expected price of the next decision: the sum over all wanted a, recorded or not, of pi(a | S) c_a.
    cost : ndarray of shape (s,)
        C_S; NaN if no run stops here.
    predicted : ndarray of int, shape (s,)
        Predicted label code; -1 if the classifier was not asked.
    outcomes : ndarray of shape (s, O)
        User-defined outcomes; NaN if no run stops here.
    edge_state : ndarray of int, shape (e,)
        State where the edge starts.
    edge_group : ndarray of int, shape (e,)
        Group that the edge acquires, or FREE.
    edge_probability : ndarray of shape (e,)
        pi(a | S), recorded or not.
    edge_available : ndarray of bool, shape (e,)
        True if the group is available in the row.
    edge_flow, edge_blocked_flow : ndarray of shape (e,)
        Flow and blocked flow along the edge; 0 if the group is not available.
    edge_child : ndarray of int, shape (e,)
        State where the edge ends; -1 without flow.
    sampled : ndarray of int
        Rows whose states were sampled.
    """

    row: Ints
    acquired: Bools
    depth: Ints
    reach: Floats
    stop: Floats
    stop_flow: Floats
    blocked_stop_flow: Floats
    price: Floats
    cost: Floats
    predicted: Ints
    outcomes: Floats
    edge_state: Ints
    edge_group: Ints
    edge_probability: Floats
    edge_available: Bools
    edge_flow: Floats
    edge_blocked_flow: Floats
    edge_child: Ints
    sampled: Ints

    @cached_property
    def _unique(self) -> tuple[Bools, Ints]:
        return unique_sets(self.acquired)

    @property
    def sets(self) -> Bools:
        """Distinct sets of the states, (u, G)."""
        return self._unique[0]

    @property
    def set_index(self) -> Ints:
        """Index of each state's set in ``sets``, shape (s,)."""
        return self._unique[1]

    @cached_property
    def set_lines(self) -> list[Ints]:
        """States of each of ``sets``."""
        return lines_of(self.set_index, len(self.sets))

    @property
    def n_depths(self) -> int:
        """One more than the largest depth."""
        return int(self.depth.max()) + 1 if len(self.depth) else 0

    def edge_sets(self, free: Bools) -> tuple[Bools, Ints]:
        """Distinct sets that edges lead to, (u, G), and the index of each edge's set among them, (e,).

        Sets are formed once for each pair of set and group that occurs, not for each edge.
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
        """Return the table without these rows."""
        return self if len(rows) == 0 else self.restricted(~np.isin(self.row, rows))

    def at_depth_zero(self) -> WalkTable:
        """Return the states in which rows start, with their edges, which then have no child."""
        return self.restricted(self.depth == 0)

    def restricted(self, keep: Bools, keep_edges: Bools | None = None) -> WalkTable:
        """Return the states for which ``keep`` is True, with their edges; an edge to another state has no child.

        With ``keep_edges`` (e,), only edges for which it is True remain.
        """
        place = np.cumsum(keep) - 1
        edges = keep[self.edge_state] if keep_edges is None else keep[self.edge_state] & keep_edges
        columns = {}
        for column in fields(self):
            values = getattr(self, column.name)
            if column.name == "sampled":
                columns[column.name] = values
            else:
                columns[column.name] = values[edges if column.name.startswith("edge_") else keep]
        columns["edge_state"] = place[columns["edge_state"]]
        child = columns["edge_child"]
        columns["edge_child"] = np.where((child >= 0) & keep[child], place[child], -1)
        return WalkTable(**columns)

    @staticmethod
    def of_states(row: Ints, acquired: Bools, depth: Ints) -> WalkTable:
        """Return a table of states without flow and edges, for which weights are needed."""
        zero, nothing, none = np.zeros(len(row)), np.zeros(0), np.zeros(0, np.intp)
        states = dict.fromkeys(("reach", "stop", "stop_flow", "blocked_stop_flow", "price", "cost"), zero)
        edges = dict.fromkeys(("edge_probability", "edge_flow", "edge_blocked_flow"), nothing)
        ends = dict.fromkeys(("edge_state", "edge_group", "edge_child", "sampled"), none)
        available = np.zeros(0, dtype=bool)
        columns: dict[str, Any] = {**states, **edges, **ends, "edge_available": available}
        columns |= {"predicted": np.full(len(row), -1), "outcomes": np.zeros((len(row), 0))}
        return WalkTable(row=row, acquired=acquired, depth=depth, **columns)

    @staticmethod
    def concatenate(tables: list[WalkTable]) -> WalkTable:
        """Return one table of all rows."""
        if len(tables) == 1:
            return tables[0]
        shift = np.cumsum([0] + [len(t.row) for t in tables[:-1]])
        columns = {}
        for column in fields(WalkTable):
            pieces = [getattr(t, column.name) for t in tables]
            if column.name == "edge_state":
                pieces = [c + s for c, s in zip(pieces, shift, strict=True)]
            elif column.name == "edge_child":
                pieces = [np.where(c >= 0, c + s, -1) for c, s in zip(pieces, shift, strict=True)]
            columns[column.name] = np.concatenate(pieces)
        return WalkTable(**columns)


_NAMES = tuple(f.name for f in fields(WalkTable))


_PREFIX, _NEW = "afape-walk-", 60.0  # seconds within which a folder may not have its lock yet


class _Folder:
    """A temporary folder, removed when the last object that refers to it is deleted."""

    def __init__(self) -> None:
        _remove_abandoned()
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        weakref.finalize(self, _remove, self.path, locked(self.path / "owner"))


def _remove(folder: Path, lock: IO[str] | None) -> None:
    if lock is not None:
        lock.close()
    shutil.rmtree(folder, ignore_errors=True)


def _remove_abandoned() -> None:
    """Remove folders of processes that were killed: nobody has the lock on them."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            old = time.time() - folder.lstat().st_mtime > _NEW
            mine = not hasattr(os, "getuid") or folder.lstat().st_uid == os.getuid()
            if old and mine and not folder.is_symlink() and (folder / "owner").is_file():
                lock = locked(folder / "owner")
                if lock is not None:
                    _remove(folder, lock)


class Tables:
    """The tables of one walk, in the order of their rows, in memory or in files.

    They can be read several times, without asking policy or classifier again. A copy in another process reads the same
    files; the original removes them.
    """

    def __init__(self, chunks: list[WalkTable | Path], folder: _Folder | None = None) -> None:
        self._chunks, self._folder = chunks, folder

    def __iter__(self) -> Iterator[WalkTable]:
        for chunk in self._chunks:
            yield _read(chunk) if isinstance(chunk, Path) else chunk

    @property
    def held(self) -> bool:
        """True if all tables are in memory."""
        return not any(isinstance(chunk, Path) for chunk in self._chunks)

    def whole(self) -> WalkTable:
        """Return one table of all rows."""
        return WalkTable.concatenate(list(self))

    def __getstate__(self) -> dict[str, Any]:
        return {"_chunks": self._chunks, "_folder": None}


@dataclass(eq=False)
class TableStore:
    """Stores the tables of one or several walks.

    Parameters
    ----------
    budget : int
        Largest number of states in memory, over all walks. Further tables are written to a temporary folder, which is
        removed when its tables are no longer used.
    """

    budget: int = 2**20
    _held: int = 0
    _folder: _Folder | None = None
    _written: int = 0

    def keep(self, walk: Iterable[WalkTable], report: Callable[[WalkTable], None] | None = None) -> Tables:
        """Keep all tables of a walk, in memory or, beyond the budget, on disk; ``report`` is called with each table."""
        chunks: list[WalkTable | Path] = []
        for table in walk:
            self._held += len(table.row)
            chunks.append(table if self._held <= self.budget else self._write(table))
            if report is not None:
                report(table)
        return Tables(chunks, self._folder)

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
