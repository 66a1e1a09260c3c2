"""Completed tables: drawn once, checked, and shared by all policies that are compared."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from ..arguments import check_count
from ..arrays import Bools, Floats
from ..data import Retrospective
from .adapters import Imputer, as_imputer, categories_of
from .chained import ChainedImputer

__all__ = ["Imputations"]


class Imputations:
    """Several completed tables of the same records.

    Drawn when first asked for. Only the cells that were missing are kept; tables are put together one at a time.

    Parameters
    ----------
    data : Retrospective
        Records with gaps.
    imputer
        See `evaluate`.
    n_imputations : int
        How many tables, at least 2.
    random_state : int
        Seed; equal seeds give equal tables, whatever the policy.
    """

    def __init__(self, data: Retrospective, imputer: Any, n_imputations: int, random_state: int) -> None:
        self.data, self.random_state = data, random_state
        self.imputer: Imputer = as_imputer(imputer)
        self.n_imputations = check_count("n_imputations", n_imputations, 2)
        self.missing: Bools = np.isnan(data.values)

    def __len__(self) -> int:
        return self.n_imputations

    @property
    def reason(self) -> str:
        """Why there is nothing to impute from; empty where there is."""
        never = np.flatnonzero(~self.data.recorded.any(axis=0))
        return f"no row has {self.data.problem.group_names[never[0]]!r} recorded" if len(never) else ""

    def draw(self) -> None:
        """Draw the tables now, if there is anything to draw from."""
        if not self.reason:
            self._cells  # noqa: B018 (cached)

    def tables(self) -> Iterator[Floats]:
        """Completed tables of shape (n, d)."""
        for cells in self._cells:
            values = self.data.values.copy()
            values[self.missing] = cells
            yield values

    @cached_property
    def identity(self) -> str:
        """Which tables these are, so that only estimates on the same ones are paired."""
        digest = hashlib.sha1(f"{self.n_imputations} {self.missing.shape}".encode())
        for cells in self._cells:
            digest.update(cells.tobytes())
        return digest.hexdigest()

    @cached_property
    def _cells(self) -> list[Floats]:
        if not self.missing.any():
            return [np.array([])] * self.n_imputations
        drawn = self.imputer.impute(self.data, self.n_imputations, self.random_state)
        cells = [self._checked(table)[self.missing] for table in islice(drawn, self.n_imputations)]
        if len(cells) < self.n_imputations:
            raise ValueError(f"'imputer' must give {self.n_imputations} tables, but gave {len(cells)}.")
        # The own imputer draws; where its tables are equal, what is recorded leaves no choice.
        own = isinstance(self.imputer, ChainedImputer)
        if not own and all(np.array_equal(cells[0], other) for other in cells[1:]):
            raise ValueError(
                f"'imputer' must draw its values at random, but all {self.n_imputations} tables are equal: the uncertainty "
                "about what is missing would be lost."
            )
        return cells

    def _checked(self, table: Any) -> Floats:
        """Refuse a table that is not these records, completed."""
        data = self.data
        values = np.asarray(table, dtype=float)
        if values.shape != data.values.shape:
            raise ValueError(
                f"'imputer' must give tables of shape {data.values.shape}, rows by columns, but gave {values.shape}."
            )
        bad = ~np.isfinite(values).all(axis=0)
        if bad.any():
            name = data.columns[int(bad.argmax())]
            raise ValueError(f"'imputer' must give complete, finite tables, but column {name!r} still has gaps.")
        changed = (~np.isclose(values, data.values, rtol=1e-9, atol=0) & ~self.missing).any(axis=0)
        if changed.any():
            name = data.columns[int(changed.argmax())]
            raise ValueError(f"'imputer' must leave recorded values as they are, but changed column {name!r}.")
        for columns in categories_of(data):
            block = values[:, columns]
            if not (np.isin(block, (0.0, 1.0)).all() and (block.sum(axis=1) == 1).all()):
                raise ValueError(
                    "'imputer' must give each category one level, but the columns "
                    f"{[data.columns[c] for c in columns[:3]]} do not hold a single 1 in every row."
                )
        return values
