"""All estimated columns of a comparison in one block: values, joint covariance, replicates; and where each answer has its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._arrays import Floats
from ..estimators.amounts import Amounts, ImputedAmounts, ReplicatedAmounts
from ..estimators.blocks import Roots, roots_of_rows, roots_of_tables

__all__ = ["ROWS", "TABLES", "BlockColumns"]

ROWS, TABLES, NONE = "rows", "completed tables", "replicates"  # where the covariance of a column comes from


@dataclass(eq=False)
class BlockColumns:
    """Columns that are collected one after the other; `arrays` summarises them when all are there."""

    amounts: dict[str, list[Amounts]] = field(default_factory=lambda: {ROWS: [], TABLES: [], NONE: []})
    widths: dict[str, int] = field(default_factory=lambda: {ROWS: 0, TABLES: 0, NONE: 0})
    replicates: list[Floats] = field(default_factory=list)

    def add(self, amounts: Amounts) -> dict[str, Any]:
        """Add columns; return the place where they can be found again."""
        kind = _family(amounts)
        place = {"family": kind, "start": self.widths[kind], "width": len(amounts.values)}
        self.amounts[kind].append(amounts)
        self.widths[kind] += len(amounts.values)
        found = getattr(amounts, "replicates", None)
        if found is not None:
            place |= {"replicates": len(self.replicates), "draws": found.draws}
            self.replicates.append(found.values)
        sample = amounts.tables[0].sample if isinstance(amounts, ImputedAmounts) else amounts.sample  # type: ignore[attr-defined]
        return place | {"concentration": sample.concentration}

    def arrays(self) -> dict[str, Floats]:
        """Values of the columns of every family, and the roots of their covariance."""
        out = {}
        for kind, listed in self.amounts.items():
            if listed:
                out[f"{kind}/values"] = np.concatenate([a.values for a in listed])
        for kind, summarise in ((ROWS, _of_rows), (TABLES, _of_tables)):
            if listed := self.amounts[kind]:
                out[f"{kind}/covariance"], out[f"{kind}/heavy"] = summarise(listed)
        return out | {f"replicates/{k}": values for k, values in enumerate(self.replicates)}


def _family(amounts: Amounts) -> str:
    if isinstance(amounts, ImputedAmounts):
        return TABLES
    return NONE if isinstance(amounts, ReplicatedAmounts) else ROWS


def _of_rows(amounts: Sequence[Amounts]) -> Roots:
    cluster = amounts[0].sample.cluster  # type: ignore[attr-defined]
    return roots_of_rows([a.influence for a in amounts if a.influence is not None], cluster)


def _of_tables(amounts: Sequence[Amounts]) -> Roots:
    return roots_of_tables([a for a in amounts if isinstance(a, ImputedAmounts)])
