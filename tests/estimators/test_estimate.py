"""Estimates: errors, intervals, paired differences, clusters."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import t as student

from afape import Estimate
from afape._arrays import effective_size


def test_mean_by_hand():
    cost = np.array([1.0, 3.0, 8.0])
    estimate = Estimate(4.0, cost - 4.0)
    assert_allclose(estimate.std_error, np.sqrt(((9 + 1 + 16) / 2) / 3))  # sample variance over n
    freedom = (9 + 1 + 16) ** 2 / (81 + 1 + 256)
    assert_allclose(estimate.degrees_of_freedom, freedom)
    low, high = estimate.interval(0.95)
    assert_allclose(high - 4.0, student.ppf(0.975, freedom) * estimate.std_error)
    assert_allclose(4.0 - low, high - 4.0)
    narrow = estimate.interval(0.5)
    assert narrow[0] > low
    assert narrow[1] < high


def test_intervals_are_wider_where_few_rows_carry_the_variance():
    rng = np.random.default_rng(1)
    even = rng.normal(size=3000)
    heavy = even.copy()
    heavy[:4] *= 60.0
    quantile = {}
    for name, phi in (("even", even), ("heavy", heavy)):
        estimate = Estimate(0.0, phi - phi.mean())
        quantile[name] = estimate.interval(0.95)[1] / estimate.std_error
    assert 1.96 < quantile["even"] < 1.965
    assert quantile["heavy"] > 2.5
    assert Estimate(1.0, np.zeros(5)).interval() == (1.0, 1.0)


def test_difference_is_paired():
    rng = np.random.default_rng(0)
    shared = rng.normal(size=500)
    a = Estimate(1.0, shared + 0.1 * rng.normal(size=500), rows="r")
    b = Estimate(0.5, shared, rows="r")
    difference = a - b
    assert difference.value == 0.5
    assert difference.std_error < 0.2 * a.std_error
    assert_allclose((difference + b).influence, a.influence, atol=1e-15)


def test_estimates_on_other_rows_do_not_subtract():
    a = Estimate(1.0, np.zeros(3), rows="one")
    with pytest.raises(ValueError, match="same rows"):
        a - Estimate(1.0, np.zeros(3), rows="other")
    with pytest.raises(TypeError):
        a - 1.0


def test_clusters_sum_before_they_are_squared():
    influence = np.array([1.0, 1.0, -1.0, -1.0])
    cluster = np.array([5, 5, 9, 9])
    # two clusters with sums 2 and -2: (4 + 4) * 2 / 1 = 16, root 4, over n = 4
    assert_allclose(Estimate(0.0, influence, cluster).std_error, 1.0)
    alone = Estimate(0.0, influence, np.arange(4)).std_error
    assert_allclose(alone, Estimate(0.0, influence).std_error)


def test_duplicated_rows_in_clusters_do_not_pretend_to_be_more():
    rng = np.random.default_rng(1)
    influence = rng.normal(size=300)
    once = Estimate(0.0, influence).std_error
    twice = Estimate(0.0, np.repeat(influence, 2), np.repeat(np.arange(300), 2)).std_error
    assert_allclose(twice, once)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.5, 95])
def test_confidence_is_checked(confidence):
    with pytest.raises(ValueError, match="'confidence' must lie strictly between 0 and 1"):
        Estimate(0.0, np.ones(3)).interval(confidence)


def test_one_row_has_no_standard_error():
    assert np.isnan(Estimate(1.0, np.zeros(1)).std_error)


def test_effective_size_counts_clusters_once():
    weight = np.array([1.0, 2.0, 3.0])
    assert_allclose(effective_size(weight, None), 36 / 14)
    assert_allclose(effective_size(np.repeat(weight, 5), np.repeat(np.arange(3), 5)), 36 / 14)
