"""Drawn recording patterns, for more groups than sums over all patterns can handle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from .._arrays import Bools, Floats, Ints
from .logistic import sigmoid
from .patterns import CELLS, PatternModel

__all__ = ["drawn_moments", "drawn_probability"]

_DRAWS = 64  # patterns per row and set, for probabilities
_MOMENT_DRAWS = 16  # for their derivatives, which are summed over many rows and sets


def drawn_probability(models: Sequence[PatternModel], fold: Ints, rows: Ints, sets: Bools) -> Floats:
    """P(R >= S) in different pairs of row (m,) and set (m, q), each by the models of the row's fold."""
    out, step = np.empty(len(rows)), max(CELLS // (_DRAWS * len(models)), 1)
    for k in np.unique(fold[rows]):
        mine = np.flatnonzero(fold[rows] == k)
        for start in range(0, len(mine), step):
            chunk = mine[start : start + step]
            weight = np.ones((len(chunk), _DRAWS))
            for j, (p, _) in enumerate(_draw(models, int(k), rows[chunk], sets[chunk], _DRAWS)):
                weight *= np.where(sets[chunk][:, [j]], p, 1.0)
            out[chunk] = weight.mean(axis=1)
    return out


def drawn_moments(models: Sequence[PatternModel], k: int, rows: Ints, sets: Bools) -> Iterator[tuple[Ints, Floats]]:
    r"""Moments of the patterns that contain each set, estimated from drawn patterns; see `summed_moments`.

    Let W be the product of the probabilities of the groups of S, :math:`W_{<j}` the product over those before j.
    Bars denote means over the drawn patterns. For j in S, a pattern has weight W. For j outside S it has weight
    :math:`W - W_{<j} \bar W / \bar W_{<j}`, because :math:`E[r_j - p_j \mid r_{<j}] = 0` for these j.
    The subtraction removes most of the noise, and all of it if j comes after all of S.
    """
    step = max(CELLS // (4 * _MOMENT_DRAWS * len(models)), 1)
    for i in range(0, len(rows), step):
        chunk = np.arange(i, min(i + step, len(rows)))
        yield chunk, _chunk_moments(models, k, rows[chunk], sets[chunk])


def _chunk_moments(models: Sequence[PatternModel], k: int, rows: Ints, sets: Bools) -> Floats:
    weight = np.ones((len(rows), _MOMENT_DRAWS))
    residual, before = np.empty((2, len(models), len(rows), _MOMENT_DRAWS))
    for j, (p, pattern) in enumerate(_draw(models, k, rows, sets, _MOMENT_DRAWS)):
        before[j] = weight
        weight = weight * np.where(sets[:, [j]], p, 1.0)
        residual[j] = pattern[j] - p
    total = weight.sum(axis=1)
    earlier = before.sum(axis=2)
    expected = np.divide(total, earlier, out=np.zeros_like(earlier), where=earlier > 0)
    expected[sets.T] = 0.0
    residual *= weight - before * expected[:, :, None]
    beside = np.concatenate([np.ones((1, *weight.shape)), pattern])
    found = residual.transpose(1, 0, 2) @ beside.transpose(1, 2, 0)
    total = total[:, None, None]
    return np.asarray(np.divide(found, total, out=np.zeros_like(found), where=total > 0))


def _draw(
    models: Sequence[PatternModel], k: int, rows: Ints, sets: Bools, n_draws: int
) -> Iterator[tuple[Floats, Floats]]:
    """For each group in turn: its probability (m, n_draws) given the earlier draws, and the patterns (q, m, 64) drawn so far."""
    uniform = _latin_hypercube(len(models), n_draws)
    pattern = np.zeros((len(models), len(rows), n_draws))  # groups first: sums over them are then fast
    for j, model in enumerate(models):
        drawn = (model.effects(k) @ pattern[:j].reshape(j, len(rows) * n_draws)).reshape(len(rows), n_draws)
        p = sigmoid(model.log_odds(k, rows)[:, None] + drawn)
        for needed, where in model.never:
            p[where[rows][:, None] & (pattern[:j][needed] > 0).all(axis=0)] = 0.0
        pattern[j] = sets[:, [j]] | (uniform[:, j] < p)
        yield p, pattern


def _latin_hypercube(q: int, n: int) -> Floats:
    """Points (n, q) in the unit cube, each coordinate spread evenly; always the same points."""
    rng = np.random.default_rng(0)
    return np.column_stack([(rng.permutation(n) + 0.5) / n for _ in range(q)])
