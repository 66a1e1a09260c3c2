"""Rows without a label: how many there are, and what predicts them among the groups that every row has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from ..data.label_group import with_label_group
from ..data.retrospective import Retrospective
from ..files.writing import plain_records
from .implications import Implication, check_implications

__all__ = ["LabelGaps", "label_gaps"]


@dataclass(frozen=True, eq=False)
class LabelGaps:
    """Tests of whether labels are missing completely at random.

    Attributes
    ----------
    label : str
        The label column.
    missing, rows : int
        Number of rows without a label, and of all rows.
    table : DataFrame
        One line per group that every row has, as in `MissingnessCheck.table`: is it independent of the recording of the label?
    level : float
        Level of the tests.
    """

    label: str
    missing: int
    rows: int
    table: pd.DataFrame
    level: float

    @property
    def by_chance(self) -> bool:
        """True if no test contradicts that labels are missing completely at random."""
        return not (self.table["p_adjusted"] < self.level).any()

    @property
    def words(self) -> tuple[str, ...]:
        """How many labels are missing, and what predicts this."""
        count = f"{self.missing} of {self.rows} rows have no {self.label!r}."
        if not self.table["p_value"].notna().any():
            return (f"{count} Whether this is chance cannot be tested: no group that every row has varies.",)
        if self.by_chance:
            return (f"{count} No group that every row has predicts which rows these are.",)
        rejected = self.table[self.table["p_adjusted"] < self.level]
        return (
            f"{count} These are not rows at random, so costs of the other rows alone can be biased: "
            f"{'; '.join(rejected['words'])}.",
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers and text, ready for JSON."""
        return {
            "label": self.label,
            "missing": self.missing,
            "rows": self.rows,
            "by_chance": self.by_chance,
            "tests": plain_records(self.table),
            "words": list(self.words),
        }


def label_gaps(data: Retrospective, level: float) -> LabelGaps | None:
    """Test if labels are missing completely at random; None if every row has its label."""
    records = data.original or data
    if records.labelled.all():
        return None
    extended, label = with_label_group(records), str(records.problem.label)
    always = [g for g, one in zip(records.problem.group_names, records.always_recorded, strict=True) if one]
    table = check_implications(extended, [Implication(label, group, (), (), ()) for group in always])
    return LabelGaps(label, int((~records.labelled).sum()), len(records), table, level)
