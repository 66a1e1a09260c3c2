"""Estimates and amounts that add up over independent blocks of rows: values and covariances, without the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from .._arrays import Floats, cluster_sums
from .amounts import Amounts, ImputedAmounts, Replicates, Sample
from .estimate import Estimate

__all__ = [
    "BlockAmounts",
    "BlockEstimate",
    "Roots",
    "block_covariance",
    "compressed",
    "roots_of_rows",
    "roots_of_tables",
]

_AT_ONCE = 2**22  # numbers that are decomposed in one step
_DEPENDENT = 1e-10  # singular values below this share of the largest belong to columns that depend on the others


class Roots(NamedTuple):
    r"""Joint covariance of columns in one block, and how few rows carry it.

    Parameters
    ----------
    covariance : ndarray of shape (r, E)
        A matrix R with :math:`R^\top R` the covariance of the columns.
    heavy : ndarray of shape (r', E)
        A matrix H such that a combination c of the columns has about :math:`|R c|^2 / |H c|^2` degrees of freedom, see
        `roots_of_rows`.
    """

    covariance: Floats
    heavy: Floats


def roots_of_rows(influences: Sequence[Floats], cluster: Floats | None) -> Roots:
    r"""Summarise influence values of columns, a list of arrays (n, P), by two small matrices.

    With :math:`u_i` the scaled sum of the influence values of cluster (or row) i, the covariance is
    :math:`C = \sum_i u_i u_i^\top`. The degrees of freedom of a combination c are
    :math:`(\sum_i (c^\top u_i)^2)^2 / \sum_i (c^\top u_i)^4`, see `Estimate.degrees_of_freedom`. Fourth moments of all
    combinations would be too many numbers, but by the inequality of Cauchy and Schwarz

    .. math:: \sum_i (c^\top u_i)^4 \le c^\top C c \; c^\top \Big( \sum_i h_i u_i u_i^\top \Big) c,
       \qquad h_i = u_i^\top C^{-1} u_i .

    So :math:`|R c|^2 / |H c|^2` with :math:`H^\top H = \sum_i h_i u_i u_i^\top` is a lower bound. If columns are many it is low,
    by about the same factor for all combinations. So every column of H is divided by the root of its factor: then each column
    alone has its exact degrees of freedom, and a combination has nearly those of its influence values.
    """
    units = _units(influences, cluster)
    root, fourth = compressed(units), sum((part**4).sum(axis=0) for part in _parts_of(units))
    variance = (root**2).sum(axis=0)
    scale = np.sqrt(np.where(variance > 0, variance, 1.0))
    _, sizes, directions = np.linalg.svd(root / scale, full_matrices=False)
    kept = sizes > _DEPENDENT * sizes.max(initial=0.0)
    whitening = (directions[kept] / sizes[kept, None]).T / scale[:, None]
    for part in _parts_of(units):  # in place: nobody else has these sums
        part *= np.sqrt(((part @ whitening) ** 2).sum(axis=1))[:, None]
    heavy = compressed(units)
    bound = (heavy**2).sum(axis=0) * variance
    return Roots(root, heavy * np.sqrt(np.divide(fourth, bound, out=np.zeros_like(bound), where=bound > 0)))


def _units(influences: Sequence[Floats], cluster: Floats | None) -> Floats:
    """Return the sums of influence values by cluster, (m, E), scaled so that their squares add up to variances."""
    n = len(influences[0])
    columns = [cluster_sums(column, cluster) for block in influences for column in block.T]  # type: ignore[arg-type]
    m = len(columns[0])
    out = np.column_stack(columns)
    out *= np.sqrt(m / (m - 1)) / n if m > 1 else np.nan
    return out


def _parts_of(units: Floats) -> Iterator[Floats]:
    step = max(_AT_ONCE // max(units.shape[1], 1), units.shape[1], 1)
    for start in range(0, len(units), step):
        yield units[start : start + step]


def compressed(lines: Floats) -> Floats:
    """Return a matrix with at most as many lines as columns and the same products of columns."""
    if not np.isfinite(lines).all():
        return np.full((1, lines.shape[1]), np.nan)
    found = np.zeros((0, lines.shape[1]))
    for part in _parts_of(lines):
        found = np.asarray(np.linalg.qr(np.vstack([found, part]), mode="r"))
    return np.asarray(found)


def roots_of_tables(amounts: Sequence[ImputedAmounts]) -> Roots:
    """Summarise amounts on the same completed tables; Rubin's rules, see `ImputedEstimate`.

    The variance between M tables has M - 1 degrees of freedom, that within them those of the rows.
    """
    n_tables, cluster = len(amounts[0].tables), amounts[0].tables[0].sample.cluster
    units = [_units([a.tables[t].influence for a in amounts], cluster) for t in range(n_tables)]  # type: ignore[arg-type]
    within = compressed(np.vstack([compressed(one) for one in units])) / np.sqrt(n_tables)
    values = np.array([np.concatenate([a.tables[t].values for a in amounts]) for t in range(n_tables)])
    between = (values - values.mean(axis=0)) * np.sqrt((1 + 1 / n_tables) / (n_tables - 1))
    between[:, (values == values[0]).all(axis=0)] = 0.0  # rounding of the mean would give a small variance
    heavy = [within / np.sqrt(max(len(units[0]) - 1, 1)), between / np.sqrt(n_tables - 1)]
    return Roots(compressed(np.vstack([within, between])), compressed(np.vstack(heavy)))


@dataclass(frozen=True, eq=False, repr=False)
class BlockEstimate(Estimate):
    r"""Sum of independent estimates from K blocks of rows, each times the block's share of the rows.

    .. math:: \hat J = \sum_k s_k \hat J_k, \qquad \widehat{se}^2 = \sum_k s_k^2 \, \widehat{se}_k^2

    Parameters
    ----------
    family : str
        Estimates of one family have a joint covariance.
    roots : ndarray of shape (K, r)
        Per block, numbers whose squares add up to its share of the variance; products with those of another estimate of the
        family add up to the covariance.
    heavy : ndarray of shape (K, r')
        Per block, numbers whose squares add up to the variance over its degrees of freedom.
    """

    family: str = ""
    roots: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    heavy: Floats = field(default_factory=lambda: np.zeros((0, 0)))

    @property
    def std_error(self) -> float:
        """Standard error from the covariances of the blocks."""
        return float(np.sqrt((self.roots**2).sum()))

    @property
    def degrees_of_freedom(self) -> float:
        r"""Degrees of freedom (Satterthwaite): :math:`(\sum_k v_k)^2 / \sum_k v_k^2 / \nu_k`."""
        variance, heavy = (self.roots**2).sum(axis=1), (self.heavy**2).sum(axis=1)
        fourth = float((variance * heavy).sum())
        if not fourth > 0:
            return float("inf")
        return max(float(variance.sum()) ** 2 / fourth, 1.0)

    def pairs_with(self, other: Estimate) -> bool:
        """True if the covariance of both estimates is known."""
        return isinstance(other, BlockEstimate) and self.family == other.family

    def _combine(self, other: Estimate, sign: float) -> Estimate:
        plain = super()._combine(other, sign)
        if not isinstance(other, BlockEstimate) or not self.pairs_with(other):
            return plain
        return BlockEstimate(
            value=plain.value,
            influence=None,
            rows=plain.rows,
            confidence=plain.confidence,
            replicates=plain.replicates,
            draws=plain.draws,
            limits=plain.limits,
            concentration=plain.concentration,
            pair=plain.pair,
            family=self.family,
            roots=self.roots + sign * other.roots,
            heavy=self.heavy + sign * other.heavy,
        )


def block_covariance(estimates: Sequence[BlockEstimate]) -> Floats:
    """Compute the joint covariance (E, E) of estimates of one family."""
    roots = np.array([e.roots.ravel() for e in estimates])
    return np.asarray(roots @ roots.T)


@dataclass(frozen=True, eq=False)
class BlockAmounts:
    """Amounts of K blocks of rows, summed: values (P,), and the roots of the covariances (K, r, P), times the shares."""

    values: Floats
    family: str
    roots: Floats
    heavy: Floats
    sample: Sample
    replicates: Replicates | None = None

    @property
    def influence(self) -> None:
        """None: the rows are gone."""
        return None

    @property
    def covariance(self) -> Floats:
        """Joint covariance (P, P): the sum over blocks."""
        lines = self.roots.reshape(-1, self.roots.shape[2])
        return np.asarray(lines.T @ lines)

    def combine(self, coefficients: Floats) -> Estimate:
        """Estimate a linear combination with coefficients (P,)."""
        found = BlockEstimate(
            value=float(self.values @ coefficients),
            influence=None,
            rows=self.sample.rows,
            confidence=self.sample.confidence,
            concentration=self.sample.concentration,
            family=self.family,
            roots=self.roots @ coefficients,
            heavy=self.heavy @ coefficients,
        )
        if self.replicates is None:
            return found
        return replace(found, replicates=self.replicates.values @ coefficients, draws=self.replicates.draws)

    def mapped(self, matrix: Floats) -> Amounts:
        """Return amounts of linear combinations, one per column of the matrix (P, E)."""
        replicates = None if self.replicates is None else self.replicates.mapped(matrix)
        roots, heavy = self.roots @ matrix, self.heavy @ matrix
        return BlockAmounts(self.values @ matrix, self.family, roots, heavy, self.sample, replicates)

    def with_replicates(self, found: Replicates) -> Amounts:
        """Return these amounts with bootstrap replicates added."""
        return replace(self, replicates=found)
