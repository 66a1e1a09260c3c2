"""Intervals allow for costs that few rows, or the heaviest rows, did not show."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm
from studies.interval_worlds import SINGLES, rows_of
from studies.intervals import estimate_of
from worlds import Zero

import afape
from afape._arrays import concentration
from afape.estimators.estimate import Estimate
from afape.estimators.unseen import combined_excess, reach

Z = norm.ppf(0.975)


def test_a_share_without_events_has_wilsons_interval():
    none = Estimate(0.0, np.zeros(40), limits=(0.0, 1.0), concentration=1 / 40)
    assert_allclose(none.interval(), [0, Z**2 / (40 + Z**2)], rtol=1e-12)
    every = Estimate(90.0, np.zeros(12), limits=(0.0, 90.0), concentration=1 / 12)
    assert_allclose(every.interval(), [90 * 12 / (12 + Z**2), 90], rtol=1e-12)


def test_both_ends_solve_their_equation():
    """At the end of the interval the distance is t standard errors of the variance there."""
    t, z, error, room, dense = 2.2621571628, -norm.ppf(0.025), 0.7, 9.0, 0.2
    below, above = reach(0.025, error, 9.0, (1.5, room), dense)
    for x, d in ((below, 1.5), (above, room)):
        assert_allclose(x**2, t**2 * error**2 + z**2 * (dense - 1 / 200) * x * (d - x), rtol=1e-9)
    assert_allclose(reach(0.025, error, 9.0, (1.5, room), 1 / 200), t * error)


def test_concentration_counts_the_rows_that_carry_the_variance():
    assert_allclose(concentration(np.full(50, 3.0), None), 1 / 50)
    assert_allclose(concentration(np.array([1.0] * 10), np.repeat(np.arange(5), 2)), 1 / 5)
    heavy = np.array([80.0, 80.0] + [1.0] * 1000)  # two rows carry the variance
    assert 1 / 20 < concentration(heavy, None) < 80 / heavy.sum()


def test_light_weights_leave_students_interval():
    phi = np.random.default_rng(0).normal(size=400)
    plain = Estimate(5.0, phi, limits=(0.0, 100.0))
    light = Estimate(5.0, phi, limits=(0.0, 100.0), concentration=1 / 390)
    assert light.interval() == plain.interval()


def test_excesses_of_a_difference_cancel_as_far_as_the_estimates_agree():
    assert_allclose(
        combined_excess((1.0, 2.0), (2.0, 2.0), 0.7), np.sqrt([5, 8])
    )  # positive correlation does not count
    assert_allclose(combined_excess((1.0, 2.0), (1.0, 2.0), -1.0), [0, 0], atol=1e-9)
    rng = np.random.default_rng(1)
    shared, own = 10 * rng.normal(size=(2, 60))
    a, b, c = (
        Estimate(5.0, x, limits=(0.0, 50.0), rows="r", concentration=0.05) for x in (shared, own, shared + own / 20)
    )
    apart, near = a - b, a - c
    plain = [x.std_error * 2.0 for x in (apart, near)]
    assert apart.reach(0.025)[1] > 1.2 * plain[0]
    assert near.reach(0.025)[1] < apart.reach(0.025)[1]


def test_policies_that_act_alike_in_few_rows_are_not_equal_for_certain():
    same = Estimate(5.0, np.r_[np.ones(20), -np.ones(20)], limits=(0.0, 10.0), rows="r", concentration=1 / 40)
    low, high = (same - same).interval()
    assert_allclose([-low, high], 10 * Z**2 / (40 + Z**2), rtol=1e-9)
    assert (same - same).p_value() == 1.0


@pytest.mark.parametrize("dense", [0.0, 0.03, 0.3])
def test_the_p_value_is_where_the_interval_ends(dense):
    phi = np.random.default_rng(3).normal(size=50)
    estimate = Estimate(0.4, phi - phi.mean(), limits=(-4.0, 4.0), concentration=dense)
    p = estimate.p_value()
    assert_allclose(estimate.interval(1 - p)[0], 0.0, atol=1e-9)
    assert estimate.p_value(9.0) < 1e-6
    assert estimate.p_value(0.4) == 1.0


@pytest.mark.parametrize(
    "name", ["20 groups, errors 5 to 15 %", "light, errors 1 %", "logistic, slope 1.5, costs rise"]
)
def test_intervals_of_heavy_weights_cover(name):
    """Student's intervals contain the truth in 82, 75 and 92 % of these draws."""
    rng = np.random.default_rng(2)
    truth = SINGLES[name](np.random.default_rng(9), 1_000_000).cost.mean()
    hits = []
    for _ in range(300):
        low, high = estimate_of(rows_of(SINGLES[name](rng, 200), rng)).interval()
        hits.append(low <= truth <= high)
    assert np.mean(hits) > 0.95 - 3 * np.sqrt(0.05 * 0.95 / 300)


class _Rule:
    """Acquires b in every row, which nobody knows from its answers alone."""

    def probabilities(self, values, acquired):
        return np.column_stack([np.zeros(len(acquired)), ~acquired[:, 1], acquired[:, 1]]).astype(float)


def _small(n):
    rng = np.random.default_rng(4)
    b = np.where(rng.random(n) < 0.7, 1.0, np.nan)
    problem = afape.Problem({"a": ["a"], "b": ["b"]}, {"b": 90.0}, "y", 5.0)
    return afape.Retrospective(
        pd.DataFrame({"a": rng.normal(size=n), "b": b, "y": (np.arange(n) == 0).astype(int)}), problem
    )


@pytest.mark.filterwarnings("ignore::afape.warnings.AfapeWarning")
@pytest.mark.parametrize("estimator", ["ipw-semi", "drl-semi", "eff-semi", "mi", "cc"])
def test_only_what_is_certain_by_construction_has_no_width(estimator):
    data = _small(12)
    options = {"missingness": afape.MCAR(), "estimators": [estimator]}
    rule = afape.evaluate(data, _Rule(), Zero(), **options)
    low, high = rule[estimator]["acquisition"].interval()
    assert (low < 75) & (high == 90)
    every = afape.evaluate(data, afape.AcquireAll(), Zero(), **options)
    assert_allclose(every[estimator]["acquisition"].interval(), 90, rtol=1e-12)
    assert every.reprice({"b": 7.0})[estimator]["acquisition"].interval() == pytest.approx((7, 7))
    parts = every.parts(estimator)
    assert parts.rates["b"].interval() == pytest.approx((1, 1))
    assert parts.confusion[0, 1].interval()[1] > 0.05  # no error of this kind, in few rows
    metrics = every.metrics(estimator).set_index("metric")
    low, high = metrics.loc["specificity", ["lower", "upper"]]
    assert low < 0.9
    assert high == 1


@pytest.mark.filterwarnings("ignore::afape.warnings.AfapeWarning")
def test_few_rows_are_not_ranked(tmp_path):
    data = _small(40)
    policies = {"none": afape.AcquireNone(), "b": _Rule()}
    found = afape.compare(data, policies, Zero(), missingness=afape.MCAR(), estimators=["ipw-semi"])
    with pytest.raises(ValueError, match=r"too few to rank the policies.*needs at least 50"):
        found.ranking()
    assert "too few to rank" in repr(found)
    assert "cheapest" not in repr(found)
    assert "too few to rank" in found.standing()["reason"]
    assert len(found.standing()["differences"]) == 1
    from afape.report.sentences import answer_of

    assert "too few to rank" in answer_of(found, "ipw-semi")
    assert found.price_plane({"b": (0, 100)}).table["uncertain"].all()


@pytest.mark.filterwarnings("ignore::afape.warnings.AfapeWarning")
def test_a_policy_with_few_effective_rows_gets_no_verdict():
    policies = {"none": afape.AcquireNone(), "b": afape.FixedOrder(["b"]), "rarely": afape.FixedOrder(["c"])}
    rng = np.random.default_rng(4)
    gaps = rng.random((2, 400)) > np.array([[0.7], [0.08]])
    b, c = np.where(gaps, np.nan, 1.0)
    problem = afape.Problem({k: [k] for k in "abc"}, {"b": 90.0, "c": 900.0}, "y", 5.0)
    frame = pd.DataFrame({"a": rng.normal(size=400), "b": b, "c": c, "y": np.arange(400) % 2})
    found = afape.compare(
        afape.Retrospective(frame, problem), policies, Zero(), missingness=afape.MCAR(), estimators=["ipw-semi"]
    )
    ranking = found.ranking().set_index("policy")
    assert ranking.loc["rarely", "verdict"] == "too few rows"
    assert ranking.loc["rarely", ["rank_lower", "rank_upper"]].tolist() == [1, 3]
    assert ranking.loc["none", "verdict"] == "perhaps the cheapest"  # not excluded: "rarely" may be cheaper
    assert ranking.loc["b", "verdict"] == "not the cheapest"
