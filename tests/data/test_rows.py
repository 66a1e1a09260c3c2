"""Rows of records: split, taken, hidden, clustered and told apart."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from small_tables import NAN, library, problem, records

from afape import Problem, Retrospective

# ------------------------------------------------------------------------------------------------- parts of a table


def large(n=100, **options):
    return Retrospective(records(n, patient=np.arange(n) // 4), problem(), **options)


@pytest.mark.parametrize(
    ("n", "shares", "sizes"),
    [
        (100, [0.5, 0.5], [50, 50]),
        (100, [0.2, 0.8], [20, 80]),
        (100, [0.5, 0.3, 0.2], [50, 30, 20]),
        (10, [0.25, 0.75], [2, 8]),  # 2.5 rounds to the even 2
        (7, [1.0], [7]),
        (3, [1 / 3, 1 / 3, 1 / 3], [1, 1, 1]),
    ],
)
def test_split_is_complete_and_disjoint_in_these_shares(n, shares, sizes):
    data = large(n)
    parts = data.split(shares, random_state=3)
    assert [len(part) for part in parts] == sizes
    assert sorted(np.concatenate([part.positions for part in parts])) == list(range(n))
    for part in parts:
        assert part.source == data.source
        assert_array_equal(part.values, data.values[part.positions])
        assert_array_equal(part.recorded, data.recorded[part.positions])
        assert_array_equal(part.labels, data.labels[part.positions])


def test_split_is_random_and_reproducible():
    first, again, other = (large().split([0.5, 0.5], random_state=s)[0].positions for s in (1, 1, 2))
    assert_array_equal(first, again)
    assert len(np.setdiff1d(first, other)) > 10
    assert len(np.setdiff1d(first, np.arange(50))) > 10  # not simply the first half


def test_split_gives_every_row_the_same_chance():
    data = large(20)
    share = np.mean([np.isin(np.arange(20), data.split([0.3, 0.7], s)[0].positions) for s in range(1000)], axis=0)
    assert np.abs(share - 0.3).max() < 4.5 * np.sqrt(0.3 * 0.7 / 1000)


def test_split_keeps_clusters_together():
    parts = large(cluster="patient").split([0.4, 0.6], random_state=0)
    assert [len(part) for part in parts] == [40, 60]
    patients = [set((part.positions // 4).tolist()) for part in parts]
    assert patients[0].isdisjoint(patients[1])
    assert patients[0] | patients[1] == set(range(25))


def test_split_of_a_part_keeps_its_clusters_together():
    half = large(cluster="patient").split([0.5, 0.5])[1]
    parts = half.split([0.5, 0.5])
    assert set((parts[0].positions // 4).tolist()).isdisjoint((parts[1].positions // 4).tolist())
    assert sorted(np.concatenate([part.positions for part in parts])) == sorted(half.positions)


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ([0.5, 0.6], r"'shares' must be positive and sum to 1, but is \[0.5, 0.6\]"),
        ([1.5, -0.5], "'shares' must be positive and sum to 1"),
        ([1.0, 0.0], "'shares' must be positive and sum to 1"),
        ([], "'shares' must be positive and sum to 1"),
        ([[0.5, 0.5]], "'shares' must be positive and sum to 1"),
        ([float("nan"), 0.5], "'shares' must be positive and sum to 1"),
        ([0.5, "half"], "'shares' must be positive and sum to 1"),
        ([0.999, 0.001], r"'shares' must give every split a row, but \[0.999, 0.001\] of 100 .* leave split 1 empty"),
    ],
)
def test_split_refuses_shares_that_make_no_sense(shares, message):
    with pytest.raises(ValueError, match=message):
        large().split(shares)


def test_split_counts_clusters_and_not_rows():
    with pytest.raises(ValueError, match="of 25 rows or clusters leave split 1 empty"):
        large(cluster="patient").split([0.985, 0.015])


@pytest.mark.parametrize("rows", [np.array([4, 0, 2]), [4, 0, 2]], ids=["array", "list"])
def test_take_by_position_keeps_the_order(rows):
    data = large(6, cluster="patient")
    part = data.take(rows)
    assert part.values[:, 0].tolist() == [5, 1, 3]
    assert part.labels.tolist() == [0, 0, 0]
    assert part.positions.tolist() == [4, 0, 2]
    assert part.cluster.tolist() == [1, 0, 0]
    assert (part.columns, part.source, len(part)) == (data.columns, data.source, 3)


def test_take_by_mask():
    data = large(6)
    assert data.take(data.labels == 1).positions.tolist() == [1, 3, 5]
    assert data.take(data.labels == 1).classes.tolist() == [0, 1]  # codes keep their meaning


def test_take_of_take_points_to_the_table():
    assert large(10).take(np.arange(5, 10)).take([0, 3]).positions.tolist() == [5, 8]


def test_hide_forgets_groups_and_reveals_nothing():
    data = Retrospective(
        records(b=[1.0, None, 3.0, 4.0], c=["u", "v", "u", "v"]), problem({"a": ["a"], "b": ["b"], "c": ["c"]})
    )
    keep = np.array([[1, 1, 0], [1, 1, 1], [0, 0, 1], [1, 1, 1]], dtype=bool)
    hidden = data.hide(keep)
    assert hidden.recorded.astype(int).tolist() == [[1, 1, 0], [1, 0, 1], [0, 0, 1], [1, 1, 1]]
    expected = [[1, 1, NAN, NAN], [2, NAN, 0, 1], [NAN, NAN, 1, 0], [4, 4, 0, 1]]
    assert_array_equal(hidden.values, expected)
    assert_array_equal(hidden.labels, data.labels)
    assert hidden.source == data.source
    assert_array_equal(data.values[:, 0], [1, 2, 3, 4])  # the original stays


# ---------------------------------------------------------------------------------------------------------- clusters


@library
@pytest.mark.parametrize(
    "patients",
    [
        ["p", "q", "p", "r"],
        [5, 3, 5, 4],
        [2.0, 1.0, 2.0, 3.0],
        [2**60, 2**60 + 1, 2**60, 2**60 + 2],
    ],
    ids=["text", "numbers", "floats", "long numbers"],
)
def test_rows_with_one_cluster_value_belong_together(table, patients):
    frame = table({"a": [1.0] * 4, "b": [1.0] * 4, "y": [0, 1, 0, 1], "patient": patients})
    cluster = Retrospective(frame, problem(), cluster="patient").cluster
    together = cluster[:, None] == cluster[None, :]
    assert together.astype(int).tolist() == [[1, 0, 1, 0], [0, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1]]


def test_a_dropped_row_needs_no_cluster():
    frame = records(y=[0, None, 0, 1], patient=["p", None, "p", "q"])
    assert Retrospective(frame, problem(), cluster="patient", missing_labels="drop").cluster.tolist() == [0, 0, 1]


# ------------------------------------------------------------------------------------------------------ fingerprints


def fingerprint(a, b, y):
    return Retrospective(pd.DataFrame({"a": a, "b": b, "y": y}), problem(classes=[0, 1])).fingerprints()


def test_equal_rows_have_equal_fingerprints_in_any_table():
    a, b, y = [1.0, 2.0, 1.0], [0.5, NAN, 0.5], [0, 1, 0]
    prints = fingerprint(a, b, y)
    assert prints[0] == prints[2] != prints[1]
    assert_array_equal(prints, fingerprint(a, b, y))
    assert_array_equal(prints[::-1], fingerprint(a[::-1], b[::-1], y[::-1]))


@pytest.mark.parametrize(
    "other",
    [
        ([1.5], [2.0], [0]),
        ([1.0], [NAN], [0]),
        ([1.0], [2.0], [1]),
        ([2.0], [1.0], [0]),
        ([np.nextafter(1, 2)], [2.0], [0]),
    ],
    ids=["value", "gap", "label", "swapped", "last bit"],
)
def test_different_rows_have_different_fingerprints(other):
    assert fingerprint([1.0], [2.0], [0])[0] != fingerprint(*other)[0]


def test_no_two_rows_of_a_grid_share_a_fingerprint():
    a, b, y = (axis.ravel() for axis in np.meshgrid(np.arange(-100.0, 100), np.arange(0, 50, 0.5), [0, 1]))
    assert len(np.unique(fingerprint(a, b, y))) == 200 * 100 * 2


def test_zero_and_blank_have_one_fingerprint_each():
    quiet, payload = np.array([0x7FF8000000000000, 0xFFF8000000000123], dtype=np.uint64).view(float)
    assert np.isnan([quiet, payload]).all()
    prints = fingerprint([0.0, -0.0, 0.0, -0.0], [quiet, quiet, payload, payload], [0, 0, 0, 0])
    assert len(set(prints.tolist())) == 1


def test_hide_wants_one_flag_a_row_and_group():
    data = Retrospective(pd.DataFrame({"a": [1.0, 2.0], "y": [0, 1]}), Problem({"a": ["a"]}, {"a": 1.0}, "y", 1.0))
    with pytest.raises(ValueError, match=r"'keep' must be booleans of shape \(2, 1\), rows by groups, but is"):
        data.hide(np.array([True, False]))
