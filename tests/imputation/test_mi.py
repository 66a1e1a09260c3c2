"""Multiple imputation: Rubin's rules by hand, imputers against known laws, the estimator against known costs."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer
from worlds import World, Zero

import afape
from afape.estimators import Estimate, ImputedEstimate
from afape.estimators.imputed import rubin_covariance
from afape.imputation.linear import near_donors

pytestmark = pytest.mark.slow

# ------------------------------------------------------------------------------------------------------ a small world


def rule(values, acquired):
    """Columns a=u a=v a=w b=k b=l b=m c: look at b unless a is u, at c where b is k or l."""
    has_b, has_c = acquired[:, 1], acquired[:, 2]
    with np.errstate(invalid="ignore"):
        wants_c = has_b & ((values[:, 3] == 1) | (values[:, 4] == 1)) & ~has_c
    return np.where(~has_b & (values[:, 0] != 1), 1, np.where(wants_c, 2, 3))


class Sums:
    """Predicts 1 where the sum of a few indicators is large, whatever is missing."""

    def predict(self, values, acquired):
        return (np.nan_to_num(values) @ np.array([0.2, 0.9, 0.3, 0.8, -0.4, 0.1, 0.7]) > 0.75).astype(int)


POLICIES = {"rule": afape.DecisionRule(rule), "half": afape.RandomSubset(0.5), "most": afape.RandomSubset(0.9)}
PROBLEM = afape.Problem(
    groups={"a": ["a"], "b": ["b"], "c": ["c"]},
    costs={"b": 1.0, "c": 2.0},
    label="y",
    misclassification_cost=[[0.0, 3.0], [8.0, 0.0]],
    categories={"a": ["u", "v", "w"], "b": ["k", "l", "m"]},
)
MECHANISM = afape.LogisticMechanism(
    {"b": 0.0, "c": 0.3}, {"b": {"a=u": 1.0, "a=v": -0.8}, "c": {"a=v": 1.2, "a=w": -0.7}}
)


def population():
    """Rows in the exact proportions of a law with interactions, so that their true cost is the law's."""
    rng = np.random.default_rng(5)
    cells = [(a, b, c, y) for a in "uvw" for b in "klm" for c in (0, 1) for y in (0, 1)]
    count = rng.integers(1, 9, size=len(cells)) ** 2
    rows = np.repeat(np.array(cells, dtype=object), count, axis=0)
    return afape.Retrospective(pd.DataFrame(rows, columns=list("abcy")).infer_objects(), PROBLEM)


@pytest.fixture(scope="module")
def law():
    return population()


def draw(law, n, seed):
    complete = law.take(np.random.default_rng([3, seed]).integers(len(law), size=n))
    return MECHANISM.hide(complete, random_state=seed), complete


def run(data, policy="rule", **options):
    options = {"missingness": afape.MAR(given=["a"]), "estimators": ["mi"], **options}
    return afape.evaluate(data, POLICIES[policy], Sums(), **options)


# ------------------------------------------------------------------------------------------------------ Rubin's rules


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
    r = 4 / 3 * 7 / (14 / 9)
    assert_allclose(estimate.missing_information, (r + 2 / (freedom + 3)) / (r + 1))
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


# ------------------------------------------------------------------------------------------------------ the imputers

NUMBERS = afape.Problem({"x": ["x"], "z": ["z"]}, {"z": 1.0}, "y", 1.0)


def normal_records(n, seed, slope=(0.8, 0.8)):
    """(x, z, y): z given x normal, sd 0.6, slope by label; recorded with odds exp(x)."""
    rng = np.random.default_rng([8, seed])
    x, y = rng.normal(size=n), rng.integers(2, size=n)
    z = 0.5 * y + np.array(slope)[y] * x + 0.6 * rng.normal(size=n)
    shown = np.where(rng.random(n) < 1 / (1 + np.exp(-x)), z, np.nan)
    return afape.Retrospective(pd.DataFrame({"x": x, "z": shown, "y": y}), NUMBERS), z


@pytest.mark.parametrize("model", ["trees", "linear", "matching"])
def test_imputed_numbers_follow_their_law(model):
    data, z = normal_records(20_000, 0, slope=(0.8, -0.8))
    missing = ~data.recorded[:, 1]
    table = next(iter(afape.ChainedImputer(model).impute(data, 1, 0)))
    x, y, drawn = data.values[missing, 0], data.labels[missing], table[missing, 1]
    residual = drawn - 0.5 * y - np.where(y == 0, 0.8, -0.8) * x
    error = 0.6 / np.sqrt(missing.sum())
    slack = 1 if model == "linear" else 3  # donors come from nearby, not from the very place
    assert abs(residual.mean()) < 4 * slack * error * 1.4  # the fit's error beside that of the draws
    assert abs(residual.std() / 0.6 - 1) < 0.03 * slack
    for label in (0, 1):
        at = y == label
        assert_allclose(np.corrcoef(x[at], drawn[at])[0, 1], np.corrcoef(x[at], z[missing][at])[0, 1], atol=0.02)
    assert np.isin(drawn, data.values[~missing, 1]).all() == (model != "linear")


@pytest.mark.parametrize("model", ["trees", "linear"])
def test_rubin_intervals_cover_a_mean(model):
    covered, estimates, errors = [], [], []
    for seed in range(200):
        data, _ = normal_records(300, seed)
        tables = list(afape.ChainedImputer(model).impute(data, 10, seed))
        means = [t[:, 1].mean() for t in tables]
        pooled = imputed(means, [t[:, 1] - m for t, m in zip(tables, means, strict=True)])
        low, high = pooled.interval()
        covered.append(low <= 0.25 <= high)
        estimates.append(pooled.value)
        errors.append(pooled.std_error)
    assert abs(np.mean(covered) - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 200)
    assert_allclose(np.mean(errors) / np.std(estimates), 1.0, atol=4 / np.sqrt(400))
    # Where hardly any row is recorded a leaf reaches far: a bias below the standard error remains in small data.
    assert abs(np.mean(estimates) - 0.25) < (0.5 if model == "trees" else 4 / np.sqrt(200)) * np.std(estimates)


@pytest.mark.parametrize("model", ["trees", "linear", "matching"])
def test_imputed_categories_follow_their_law(law, model):
    data, complete = draw(law, 40_000, 0)
    table = next(iter(afape.ChainedImputer(model).impute(data, 1, 0)))
    for group, columns in ((1, [3, 4, 5]), (2, [6])):
        assert set(np.unique(table[:, columns])) == {0.0, 1.0}
        if group == 1:
            assert_array_equal(table[:, columns].sum(axis=1), 1)
        missing = ~data.recorded[:, group]
        cell = complete.values[:, :3].argmax(axis=1) * 2 + data.labels
        for k in np.unique(cell):
            at = missing & (cell == k)
            assert at.sum() > 300
            true = law.values[(law.values[:, :3].argmax(axis=1) * 2 + law.labels) == k][:, columns].mean(axis=0)
            found = table[np.ix_(at, columns)].mean(axis=0)
            # The recorded rows of the cell have an error of their own, of about the same size or less.
            assert (abs(found - true) < 4 * np.sqrt(2 * (true * (1 - true) + 0.01) / at.sum())).all()


def test_one_parameter_draw_an_imputation():
    """In one cell, the share imputed must vary between tables as a posterior does, not as coins alone do."""
    frame = pd.DataFrame({"x": 0.0, "z": [1.0] * 20 + [0.0] * 20 + [np.nan] * 4000, "y": [0, 1] * 2020})
    data = afape.Retrospective(frame, NUMBERS)
    for model in ("trees", "linear"):
        shares = [t[40:, 1].mean() for t in afape.ChainedImputer(model, min_leaf=20).impute(data, 200, 0)]
        posterior = np.sqrt(0.25 / 40)
        assert_allclose(np.mean(shares), 0.5, atol=4 * posterior / np.sqrt(200) + 0.01)
        assert_allclose(np.std(shares) / posterior, 1.0, atol=0.25)


def test_groups_are_drawn_whole():
    """Columns of a group that determine each other still do so where the group is imputed."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=500)
    frame = pd.DataFrame({"a": x, "b": x + rng.normal(size=500), "y": rng.integers(2, size=500)})
    frame["twice"], frame["sign"] = 2 * frame["b"], np.where(frame["b"] > 0, "plus", "minus")
    problem = afape.Problem({"a": ["a"], "g": ["b", "twice", "sign"]}, {"g": 1.0}, "y", 1.0)
    complete = afape.Retrospective(frame, problem)
    data = complete.hide(np.column_stack([np.ones(500, bool), rng.random(500) < 0.5]))
    for table in afape.ChainedImputer().impute(data, 3, 0):
        assert_array_equal(table[:, 2], 2 * table[:, 1])
        assert_array_equal(table[:, 4] == 1, table[:, 1] > 0)
    for table in afape.ChainedImputer("linear").impute(data, 3, 0):
        assert_allclose(table[:, 2], 2 * table[:, 1], atol=0.1)
        assert_array_equal(table[:, 3] + table[:, 4], 1)


@pytest.mark.parametrize("model", ["trees", "linear", "matching"])
@pytest.mark.parametrize("n_recorded", [1, 2, 3])
def test_hardly_anything_recorded_is_no_reason_to_fail(model, n_recorded):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=60), "z": rng.normal(size=60), "y": rng.integers(3, size=60)})
    frame.loc[n_recorded:, "z"] = np.nan
    data = afape.Retrospective(frame, NUMBERS)
    for table in afape.ChainedImputer(model).impute(data, 3, 0):
        assert np.isfinite(table).all()


def test_donors_with_equal_predictions_are_all_used():
    donor = np.repeat([0.0, 1.0], 500)
    chosen = near_donors(donor, np.full(4000, 0.9), 5, np.random.default_rng(0))
    assert (donor[chosen] == 1).all()
    assert len(np.unique(chosen)) > 450
    few = near_donors(np.arange(10.0), np.array([-5.0, 4.2, 99.0]), 1, np.random.default_rng(0))
    assert_array_equal(few, [0, 4, 9])
    among = near_donors(np.arange(10.0), np.full(1000, 4.2), 3, np.random.default_rng(0))
    assert set(among) == {3, 4, 5}


# ------------------------------------------------------------------------------------------------------ the estimator


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


def test_common_practice_fails_where_mi_does_not(law):
    data, _ = draw(law, 40_000, 1)
    result = run(data, "most", estimators=["imp-mean", "blocking", "cc", "mi"])
    truth = afape.true_cost(law, POLICIES["most"], Sums())["total"].value
    off = {name: abs(result[name]["total"].value - truth) / result[name]["total"].std_error for name in result.outcomes}
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
            assert estimate.missing_information < 1e-9
        assert_allclose(result.outcomes["mi"].ess, len(law))


def test_same_seed_same_numbers_whatever_jobs_and_chunks(law):
    data, _ = draw(law, 3000, 2)
    a = run(data, "half")
    b = run(data, "half", n_jobs=2, walk=afape.WalkOptions(chunk_lines=700))
    pd.testing.assert_frame_equal(a.table, b.table, check_exact=True)
    other = run(data, "half", random_state=1)
    assert other["mi"]["total"].value != a["mi"]["total"].value
    assert set(a.table["error_method"]) == {"rubin"}
    assert 0 < a["mi"]["total"].missing_information < 1
    assert 0 < a.outcomes["mi"].ess < len(data)


def test_policies_are_compared_table_by_table(law):
    data, _ = draw(law, 2000, 3)
    alone = {name: run(data, name)["mi"]["total"] for name in POLICIES}
    calls = []

    class Counting(afape.ChainedImputer):
        def impute(self, data, n_imputations, random_state):
            calls.append(n_imputations)
            return super().impute(data, n_imputations, random_state)

    found = afape.compare(
        data, POLICIES, Sums(), missingness=afape.MAR(given=["a"]), estimators=["mi"], imputer=Counting()
    )
    assert calls == [10]  # shared by the policies
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
    assert_allclose(part.outcomes["mi"].estimates["total"].within / whole["mi"]["total"].within, 2, rtol=0.2)


def test_a_group_that_is_never_recorded_leaves_mi_without_answer(law):
    data = law.hide(np.tile([True, True, False], (len(law), 1)))
    with pytest.warns(afape.AfapeWarning):
        result = run(data, estimators=["mi", "ipw-semi"])
    assert "mi" not in result
    with pytest.raises(afape.NotEstimableError, match="no row has 'c' recorded"):
        result["mi"]
    with pytest.raises(ValueError, match="must record every group somewhere, but 'c' is recorded in no row"):
        next(iter(afape.ChainedImputer().impute(data, 2, 0)))


# ------------------------------------------------------------------------------------------------------ other imputers


class Own:
    """Draws a recorded row at random, then spoils the table."""

    def __init__(self, spoil=lambda table, data: table, n_tables=10):
        self.spoil, self.n_tables = spoil, n_tables

    def impute(self, data, n_imputations, random_state):
        rng = np.random.default_rng(random_state)
        for _ in range(min(n_imputations, self.n_tables)):
            donors = data.values[rng.choice(np.flatnonzero(data.complete), size=len(data))]
            yield self.spoil(np.where(np.isnan(data.values), donors, data.values), data)


def test_any_imputer_will_do(law):
    data, _ = draw(law, 800, 7)
    plain = run(data, "half", imputer=Own())
    assert np.isfinite(plain["mi"]["total"].std_error)
    for name in ("trees", "linear", "matching"):
        result = run(data, "half", imputer=name, n_imputations=3)
        assert len(result["mi"]["total"].values) == 3
    assert run(data, "half", imputer="trees")["mi"]["total"].value == run(data, "half")["mi"]["total"].value
    sklearn = run(data, "half", imputer=IterativeImputer(sample_posterior=True, max_iter=3, tol=1e9), n_imputations=3)
    assert abs(sklearn["mi"]["total"].value - run(data, "half")["mi"]["total"].value) < 0.5
    assert sklearn["mi"]["total"].between > 0


def changed(table, data):
    table[np.flatnonzero(data.recorded[:, 2])[0], 6] += 0.5
    return table


def torn(table, data):
    table[np.flatnonzero(~data.recorded[:, 1])[0], 3:6] = 0.3, 0.3, 0.4
    return table


def hollow(table, data):
    table[3, 6] = np.nan
    return table


BAD = {
    "gaps": (Own(hollow), ValueError, "complete, finite tables, but column 'c' still has gaps"),
    "changed": (Own(changed), ValueError, "leave recorded values as they are, but changed column 'c'"),
    "shape": (
        Own(lambda t, d: t[:, :3]),
        ValueError,
        r"tables of shape \(300, 7\), rows by columns, but gave \(300, 3\)",
    ),
    "category": (Own(torn), ValueError, r"one level, but the columns \['b=k', 'b=l', 'b=m'\]"),
    "too few": (Own(n_tables=4), ValueError, "must give 10 tables, but gave 4"),
    "no draw": (
        Own(lambda t, d: np.where(np.isnan(d.values), [1, 0, 0, 1, 0, 0, 1], d.values)),
        ValueError,
        "tables are equal",
    ),
    "name": (
        "forest",
        ValueError,
        r"'imputer' must be one of \['trees', 'linear', 'matching'\] or an object, but is 'forest'",
    ),
    "class": (afape.ChainedImputer, TypeError, "must be an instance, but is the class ChainedImputer"),
    "number": (3, TypeError, "must be None, one of .*, not int"),
    "single": (SimpleImputer(), ValueError, r"draw at random, but SimpleImputer\(\) gives the same values"),
    "no posterior": (IterativeImputer(), ValueError, r"sample_posterior=True\), or the default"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_imputers_are_refused(law, what):
    imputer, error, match = BAD[what]
    data, _ = draw(law, 300, 8)
    with pytest.raises(error, match=match):
        run(data, imputer=imputer)


@pytest.mark.parametrize("n", [1, 0, 2.5, True, "10"])
def test_too_few_imputations_are_refused(law, n):
    with pytest.raises(ValueError, match="'n_imputations' must be a whole number of at least 2"):
        run(law, n_imputations=n)


@pytest.mark.parametrize("options", [{"n_sweeps": 0}, {"min_leaf": 0}, {"min_leaf": 1.5}, {"model": "forest"}])
def test_bad_options_of_the_imputer_are_refused(options):
    with pytest.raises(ValueError, match=f"'{next(iter(options))}' must be"):
        afape.ChainedImputer(**options)


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
    assert ("mi" in result.outcomes) == offered
    if not offered:
        with pytest.raises(ValueError, match="has 'mi', but imputation needs data missing at random"):
            afape.evaluate(data, afape.FixedOrder(["g2"]), world.classifier, estimators=["mi"], **options)


def test_imputer_describes_itself():
    assert repr(afape.ChainedImputer("linear")) == "ChainedImputer('linear', n_sweeps=5, min_leaf=5)"
    assert isinstance(afape.ChainedImputer(), afape.Imputer)


def test_equal_tables_are_fine_where_the_records_leave_no_choice():
    """All recorded values are the same, so every imputation is."""
    frame = pd.DataFrame({"a": np.arange(40.0), "b": [1.0] * 30 + [np.nan] * 10, "y": np.arange(40) % 2})
    data = afape.Retrospective(frame, afape.Problem({"a": ["a"], "b": ["b"]}, {"b": 1.0}, "y", 5.0))
    result = afape.evaluate(
        data, afape.AcquireAll(), Zero(), missingness=afape.MAR(["a"]), estimators=["mi"], n_imputations=3
    )
    assert_allclose(result["mi"]["total"].value, 3.5)
    assert result["mi"]["total"].between == 0


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
    with pytest.warns(afape.SupportWarning, match="no row has recorded"):
        result = afape.evaluate(
            data, afape.AcquireAll(), Zero(), missingness=afape.MCAR(), estimators=["mi"], n_imputations=3
        )
    assert "rest on the imputation model alone" in result.table["note"].iloc[0]


@pytest.mark.parametrize("model", ["linear", "trees"])
def test_imputations_know_that_rows_belong_together(model):
    """Clusters of twelve like rows: imputations must vary as clusters do, not as rows."""
    rng = np.random.default_rng(3)
    spread = {}
    cluster = np.repeat(np.arange(40), 12)
    value = np.repeat(rng.normal(size=40), 12) + 0.3 * rng.normal(size=480)
    hidden = np.repeat(rng.random(40) < 0.6, 12)
    frame = pd.DataFrame({"a": rng.normal(size=480), "b": np.where(hidden, np.nan, value), "y": 0, "who": cluster})
    frame.loc[::2, "y"] = 1
    problem = afape.Problem({"a": ["a"], "b": ["b"]}, {"b": 1.0}, "y", 5.0)
    for known in (None, "who"):
        data = afape.Retrospective(frame, problem, cluster=known)
        tables = afape.ChainedImputer(model).impute(data, 30, random_state=0)
        spread[known] = np.std([table[hidden, 1].mean() for table in tables])
    assert spread["who"] > 1.5 * spread[None]
