"""Positivity diagnostics of one policy."""

from __future__ import annotations

from dataclasses import dataclass, field

import pandas as pd

__all__ = ["SET_COLUMNS", "VIOLATION_COLUMNS", "WEIGHT_COLUMNS", "Support"]

SET_COLUMNS = ["set", "wanted", "rows_recorded", "share_recorded", "smallest_propensity", "largest_weight", "ess"]
VIOLATION_COLUMNS = ["set", "where", "rows", "rows_recorded", "unsupported"]
WEIGHT_COLUMNS = ["estimator", "ess", "normalizer", "normalizers", "largest_weight", "clipped"]


@dataclass(frozen=True, eq=False)
class Support:
    """Positivity diagnostics of one policy.

    Attributes
    ----------
    sets : DataFrame
        One line per set of groups that the policy wants: the estimated probability that it gets there
        (``wanted``), rows that have it recorded, the smallest propensity where it is supported (among rows that have
        it, and a part of those that want it and do not), the largest weight, and the number of rows that the
        weighted ones are worth (``ess``).
    unsupported : float
        Estimated probability that a run wants an unsupported set: one that no row has recorded, or that rows like
        this one do not have recorded. Above 0, no weighting can be right.
    estimators : DataFrame
        Effective sample size, mean final weight (1 where all is well), mean weights before each decision, largest
        weight and clipped propensities of each weighted estimator.
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

    @property
    def holds(self) -> bool:
        """Whether positivity holds for this policy in the semi-offline view, as far as the records show."""
        return bool(self.unsupported == 0 and len(self.violations) == 0 and self.views["holds"].iloc[0])

    def __repr__(self) -> str:
        walk = "exact walk" if self.sampled == 0 else f"{self.sampled} of {self.n_rows} rows sampled"
        head = f"Support: {len(self.sets)} sets wanted, {100 * self.unsupported:.2g} % of runs unsupported, {walk}"
        parts = [head, *(f"! {text}" for text in self.warnings), *(f"> {text}" for text in self.advice)]
        frames = (self.views, self.violations, self.groups, self.sets.head(12), self.pairs, self.estimators)
        parts += [frame.to_string(index=False, float_format="{:.4g}".format) for frame in frames if len(frame)]
        return "\n".join(parts)
