"""Positivity diagnostics of one policy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from ..plain import plain_records

__all__ = [
    "BALANCE_COLUMNS",
    "HEAVIEST_COLUMNS",
    "SET_COLUMNS",
    "UNDECIDED_COLUMNS",
    "VIOLATION_COLUMNS",
    "WEIGHT_COLUMNS",
    "Support",
]

SET_COLUMNS = [
    "set", "wanted", "rows_recorded", "share_recorded", "rows_wanting", "smallest_propensity", "largest_weight", "ess",
    "ten_heaviest",
]  # fmt: skip
VIOLATION_COLUMNS = ["set", "where", "rows", "rows_recorded", "unsupported"]
WEIGHT_COLUMNS = ["estimator", "ess", "ten_heaviest", "normalizer", "normalizers", "largest_weight", "clipped"]
HEAVIEST_COLUMNS = ["row", "set", "weight", "share"]
BALANCE_COLUMNS = ["set", "column", "before", "after", "std_error", "p_value"]
UNDECIDED_COLUMNS = ["set", "where", "rows", "rows_recorded", "rows_needed", "wanted"]


@dataclass(frozen=True, eq=False)
class Support:
    """Positivity diagnostics of one policy.

    Attributes
    ----------
    sets : DataFrame
        One line per set of groups that the policy wants: the estimated probability that it gets there (``wanted``; a
        weighted mean, divided by the mean weight before the decision, so that it is a probability), rows that have it
        recorded, those of them in which the policy wants it (``rows_wanting``), the smallest propensity where it is
        supported (among rows that have it, and a part of those that want it and do not), the largest weight, the number
        of rows that the weighted ones are worth (``ess``), and the share of the ten heaviest rows in the squared weights.
    unsupported : float
        Estimated probability that a run wants an unsupported set: one that no row has recorded, or that rows like
        this one do not have recorded. Above 0, no weighting can be right.
    estimators : DataFrame
        Effective sample size, share of the ten heaviest rows in the variance of the total cost (in its squared influence
        values), mean final weight (1 where all is well), mean weights before each decision, largest weight and clipped
        propensities of each weighted estimator.
    n_rows, sampled : int
        Rows, and how many of them were sampled rather than enumerated.
    groups : DataFrame
        The same by group: the probability that the policy acquires it, and the worst of the sets that hold it.
    pairs : DataFrame
        Pairs of groups that no row has recorded together, and whether the policy wants both.
    views : DataFrame
        By view that applies: whether positivity holds for this policy, the share of its runs that is unsupported, rows
        that can be used, and the share of trajectories that they can follow to the end.
    violations : DataFrame
        Sets that are unsupported, in which rows, and the share of the policy's runs that meets them.
    heaviest : DataFrame
        The ten rows (positions in the data) and sets of largest weight, and their shares in the squared weights.
    balance : DataFrame
        Of each wanted set and each column that is always recorded, label included, worst first: by how many standard
        deviations rows that have the set differ from all rows, before and after weighting, and how probable so large a
        difference after weighting is by chance.
    undecided : DataFrame
        Sets that are never recorded in a region beside which they are, where too few rows tell whether they could be:
        ``rows_needed`` is how many would. Estimates take these regions as supported.
    heavy : tuple of str
        Which rows carry the estimates, where they are few; empty where all is well.
    warnings : tuple of str
        What is below a threshold; empty where all is well.
    advice : tuple of str
        What can be done.
    """

    sets: pd.DataFrame
    unsupported: float
    estimators: pd.DataFrame
    n_rows: int
    sampled: int
    groups: pd.DataFrame = field(default_factory=pd.DataFrame)
    pairs: pd.DataFrame = field(default_factory=pd.DataFrame)
    views: pd.DataFrame = field(default_factory=pd.DataFrame)
    violations: pd.DataFrame = field(default_factory=pd.DataFrame)
    warnings: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    heaviest: pd.DataFrame = field(default_factory=pd.DataFrame)
    balance: pd.DataFrame = field(default_factory=pd.DataFrame)
    undecided: pd.DataFrame = field(default_factory=pd.DataFrame)
    heavy: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether positivity holds for this policy in the semi-offline view, as far as the records show.

        False as well where a few rows carry the estimates, or where too few rows tell: see ``heavy`` and ``undecided``.
        """
        broken = self.unsupported > 0 or len(self.violations) > 0 or not self.views["holds"].iloc[0]
        return not broken and not self.heavy and len(self.undecided) == 0

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers and text, ready for JSON."""
        frames = ("sets", "estimators", "groups", "pairs", "views", "violations", "heaviest", "balance", "undecided")
        return {
            "holds": self.holds,
            "unsupported": self.unsupported,
            "n_rows": self.n_rows,
            "sampled_rows": self.sampled,
            **{name: plain_records(getattr(self, name)) for name in frames},
            "heavy": list(self.heavy),
            "warnings": list(self.warnings),
            "advice": list(self.advice),
        }

    def plot_balance(self, ax: Any = None, most: int = 30) -> Any:
        """Love plot: differences before and after weighting, the ``most`` largest; returns the matplotlib axes."""
        from .love_plot import love_plot

        return love_plot(self.balance, ax, most)

    @property
    def words(self) -> tuple[str, ...]:
        """What it comes to, in a few lines: findings with an exclamation mark, advice with a bracket."""
        walk = "exact walk" if self.sampled == 0 else f"{self.sampled} of {self.n_rows} rows sampled"
        head = f"Support: {len(self.sets)} sets wanted, {100 * self.unsupported:.2g} % of runs unsupported, {walk}"
        return (head, *(f"! {text}" for text in (*self.warnings, *self.heavy)), *(f"> {text}" for text in self.advice))

    def _repr_html_(self) -> str:
        from html import escape

        words = "".join(f"<p>{escape(text)}</p>" for text in self.words)
        frames = (self.views, self.groups, self.sets.head(12))
        return words + "".join(f.round(4).to_html(index=False, border=0) for f in frames if len(f))

    def __repr__(self) -> str:
        parts = list(self.words)
        frames = (
            self.views,
            self.violations,
            self.undecided,
            self.groups,
            self.sets.head(12),
            self.pairs,
            self.estimators,
        )
        parts += [frame.to_string(index=False, float_format="{:.4g}".format) for frame in frames if len(frame)]
        return "\n".join(parts)
