"""The bootstrap: row weights through nuisances and estimate, the walk reused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed

from .arrays import Floats, Ints, units_of

__all__ = ["Bootstrap", "Replicates", "run_bootstrap"]

Values = dict[str, dict[str, float]]  # estimator -> target -> value


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
        if not isinstance(self.n_replicates, int | np.integer) or self.n_replicates < 0:
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
    interrupted: bool

    def of(self, estimator: str, target: str) -> Floats:
        """Replicates of one estimate; NaN where a replicate lost what the estimate needs."""
        return np.array([v[estimator][target] for v in self.values])


def row_weights(n_rows: int, cluster: Ints | None, seed: np.random.SeedSequence) -> Floats:
    """Draw rows, or whole clusters, with replacement; how often each row came."""
    units = units_of(n_rows, cluster)
    n_units = int(units.max()) + 1
    drawn = np.random.default_rng(seed).integers(n_units, size=n_units)
    return np.bincount(drawn, minlength=n_units).astype(float)[units]


def run_bootstrap(
    replicate: Callable[[Floats], Values],
    n_rows: int,
    cluster: Ints | None,
    n_replicates: int,
    seed: np.random.SeedSequence,
    *,
    n_jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Replicates:
    """Replicates ``replicate(row_weight)``; Ctrl-C keeps those that are done.

    Replicate b depends on the seed and b alone, so the numbers are the same whatever ``n_jobs``.
    """
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
            if progress is not None:
                progress(len(done), n_replicates)
    except KeyboardInterrupt:
        if len(done) < 2:
            raise
        interrupted = True
    return Replicates(done, interrupted)


def _batch(
    replicate: Callable[[Floats], Values], n_rows: int, cluster: Ints | None, seeds: list[np.random.SeedSequence]
) -> list[Values]:
    return [replicate(row_weights(n_rows, cluster, seed)) for seed in seeds]
