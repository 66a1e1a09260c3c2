"""Thresholds: what counts as too little support."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import inf

from .._arguments import check_between, check_count

__all__ = ["DEFAULT_THRESHOLDS", "SupportThresholds", "few_rows_dominate"]

_FIFTIETH = 0.02
_SHARES = ("propensity", "healthy", "share", "weight", "small", "wanted", "ten_heaviest")


@dataclass(frozen=True)
class SupportThresholds:
    """When the support check warns, and when an estimate becomes bounds.

    Parameters
    ----------
    propensity : float
        A set is *unsupported* if its probability of being recorded is below this: no recorded rows can represent it.
    healthy : float
        A probability that is certainly large enough. A region of X_o is unsupported only if its rows contradict this
        probability and agree with one below ``propensity``.
    share : float
        Estimates become bounds if more than this share of the policy's runs want an unsupported set. With a smaller share
        they ignore these runs, and a warning names the sets.
    rows : int
        Warn if fewer rows have a set recorded.
    weight : float
        Warn if one row has more than this share of the total weight of a set.
    effective_rows : float
        Warn if the effective sample size of a set (Kish) is below this.
    small : float
        Warn if the propensity of a set is below ``propensity`` in more than this share of the rows that want the set and
        do not have it.
    wanted : float
        ``rows``, ``weight``, ``effective_rows`` and ``small`` apply only to sets that at least this share of the runs wants.
    ten_heaviest : float
        Warn if the ten heaviest rows have more than this share of the variance of an estimate, or of the squared
        weights, and if the effective sample size is below half of the number of rows.
    carrying_rows : float
        Warn if the effective sample size of an estimate is below this and below a fiftieth of all rows.
    difference : float
        Warn if weighted rows differ from all rows by more than this many standard deviations in a column that is
        always recorded, and by more than chance explains (p < 0.001).
    """

    propensity: float = 1e-3
    healthy: float = 0.02
    share: float = 0.01
    rows: int = 5
    weight: float = 0.5
    effective_rows: float = 5.0
    small: float = 0.5
    wanted: float = 0.05
    ten_heaviest: float = 0.75
    carrying_rows: float = 50.0
    difference: float = 0.1

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.name != "rows":
                most = 1 if field.name in _SHARES else inf
                check_between(field.name, getattr(self, field.name), 0, most)
        check_count("rows", self.rows, 0)
        if not self.propensity < self.healthy:
            raise ValueError(
                f"'propensity' must be smaller than 'healthy', but {self.propensity!r} is not smaller than "
                f"{self.healthy!r}."
            )


DEFAULT_THRESHOLDS = SupportThresholds()


def few_rows_dominate(limits: SupportThresholds, n_rows: int, rows: int, ess: float, ten_heaviest: float) -> bool:
    """True if a few rows dominate an estimate: ``rows`` of ``n_rows`` have weights, with effective sample size ``ess``."""
    few = ess < min(limits.carrying_rows, _FIFTIETH * n_rows)
    return bool(ess < rows / 2 and (few or ten_heaviest > limits.ten_heaviest))
