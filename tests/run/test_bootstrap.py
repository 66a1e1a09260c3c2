"""The bootstrap: what it resamples, what it keeps, and that it agrees with theory where there is one."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.naive_bayes import GaussianNB
from worlds import Zero

import afape
from afape.benchmark.synthetic import synthetic_mar, synthetic_policies
from afape.estimators.catalogue import METHODS
from afape.run.bootstrap import Bootstrap, row_weights, run_bootstrap


@pytest.fixture(scope="module")
def parts():
    experiment = synthetic_mar(2500)
    return (*experiment.prepare(), experiment)


def run(parts, policy="Random 50 %", **options):
    classifier, data, _, experiment = parts
    return afape.evaluate(data, synthetic_policies()[policy], classifier, missingness=experiment.missingness, **options)


def test_every_estimator_has_replicates_that_agree_with_theory(parts):
    result = run(parts, bootstrap=100)
    assert set(result.answers) == {m.name for m in METHODS.values() if m.view != "hybrid"}
    assert result["mi"]["misclassification"].replicates is None  # has the intervals of Rubin's rules
    for name, outcome in result.answers.items():
        if name == "mi":
            continue
        estimate = result[name]["misclassification"]
        assert len(estimate.replicates) == 100
        assert outcome.replicates == 100
        assert 0.75 < estimate.bootstrap_std_error / estimate.std_error < 1.35, name
    errors = result.table.set_index("estimator")["error_method"]
    assert set(errors.loc["dm-semi"]) == set(errors.loc["drl-semi"]) == {"stacked"}
    assert set(errors.loc["eff-semi"]) == {"stacked"}


def test_replicates_give_the_errors_of_regressors_that_theory_treats_as_known(parts):
    result = run(parts, bootstrap=4, estimators=["dm-semi", "drl-semi"], values="boosting")
    assert set(result.table["error_method"]) == {"refitting bootstrap"}
    for name in ("dm-semi", "drl-semi"):
        estimate = result[name]["misclassification"]
        assert estimate.std_error == estimate.bootstrap_std_error
        low, high = estimate.interval(kind="bootstrap-percentile")
        assert low < estimate.value < high


def test_freezing_the_nuisances_makes_the_direct_method_overconfident(parts):
    estimators = ["dm-semi"]
    refit = run(parts, bootstrap=60, estimators=estimators)["dm-semi"]["misclassification"]
    frozen = run(parts, bootstrap=afape.Bootstrap(60, refit=False), estimators=estimators)
    assert frozen["dm-semi"]["misclassification"].bootstrap_std_error < 0.8 * refit.bootstrap_std_error


def test_same_seed_same_replicates_whatever_the_jobs(parts):
    options = {"bootstrap": 12, "estimators": ["ipw-semi", "dm-semi"]}
    a, b = run(parts, **options), run(parts, n_jobs=2, **options)
    for name in ("ipw-semi", "dm-semi"):
        assert_array_equal(a[name]["total"].replicates, b[name]["total"].replicates)
    assert not np.array_equal(
        a["ipw-semi"]["total"].replicates, run(parts, random_state=1, **options)["ipw-semi"]["total"].replicates
    )


# Naive Bayes is far too sure: a wrong propensity with weights of 1,000, which the warnings rightly name.
@pytest.mark.filterwarnings("ignore::afape.warnings.ClippedWeightsWarning", "ignore::afape.warnings.NormalizerWarning")
@pytest.mark.filterwarnings("ignore::afape.warnings.HeavyWeightsWarning", "ignore::afape.warnings.BalanceWarning")
def test_models_without_a_score_get_their_error_from_the_replicates(parts):
    result = run(parts, bootstrap=30, propensity=GaussianNB(), estimators=["ipw-semi"])
    estimate = result["ipw-semi"]["total"]
    assert estimate.std_error == estimate.bootstrap_std_error
    assert set(result.table["error_method"]) == {"refitting bootstrap"}


def test_differences_of_replicates_are_paired(parts):
    a, b = (
        run(parts, p, bootstrap=30, estimators=["dm-semi"])["dm-semi"]["total"] for p in ("Random 50 %", "Random 10 %")
    )
    difference = a - b
    assert_allclose(difference.replicates, a.replicates - b.replicates)
    assert difference.std_error < np.hypot(a.std_error, b.std_error)


def test_interrupted_bootstrap_keeps_what_it_has(parts):
    def stop_after_five(done, total):
        if done == total - 45:
            raise KeyboardInterrupt

    with pytest.warns(afape.warnings.InterruptedBootstrapWarning, match="after 5 of 50 replicates"):
        result = run(parts, bootstrap=50, estimators=["dm-semi"], progress=stop_after_five)
    assert len(result["dm-semi"]["total"].replicates) == 5
    whole = run(parts, bootstrap=50, estimators=["dm-semi"])["dm-semi"]["total"]
    assert_array_equal(result["dm-semi"]["total"].replicates, whole.replicates[:5])


@pytest.mark.filterwarnings("ignore::afape.warnings.SupportWarning")
def test_replicates_that_lose_a_set_are_counted():
    """Two rows of thirty are complete; a replicate without them has nothing to say."""
    rng = np.random.default_rng(0)
    b = np.full(30, np.nan)
    b[:2] = 1.0
    frame = pd.DataFrame({"a": rng.normal(size=30), "b": b, "y": np.arange(30) % 2})
    data = afape.Retrospective(frame, afape.Problem({"a": ["a"], "b": ["b"]}, {"b": 1.0}, "y", 1.0))

    result = afape.evaluate(
        data,
        afape.AcquireAll(),
        Zero(),
        missingness=afape.MCAR(),
        estimators=["ipw-semi", "cc"],
        n_folds=1,
        bootstrap=60,
    )
    lost = result.answers["cc"].lost
    assert 0 < lost < 30
    assert result.answers["ipw-semi"].lost == lost
    assert f"{lost} of 60 replicates have no estimate" in set(result.table["note"])
    assert np.isfinite(result["cc"]["total"].bootstrap_std_error)


def test_whole_clusters_are_drawn():
    cluster = np.repeat(np.arange(5), 4)
    weight = row_weights(cluster, np.random.SeedSequence(0)).reshape(5, 4)
    assert (weight == weight[:, :1]).all()
    assert weight[:, 0].sum() == 5


def test_bootstrap_of_a_mean_has_its_standard_error():
    x = np.random.default_rng(0).exponential(size=200)
    frame = pd.DataFrame({"a": x, "y": np.arange(200) % 2})
    data = afape.Retrospective(frame, afape.Problem({"a": ["a"]}, {"a": 1.0}, "y", 1.0))
    found = run_bootstrap(lambda w: w @ x / w.sum(), data, Bootstrap(2000), np.random.SeedSequence(1))
    assert_allclose(np.std(found.values), x.std() / np.sqrt(200), rtol=4 / np.sqrt(2 * 2000))


def test_replicates_of_other_seeds_are_not_paired(parts):
    a, b = (run(parts, bootstrap=4, estimators=["dm-semi"], random_state=s)["dm-semi"]["total"] for s in (0, 1))
    assert (a - b).replicates is None


def test_one_cluster_cannot_be_resampled():
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "y": [0, 1, 0, 1], "who": 1})
    data = afape.Retrospective(frame, afape.Problem({"a": ["a"]}, {"a": 1.0}, "y", 1.0), cluster="who")

    with pytest.raises(ValueError, match="'bootstrap' needs at least two clusters"):
        afape.evaluate(data, afape.AcquireAll(), Zero(), missingness=afape.MCAR(), n_folds=1, bootstrap=10)


@pytest.mark.parametrize("n", [-1, 1.5, "many"])
def test_bad_numbers_of_replicates_are_refused(parts, n):
    with pytest.raises((TypeError, ValueError), match=r"must be a (whole number|number of replicates)"):
        run(parts, bootstrap=n)


def test_direct_method_without_ridge_regression_has_no_interval_without_bootstrap(parts):
    result = run(parts, estimators=["dm-semi"], values="boosting")
    assert result.table["std_error"].isna().all()
    assert set(result.table["error_method"]) == {"none without bootstrap"}
    assert "no interval without bootstrap" in repr(result["dm-semi"]["total"])
