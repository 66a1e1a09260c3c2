"""Alarms of the region search: true where recording is smooth, and the likelihood ratio behind them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from afape.support.boxes import RegionScan
from afape.support.criterion import Criterion
from afape.support.intervals import Axis, CountedInterval
from afape.support.regions import RegionSearch, find_regions
from afape.support.smoothness import least_ratio, likelihood_ratio
from afape.support.thresholds import SupportThresholds
from afape.support.verdict import RegionVerdict, judge


def scan_of(columns, recorded):
    everywhere = np.ones(len(recorded), dtype=bool)
    axes = tuple(Axis.of_column(column, everywhere) for column in columns.T)
    return RegionScan(axes, Criterion.of(len(recorded), SupportThresholds(), None, None), recorded, everywhere)


def test_two_levels_by_hand():
    """A level of a category: twice the log-likelihood ratio of two rates to one."""
    flag = np.repeat([0.0, 1.0], [300, 700])
    recorded = np.concatenate([np.arange(300) < 3, np.arange(700) < 210])
    found = likelihood_ratio(scan_of(flag[:, None], recorded), {0: CountedInterval(-np.inf, 1.0, 300, 3)})

    def best(k, n):
        return k * np.log(k / n) + (n - k) * np.log(1 - k / n)

    assert_allclose(found, 2 * (best(3, 300) + best(210, 700) - best(213, 1000)), rtol=1e-9)


def test_the_ratio_of_a_box_is_that_of_logistic_regressions():
    """Every value has a bin of its own, so that binning loses nothing."""
    rng = np.random.default_rng(0)
    x, z = rng.integers(0, 12, 3000).astype(float), rng.integers(0, 5, 3000).astype(float)
    recorded = rng.random(3000) < expit(0.3 * x - 2)
    box = {0: CountedInterval(-np.inf, 4.0, 0, 0), 1: CountedInterval(1.0, np.inf, 0, 0)}
    inside = (x < 4) & (z > 1)

    def features(v):
        low, centre, high = np.quantile(v, [0.25, 0.5, 0.75])
        bent = np.arcsinh((v - centre) / (high - low))
        return bent, np.column_stack([bent, (v - centre) / (high - low), bent**2])

    (a, of_x), (b, of_z) = features(x), features(z)
    design = np.column_stack([of_x, of_z, a * b])

    def loglikelihood(rows):
        model = LogisticRegression(C=1e6, tol=1e-10, max_iter=5000, solver="newton-cholesky")
        model.fit(design[rows], recorded[rows])
        return -log_loss(recorded[rows], model.predict_proba(design[rows]), normalize=False)

    share = recorded[inside].mean()
    own = inside.sum() * (share * np.log(share) + (1 - share) * np.log(1 - share))
    expected = 2 * (loglikelihood(~inside) + own - loglikelihood(np.ones(3000, dtype=bool)))
    assert_allclose(likelihood_ratio(scan_of(np.column_stack([x, z]), recorded), box), expected, rtol=0.02)


def test_more_tries_need_more_evidence():
    assert 10 < least_ratio(1) < least_ratio(150) < least_ratio(1e5) < 60


@pytest.mark.parametrize("heavy", [False, True])
@pytest.mark.parametrize("n", [2000, 8000])
def test_smooth_recording_gives_no_alarm(n, heavy):
    """Products of logistic curves that fall below the threshold in a tail: 24 worlds each, none may alarm."""
    for seed in range(24):
        rng = np.random.default_rng([seed, n])
        x = rng.standard_t(3, size=(n, 2)) if heavy else rng.normal(size=(n, 2))
        chance = expit(0.5 + x[:, 0]) * expit(0.3 - 0.8 * x[:, 1]) * expit(0.2 + 0.7 * x.sum(axis=1))
        found = find_regions(RegionSearch.of(x, SupportThresholds()), rng.random(n) < chance, np.ones(n, dtype=bool))
        assert found.regions == []


def test_a_hole_in_a_falling_slope_is_chance_if_more_is_recorded_beyond_it():
    """As in the demo: 2 of 578 rows are recorded where 10 are expected, and beyond them 4 of 100."""
    n = 6000
    x = np.sort(np.random.default_rng(0).normal(size=n))
    recorded = np.random.default_rng(1).random(n) < expit(0.9 * x)
    recorded[:678] = False
    recorded[[5, 30, 60, 99, 300, 500, 677]] = True
    box = {0: CountedInterval(x[99], x[677], 577, 2)}
    assert judge(scan_of(x[:, None], recorded), box, 150.0, []) is not RegionVerdict.UNSUPPORTED
    recorded[100:678] = False
    recorded[678:] = np.random.default_rng(1).random(n - 678) < 0.5  # now an edge that no slope explains
    assert judge(scan_of(x[:, None], recorded), box, 150.0, []) is RegionVerdict.UNSUPPORTED


def test_a_tail_that_rows_do_not_decide_is_said_to_be_undecided():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(8000, 1))
    search = RegionSearch.of(x, SupportThresholds())
    found = find_regions(search, rng.random(8000) < expit(3.5 * x[:, 0] - 1), np.ones(8000, dtype=bool))
    assert found.regions == []
    assert found.doubtful is not None
    assert found.doubtful.n_recorded < 0.02 * found.doubtful.n_rows
    many = np.sort(rng.normal(size=80_000))[:, None]
    found = find_regions(
        RegionSearch.of(many, SupportThresholds()),
        rng.random(80_000) < expit(3.5 * many[:, 0] - 1),
        np.ones(80_000, bool),
    )
    assert len(found.regions) == 1  # enough rows to be certain
