"""The bootstrap: draw row weights, refit propensities and action values, estimate again. The walk is reused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from joblib import Parallel, delayed

from .._arguments import check_flag
from .._arrays import Floats, Ints, units_of
from ..data.retrospective import Retrospective
from ..estimators.amounts import ReplicatedAmounts, Replicates
from ..estimators.answer import Answer, sample_of
from ..warnings import InterruptedBootstrapWarning, warn

__all__ = ["NO_THEORY", "Bootstrap", "Drawn", "Replicate", "Values", "run_bootstrap", "with_replicates"]

V = TypeVar("V")

NO_THEORY = ("none without bootstrap", "propensity as known")  # error methods that replicates replace


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
        whole = isinstance(self.n_replicates, int | np.integer) and not isinstance(self.n_replicates, bool)
        if not whole or self.n_replicates < 0:
            raise ValueError(
                f"'n_replicates' must be a whole number that is not negative, but is {self.n_replicates!r}."
            )

    @property
    def kind(self) -> str:
        """Name in tables."""
        return "refitting bootstrap" if self.refit else "frozen bootstrap"


class Replicate(NamedTuple):
    """Values of one estimator in one replicate."""

    costs: Floats  # (E,) columns of the costs; (2 E,) for bounds: columns of the least, then of the largest cost
    parts: Floats | None = None  # (P,) parts of the costs, if standard errors come from replicates


Values = dict[tuple[str, str], Replicate]  # key: estimator, and level of the subgroup ("" for all rows)


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


def with_replicates(answers: Mapping[str, Answer], drawn: Drawn[Values], level: str = "") -> dict[str, Answer]:
    """Add bootstrap replicates to the answers.

    Replicates give the standard error if theory gives none, or if theory ignores the error of learned propensities. Answers
    by multiple imputation do not change: their standard errors come from the completed tables.
    """
    return {
        name: answer if answer.error_method == "rubin" else _replicated(answer, name, drawn, level)
        for name, answer in answers.items()
    }


def _replicated(answer: Answer, name: str, drawn: Drawn[Values], level: str) -> Answer:
    found = [values.get((name, level)) for values in drawn.values]
    if answer.costs is None:
        return replace(answer, replicates=len(found))
    draws, values = f"{drawn.entropy}, {drawn.bootstrap.kind}", answer.costs.amounts.values
    costs = Replicates(_stacked([None if one is None else one.costs for one in found], len(values)), draws)
    lost = int((~np.isfinite(costs.values).all(axis=1)).sum())
    answer = replace(answer, replicates=len(found), lost=lost)
    assert answer.costs is not None
    if answer.error_method not in NO_THEORY or len(found) - lost < 2:
        return replace(answer, costs=replace(answer.costs, amounts=answer.costs.amounts.with_replicates(costs)))
    amounts = ReplicatedAmounts(values, sample_of(answer.estimates["total"]), costs)
    parts = [None if one is None else one.parts for one in found]
    width = next((len(one) for one in parts if one is not None), None)
    return replace(
        answer,
        costs=replace(answer.costs, amounts=amounts),
        part_replicates=None if width is None else Replicates(_stacked(parts, width), draws),
        error_method=drawn.bootstrap.kind,
    )


def _stacked(found: list[Floats | None], width: int) -> Floats:
    """Return the replicates as an array (B, width), with NaN for replicates without an estimate."""
    return np.array([np.full(width, np.nan) if one is None else one for one in found]).reshape(-1, width)


def row_weights(n_rows: int, cluster: Ints | None, seed: np.random.SeedSequence) -> Floats:
    """Draw rows, or whole clusters, with replacement; returns how often each row was drawn, (n,)."""
    units = units_of(n_rows, cluster)
    n_units = int(units.max()) + 1
    drawn = np.random.default_rng(seed).integers(n_units, size=n_units)
    return np.bincount(drawn, minlength=n_units).astype(float)[units]


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
    n_replicates, n_rows, cluster = bootstrap.n_replicates, len(data), data.cluster
    # seed.spawn would give other seeds in every call, but compared policies must draw the same rows.
    seeds = [np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, b)) for b in range(n_replicates)]
    size = 1 if n_jobs in (None, 1) else max(1, n_replicates // 64)
    batches = [seeds[i : i + size] for i in range(0, n_replicates, size)]
    done: list[V] = []
    interrupted = False
    try:
        if n_jobs in (None, 1):
            results = (_batch(replicate, n_rows, cluster, batch) for batch in batches)
        else:
            pool = Parallel(n_jobs=n_jobs, return_as="generator")
            results = pool(delayed(_batch)(replicate, n_rows, cluster, batch) for batch in batches)
        for found in results:
            done += found
            if report is not None:
                report(len(found))
    except KeyboardInterrupt:
        if len(done) < 2:
            raise
        interrupted = True
    return Drawn(done, bootstrap, interrupted, seed.entropy)


def _batch(
    replicate: Callable[[Floats], V], n_rows: int, cluster: Ints | None, seeds: list[np.random.SeedSequence]
) -> list[V]:
    return [replicate(row_weights(n_rows, cluster, seed)) for seed in seeds]
