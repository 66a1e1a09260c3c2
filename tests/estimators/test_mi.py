"""Multiple imputation: Rubin's rules by hand, the estimator against known costs."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from small_law import POLICIES, Sums, draw, population, run
from worlds import World, Zero

import afape
from afape.estimators.estimate import Estimate
from afape.estimators.imputed import ImputedEstimate, rubin_covariance


@pytest.fixture(scope="module")
def law():
    return population()


def imputed(values, influences, cluster=None, tables="t"):
    parts = [
        Estimate(v, np.asarray(phi, dtype=float), cluster, "rows") for v, phi in zip(values, influences, strict=True)
    ]
    return ImputedEstimate.pooled(parts, tables)


def test_rubins_rules_by_hand():
    # Three tables of four rows: within 4/3 * sum(phi^2) / 16 = 1/3, 4/3 and 3, mean 14/9; between var(1, 2, 6) = 7.
    estimate = imputed([1.0, 2.0, 6.0], [[1, -1, 1, -1], [2, -2, 2, -2], [3, -3, 3, -3]])
    assert estimate.value == 3.0
    assert_allclose(estimate.within, 14 / 9)
    assert_allclose(estimate.between, 7.0)
    total = 14 / 9 + 4 / 3 * 7  # 98/9
    assert_allclose(estimate.std_error, np.sqrt(total))
    share = 4 / 3 * 7 / total  # 6/7
    old, observed = 2 / share**2, 4 / 6 * 3 * (1 - share)
    freedom = 1 / (1 / old + 1 / observed)
    assert_allclose([old, observed, freedom], [49 / 18, 2 / 7, 98 / 379])
    assert_allclose(estimate.degrees_of_freedom, freedom)
    low, high = estimate.interval(0.9)
    assert_allclose(low + high, 6.0)
    assert estimate.interval(0.5)[1] < high


def test_interval_uses_student_t():
    # Within 1e-6, (1 + 1/2) between the same: lambda = 1/2, and nu = (M - 1) / lambda^2 = 4 where the rows are many.
    phi = np.tile([1.0, -1.0], 500_000)
    apart = np.sqrt(2 * 1e-6 / 1.5)
    estimate = imputed([0.0, apart], [phi, phi])
    assert_allclose(estimate.degrees_of_freedom, 4.0, rtol=1e-4)
    assert_allclose(estimate.interval(0.95)[1] - apart / 2, 2.77645 * np.sqrt(2e-6), rtol=1e-4)
    assert repr(estimate).startswith("Estimate(0.000577")
    assert np.isnan(estimate.interval(kind="bootstrap-percentile")).all()


def test_clusters_count_once():
    phi = np.array([1.0, -1.0, 0.5, -0.5])
    doubled, cluster = np.repeat(phi, 2), np.repeat(np.arange(4), 2)
    once = imputed([1.0, 2.0], [phi, 2 * phi])
    assert_allclose(imputed([1.0, 2.0], [doubled, 2 * doubled], cluster).within, once.within)
    assert_allclose(imputed([1.0, 2.0], [doubled, 2 * doubled], cluster).degrees_of_freedom, once.degrees_of_freedom)
    assert imputed([1.0, 2.0], [doubled, 2 * doubled]).within < 0.6 * once.within


def test_differences_are_taken_table_by_table():
    rng = np.random.default_rng(0)
    phi = rng.normal(size=(2, 3, 50))
    a, b = imputed([1.0, 2.0, 4.0], phi[0]), imputed([0.5, 1.0, 3.5], phi[1])
    difference = a - b
    assert_allclose(difference.value, a.value - b.value)
    assert_allclose(difference.between, np.var([0.5, 1.0, 0.5], ddof=1))
    covariance = rubin_covariance([a, b])
    assert_allclose(difference.std_error**2, covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
    assert_allclose((a + b).std_error ** 2, covariance.sum())
    assert_allclose([a.std_error**2, b.std_error**2], np.diag(covariance))
    assert (a - a).std_error == 0
    assert (a - a).interval() == (0.0, 0.0)
    with pytest.raises(ValueError, match="same completed tables, but these do not"):
        a - imputed([0.5, 1.0, 3.5], phi[1], tables="others")
    plain = a - Estimate(1.0, phi[0, 0], None, "rows")  # nothing to pair
    assert plain.value == a.value - 1
    assert np.isnan(plain.std_error)


@pytest.mark.slow
def test_mi_is_unbiased_and_covers(law):
    truth = {name: afape.true_cost(law, policy, Sums()) for name, policy in POLICIES.items()}
    n_draws, records = 100, []
    for seed in range(n_draws):
        data, _ = draw(law, 1500, seed)
        found = afape.compare(
            data,
            POLICIES,
            Sums(),
            missingness=afape.MAR(given=["a"]),
            estimators=["mi"],
            n_imputations=5,
            random_state=seed,
        )
        for name in POLICIES:
            for target, estimate in found[name]["mi"].items():
                low, high = estimate.interval()
                j = truth[name][target].value
                hit = low - 1e-9 <= j <= high + 1e-9
                records.append((name, target, estimate.value - j, estimate.std_error, hit))
    frame = pd.DataFrame(records, columns=["policy", "target", "error", "std_error", "covered"])
    for (policy, target), part in frame.groupby(["policy", "target"]):
        spread = part["error"].std()
        if target == "acquisition" and policy != "rule":
            assert (part["error"].abs() < 1e-9).all()  # depends on nothing that is missing
            continue
        assert abs(part["error"].mean()) < 4 * spread / np.sqrt(n_draws), (policy, target)
        assert abs(part["covered"].mean() - 0.95) < 4 * np.sqrt(0.95 * 0.05 / n_draws), (policy, target)
        assert abs(part["std_error"].mean() / spread - 1) < 4 / np.sqrt(2 * n_draws), (policy, target)


@pytest.mark.slow
def test_common_practice_fails_where_mi_does_not(law):
    data, _ = draw(law, 40_000, 1)
    result = run(data, "most", estimators=["imp-mean", "blocking", "cc", "mi"])
    truth = afape.true_cost(law, POLICIES["most"], Sums())["total"].value
    off = {name: abs(result[name]["total"].value - truth) / result[name]["total"].std_error for name in result.answers}
    assert off["mi"] < 3
    assert off["imp-mean"] > 4
    assert off["blocking"] > 10


def test_nothing_missing_gives_the_true_cost(law):
    for name, policy in POLICIES.items():
        truth = afape.true_cost(law, policy, Sums())
        result = run(law, name)
        for target, estimate in result["mi"].items():
            assert_allclose(estimate.value, truth[target].value, rtol=1e-12)
            assert_allclose(estimate.std_error, truth[target].std_error, rtol=1e-9, atol=1e-12)
            assert estimate.between < 1e-24
        assert_allclose(result.answers["mi"].ess, len(law))


@pytest.mark.slow
def test_same_seed_same_numbers_whatever_jobs_and_chunks(law):
    data, _ = draw(law, 3000, 2)
    a = run(data, "half")
    b = run(data, "half", n_jobs=2, walk=afape.WalkOptions(chunk_lines=700))
    pd.testing.assert_frame_equal(a.table, b.table, check_exact=True)
    other = run(data, "half", random_state=1)
    assert other["mi"]["total"].value != a["mi"]["total"].value
    assert set(a.table["error_method"]) == {"rubin"}
    assert 0 < a.answers["mi"].ess < len(data)


@pytest.mark.slow
def test_policies_are_compared_table_by_table(law):
    data, _ = draw(law, 2000, 3)
    alone = {name: run(data, name)["mi"]["total"] for name in POLICIES}
    found = afape.compare(data, POLICIES, Sums(), missingness=afape.MAR(given=["a"]), estimators=["mi"])
    for name in POLICIES:
        assert found[name]["mi"]["total"].value == alone[name].value
    difference = alone["most"] - alone["half"]
    apart = np.hypot(alone["most"].std_error, alone["half"].std_error)
    assert difference.std_error < 0.8 * apart
    table = found.differences("mi").set_index(["policy", "minus"])
    line = table.loc[("half", "most")]
    assert_allclose(line["std_error"], difference.std_error)
    assert_allclose(line["difference"], -difference.value)
    low, high = difference.interval()
    assert line["upper"] - line["lower"] > high - low  # simultaneous, and of a t law
    assert found.ranking("mi")["best"].sum() == pytest.approx(1)
    assert "mi" in repr(found)


def test_other_tables_are_not_paired(law):
    data, _ = draw(law, 500, 4)
    a, b = run(data, "half")["mi"]["total"], run(data, "most", random_state=1)["mi"]["total"]
    with pytest.raises(ValueError, match="'imputer', 'n_imputations' and 'random_state'"):
        a - b


def test_bootstrap_leaves_rubins_intervals_alone(law):
    data, _ = draw(law, 500, 5)
    plain = run(data, "half", estimators=["mi", "ipw-semi"])
    booted = run(data, "half", estimators=["mi", "ipw-semi"], bootstrap=5)
    assert plain["mi"]["total"].interval() == booted["mi"]["total"].interval()
    assert len(booted["ipw-semi"]["total"].replicates) == 5


def test_split_averages_over_the_test_rows(law):
    data, _ = draw(law, 2000, 6)
    whole, part = run(data, "half"), run(data, "half", split=0.5)
    assert_allclose(part.answers["mi"].estimates["total"].within / whole["mi"]["total"].within, 2, rtol=0.2)


@pytest.mark.parametrize(
    ("missingness", "offered"),
    [
        (afape.MCAR(), True),
        (afape.MAR(given=["g0"]), True),
        (afape.MNAR("g0 -> R_g1; g0 -> R_g2"), True),  # a graph that says MAR
        (afape.MNAR("g0 -> R_g1; g1 -> R_g2"), False),
        (afape.MNAR(adjust=["g1"]), False),
    ],
    ids=repr,
)
def test_mi_is_offered_only_where_missingness_can_be_ignored(missingness, offered):
    world = World(1)
    data = world.draw(300, 0)
    options = {"missingness": missingness, "n_imputations": 2}
    result = afape.evaluate(data, afape.FixedOrder(["g2"]), world.classifier, **options)
    assert ("mi" in result.answers) == offered
    if not offered:
        with pytest.raises(ValueError, match="has 'mi', but imputation needs data missing at random"):
            afape.evaluate(data, afape.FixedOrder(["g2"]), world.classifier, estimators=["mi"], **options)


def test_mi_says_where_it_rests_on_its_model_alone():
    """Two groups never recorded together: nothing but the imputation model says how they go together."""
    rng = np.random.default_rng(0)
    first = rng.random(400) < 0.5
    frame = pd.DataFrame({
        "a": np.where(first, rng.normal(size=400), np.nan),
        "b": np.where(first, np.nan, rng.normal(size=400)),
        "y": rng.integers(0, 2, 400),
    })  # fmt: skip
    data = afape.Retrospective(frame, afape.Problem({"a": ["a"], "b": ["b"]}, {"a": 1.0, "b": 1.0}, "y", 5.0))
    with pytest.warns(afape.warnings.SupportWarning, match="is not recorded in any row"):
        result = afape.evaluate(
            data, afape.AcquireAll(), Zero(), missingness=afape.MCAR(), estimators=["mi"], n_imputations=3
        )
    assert "depend on the imputation model alone" in result.table["note"].iloc[0]
