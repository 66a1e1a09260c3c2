"""What counts as too little support."""

from __future__ import annotations

from dataclasses import dataclass, fields
from numbers import Real

__all__ = ["DEFAULT_THRESHOLDS", "SupportThresholds"]


@dataclass(frozen=True)
class SupportThresholds:
    """When the support check warns, and when an estimate becomes bounds.

    Parameters
    ----------
    propensity : float
        A set whose probability of being recorded is below this is *unsupported*: no recorded rows can represent it.
    healthy : float
        A probability that is certainly enough. A region of X_o counts as unsupported only where its rows contradict
        this one and agree with one below ``propensity``.
    share : float
        Estimates become bounds where more than this share of the policy's runs wants an unsupported set; below it they
        ignore these runs, and a warning names the sets.
    rows : int
        Warn where a set is recorded in fewer rows.
    weight : float
        Warn where one row has more than this share of all the weight of a set.
    effective_rows : float
        Warn where the weighted rows of a set are worth fewer rows than this (Kish's effective sample size).
    small : float
        Warn where the model puts the propensity of a set below ``propensity`` in more than this share of the rows that
        want it and do not have it.
    wanted : float
        The last four concern only sets that at least this share of the policy's runs wants.
    ten_heaviest : float
        Warn where the ten heaviest rows have more than this share of the variance of an estimate, or of the squared
        weights, and where weights differ so much that rows are worth less than half of their number.
    carrying_rows : float
        Warn where the weighted rows of an estimate are worth fewer rows than this, and than a fiftieth of all rows.
    difference : float
        Warn where weighted rows differ from all rows by more than this many standard deviations in something that is
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
            value = getattr(self, field.name)
            if not isinstance(value, Real) or isinstance(value, bool) or not float(value) >= 0:
                raise ValueError(f"{field.name!r} must be a number that is not negative, but is {value!r}.")
        for name in ("propensity", "healthy", "share", "weight", "small", "wanted", "ten_heaviest"):
            if getattr(self, name) > 1:
                raise ValueError(f"{name!r} must not exceed 1, but is {getattr(self, name)!r}.")
        if not self.propensity < self.healthy:
            raise ValueError(
                f"'propensity' must be smaller than 'healthy', but {self.propensity!r} is not smaller than "
                f"{self.healthy!r}."
            )


DEFAULT_THRESHOLDS = SupportThresholds()
