"""Draw a group from the leaf of a tree: any kind of column, any interaction, and only values that were recorded."""

from __future__ import annotations

import numpy as np
from sklearn.tree import DecisionTreeRegressor

from ..arrays import Floats, Ints
from .blocks import Block

__all__ = ["TreeModel"]

_MAX_GROWN = 10_000  # rows that shape a tree; finer leaves cost time and no longer change the costs


class TreeModel:
    """Donors from the leaves of one tree, grown on a bootstrap sample.

    One tree with several outputs predicts all columns of a group, and a row that lacks the group takes it whole
    from a random recorded row of its leaf (classification and regression trees as in Burgette and Reiter 2010,
    here for whole groups). Tree and donors come from one bootstrap sample of the recorded rows, which stands for the
    draw of the parameters: within a leaf this is the approximate Bayesian bootstrap of Rubin and Schenker (1986).

    Parameters
    ----------
    min_leaf : int
        Recorded rows that a leaf holds at least.
    """

    def __init__(self, min_leaf: int = 5) -> None:
        self.min_leaf = min_leaf

    def draw(self, block: Block, predictors: Floats, labels: Ints, rng: np.random.Generator) -> Floats:
        """Columns of the block in the rows that lack it."""
        design = np.column_stack([predictors, np.eye(int(labels.max()) + 1)[labels][:, 1:]]).astype(np.float32)
        count = block.bootstrap(rng)
        sample = np.flatnonzero(count)
        grown = sample if len(sample) <= _MAX_GROWN else rng.choice(sample, _MAX_GROWN, replace=False)
        tree = DecisionTreeRegressor(min_samples_leaf=self.min_leaf, random_state=int(rng.integers(2**31)))
        tree.fit(design[block.present[grown]], block.scaled[grown], sample_weight=count[grown])
        donors = np.repeat(sample, count[sample])
        chosen = leaf_donors(tree.apply(design[block.present[donors]]), tree.apply(design[block.absent]), rng)
        return np.asarray(block.values[donors[chosen]])


def leaf_donors(donor_leaf: Ints, leaf: Ints, rng: np.random.Generator) -> Ints:
    """Position of a random donor of the same leaf, for each row."""
    order = np.argsort(donor_leaf, kind="stable")
    ordered = donor_leaf[order]
    first = np.searchsorted(ordered, leaf, side="left")
    last = np.searchsorted(ordered, leaf, side="right")
    return np.asarray(order[first + (rng.random(len(leaf)) * (last - first)).astype(np.intp)])
