"""Regions without support: when counts are suspicious, and how exactly intervals, boxes and slanted edges are found."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binom

from afape.propensity.unsupported import Violation
from afape.support.criterion import Criterion, rows_needed
from afape.support.regions import RegionSearch, find_regions
from afape.support.thresholds import SupportThresholds


def regions(x, recorded):
    search = RegionSearch.of(x, SupportThresholds())
    return find_regions(search, recorded, np.ones(len(x), dtype=bool)).regions


@pytest.mark.parametrize("p", [0.02, "floor", "slope"])
def test_seldom_but_evenly_recorded_is_no_violation(p):
    """The hardest healthy sets: 0.02 in every row, in half of the rows with an edge, or at the end of a slope."""
    alarms = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(5000, 2))
        chance = {"floor": 0.02 + 0.3 * (x[:, 0] > 0), "slope": 0.02 + 0.9 / (1 + np.exp(3 - 3 * x[:, 0]))}.get(p, p)
        alarms += bool(regions(x, rng.random(5000) < chance))
    assert alarms <= 6


@pytest.mark.parametrize("k", [0, 1, 2])
def test_the_binomial_criterion(k):
    """As many rows as needed, and not one fewer."""
    criterion = Criterion.of(5000, SupportThresholds(), None, None)
    n = int(criterion.need[k])
    assert binom.cdf(k, n, 0.02) <= 4e-3 < binom.cdf(k, n - 1, 0.02)
    assert criterion.suspicious(n, k)
    assert not criterion.suspicious(n - 1, k)
    assert not criterion.suspicious(5000, 60)  # 0.012: neither healthy nor below the threshold


@pytest.mark.parametrize("where", ["low", "middle", "box", "three"])
def test_regions_are_found_to_the_row(where):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(5000, 3))
    region = {
        "low": x[:, 0] < -0.7,
        "middle": np.abs(x[:, 1]) < 0.2,
        "box": (x[:, 0] < 0) & (x[:, 2] > 0.3),
        "three": (x[:, 0] < 0.3) & (x[:, 1] < 0.3) & (x[:, 2] > -0.3),
    }[where]
    recorded = (rng.random(5000) < 0.4) & ~region
    rows = np.any([r.rows for r in regions(x, recorded)], axis=0)
    assert (rows & ~region).sum() < 15
    assert (region & ~rows).sum() < 30


@pytest.mark.parametrize("unit", [1.0, 1e-13, 1e160])
def test_a_slanted_edge_is_found_to_a_few_rows_in_any_unit(unit):
    rng = np.random.default_rng(5)
    x = rng.normal(size=(5000, 3))
    region = 0.6 * x[:, 0] - 0.8 * x[:, 2] > 0.8
    recorded = (rng.random(5000) < 0.4) & ~region
    (found,) = regions(x * [1.0, 1.0, unit], recorded)
    assert (found.rows & ~region).sum() < 60
    assert (region & ~found.rows).sum() < 60
    (score,) = found.ranges
    assert score.columns == (0, 2)
    weights = np.array(score.weights) * [1.0, unit]
    assert_allclose(weights[1] / weights[0], -0.8 / 0.6, rtol=0.1)
    violation = Violation(np.array([True]), found.rows, 0, found.ranges)
    words = violation.where(["age", "sex", "gas"])
    assert words.count("age") == words.count("gas") == 1
    assert " < " in words or " >= " in words


@pytest.mark.parametrize("k", [0, 1, 3])
def test_rows_needed_is_the_binomial_criterion(k):
    n = rows_needed(k, 0.02)
    assert binom.cdf(k, n, 0.02) <= 4e-3 < binom.cdf(k, n - 1, 0.02)
