"""Checks of decision trees that were read from a file: scikit-learn uses their numbers without checking."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.ensemble._forest import BaseForest
from sklearn.ensemble._gb import BaseGradientBoosting
from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import BaseHistGradientBoosting
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.tree import BaseDecisionTree
from sklearn.tree._tree import Tree

from .errors import StorageError

__all__ = ["check_trees"]

_CATEGORICAL = (
    "The file contains a boosted tree with categorical columns, which cannot be checked. Encode categories as columns of 0 and "
    "1, as afape does."
)


def check_trees(model: Any) -> None:
    """Raise an error if nodes of a tree refer to positions outside the tree or to columns that the model does not have.

    A tree of scikit-learn is an array of nodes with the positions of their children and the column that each node tests. A
    forged file could make prediction read any memory.
    """
    owned: set[int] = set()
    found = list(_inside(model, set()))
    for each in found:
        if isinstance(each, BaseDecisionTree) and isinstance(getattr(each, "tree_", None), Tree):
            owned.add(id(each.tree_))
            _check_tree(each.tree_, _n_features(each))
        elif isinstance(each, BaseForest | BaseGradientBoosting):
            if isinstance(each, BaseGradientBoosting) and hasattr(each, "estimators_"):
                _check_stages(each)
            for tree in np.ravel(np.asarray(getattr(each, "estimators_", ()), dtype=object)):
                if not isinstance(tree, BaseDecisionTree) or _n_features(tree) != _n_features(each):
                    raise StorageError("The file is damaged or forged: the trees of a forest do not fit its columns.")
        elif isinstance(each, BaseHistGradientBoosting):
            mapper = getattr(each, "_bin_mapper", None)
            if getattr(each, "is_categorical_", None) is not None or np.any(getattr(mapper, "is_categorical_", False)):
                raise StorageError(_CATEGORICAL)
            for predictor in [p for stage in getattr(each, "_predictors", ()) for p in stage]:
                owned.add(id(predictor))
                _check_predictor(predictor, _n_features(each))
    if any(isinstance(each, Tree | TreePredictor) and id(each) not in owned for each in found):
        raise StorageError("The file is damaged or forged: it contains a tree outside any model.")


def _check_stages(model: Any) -> None:
    """Check that a boosting model has one tree per stage and output: compiled code adds them up without a check."""
    start = model._raw_predict_init(np.zeros((1, _n_features(model)), dtype=np.float32))
    if np.shape(start) != (1, np.shape(model.estimators_)[1]):
        raise StorageError("The file is damaged or forged: the trees of a boosting model do not fit its classes.")


def _n_features(model: Any) -> int:
    return int(getattr(model, "n_features_in_", 0))


def _inside(thing: Any, seen: set[int]) -> Iterator[Any]:
    """Yield the model, all models inside it and their trees."""
    if id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, dict):
        inside = list(thing.values())
    elif isinstance(thing, list | tuple | set):
        inside = list(thing)
    elif isinstance(thing, np.ndarray):
        inside = list(thing.ravel()) if thing.dtype == object else []
    elif isinstance(thing, Tree | TreePredictor):
        yield thing
        return
    else:
        if isinstance(thing, BaseEstimator):
            yield thing
        inside = list(getattr(thing, "__dict__", {}).values())
    for each in inside:
        yield from _inside(each, seen)


def _check_tree(tree: Any, n_features: int) -> None:
    if not 0 < tree.node_count <= tree.capacity:
        raise StorageError("The file is damaged or forged: a tree has not the number of nodes that it states.")
    left, right, feature = tree.children_left, tree.children_right, tree.feature
    inner = (left != -1) | (right != -1)
    _check_nodes(left[inner], right[inner], feature[inner], np.flatnonzero(inner), (tree.node_count, n_features))
    if tree.n_features != n_features or not len(left):
        raise StorageError("The file is damaged or forged: a tree does not fit the columns of its model.")


def _check_predictor(predictor: Any, n_features: int) -> None:
    nodes = getattr(predictor, "nodes", None)
    if not isinstance(predictor, TreePredictor) or nodes is None or not len(nodes):
        raise StorageError("The file is damaged or forged: a boosted tree has no nodes.")
    inner = nodes["is_leaf"] == 0
    if nodes["is_categorical"].any():
        raise StorageError(_CATEGORICAL)
    splits = nodes[inner]
    sizes = (len(nodes), n_features)
    _check_nodes(splits["left"], splits["right"], splits["feature_idx"], np.flatnonzero(inner), sizes)


def _check_nodes(left: Any, right: Any, feature: Any, place: Any, sizes: tuple[int, int]) -> None:
    """Check that children follow their parent and lie inside the tree, and that the model has the columns."""
    n_nodes, n_features = sizes
    left, right, feature = (np.asarray(column, dtype=np.int64) for column in (left, right, feature))
    children = np.concatenate([left, right])
    forward = children > np.concatenate([place, place])
    if not forward.all() or (children >= n_nodes).any() or ((feature < 0) | (feature >= n_features)).any():
        raise StorageError("The file is damaged or forged: a tree refers to nodes or columns that do not exist.")
