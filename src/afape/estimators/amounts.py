"""Estimated amounts in columns. Any linear combination of the columns is an estimate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np
from scipy.sparse import csr_array

from .._arrays import Floats, Ints, cluster_sums, concentration, tally
from ..data.retrospective import Retrospective
from .estimate import Estimate
from .imputed import ImputedEstimate

__all__ = [
    "Amounts",
    "ImputedAmounts",
    "InfluenceAmounts",
    "ReplicatedAmounts",
    "Replicates",
    "RunAmounts",
    "Sample",
    "joined",
]


class Sample(NamedTuple):
    """The rows that estimates come from, the level of their intervals, and how the weight is spread."""

    cluster: Ints | None
    rows: str  # identity of the rows
    confidence: float
    concentration: float = 0.0  # share of the weight in a typical row that carries the variance
    labels: Ints | None = None  # labels whose shares in the population are known, (n,)
    cases: Floats | None = None  # with known shares: how many cases each row stands for, (n,)

    @staticmethod
    def of(data: Retrospective, confidence: float) -> Sample:
        """Return all rows of the records."""
        known = (data.labels, data.row_weight) if data.label_shares is not None else (None, None)
        return Sample(data.cluster, data.identity, confidence, 0.0, *known)

    def centred(self, influence: Floats) -> Floats:
        r"""Return influence values (n, ...) without the variation between labels, if the shares of the labels are known.

        .. math:: \phi_i - w_i \frac{\sum_{j: y_j = y_i} \phi_j}{\sum_{j: y_j = y_i} w_j}
        """
        if self.labels is None or self.cases is None:
            return influence
        n = int(self.labels.max()) + 1
        per_case = np.zeros((n, *influence.shape[1:]))
        np.add.at(per_case, self.labels, influence)
        total = tally(self.labels, self.cases, n)
        flat = influence.reshape(len(influence), -1)
        means = per_case.reshape(n, -1) / np.where(total > 0, total, 1.0)[:, None]
        return np.asarray((flat - self.cases[:, None] * means[self.labels]).reshape(influence.shape))

    def estimate(self, value: float, influence: Floats | None) -> Estimate:
        """Return an estimate on these rows."""
        concentration = self.concentration
        return Estimate(value, influence, self.cluster, self.rows, self.confidence, concentration=concentration)

    def weighted(self, weight: Floats) -> Sample:
        """Return the sample with the concentration of these weights (n,)."""
        return self._replace(concentration=concentration(weight, self.cluster))


class Replicates(NamedTuple):
    """Bootstrap replicates of amounts."""

    values: Floats  # (B, P)
    draws: str  # identity of the draws

    def mapped(self, matrix: Floats) -> Replicates:
        """Return replicates (B, E) of linear combinations, one per column of the matrix (P, E)."""
        return Replicates(self.values @ matrix, self.draws)


class Amounts(Protocol):
    """Values of all columns (P,), and estimates of their linear combinations."""

    @property
    def values(self) -> Floats:
        """Value of every column, (P,)."""
        ...

    @property
    def influence(self) -> Floats | None:
        """Influence values (n, P); None if there are none."""
        ...

    @property
    def covariance(self) -> Floats:
        """Joint covariance (P, P); NaN if it needs a bootstrap that was not done."""
        ...

    def combine(self, coefficients: Floats) -> Estimate:
        """Estimate a linear combination with coefficients (P,)."""
        ...

    def mapped(self, matrix: Floats) -> Amounts:
        """Return amounts of linear combinations, one per column of the matrix (P, E)."""
        ...

    def with_replicates(self, found: Replicates) -> Amounts:
        """Return these amounts with bootstrap replicates added."""
        ...


def _covariance(influence: Floats, cluster: Ints | None) -> Floats:
    n = len(influence)
    sums = influence if cluster is None else np.array([cluster_sums(phi, cluster) for phi in influence.T]).T
    m = len(sums)
    return np.asarray(sums.T @ sums * (m / (m - 1) if m > 1 else np.nan) / n**2)


def _replicated(estimate: Estimate, replicates: Replicates | None, coefficients: Floats) -> Estimate:
    """Add bootstrap replicates to the estimate, if there are any."""
    if replicates is None:
        return estimate
    return replace(estimate, replicates=replicates.values @ coefficients, draws=replicates.draws)


@dataclass(frozen=True, eq=False)
class InfluenceAmounts:
    """Amounts with influence values (n, P)."""

    values: Floats
    influence: Floats
    sample: Sample
    replicates: Replicates | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "influence", self.sample.centred(self.influence))

    @property
    def covariance(self) -> Floats:
        """Joint covariance (P, P), with influence values summed by cluster."""
        return _covariance(self.influence, self.sample.cluster)

    def combine(self, coefficients: Floats) -> Estimate:
        """Estimate a linear combination with coefficients (P,)."""
        found = self.sample.estimate(float(self.values @ coefficients), self.influence @ coefficients)
        return _replicated(found, self.replicates, coefficients)

    def mapped(self, matrix: Floats) -> InfluenceAmounts:
        """Return amounts of linear combinations, one per column of the matrix (P, E)."""
        replicates = None if self.replicates is None else self.replicates.mapped(matrix)
        return InfluenceAmounts(self.values @ matrix, self.influence @ matrix, self.sample, replicates)

    def with_replicates(self, found: Replicates) -> InfluenceAmounts:
        """Return these amounts with bootstrap replicates added."""
        return replace(self, replicates=found)


@dataclass(frozen=True, eq=False)
class RunAmounts:
    """Weighted averages over rows of the amounts of runs (n, P); ``used`` (n,) are the weights of the rows."""

    runs: csr_array | Floats
    used: Floats
    sample: Sample
    replicates: Replicates | None = None

    @property
    def values(self) -> Floats:
        """Weighted averages, (P,)."""
        return np.asarray(self.used @ self.runs / self.used.sum())

    @property
    def influence(self) -> Floats:
        """Influence values (n, P)."""
        runs = self.runs.toarray() if isinstance(self.runs, csr_array) else self.runs
        return self.sample.centred(np.asarray((self.used / self.used.mean())[:, None] * (runs - self.values)))

    @property
    def covariance(self) -> Floats:
        """Joint covariance (P, P), with influence values summed by cluster."""
        return _covariance(self.influence, self.sample.cluster)

    def combine(self, coefficients: Floats) -> Estimate:
        """Estimate a linear combination with coefficients (P,)."""
        each = np.asarray(self.runs @ coefficients)
        value = float(self.used @ each / self.used.sum())
        influence = self.sample.centred(self.used * (each - value) / self.used.mean())
        found = self.sample.estimate(value, influence)
        return _replicated(found, self.replicates, coefficients)

    def mapped(self, matrix: Floats) -> RunAmounts:
        """Return amounts of linear combinations, one per column of the matrix (P, E)."""
        replicates = None if self.replicates is None else self.replicates.mapped(matrix)
        return RunAmounts(np.asarray(self.runs @ matrix), self.used, self.sample, replicates)

    def with_replicates(self, found: Replicates) -> RunAmounts:
        """Return these amounts with bootstrap replicates added."""
        return replace(self, replicates=found)


@dataclass(frozen=True, eq=False)
class ImputedAmounts:
    """Amounts of the runs on every completed table, pooled by Rubin's rules."""

    tables: Sequence[RunAmounts]
    identity: str

    @property
    def values(self) -> Floats:
        """Means over tables, (P,)."""
        return np.asarray(np.mean([table.values for table in self.tables], axis=0))

    @property
    def influence(self) -> None:
        """None: each table has its own influence values, but their mean has none."""
        return None

    @property
    def covariance(self) -> Floats:
        """Mean covariance within a table plus (1 + 1/M) times the covariance between tables, (P, P)."""
        within = np.mean([table.covariance for table in self.tables], axis=0)
        between = np.cov(np.array([table.values for table in self.tables]).T)
        return np.asarray(within + (1 + 1 / len(self.tables)) * np.atleast_2d(between))

    def combine(self, coefficients: Floats) -> Estimate:
        """Estimate a linear combination with coefficients (P,)."""
        return ImputedEstimate.pooled([table.combine(coefficients) for table in self.tables], self.identity)

    def mapped(self, matrix: Floats) -> ImputedAmounts:
        """Return amounts of linear combinations, one per column of the matrix (P, E)."""
        return ImputedAmounts([table.mapped(matrix) for table in self.tables], self.identity)

    def with_replicates(self, found: Replicates) -> ImputedAmounts:
        """Return these amounts unchanged: their standard errors come from the completed tables, not from replicates."""
        return self


@dataclass(frozen=True, eq=False)
class ReplicatedAmounts:
    """Amounts whose standard errors come from bootstrap replicates, or that have no standard errors."""

    values: Floats
    sample: Sample
    replicates: Replicates | None = None

    @property
    def influence(self) -> None:
        """None: there are no influence values."""
        return None

    @property
    def covariance(self) -> Floats:
        """Covariance of the replicates, (P, P); NaN without replicates."""
        found = np.zeros((0, len(self.values))) if self.replicates is None else self.replicates.values
        good = found[np.isfinite(found).all(axis=1)]
        if len(good) < 2:
            return np.full((len(self.values),) * 2, np.nan)
        return np.asarray(np.atleast_2d(np.cov(good.T)))

    def combine(self, coefficients: Floats) -> Estimate:
        """Estimate a linear combination with coefficients (P,)."""
        found = self.sample.estimate(float(self.values @ coefficients), None)
        return _replicated(found, self.replicates, coefficients)

    def mapped(self, matrix: Floats) -> ReplicatedAmounts:
        """Return amounts of linear combinations, one per column of the matrix (P, E)."""
        replicates = None if self.replicates is None else self.replicates.mapped(matrix)
        return ReplicatedAmounts(self.values @ matrix, self.sample, replicates)

    def with_replicates(self, found: Replicates) -> ReplicatedAmounts:
        """Return these amounts with the replicates that give their standard errors."""
        return replace(self, replicates=found)


def joined(*parts: Amounts) -> Amounts:
    """Concatenate the amounts of both bounds, (2 P), and of the extrapolated estimate, if there is one.

    Each has its own columns, because ridge penalties and mixture shares may differ.
    """
    values, first = np.concatenate([part.values for part in parts]), parts[0]
    known = [part for part in parts if isinstance(part, InfluenceAmounts)]
    if len(known) == len(parts):
        return InfluenceAmounts(values, np.column_stack([part.influence for part in known]), known[0].sample)
    assert isinstance(first, ReplicatedAmounts)
    return ReplicatedAmounts(values, first.sample)
