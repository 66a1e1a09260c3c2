"""Combines estimators with minimum-variance shares. Standard errors account for the choice of the shares."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from ..._arrays import Floats, Ints, tally

__all__ = ["Alike", "Mixed", "Mixture", "least_variance_shares"]

_CAUTION = 8.0  # squared t statistic below which the gain of a mixture counts as chance
_PARTS = 20  # folds of the rows; the shares of each fold are chosen on the others
_ROUNDING = 1e-20  # squares below this share of a squared value are rounding errors


@dataclass(frozen=True, eq=False)
class Mixture:
    """Minimum-variance shares of the candidates, shrunk towards one candidate unless the gain is significant.

    Parameters
    ----------
    influence : ndarray of shape (C, J, m)
        Influence values of the candidates, summed by cluster, for each of the J estimates that determine the shares.
    start : int
        Index of the candidate that has share 1 if there is no gain.
    """

    influence: Floats
    start: int

    @cached_property
    def shares(self) -> Floats:
        """Share of every candidate, (C,)."""
        return least_variance_shares(self.influence, self.start)

    @cached_property
    def part(self) -> Ints:
        """Fold of each row or cluster, (m,)."""
        m = self.influence.shape[2]
        return np.random.default_rng(0).permutation(m) % _PARTS

    @cached_property
    def left_out(self) -> Floats:
        r"""Shares :math:`\lambda_{-k}` that are chosen without fold k of the rows, (20, C).

        Minimum-variance shares make the variance look smaller than it is. With shares that were chosen on other rows, the
        influence values :math:`\lambda_{-k(i)} \cdot \phi_i` vary as they would on new rows.
        """
        if self.influence.shape[2] < 2 * _PARTS:  # too few rows to leave some out
            return np.tile(self.shares, (_PARTS, 1))
        return np.array(
            [least_variance_shares(self.influence[:, :, self.part != k], self.start) for k in range(_PARTS)]
        )


@dataclass(frozen=True, eq=False)
class Alike:
    """Parts of the costs that are mixed with common shares.

    Parameters
    ----------
    name : str
        Name of the kind of parts.
    columns : ndarray of int
        Columns of the parts.
    yardsticks : ndarray of shape (P, J)
        Linear combinations of all parts. The shares minimise the sum of their variances. They do not contain prices, so the
        shares do not depend on prices.
    """

    name: str
    columns: Ints
    yardsticks: Floats


@dataclass(frozen=True, eq=False)
class Mixed:
    """Mixture of the candidates for all parts; each part is mixed with the shares of its kind.

    Parameters
    ----------
    candidates : list of (values, influence)
        Values (P,) and influence values (n, P) of every candidate. They choose the shares, so they treat what was learned
        beside propensities (action values, conditional means) as known in all candidates alike.
    errors : list of ndarray of shape (n, P), or None
        What the learning of action values adds to the influence values of every candidate.
    kinds : list of Alike
        Kinds of parts; every part belongs to one.
    start : int
        Index of the candidate that has share 1 if there is no gain.
    unit : ndarray of int, shape (n,)
        Cluster of each row, or the row itself, numbered by content.
    drawn : ndarray of shape (n,), optional
        How often each row was drawn in a bootstrap replicate.
    cases : ndarray of shape (n,), optional
        How many cases each row stands for.
    """

    candidates: list[tuple[Floats, Floats]]
    errors: list[Floats | None]
    kinds: list[Alike]
    start: int
    unit: Ints
    drawn: Floats | None
    cases: Floats | None = None

    @cached_property
    def mixtures(self) -> list[Mixture]:
        """The mixture of every kind."""
        return [self._mixture(kind) for kind in self.kinds]

    def _mixture(self, kind: Alike) -> Mixture:
        n_units = int(self.unit.max()) + 1
        phi = np.array([(influence @ kind.yardsticks).T for _, influence in self.candidates])  # (C, J, n)
        if self.drawn is not None:  # in sums of squares, a row that was drawn twice must count twice, not four times
            phi = np.divide(phi, np.sqrt(self.drawn), out=np.zeros_like(phi), where=self.drawn > 0)
        sums = np.array([[tally(self.unit, row, n_units) for row in one] for one in phi])
        squared_value = float(((self.candidates[self.start][0] @ kind.yardsticks) ** 2).max(initial=0.0))
        certain = (sums[self.start] ** 2).sum() <= _ROUNDING * n_units * squared_value
        return Mixture(np.zeros_like(sums) if certain else sums, self.start)

    @cached_property
    def _used(self) -> Floats:
        """Weight of each row in the means, (n,): 0 for rows that are not used."""
        used = np.any([influence.any(axis=1) for _, influence in self.candidates], axis=0)
        used = used if self.cases is None else used * self.cases
        return np.asarray(used if self.drawn is None else used * self.drawn, dtype=float)

    @cached_property
    def _linear(self) -> tuple[Floats, Floats]:
        r"""Values (P,) and rows (n, P) of :math:`\lambda_{-k(i)} \cdot (v + \phi_i)`; the rows have no mean zero."""
        weight = self._used if self._used.any() else np.ones_like(self._used)
        values, rows = np.zeros(self.candidates[0][1].shape[1]), np.zeros_like(self.candidates[0][1])
        for kind, mixture in zip(self.kinds, self.mixtures, strict=True):
            shares = mixture.left_out[mixture.part[self.unit]]  # (n, C)
            for share, (value, influence) in zip(shares.T, self.candidates, strict=True):
                values[kind.columns] += weight @ share / weight.sum() * value[kind.columns]
                rows[:, kind.columns] += share[:, None] * influence[:, kind.columns]
        return values, rows

    @cached_property
    def values(self) -> Floats:
        r"""Values of the mixture, (P,): every row counts with shares that were chosen without its fold.

        With candidates :math:`v_c` and their influence values :math:`\phi_{ci}`, the value is the mean over rows of
        :math:`\lambda_{-k(i)} \cdot (v + \phi_i)`. Shares that were chosen on the rows themselves go with the values: a large
        draw of skewed costs has a large variance and gets a small share, which biases the mean.
        """
        values, rows = self._linear
        return np.asarray(values + rows.mean(axis=0))

    @cached_property
    def influence(self) -> Floats:
        """Influence values of the mixture, (n, P), with mean 0; each row uses the shares chosen without its fold."""
        rows, used = self._linear[1] + self._learned, self._used > 0
        if self.cases is not None:
            cases = used * self.cases
            return np.asarray(rows - cases[:, None] * (rows.sum(axis=0) / max(float(cases.sum()), 1e-300)))
        return np.asarray(rows - used[:, None] * (rows.sum(axis=0) / max(int(used.sum()), 1)))

    @property
    def _learned(self) -> Floats:
        """What the learning of action values adds to the influence values of the mixture, (n, P)."""
        out = np.zeros_like(self.candidates[0][1])
        for kind, mixture in zip(self.kinds, self.mixtures, strict=True):
            shares = mixture.left_out[mixture.part[self.unit]]  # (n, C)
            for share, errors in zip(shares.T, self.errors, strict=True):
                if errors is not None:
                    out[:, kind.columns] += share[:, None] * errors[:, kind.columns]
        return out


def least_variance_shares(influence: Floats, start: int) -> Floats:
    """Compute minimum-variance shares (C,) on the simplex, shrunk towards ``start`` unless the gain is significant.

    ``influence`` (C, J, m) are the influence values of J estimates by C candidates. The sum of the J variances is minimised.
    """
    n = len(influence)
    begin = np.eye(n)[start]
    flat = influence.reshape(n, -1)
    moments: Floats = flat @ flat.T
    best, least = np.asarray(begin), float(moments[start, start])
    for size in range(1, n + 1):
        parts = np.array(list(combinations(range(n), size)))
        inverse = np.linalg.pinv(moments[parts[:, :, None], parts[:, None, :]], hermitian=True).sum(axis=2)
        for part, amount in zip(parts, inverse, strict=True):
            if amount.sum() <= 0 or (amount < 0).any():
                continue
            shares: Floats = np.zeros(n)
            shares[part] = amount / amount.sum()
            variance = float(shares @ moments @ shares)
            if variance < least * (1 - 1e-12):
                best, least = shares, variance
    leading, difference = influence[start], influence[start] - np.tensordot(best, influence, 1)
    squares = float((difference**2).sum())
    if squares <= 1e-24 * max(float(moments[start, start]), 1e-300):
        return np.asarray(begin)
    slope = float((leading * difference).sum()) / squares
    rows = (difference * (leading - slope * difference)).sum(axis=0)  # sum over the estimates of a row
    error = float(np.sqrt((rows**2).sum())) / squares
    share = 1.0 if error == 0 else max(0.0, 1 - _CAUTION / (slope / error) ** 2)
    return np.asarray(begin + share * (best - begin))
