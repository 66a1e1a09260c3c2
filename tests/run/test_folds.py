"""Folds of rows."""

import numpy as np
import pytest

from afape.run.plan import assign_folds


def test_folds_are_balanced_and_keep_clusters_together():
    cluster = np.repeat(np.arange(40), 3)
    fold = assign_folds(120, 4, cluster, np.random.default_rng(0))
    assert (fold.reshape(40, 3) == fold.reshape(40, 3)[:, :1]).all()
    assert np.bincount(fold).tolist() == [30, 30, 30, 30]
    with pytest.raises(ValueError, match="'n_folds' must not exceed the number of clusters, but is 5 for 3"):
        assign_folds(6, 5, np.array([0, 0, 1, 1, 2, 2]), np.random.default_rng(0))
