"""Folds of rows."""

import numpy as np
import pandas as pd
import pytest

from afape import Problem, Retrospective
from afape.run.plan import assign_folds


def records(cluster):
    frame = pd.DataFrame({"a": np.arange(len(cluster)) % 7, "y": np.arange(len(cluster)) % 2, "who": cluster})
    return Retrospective(frame, Problem({"a": ["a"]}, {"a": 0.0}, "y", 1.0), cluster="who")


def test_folds_are_balanced_and_keep_clusters_together():
    fold = assign_folds(records(np.repeat(np.arange(40), 3)), 4, np.random.default_rng(0))
    assert (fold.reshape(40, 3) == fold.reshape(40, 3)[:, :1]).all()
    assert np.bincount(fold).tolist() == [30, 30, 30, 30]
    with pytest.raises(ValueError, match="'n_folds' must not exceed the number of clusters, but is 5 for 3"):
        assign_folds(records(np.array([0, 0, 1, 1, 2, 2])), 5, np.random.default_rng(0))
