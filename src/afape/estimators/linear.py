"""Parts of a policy's costs by one estimator: any linear combination of them is an estimate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy.sparse import csr_array

from ..arrays import Floats, Ints, cluster_sums
from .estimate import Estimate
from .imputed import ImputedEstimate

__all__ = [
    "DeferredParts",
    "ImputedParts",
    "InfluenceParts",
    "LinearParts",
    "Origin",
    "ReplicatedParts",
    "RunParts",
    "joined",
]


@dataclass(frozen=True, eq=False)
class Origin:
    """Where estimates come from: clusters and identity of the rows, and the level of intervals."""

    cluster: Ints | None
    rows: str
    confidence: float

    def estimate(self, value: float, influence: Floats | None) -> Estimate:
        """An estimate on these rows."""
        return Estimate(value, influence, self.cluster, self.rows, self.confidence)


class LinearParts(Protocol):
    """Values of all parts, and estimates of their linear combinations."""

    @property
    def values(self) -> Floats:
        """Value of every part, (P,)."""
        ...

    @property
    def influence(self) -> Floats | None:
        """Influence values (n, P), where there is one per row and part."""
        ...

    @property
    def covariance(self) -> Floats:
        """Joint covariance (P, P); NaN where there is none without bootstrap."""
        ...

    def combine(self, coefficients: Floats) -> Estimate:
        """Estimate of a linear combination."""
        ...


def _covariance(influence: Floats, cluster: Ints | None) -> Floats:
    n = len(influence)
    sums = influence if cluster is None else np.array([cluster_sums(phi, cluster) for phi in influence.T]).T
    m = len(sums)
    return np.asarray(sums.T @ sums * (m / (m - 1) if m > 1 else np.nan) / n**2)


@dataclass(frozen=True, eq=False)
class InfluenceParts:
    """Parts with influence values (n, P)."""

    values: Floats
    influence: Floats
    origin: Origin

    @property
    def covariance(self) -> Floats:
        """Joint covariance, of clusters where there are some."""
        return _covariance(self.influence, self.origin.cluster)

    def combine(self, coefficients: Floats) -> Estimate:
        """Estimate of a linear combination."""
        return self.origin.estimate(float(self.values @ coefficients), self.influence @ coefficients)


def joined(least: LinearParts | None, largest: LinearParts | None) -> LinearParts | None:
    """Parts of both bounds side by side, (2 P): what was chosen for each, penalties and mixtures, may differ."""
    if isinstance(least, InfluenceParts) and isinstance(largest, InfluenceParts):
        influence = np.column_stack([least.influence, largest.influence])
        return InfluenceParts(np.concatenate([least.values, largest.values]), influence, least.origin)
    if isinstance(least, ReplicatedParts) and isinstance(largest, ReplicatedParts):
        return ReplicatedParts(np.concatenate([least.values, largest.values]), least.origin)
    return None


@dataclass(frozen=True, eq=False)
class RunParts:
    """Averages over rows of the parts of runs (n, P), by the weight of each row."""

    runs: csr_array
    used: Floats
    origin: Origin

    @property
    def values(self) -> Floats:
        """Averages."""
        return np.asarray(self.used @ self.runs / self.used.sum())

    @property
    def influence(self) -> Floats:
        """Influence values (n, P)."""
        return np.asarray((self.used / self.used.mean())[:, None] * (self.runs.toarray() - self.values))

    @property
    def covariance(self) -> Floats:
        """Joint covariance, of clusters where there are some."""
        return _covariance(self.influence, self.origin.cluster)

    def combine(self, coefficients: Floats) -> Estimate:
        """Estimate of a linear combination."""
        each = np.asarray(self.runs @ coefficients)
        value = float(self.used @ each / self.used.sum())
        return self.origin.estimate(value, self.used * (each - value) / self.used.mean())


@dataclass(frozen=True, eq=False)
class ImputedParts:
    """Parts of the runs on every completed table, pooled by Rubin's rules."""

    tables: Sequence[RunParts]
    identity: str

    @property
    def values(self) -> Floats:
        """Means over tables."""
        return np.asarray(np.mean([table.values for table in self.tables], axis=0))

    @property
    def influence(self) -> None:
        """There is one per table, not one."""
        return None

    @property
    def covariance(self) -> Floats:
        """Within a table, averaged, plus (1 + 1/M) between tables."""
        within = np.mean([table.covariance for table in self.tables], axis=0)
        between = np.cov(np.array([table.values for table in self.tables]).T)
        return np.asarray(within + (1 + 1 / len(self.tables)) * np.atleast_2d(between))

    def combine(self, coefficients: Floats) -> Estimate:
        """Estimate of a linear combination."""
        return ImputedEstimate.pooled([table.combine(coefficients) for table in self.tables], self.identity)


@dataclass(frozen=True, eq=False)
class ReplicatedParts:
    """Parts whose errors come from bootstrap replicates (B, P), or that have none."""

    values: Floats
    origin: Origin
    replicates: Floats | None = None
    draws: str = ""

    @property
    def influence(self) -> None:
        """There are none."""
        return None

    @property
    def covariance(self) -> Floats:
        """Covariance of the replicates; NaN without any."""
        good = None if self.replicates is None else self.replicates[np.isfinite(self.replicates).all(axis=1)]
        if good is None or len(good) < 2:
            return np.full((len(self.values),) * 2, np.nan)
        return np.asarray(np.atleast_2d(np.cov(good.T)))

    def combine(self, coefficients: Floats) -> Estimate:
        """Estimate of a linear combination."""
        found = self.origin.estimate(float(self.values @ coefficients), None)
        if self.replicates is None:
            return found
        return replace(found, replicates=self.replicates @ coefficients, draws=self.draws)


class DeferredParts:
    """Parts that are computed when they are first asked for, since many evaluations are asked for costs alone.

    What they are computed from is let go afterwards. A copy in a file or in another process takes the parts along, not what
    they come from.
    """

    def __init__(self, make: Callable[[], LinearParts]) -> None:
        self._make: Callable[[], LinearParts] | None = make

    @cached_property
    def _found(self) -> LinearParts:
        assert self._make is not None
        found, self._make = self._make(), None
        return found

    @property
    def values(self) -> Floats:
        """Value of every part, (P,)."""
        return self._found.values

    @property
    def influence(self) -> Floats | None:
        """Influence values (n, P), where there is one per row and part."""
        return self._found.influence

    @property
    def covariance(self) -> Floats:
        """Joint covariance (P, P)."""
        return self._found.covariance

    def combine(self, coefficients: Floats) -> Estimate:
        """Estimate of a linear combination."""
        return self._found.combine(coefficients)

    def __getstate__(self) -> dict[str, Any]:
        return {"_make": None, "_found": self._found}
