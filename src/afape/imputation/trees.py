"""Draw a group from the leaf of a tree: for any kind of column and interaction, and only recorded values."""

from __future__ import annotations

import numpy as np
from sklearn import config_context
from sklearn.tree import DecisionTreeRegressor

from .._arrays import Floats, Ints, Singles, stable_order
from ..propensity.logistic import logistic_design
from .incomplete_groups import IncompleteGroup
from .regressions import ROWS_PER_COEFFICIENT, least_squares

__all__ = ["TreeModel", "grown_tree", "leaf_donors", "tree_design"]

_MAX_GROWN = 10_000  # rows that a tree is grown on; finer leaves take time and hardly change the costs


class TreeModel:
    """Donors from the leaves of one tree, grown on a bootstrap sample.

    One tree with several outputs predicts all columns of a group, and a row that lacks the group takes it whole
    from a random recorded row of its leaf (classification and regression trees as in Burgette and Reiter 2010,
    here for whole groups). Beside the other columns and the label, the tree may split on linear predictions of the
    group's columns, one regression per label class: a tree alone needs many splits, and so many rows, if a column
    depends a little on each of many others. Regressions, tree and donors come from one bootstrap sample of the recorded
    rows, which replaces a draw of the parameters: within a leaf this is the approximate Bayesian bootstrap of
    Rubin and Schenker (1986).

    Parameters
    ----------
    min_leaf : int
        Least number of recorded rows in a leaf.
    proper : bool
        False grows the tree on all recorded rows and splits at random. That takes half the time. It is enough where the
        rows themselves are a random half, and draws from many trees are averaged.
    """

    def __init__(self, min_leaf: int = 5, proper: bool = True) -> None:
        self.min_leaf, self.proper = min_leaf, proper

    def draw(self, group: IncompleteGroup, predictors: Floats, labels: Ints, rng: np.random.Generator) -> Floats:
        """Draw the columns of the group in the rows that lack it, (len(absent), len(columns))."""
        drawn = self.proper or group.weight is not None
        count = group.bootstrap(rng) if drawn else np.ones(len(group.present), dtype=np.intp)
        label = np.eye(int(labels.max()) + 1)[labels][:, 1:]
        z = logistic_design(np.column_stack([predictors, label]))
        linear = _linear_predictions(group, np.ascontiguousarray(z), labels, count)
        design = tree_design(np.column_stack([z, linear]))
        tree = grown_tree(design[group.present], group.scaled, count, self.min_leaf, rng, self.proper)
        donors = np.repeat(np.arange(len(count)), count)
        leaves = [tree.tree_.apply(design[rows]) for rows in (group.present[donors], group.absent)]
        chosen = leaf_donors(leaves[0], leaves[1], rng)
        return np.asarray(group.values[donors[chosen]])


def _linear_predictions(group: IncompleteGroup, z: Floats, labels: Ints, count: Ints) -> Floats:
    """Predictions of the group's columns from a design (n, p), by label class if it has enough rows; (n, len(columns))."""
    out = np.empty((len(z), len(group.columns)))
    known = labels[group.present]
    drawn = np.bincount(known, weights=count, minlength=int(labels.max()) + 1)
    alone = drawn >= ROWS_PER_COEFFICIENT * z.shape[1]
    classes = [(known == y, labels == y) for y in np.flatnonzero(alone)]
    for learn, fill in [*classes, (np.ones(len(known), dtype=bool), ~alone[labels])]:
        if fill.any():
            donors = np.repeat(np.flatnonzero(learn), count[learn])
            out[fill] = z[fill] @ least_squares(z[group.present[donors]], group.scaled[donors])
    return out


def tree_design(z: Floats) -> Singles:
    """Standardised columns (n, p) in single precision, in which trees calculate.

    Columns in the user's units would not do: trees ignore differences below 1e-7, and very large values overflow. A mistyped
    value may be far from all others even in standardised units; beyond 1e30 its size does not matter to a tree.
    """
    return np.clip(z, -1e30, 1e30).astype(np.float32)


def grown_tree(
    design: Singles, scaled: Floats, count: Ints | Floats, min_leaf: int, rng: np.random.Generator, best: bool = True
) -> DecisionTreeRegressor:
    """Grow a tree that predicts all columns from a design in single precision, with rows counted ``count`` times.

    ``best`` False tries one random split of every column. Hundreds of small trees are grown for one policy, so columns are
    not checked again: `Retrospective` checked them.
    """
    sample = np.flatnonzero(count)
    grown = sample if len(sample) <= _MAX_GROWN else rng.choice(sample, _MAX_GROWN, replace=False)
    splitter, seed = "best" if best else "random", int(rng.integers(2**31))
    tree = DecisionTreeRegressor(splitter=splitter, min_samples_leaf=min_leaf, random_state=seed)
    with config_context(skip_parameter_validation=True, assume_finite=True):
        tree.fit(design[grown], scaled[grown], sample_weight=count[grown], check_input=False)
    return tree


def leaf_donors(donor_leaf: Ints, leaf: Ints, rng: np.random.Generator) -> Ints:
    """Draw a donor of the same leaf for each row, by its position; (len(leaf),)."""
    size = np.bincount(donor_leaf, minlength=int(leaf.max(initial=0)) + 1)
    order, first = stable_order(donor_leaf, len(size)), np.cumsum(size) - size
    return np.asarray(order[first[leaf] + (rng.random(len(leaf)) * size[leaf]).astype(np.intp)])
