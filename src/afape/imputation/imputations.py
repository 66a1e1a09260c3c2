"""Completed tables, shared by all policies that are compared, and the runs of a policy on them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from .._arguments import check_count
from .._arrays import Bools, Floats, Ints
from ..agents.policy import Policy
from ..classifiers import Classifier
from ..data.retrospective import Retrospective
from ..walk.ground import Ground
from ..walk.outcomes import NO_OUTCOMES, OwnOutcomes
from ..walk.run_parts import RunParts, run_parts
from ..walk.table import WalkTable
from .chained import ChainedImputer
from .imputers import Imputer, as_imputer, categories_of

__all__ = ["CompletedRuns", "CompletedTables", "Imputations", "completed_runs", "completed_steps"]


@dataclass(frozen=True, eq=False)
class CompletedTables:
    """Several completed tables of the same records. Only missing cells are stored."""

    values: Floats  # (n, d), as recorded
    cells: list[Floats]  # drawn values of the missing cells, one array per table

    def __iter__(self) -> Iterator[Floats]:
        missing = np.isnan(self.values)
        for cells in self.cells:
            values = self.values.copy()
            values[missing] = cells
            yield values

    @cached_property
    def identity(self) -> str:
        """A digest of the tables: only estimates on the same tables are paired."""
        digest = hashlib.sha1(f"{len(self.cells)} {self.values.shape}".encode())
        for cells in self.cells:
            digest.update(cells.tobytes())
        return digest.hexdigest()


class Imputations:
    """How tables are completed, and the completed tables once `draw` was called.

    The first call of `draw` draws; further calls return the same tables. `completed_runs` calls it, so all policies that
    are compared are run on the same tables, and no table is drawn if no policy needs one.

    Parameters
    ----------
    data : Retrospective
        Records with gaps.
    imputer
        See `evaluate`.
    n_imputations : int
        Number of tables, at least 2.
    random_state : int
        Seed; equal seeds give equal tables, whatever the policy.
    """

    def __init__(self, data: Retrospective, imputer: Any, n_imputations: int, random_state: int) -> None:
        self.data, self.random_state = data, random_state
        self.imputer: Imputer = as_imputer(imputer)
        self.n_imputations = check_count("n_imputations", n_imputations, 2)
        self._tables: CompletedTables | None = None

    def __len__(self) -> int:
        return self.n_imputations

    @property
    def reason(self) -> str:
        """Why the tables cannot be completed; empty if they can."""
        never = np.flatnonzero(~self.data.recorded.any(axis=0))
        return f"no row has {self.data.problem.group_names[never[0]]!r} recorded" if len(never) else ""

    def draw(self) -> CompletedTables:
        """Draw the tables, or return those of the first call; no tables if there is a ``reason``."""
        if self._tables is None:
            self._tables = CompletedTables(self.data.values, [] if self.reason else self._cells())
        return self._tables

    def _cells(self) -> list[Floats]:
        missing, n = np.isnan(self.data.values), self.n_imputations
        if not missing.any():
            return [np.array([])] * n
        drawn = self.imputer.impute(self.data, n, self.random_state)
        cells = [_checked(table, self.data)[missing] for table in islice(drawn, n)]
        if len(cells) < n:
            raise ValueError(f"'imputer' must give {n} tables, but gave {len(cells)}.")
        # Our own imputer draws at random: its tables are equal only if the records allow one value per cell.
        own = isinstance(self.imputer, ChainedImputer)
        if not own and all(np.array_equal(cells[0], other) for other in cells[1:]):
            raise ValueError(
                f"'imputer' must draw its values at random, but all {n} tables are equal, so intervals would ignore the "
                "uncertainty about missing values. Use an imputer that draws, or the default."
            )
        return cells


def _checked(table: Any, data: Retrospective) -> Floats:
    """Return the table as an array; raises if it is not a completion of these records."""
    values = np.asarray(table, dtype=float)
    if values.shape != data.values.shape:
        raise ValueError(
            f"'imputer' must give tables of shape {data.values.shape}, rows by columns, but gave {values.shape}."
        )
    bad = ~np.isfinite(values).all(axis=0)
    if bad.any():
        name = data.columns[int(bad.argmax())]
        raise ValueError(f"'imputer' must give complete, finite tables, but column {name!r} still has gaps.")
    changed = (~np.isclose(values, data.values, rtol=1e-9, atol=0) & ~np.isnan(data.values)).any(axis=0)
    if changed.any():
        name = data.columns[int(changed.argmax())]
        raise ValueError(f"'imputer' must leave recorded values as they are, but changed column {name!r}.")
    for columns in categories_of(data):
        levels = values[:, columns]
        if not (np.isin(levels, (0.0, 1.0)).all() and (levels.sum(axis=1) == 1).all()):
            raise ValueError(
                "'imputer' must give each category one level, but the columns "
                f"{[data.columns[c] for c in columns[:3]]} do not have a single 1 in every row."
            )
    return values


@dataclass(frozen=True, eq=False)
class CompletedRuns:
    """Parts of a policy's runs on every completed table."""

    tables: Sequence[RunParts] = ()
    identity: str = ""  # which tables these are
    reason: str = ""  # why tables cannot be completed


def completed_runs(
    imputations: Imputations,
    policy: Policy,
    classifier: Classifier,
    used: Bools,
    walk: Callable[[Ground, Ints], Iterable[WalkTable]],
    outcomes: OwnOutcomes = NO_OUTCOMES,
) -> CompletedRuns:
    """Walk complete rows once, and other rows in every completed table; only rows that are ``used`` (n,)."""
    if imputations.reason:
        return CompletedRuns(reason=imputations.reason)
    data, completed = imputations.data, imputations.draw()
    complete, gaps = np.flatnonzero(data.complete & used), np.flatnonzero(~data.complete & used)

    def runs(values: Floats, rows: Ints) -> RunParts:
        ground = Ground.everything(data, values, policy, classifier, outcomes)
        return run_parts(walk(ground, rows), data, n_outcomes=len(outcomes))

    once = runs(data.values, complete)
    return CompletedRuns([once + runs(values, gaps) for values in completed], completed.identity)


def completed_steps(imputations: Imputations, used: Bools) -> int:
    """Number of rows to walk."""
    if imputations.reason:
        return 0
    complete = imputations.data.complete
    return int((complete & used).sum()) + len(imputations) * int((~complete & used).sum())
