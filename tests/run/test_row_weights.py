"""Rows with weights: weights of 1, whole-number weights, the scale of weights, samples drawn by label, bad weights."""

import numpy as np
import pandas as pd
import pytest
import small_records
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

import afape
from afape.propensity import LearnedPropensity

FAST = ["imp-mean", "blocking", "cc", "ipw-miss", "ipw-semi", "dm-semi", "drl-semi"]
MAR = afape.MAR(given=["a"])


def weighted(n=400, seed=0, counts=(1, 4)):
    table = small_records.frame(n, seed)
    table["w"] = np.random.default_rng(seed + 1).integers(*counts, size=n)
    return table


def repeated(table):
    return table.loc[table.index.repeat(table["w"])].reset_index(drop=True)


def evaluated(data, estimators=FAST, **options):
    return afape.evaluate(
        data, small_records.Look(), small_records.Above(), missingness=MAR, estimators=estimators, **options
    )


def numbers(result):
    return result.table.set_index(["estimator", "target"])[["estimate", "std_error", "lower", "upper", "ess"]]


def test_equal_weights_change_nothing():
    table = weighted()
    plain, same = (small_records.records(table.assign(w=2.5), **o) for o in ({}, {"weight": "w"}))
    assert same.weight is None
    pd.testing.assert_frame_equal(evaluated(same).table, evaluated(plain).table, check_exact=True)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"propensity": LearnedPropensity(form="spline")},
        {"propensity": LearnedPropensity(method="autoregressive"), "estimators": ["ipw-semi", "drl-semi"]},
        {"values": "pooled", "estimators": ["dm-semi", "drl-semi"]},
        {"values": afape.LearnedValues(augment_label=False), "estimators": ["dm-semi", "drl-semi"]},
        {"split": 0.4},
        {"n_folds": 1, "normalize": False},
    ],
)
def test_whole_number_weights_are_repeated_rows(options):
    """Learned propensities and action values included; the copies of a row are one cluster, so they share a fold."""
    table = weighted()
    rows = evaluated(small_records.records(table, weight="w"), **options)
    copies = evaluated(small_records.records(repeated(table), cluster="row"), **options)
    found, wanted = numbers(rows), numbers(copies)
    assert_allclose(found["estimate"], wanted["estimate"], rtol=1e-9)
    assert_allclose(found["std_error"], wanted["std_error"], rtol=1e-8)
    if "split" not in options:
        weighing = [name for name in found.index if name[0].startswith(("ipw", "drl"))]
        assert_allclose(found.loc[weighing, "ess"], wanted.loc[weighing, "ess"], rtol=1e-9)
    assert (
        np.abs(found["estimate"] / numbers(evaluated(small_records.records(table), **options))["estimate"] - 1).max()
        > 1e-3
    )


@pytest.mark.parametrize("graph", ["a -> R_b; b -> R_c", "c -> R_b; R_b -> R_c"])
def test_weights_of_a_learned_graph_are_repeated_rows(graph):
    """In the second graph, rows of a fit are weighted by other factors."""
    table = weighted(600)
    graph = afape.MNAR(graph=graph)
    found = []
    for data in (small_records.records(table, weight="w"), small_records.records(repeated(table), cluster="row")):
        result = afape.evaluate(
            data,
            small_records.Look(),
            small_records.Above(),
            missingness=graph,
            estimators=["ipw-semi-miss", "drl-semi-miss"],
        )
        found.append(numbers(result)[["estimate", "std_error"]])
    assert_allclose(found[0], found[1], rtol=1e-8)


@pytest.mark.filterwarnings("ignore::afape.warnings.AfapeWarning")
def test_the_scale_of_weights_has_no_effect():
    table = weighted(200)
    table["w"] = np.random.default_rng(3).exponential(size=len(table))
    names = [*FAST, "eff-semi", "mi"]
    ends = [
        evaluated(
            small_records.records(table.assign(w=scale * table["w"]), weight="w"), names, n_imputations=2, bootstrap=2
        )
        for scale in (1.0, 1e-6)
    ]
    assert_allclose(*(numbers(result) for result in ends), rtol=1e-9)


@pytest.mark.filterwarnings("ignore::afape.warnings.AfapeWarning")
def test_every_part_of_a_result_uses_the_weights():
    """Subgroups, parts, metrics, outcomes, prices, sensitivity, support and the true cost."""
    table = weighted(500)
    rows, copies = small_records.records(table, weight="w"), small_records.records(repeated(table), cluster="row")
    found = []
    for data in (rows, copies):
        by = np.where(data.values[:, 0] > 0, "high", "low")
        outcomes = {"acquired": lambda values, acquired, labels: acquired.sum(axis=1) + labels}
        result = evaluated(data, ["ipw-semi", "drl-semi"], by=by, outcomes=outcomes)
        costs = {"b": 5.0, "c": 0.5}
        bounds = afape.sensitivity(
            data, small_records.Look(), small_records.Above(), missingness=MAR, lambdas=(1.0, 1.5), bootstrap=0
        )
        sets = result.support.sets.sort_values("set")
        balance = result.support.balance.sort_values(["set", "column"])
        found.append(
            np.concatenate(
                [
                    result.subgroups["high"].table["estimate"],
                    result.parts("drl-semi").table["estimate"],
                    result.metrics("drl-semi")["estimate"],
                    result.reprice(costs=costs).table["estimate"],
                    bounds.table[["bound_lower", "bound_upper"]].to_numpy().ravel(),
                    sets[["wanted", "share_recorded"]].to_numpy().ravel(),
                    result.support.groups[["wanted", "share_recorded"]].to_numpy().ravel(),
                    result.paths.sets.sort_values("set")[["share", "stops", "misclassification"]].to_numpy().ravel(),
                    result.paths.steps.sort_values(["set", "group"])["share"],
                    result.table.loc[result.table["target"] == "acquired", "estimate"],
                    afape.check_missingness(data, afape.MCAR()).table.sort_values(["recording", "of"])["odds_ratio"],
                    balance[["before", "after"]].to_numpy().ravel(),
                ]
            )
        )
    assert_allclose(found[0], found[1], rtol=1e-8, atol=1e-10)
    whole = [
        small_records.records(t, **o)
        for full in (weighted(300).assign(b=0.5, c=-1.0),)
        for t, o in ((full, {"weight": "w"}), (repeated(full), {"cluster": "row"}))
    ]
    truth = [afape.true_cost(data, small_records.Look(), small_records.Above())["total"] for data in whole]
    assert_allclose(truth[0].value, truth[1].value, rtol=1e-12)
    assert_allclose(truth[0].std_error, truth[1].std_error, rtol=1e-12)


@pytest.mark.filterwarnings("ignore::afape.warnings.AfapeWarning")
def test_bootstrap_draws_multiply_weights():
    table = weighted(300)
    data = small_records.records(table, weight="w")
    result = evaluated(data, ["ipw-semi"], bootstrap=60)
    estimate = result["ipw-semi"]["total"]
    assert 0.7 < estimate.bootstrap_std_error / estimate.std_error < 1.4
    assert abs(estimate.replicates.mean() - estimate.value) < 4 * estimate.std_error / np.sqrt(60)


@pytest.mark.filterwarnings("ignore::afape.warnings.AfapeWarning")
def test_drawn_models_follow_the_weights():
    """`eff-semi` and `mi` draw values at random; their difference from repeated rows is that of another seed."""
    table = weighted(500)
    data = small_records.records(table, weight="w")
    copies = small_records.records(repeated(table), cluster="row")
    for name, options in (("eff-semi", {}), ("mi", {"n_imputations": 5})):
        one, two = (evaluated(d, [name], **options)[name]["total"] for d in (data, copies))
        assert abs(one.value - two.value) < one.std_error
        assert_allclose(one.std_error, two.std_error, rtol=0.25)


def world(n, seed):
    """Cases in which the label is rare, and depends on b; b is recorded more often where a is high."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n))
    died = rng.random(n) < 1 / (1 + np.exp(4 - 1.5 * b - a))
    kept = rng.random(n) < 1 / (1 + np.exp(-0.5 - a))
    return pd.DataFrame({"a": a, "b": np.where(kept, b, np.nan), "died": died.astype(int), "whole": b})


class Threshold:
    def predict(self, values, acquired):
        return (np.nan_to_num(values).sum(axis=1) > 1.5).astype(int)


def case_control(seed, size=400):
    """As many cases as controls, drawn from a large population."""
    table = world(20_000, seed)
    rng = np.random.default_rng(seed)
    chosen = [rng.choice(np.flatnonzero(table["died"] == k), size, replace=False) for k in (0, 1)]
    return table.iloc[np.concatenate(chosen)].reset_index(drop=True)


PROBLEM = afape.Problem({"a": ["a"], "b": ["b"]}, {"b": 1.0}, "died", [[0, 4], [30, 0]], [0, 1])


@pytest.fixture(scope="module")
def population():
    table = world(1_000_000, 99)
    whole = afape.Retrospective(table.assign(b=table["whole"]), PROBLEM)
    policy = afape.AcquireAll()
    return table["died"].mean(), afape.true_cost(whole, policy, Threshold())["total"].value


def test_a_case_control_sample_represents_the_population(population):
    share, truth = population
    data = afape.Retrospective(case_control(0), PROBLEM)
    plain = afape.evaluate(data, afape.AcquireAll(), Threshold(), missingness=MAR, estimators=["ipw-semi"])
    shared = afape.population_weights(data, {"died": share})
    found = afape.evaluate(shared, afape.AcquireAll(), Threshold(), missingness=MAR, estimators=["ipw-semi"])
    estimate = found["ipw-semi"]["total"]
    assert abs(plain["ipw-semi"]["total"].value - truth) > 5 * plain["ipw-semi"]["total"].std_error
    assert abs(estimate.value - truth) < 4 * estimate.std_error
    dying = shared.labels == 1
    assert_allclose(shared.weight[dying].sum() / shared.weight.sum(), share, rtol=1e-12)
    # The shares of the labels are known, so their sampling error is not part of the standard error.
    free = afape.evaluate(
        shared.with_weights(shared.weight), afape.AcquireAll(), Threshold(), missingness=MAR, estimators=["ipw-semi"]
    )["ipw-semi"]["total"]
    assert_allclose(free.value, estimate.value, rtol=1e-12)
    assert estimate.std_error < 0.97 * free.std_error
    assert "Rows have weights" in " ".join(found.assumption)


@pytest.mark.slow
def test_intervals_of_case_control_samples_cover(population):
    share, truth = population
    names, runs = ["ipw-semi", "drl-semi", "dm-semi"], 200
    inside = dict.fromkeys(names, 0)
    for seed in range(runs):
        data = afape.population_weights(afape.Retrospective(case_control(seed), PROBLEM), {"died": share})
        found = afape.evaluate(data, afape.AcquireAll(), Threshold(), missingness=MAR, estimators=names)
        for name in names:
            low, high = found[name]["total"].interval()
            inside[name] += low <= truth <= high
    for name in names:
        assert 0.91 < inside[name] / runs <= 0.985, inside


def test_splits_keep_the_known_shares():
    data = afape.population_weights(afape.Retrospective(case_control(0), PROBLEM), {1: 0.05})
    for part in data.split([0.5, 0.5]):
        assert_allclose(part.weight[part.labels == 1].sum() / part.weight.sum(), 0.05, rtol=1e-12)
    rows = small_records.records(weighted(100), weight="w")
    parts = rows.split([0.3, 0.7])
    assert_array_equal(np.sort(np.concatenate([p.weight for p in parts])), np.sort(rows.weight))
    assert data.take(np.arange(10)).label_shares is None


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (-1.0, "negative in 1 of 50"),
        (np.nan, "blank in 1 of 50"),
        (np.inf, "infinite in 1 of 50"),
    ],
)
def test_bad_weights_are_refused(bad, words):
    table = weighted(50).astype({"w": float})
    table.loc[7, "w"] = bad
    with pytest.raises(ValueError, match=f"'weight' names must be finite and not negative, but is {words}.*position 7"):
        small_records.records(table, weight="w")
    with pytest.raises(ValueError, match=f"'weights' must be finite and not negative, but is {words}"):
        small_records.records(table).with_weights(table["w"])


def test_other_bad_weights_are_refused():
    table = weighted(50)
    with pytest.raises(ValueError, match="'weight' names must be positive in some row, but is 0 in all 50 rows"):
        small_records.records(table.assign(w=0), weight="w")
    with pytest.raises(ValueError, match="no column 'v', which 'weight' names"):
        small_records.records(table, weight="v")
    with pytest.raises(ValueError, match="'weight' must name a column of numbers, but 'w' holds 'x'"):
        small_records.records(table.assign(w="x"), weight="w")
    with pytest.raises(
        ValueError, match=r"'weights' must be one number per row, shape \(50,\), but the shape is \(3,\)"
    ):
        small_records.records(table).with_weights([1, 2, 3])
    data = afape.Retrospective(case_control(0, 20), PROBLEM)
    for shares, words in (
        ({"lived": 0.1}, "'shares' must name labels, but 'lived' is not one"),
        ({"died": 1.0}, "'shares' must lie strictly between 0 and 1"),
        ({0: 0.5, 1: 0.6}, "must sum to 1"),
    ):
        with pytest.raises(ValueError, match=words):
            afape.population_weights(data, shares)
    with pytest.raises(ValueError, match="no row has 1: no weight can represent these cases"):
        afape.population_weights(data.take(data.labels == 0), {1: 0.02})


def test_rows_of_weight_zero_are_left_out():
    table = weighted(100)
    table.loc[::4, "w"] = 0
    data = small_records.records(table, weight="w")
    assert len(data) == 75
    assert_array_equal(data.positions, np.flatnonzero(table["w"]))


def test_models_that_take_no_weights_are_named():
    table = weighted(600)
    data = small_records.records(table, weight="w")
    result = evaluated(data, ["ipw-semi"], propensity=KNeighborsClassifier(50))
    copies = evaluated(
        small_records.records(repeated(table), cluster="row"), ["ipw-semi"], propensity=KNeighborsClassifier(50)
    )
    assert_allclose(numbers(result)["estimate"], numbers(copies)["estimate"], rtol=1e-9)
    assert result.table["note"].str.contains("KNeighborsClassifier takes no weights").all()
    other = evaluated(data, ["ipw-semi"], propensity=DecisionTreeClassifier(max_depth=2))
    assert not other.table["note"].str.contains("takes no weights").any()


def test_known_shares_of_labels_limit_the_costs(population):
    """Few cases can die, so costs that no row showed are at most those of the known share."""
    share, _ = population
    data = afape.population_weights(afape.Retrospective(case_control(0), PROBLEM), {"died": share})
    found = afape.evaluate(
        data,
        afape.AcquireAll(),
        Threshold(),
        missingness=MAR,
        estimators=["ipw-semi"],
        by=np.where(data.values[:, 0] > 0, "high", "low"),
    )
    assert_allclose(found["ipw-semi"]["misclassification"].limits, (0, (1 - share) * 4 + share * 30), rtol=1e-12)
    low, high = found["ipw-semi"]["total"].interval()
    assert high - low < 6 * found["ipw-semi"]["total"].std_error
    again = found.reprice(misclassification_cost=[[0, 1], [100, 0]])["ipw-semi"]["misclassification"]
    assert_allclose(again.limits[1], (1 - share) + share * 100, rtol=1e-12)
    part = found.subgroups["high"]  # the shares of its labels are not known
    assert part["ipw-semi"]["misclassification"].limits[1] == 30
    assert part.reprice(misclassification_cost=[[0, 1], [100, 0]])["ipw-semi"]["misclassification"].limits[1] == 100
