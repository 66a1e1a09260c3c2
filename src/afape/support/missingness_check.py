"""Result of check_missingness(): tests of what an assumption implies."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

import pandas as pd

from .._arguments import check_count
from ..files.writing import plain_records
from .label_gaps import LabelGaps
from .suggestion import Suggestion

__all__ = ["MissingnessCheck"]

_SHOWN = 10  # rejected implications that are printed


@dataclass(frozen=True, eq=False)
class MissingnessCheck:
    """Tests of the implications of an assumption about why values are missing.

    Attributes
    ----------
    assumption : str
        The assumption.
    table : DataFrame
        One line per implication that the records can contradict, the smallest p-value first: the group whose
        ``recording`` is independent ``of`` a variable, ``given`` others; rows used, score statistic with its degrees of
        freedom, odds ratio, p-value, p-value adjusted for the number of tests (Holm), and a sentence.
    level : float
        An implication is rejected if its adjusted p-value is below this.
    suggestion : Suggestion or None
        What to change if implications are rejected.
    labels : LabelGaps or None
        Tests of whether labels are missing completely at random, which an assumption about missing labels need not imply;
        None if every row has its label.
    """

    assumption: str
    table: pd.DataFrame
    level: float
    suggestion: Suggestion | None = None
    labels: LabelGaps | None = None

    @property
    def advice(self) -> tuple[str, ...]:
        """What to change if implications are rejected, for a user of Python."""
        return () if self.suggestion is None else (self.suggestion.python,)

    @property
    def rejected(self) -> pd.DataFrame:
        """Lines of the table that the records contradict."""
        return self.table[self.table["p_adjusted"] < self.level]

    @property
    def holds(self) -> bool:
        """True if no implication is rejected. Records can contradict an assumption, but never prove it."""
        return len(self.rejected) == 0

    @property
    def findings(self) -> tuple[str, ...]:
        """Sentences about the rejected implications."""
        return tuple(self.rejected["words"])

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers and text, ready for JSON."""
        return {
            "assumption": self.assumption,
            "level": self.level,
            "holds": self.holds,
            "tests": plain_records(self.table),
            "findings": list(self.findings),
            "advice": list(self.advice),
            "labels": None if self.labels is None else self.labels.to_dict(),
        }

    def _repr_html_(self) -> str:
        words = "".join(f"<p>{escape(text)}</p>" for text in repr(self).splitlines())
        return words + self.table.drop(columns="words").round(4).to_html(index=False, border=0)

    def __repr__(self) -> str:
        tested, rejected = int(self.table["p_value"].notna().sum()), len(self.rejected)
        head = f"{self.assumption}: {tested} implications tested, {rejected} rejected at level {self.level:g}"
        if len(self.table) > tested:
            head += f", {len(self.table) - tested} not testable"
        labels = () if self.labels is None else self.labels.words
        told = [*(f"! {text}" for text in self.largest()), *(f"> {text}" for text in self.advice)]
        return "\n".join([head, *told, *labels])

    def largest(self, most: int = _SHOWN) -> tuple[str, ...]:
        """Return the sentences about the ``most`` clearest rejections, and how many more there are."""
        check_count("most", most, 0)
        more = len(self.findings) - most
        return (*self.findings[:most], *((f"{more} more: see the table",) if more > 0 else ()))
