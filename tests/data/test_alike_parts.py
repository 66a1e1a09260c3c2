"""Parts of the rows that are alike."""

import numpy as np
import pandas as pd

from afape import Problem, Retrospective
from afape.data.alike_parts import alike_parts

N = 1003


def records(order=None, unit=1.0, groups=("x", "a", "b"), cluster=False):
    rng = np.random.default_rng(0)
    x, a, b = rng.normal(size=(3, N))
    frame = pd.DataFrame(
        {
            "x": x * unit,
            "a": np.where(rng.random(N) < 0.5, a, np.nan),
            "b": np.where(rng.random(N) < 0.3, b, np.nan),
            "y": (rng.random(N) < 0.4).astype(int),
            "who": rng.integers(300, size=N),
        }
    )
    frame = frame if order is None else frame.iloc[order]
    problem = Problem({g: [g] for g in groups}, {"a": 1.0, "b": 1.0}, "y", 1.0)
    return Retrospective(frame, problem, cluster="who" if cluster else None)


def test_parts_have_the_same_patterns_labels_and_values():
    data = records()
    part = alike_parts(data, 5, np.random.default_rng(1))
    assert np.ptp(np.bincount(part)) <= 1
    kind = data.recorded @ [1, 2, 4] * 2 + data.labels
    for k in np.unique(kind):
        assert np.ptp(np.bincount(part[kind == k], minlength=5)) <= 2  # random parts differ by about 12
        means = [data.values[(kind == k) & (part == p), 0].mean() for p in range(5)]
        assert np.std(means) < 0.5 / np.sqrt((kind == k).sum() / 5)  # random parts: 1 over this root


def test_every_row_has_every_part_with_the_same_probability():
    data = records()
    rng = np.random.default_rng(2)
    share = np.mean([alike_parts(data, 2, rng) for _ in range(400)], axis=0)
    assert abs(share - 0.5).max() < 4.5 * 0.5 / np.sqrt(400)


def test_parts_keep_clusters_together():
    data = records(cluster=True)
    part = alike_parts(data, 4, np.random.default_rng(1))
    assert all(len(np.unique(part[data.cluster == c])) == 1 for c in np.unique(data.cluster))
    assert np.ptp(np.bincount(part[np.unique(data.cluster, return_index=True)[1]])) <= 1


def test_parts_depend_neither_on_order_nor_on_units():
    order = np.random.default_rng(3).permutation(N)
    part = alike_parts(records(), 5, np.random.default_rng(1))
    other = alike_parts(records(order, 2.54, ("b", "x", "a")), 5, np.random.default_rng(1))
    assert (part[order] == other).all()
