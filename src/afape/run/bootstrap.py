"""The bootstrap: draw row weights, refit propensities and action values, estimate again. The walk is reused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from .._arguments import check_count, check_flag
from .._arrays import Floats, Ints
from .._processes import in_processes
from ..data.retrospective import Retrospective
from ..warnings import InterruptedBootstrapWarning, warn

__all__ = ["Bootstrap", "Drawn", "run_bootstrap"]

V = TypeVar("V")


@dataclass(frozen=True)
class Bootstrap:
    """How replicates are drawn.

    Parameters
    ----------
    n_replicates : int
        Number of replicates.
    refit : bool
        True if every replicate learns propensities and action values again. False keeps them fixed, as in the paper, which
        gives intervals that are too narrow.
    """

    n_replicates: int = 200
    refit: bool = True

    def __post_init__(self) -> None:
        check_flag("refit", self.refit)
        check_count("n_replicates", self.n_replicates, 0)

    @property
    def kind(self) -> str:
        """Name in tables."""
        return "refitting bootstrap" if self.refit else "frozen bootstrap"


@dataclass(frozen=True, eq=False)
class Drawn(Generic[V]):
    """Results of all replicates, in the order of their seeds."""

    values: list[V]
    bootstrap: Bootstrap
    interrupted: bool  # True if the user stopped the bootstrap early
    entropy: object  # entropy of the seed

    def warn(self) -> None:
        """Warn if the bootstrap was interrupted."""
        if self.interrupted:
            warn(
                f"The bootstrap was interrupted after {len(self.values)} of {self.bootstrap.n_replicates} replicates. "
                "Intervals use only these replicates.",
                InterruptedBootstrapWarning,
            )


def row_weights(unit: Ints, seed: np.random.SeedSequence) -> Floats:
    """Draw units (rows, or whole clusters) with replacement; returns how often each row's unit (n,) was drawn, (n,)."""
    n_units = int(unit.max()) + 1
    drawn = np.random.default_rng(seed).integers(n_units, size=n_units)
    return np.bincount(drawn, minlength=n_units).astype(float)[unit]


def run_bootstrap(
    replicate: Callable[[Floats], V],
    data: Retrospective,
    bootstrap: Bootstrap,
    seed: np.random.SeedSequence,
    *,
    n_jobs: int | None = None,
    report: Callable[[int], None] | None = None,
) -> Drawn[V]:
    """Compute the replicates ``replicate(drawn)``. Ctrl-C stops early and keeps the finished replicates.

    Replicate b depends only on the seed and on b, so the numbers do not depend on ``n_jobs``. ``report`` is called with the
    number of replicates that were just finished.
    """
    n_replicates, unit = bootstrap.n_replicates, data.unit
    # seed.spawn would give other seeds in every call, but compared policies must draw the same rows.
    seeds = [np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, b)) for b in range(n_replicates)]
    size = 1 if n_jobs in (None, 1) else max(1, n_replicates // 64)
    batches = [seeds[i : i + size] for i in range(0, n_replicates, size)]
    done: list[V] = []
    interrupted = False
    try:
        if n_jobs in (None, 1):
            results: Iterator[list[V]] = (_batch(replicate, unit, batch) for batch in batches)
        else:
            results = in_processes(_batch, [(replicate, unit, batch) for batch in batches], n_jobs)
        for found in results:
            done += found
            if report is not None:
                report(len(found))
    except KeyboardInterrupt:
        if len(done) < 2:
            raise
        interrupted = True
    return Drawn(done, bootstrap, interrupted, seed.entropy)


def _batch(replicate: Callable[[Floats], V], unit: Ints, seeds: list[np.random.SeedSequence]) -> list[V]:
    return [replicate(row_weights(unit, seed)) for seed in seeds]
