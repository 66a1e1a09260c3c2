"""The bootstrap: row weights through nuisances and estimate, the walk reused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from joblib import Parallel, delayed

from .arguments import check_flag
from .arrays import Floats, Ints, units_of
from .data import Retrospective
from .estimators.bounds import Bounds
from .estimators.estimate import Outcome
from .estimators.linear import LinearParts, Origin, ReplicatedParts
from .notices import InterruptedBootstrapWarning, warn

__all__ = ["NO_THEORY", "Bootstrap", "Replicates", "Values", "key_of", "part_name", "run_bootstrap"]

Values = dict[str, dict[str, float]]  # estimator (of a subgroup, see `key_of`) -> target or part -> value


NO_THEORY = ("none without bootstrap", "propensity as known")  # error methods that replicates replace


@dataclass(frozen=True)
class Bootstrap:
    """How replicates are drawn.

    Parameters
    ----------
    n_replicates : int
        How many.
    refit : bool
        Learn propensities and action values again in every replicate. False freezes them, as the paper did: its
        intervals came out too narrow.
    """

    n_replicates: int = 200
    refit: bool = True

    def __post_init__(self) -> None:
        check_flag("refit", self.refit)
        whole = isinstance(self.n_replicates, int | np.integer) and not isinstance(self.n_replicates, bool)
        if not whole or self.n_replicates < 0:
            raise ValueError(
                f"'n_replicates' must be a whole number that is not negative, but is {self.n_replicates!r}."
            )

    @property
    def kind(self) -> str:
        """Name in tables."""
        return "refitting bootstrap" if self.refit else "frozen bootstrap"


@dataclass(frozen=True, eq=False)
class Replicates:
    """Values of every replicate, in the order of their seeds, and whether they were cut short."""

    values: list[Values]
    bootstrap: Bootstrap
    interrupted: bool
    entropy: object  # of the seed

    def of(self, estimator: str, target: str) -> Floats:
        """Replicates of one estimate; NaN where a replicate lost what the estimate needs."""
        return np.array([v.get(estimator, {}).get(target, np.nan) for v in self.values])

    def added_to(self, outcomes: dict[str, Outcome], level: str = "") -> dict[str, Outcome]:
        """Outcomes with their replicates, which give the error where theory gives none, or one that ignores the learning."""
        done, draws = len(self.values), f"{self.entropy}, {self.bootstrap.kind}"
        if not level:
            self.tell()
        out = {}
        for name, outcome in outcomes.items():
            if outcome.error_method == "rubin":  # has its own
                continue
            key = key_of(name, level)
            estimates = {
                target: estimate.with_replicates(partial(self.of, key), target, draws)
                for target, estimate in outcome.estimates.items()
            }
            lost = int((~np.isfinite(self.of(key, "total"))).sum()) if estimates else 0
            needed = outcome.error_method in NO_THEORY and done - lost > 1
            if needed:
                estimates = {t: e.without_influence() for t, e in estimates.items()}
                outcome = replace(outcome, parts=self._parts(key, outcome, draws))
            method = self.bootstrap.kind if needed else outcome.error_method
            out[name] = replace(outcome, estimates=estimates, error_method=method, replicates=done, lost=lost)
        return out

    def _parts(self, key: str, outcome: Outcome, draws: str) -> LinearParts | None:
        """Parts whose errors come from the replicates."""
        if outcome.parts is None:
            return None
        values = outcome.parts.values
        replicates = np.array([self.of(key, part_name(j)) for j in range(len(values))]).T
        some = next(iter(outcome.estimates.values()))
        some = some.least if isinstance(some, Bounds) else some
        return ReplicatedParts(values, Origin(some.cluster, some.rows, some.confidence), replicates, draws)

    def tell(self) -> None:
        """Warn where fewer replicates were done than asked for."""
        if self.interrupted:
            warn(
                f"The bootstrap was interrupted after {len(self.values)} of {self.bootstrap.n_replicates} replicates; "
                "intervals rest on these.",
                InterruptedBootstrapWarning,
            )


def key_of(estimator: str, level: str = "") -> str:
    """Name of an estimator's replicates, in a subgroup or in all rows."""
    return f"{estimator} of {level}" if level else estimator


def part_name(number: int) -> str:
    """Name of a part's replicates."""
    return f"part {number}"


def row_weights(n_rows: int, cluster: Ints | None, seed: np.random.SeedSequence) -> Floats:
    """Draw rows, or whole clusters, with replacement; how often each row came."""
    units = units_of(n_rows, cluster)
    n_units = int(units.max()) + 1
    drawn = np.random.default_rng(seed).integers(n_units, size=n_units)
    return np.bincount(drawn, minlength=n_units).astype(float)[units]


def run_bootstrap(
    replicate: Callable[[Floats], Values],
    data: Retrospective,
    bootstrap: Bootstrap,
    seed: np.random.SeedSequence,
    *,
    n_jobs: int | None = None,
    told: Callable[[int], None] | None = None,
) -> Replicates:
    """Replicates ``replicate(drawn)``; Ctrl-C keeps those that are done.

    Replicate b depends on the seed and b alone, so the numbers are the same whatever ``n_jobs``. ``told`` hears how many
    more are done.
    """
    n_replicates, n_rows, cluster = bootstrap.n_replicates, len(data), data.cluster
    # Not seed.spawn: that counts on from call to call, and policies that are compared must draw the same rows.
    seeds = [np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, b)) for b in range(n_replicates)]
    size = 1 if n_jobs in (None, 1) else max(1, n_replicates // 64)
    batches = [seeds[i : i + size] for i in range(0, n_replicates, size)]
    done: list[Values] = []
    interrupted = False
    try:
        if n_jobs in (None, 1):
            results = (_batch(replicate, n_rows, cluster, batch) for batch in batches)
        else:
            pool = Parallel(n_jobs=n_jobs, return_as="generator")
            results = pool(delayed(_batch)(replicate, n_rows, cluster, batch) for batch in batches)
        for found in results:
            done += found
            if told is not None:
                told(len(found))
    except KeyboardInterrupt:
        if len(done) < 2:
            raise
        interrupted = True
    return Replicates(done, bootstrap, interrupted, seed.entropy)


def _batch(
    replicate: Callable[[Floats], Values], n_rows: int, cluster: Ints | None, seeds: list[np.random.SeedSequence]
) -> list[Values]:
    return [replicate(row_weights(n_rows, cluster, seed)) for seed in seeds]
