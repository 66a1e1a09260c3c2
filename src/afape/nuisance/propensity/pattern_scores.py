"""Stacked errors of a propensity whose probabilities are sums over recording patterns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from scipy.sparse import csr_array

from ...arrays import Floats, Ints
from .answer import FactorParts, PatternParts
from .chain import ScoredPropensity, Slopes, StackedScores
from .patterns import Gradient, PatternModel

__all__ = ["PatternScores"]


class _ByPatterns(ScoredPropensity, Protocol):
    """A propensity whose probabilities are sums over patterns."""

    models: list[PatternModel]

    def gradients(self, parts: PatternParts) -> Iterator[Gradient]:
        """Derivatives of log P of these lines in all coefficients, chunk by chunk."""
        ...


class PatternScores(StackedScores):
    """Scores of sums over recording patterns, whose gradients the propensity computes chunk by chunk."""

    def __init__(self, propensity: _ByPatterns, row_weight: Floats) -> None:
        super().__init__(propensity, row_weight)
        self.patterns = propensity

    def add(self, rows: Ints, parts: FactorParts | PatternParts, depth: Ints, weighted: Floats) -> None:
        """Add states, all depths of a chunk at once."""
        assert isinstance(parts, PatternParts)
        moving = np.flatnonzero(weighted.any(axis=1))
        n_depths, n_quantities = int(depth.max(initial=0)) + 1, weighted.shape[1]
        for lines, place, fold, columns in self.patterns.gradients(parts.only(moving)):
            mine = moving[lines]
            cell = depth[mine, None] * n_quantities + np.arange(n_quantities)
            pair = np.broadcast_to(place[:, None], cell.shape)
            shape = n_depths * n_quantities, len(columns)
            found = csr_array((weighted[mine].ravel(), (cell.ravel(), pair.ravel())), shape=shape) @ columns
            for model in self.patterns.models:
                slot = self._slot(model, n_depths - 1, n_quantities)
                slot[fold, :n_depths] -= found[:, model.place].reshape(n_depths, n_quantities, -1)

    def pull(self, parts: PatternParts, weighted: Floats, slopes: Slopes) -> None:
        """Add to ``slopes`` (K, P, p) what lines pull that enter P sums with ``weighted`` (m, P)."""
        moving = np.flatnonzero(weighted.any(axis=1))
        for lines, place, fold, columns in self.patterns.gradients(parts.only(moving)):
            gathered = csr_array(
                (np.ones(len(lines)), (place, np.arange(len(lines)))), shape=(len(columns), len(lines))
            )
            found = np.asarray(gathered @ weighted[moving[lines]]).T @ columns
            for model in self.patterns.models:
                if model not in slopes:
                    width = model.place.stop - model.place.start
                    slopes[model] = np.zeros((self.propensity.n_folds, weighted.shape[1], width))
                slopes[model][fold] -= found[:, model.place]
