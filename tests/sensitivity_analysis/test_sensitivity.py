"""sensitivity(): estimates at Lambda = 1, bounds that hold where an unmeasured reason is at work, tipping, bad input."""

import itertools
import pickle
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import linprog
from worlds import WORLDS, Zero

import afape
from afape.benchmark.synthetic import synthetic_mar, synthetic_mnar, synthetic_policies
from afape.propensity.known import BoundKnownPropensity
from afape.propensity.weights import View
from afape.sensitivity_analysis.marginal import bounds, odds_box
from afape.sensitivity_analysis.stops import stops_of
from afape.sensitivity_analysis.uncertain_costs import constraints_on
from afape.walk.ground import Ground
from afape.walk.walker import walk

pytestmark = pytest.mark.slow

LAMBDAS = (1.0, 1.2, 1.5, 2.0)
IDS = {"ids": lambda w: f"world{w.seed}"}


@pytest.fixture(scope="module")
def parts():
    experiment = synthetic_mar(2000)
    classifier, data, _ = experiment.prepare()
    return experiment, classifier, data


def run(parts, policies=None, **options):
    experiment, classifier, data = parts
    if policies is None:
        policies = {name: synthetic_policies()[name] for name in ("Random 90 %", "Adaptive")}
    good = {"missingness": experiment.missingness, "lambdas": LAMBDAS, "bootstrap": 0}
    return afape.sensitivity(data, policies, classifier, **(good | options))


@pytest.fixture(scope="module")
def found(parts):
    return run(parts, bootstrap=20)


# --- Lambda = 1 -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("world", WORLDS, **IDS)
@pytest.mark.parametrize("kind", ["valid", "sharp"])
def test_lambda_one_is_the_trajectory_normalised_estimate(world, kind):
    """Against every trajectory of every row, written out."""
    data, levels, _ = world.everything()
    free = ~world.costly
    sums = np.zeros(3)  # weight, acquisition, misclassification
    for i in range(len(data)):
        if not data.recorded[i][free].all():
            continue
        row = world.values(levels[i])
        for probability, steps in world.trajectories(row, free, data.recorded[i]):
            acquired, last = steps[-1]
            if last == world.n_groups:
                flow = probability / world.superset(levels[i], np.array(acquired) & ~data.always_recorded)
                paid, wrong = world.prices[list(acquired)].sum(), world.stop_cost(row, data.labels[i], acquired)
                sums += flow * np.array([1.0, paid, wrong])
    truth = {"acquisition": sums[1] / sums[0], "misclassification": sums[2] / sums[0]}
    truth["total"] = sum(truth.values())
    for target, value in truth.items():
        result = afape.sensitivity(
            data,
            world.policy,
            world.classifier,
            missingness=afape.MAR(given=[f"g{i}" for i in world.given]),
            propensity=world.known_propensity(),
            target=target,
            kind=kind,
            lambdas=[1, 1.5],
            bootstrap=0,
        )
        one, more = result.table.iloc[0], result.table.iloc[1]
        assert_allclose([one["bound_lower"], one["bound_upper"]], value, rtol=1e-9)
        assert more["bound_lower"] <= one["bound_lower"] + 1e-9
        assert more["bound_upper"] >= one["bound_upper"] - 1e-9


def test_misclassification_at_lambda_one_is_ipw_semi(parts):
    experiment, classifier, data = parts
    policy = synthetic_policies()["Random 50 %"]
    result = run(parts, policy, target="misclassification")
    known = afape.evaluate(data, policy, classifier, missingness=experiment.missingness, estimators=["ipw-semi"])
    (name,) = result.policies
    assert_allclose(result.estimate(name), known["ipw-semi"]["misclassification"].value, rtol=1e-12)


@pytest.mark.parametrize("adjust", [[], ["x1"], ["x1", "x2"]])
def test_adjusted_views_have_bounds_too(parts, adjust):
    """With all groups in adj the estimate is that of ipw-miss; a row then has one weight for all its sets."""
    experiment, classifier, data = parts
    policy = synthetic_policies()["Random 50 %"].bind(data.problem)
    view = View(
        BoundKnownPropensity(experiment.mechanism.propensity(data), data),
        data.recorded,
        np.isin(data.problem.group_names, adjust),
    )
    walked = walk(Ground.recorded(data, policy, classifier))
    (constraints,) = constraints_on([stops_of(walked, data.problem.prices, "misclassification")], data, view, None)
    states, weights = constraints.states, constraints.weights(view, None)
    lower, upper = bounds(states.ratio(), weights, [1.0, 1.5])
    assert lower[1] < lower[0] == upper[0] < upper[1]
    for i in (0, len(data) // 2):
        assert len(np.unique(states.sets[states.row == i], axis=0)) == (states.row == i).sum()
    if len(adjust) == 2:
        known = afape.evaluate(
            data,
            policy,
            classifier,
            missingness=experiment.missingness,
            propensity=experiment.mechanism.propensity(data),
            estimators=["ipw-miss"],
        )
        assert_allclose(upper[0], known["ipw-miss"]["misclassification"].value, rtol=1e-12)
        assert len(np.unique(states.row)) == len(states.row)


# --- bounds hold ------------------------------------------------------------------------------------------------------


def confounded(seed, n=6000, push=2.0):
    """Hidden u makes labels hard and recording rare, or the other way round; returns records, the complete ones, and the
    strength of u as an odds ratio between P(R >= S | x, u) and P(R >= S | x)."""
    rng = np.random.default_rng([seed, 29])
    sign = 1 if seed % 2 else -1
    x, u, y = (rng.random(n) < 0.5 for _ in range(3))
    base = rng.uniform(-0.4, 0.8, size=(2, 2))  # log-odds of b and c, by x
    wrong = rng.random((n, 2)) < np.where(u[:, None], [0.55, 0.5], [0.1, 0.05])
    b, c = (np.where(wrong[:, k], ~y, y).astype(float) for k in (0, 1))
    logit = base[:, x.astype(int)].T + sign * np.log(push) * np.where(u, 1, -1)[:, None]
    recorded = rng.random((n, 2)) < 1 / (1 + np.exp(-logit))
    frame = pd.DataFrame({"x": x.astype(float), "b": b, "c": c, "y": y.astype(int)})
    problem = afape.Problem({g: [g] for g in "xbc"}, {"b": 1.0, "c": 2.0}, "y", 20.0)
    full = afape.Retrospective(frame, problem)
    p = 1 / (1 + np.exp(-base[:, :, None] - sign * np.log(push) * np.array([1, -1])))  # group, x, u
    sets = [p[0], p[1], p[0] * p[1]]
    odds = [q / (1 - q) for q in sets]
    means = [q.mean(axis=1, keepdims=True) for q in sets]
    ratios = np.array([o / (m / (1 - m)) for o, m in zip(odds, means, strict=True)])
    strength = float(np.maximum(ratios, 1 / ratios).max())
    return full.hide(np.column_stack([np.ones(n, bool), recorded])), full, strength


class LastSeen:
    """Predicts what c says, else what b says, else 0."""

    def predict(self, values, acquired):
        b, c = np.nan_to_num(values[:, 1]), np.nan_to_num(values[:, 2])
        return np.where(acquired[:, 2], c, np.where(acquired[:, 1], b, 0)).astype(int)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["valid", "sharp"])
def test_bounds_contain_the_truth_where_the_estimate_does_not(seed, kind):
    data, full, strength = confounded(seed, n=3000 if kind == "sharp" else 6000)
    assert 1.5 < strength < 4.5
    policies = {"all": afape.AcquireAll(), "half": afape.RandomSubset(0.5)}
    result = afape.sensitivity(
        data,
        policies,
        LastSeen(),
        missingness=afape.MAR(given=["x"]),
        lambdas=[1, strength],
        kind=kind,
        bootstrap=afape.Bootstrap(20) if kind == "valid" else 0,
    )
    for name, policy in policies.items():
        truth = afape.true_cost(full, policy, LastSeen())["total"].value
        one, right = (line for _, line in result.table[result.table["policy"] == name].iterrows())
        assert right["bound_lower"] < truth < right["bound_upper"]
        if kind == "valid":
            assert not one["lower"] < truth < one["upper"]


def test_sharp_bounds_are_attained_by_the_worst_reason():
    """All is missing by one reason, that the label is hard, at full strength: the sharp upper bound is the truth."""
    rng = np.random.default_rng(1)
    n = 20_000
    wrong = rng.random(n) < 0.3
    seen = rng.random(n) < np.where(wrong, 0.4, 0.6)
    frame = pd.DataFrame({"b": wrong.astype(float), "y": np.zeros(n, int)})
    problem = afape.Problem({"b": ["b"]}, {"b": 1.0}, "y", 10.0, classes=[0, 1])
    data = afape.Retrospective(frame, problem).hide(seen[:, None])

    class Follow:
        def predict(self, values, acquired):
            return np.nan_to_num(values[:, 0]).astype(int)

    def upper(kind):
        result = afape.sensitivity(
            data, afape.AcquireAll(), Follow(), missingness=afape.MCAR(), lambdas=[strength], kind=kind, bootstrap=0
        )
        return result.table["bound_upper"].iloc[0] - 1.0

    odds = 0.54 / 0.46  # P(R = 1) = 0.3 * 0.4 + 0.7 * 0.6
    strength = odds / (0.4 / 0.6)
    # By hand: the hard ones rise to their upper weight; the others fall to their lower one, or only as far as balance asks.
    share, inverse = wrong[seen].mean(), 1 / seen.mean()
    high, low = 1 + strength * (inverse - 1), 1 + (inverse - 1) / strength
    assert_allclose(upper("valid"), 10 * share * high / (share * high + (1 - share) * low), rtol=1e-3)
    assert_allclose(upper("sharp"), 10 * share * high / inverse, rtol=1e-3)
    assert_allclose(upper("sharp"), 10 * wrong.mean(), rtol=0.05)


def test_sharp_bounds_lie_inside_valid_ones(parts):
    valid, sharp = run(parts).table, run(parts, kind="sharp").table
    one = sharp["Lambda"] == 1
    assert_allclose(valid.loc[one, "bound_lower"], sharp.loc[one, "bound_lower"], rtol=1e-12)
    assert (sharp["bound_lower"] >= valid["bound_lower"] - 1e-12).all()
    assert (sharp["bound_upper"] <= valid["bound_upper"] + 1e-12).all()
    width = (sharp["bound_upper"] - sharp["bound_lower"]) / (valid["bound_upper"] - valid["bound_lower"])
    assert width[~one & (sharp["policy"] == "Random 90 %")].max() < 0.8
    for _, part in sharp.groupby("policy"):
        assert (part["bound_lower"].diff().dropna() <= 1e-7).all()
        assert (part["bound_upper"].diff().dropna() >= -1e-7).all()


@pytest.mark.parametrize("policy", ["Random 50 %", "Adaptive"])
def test_sharp_weights_balance_and_equal_a_dense_solver(parts, policy):
    """The sparse, scaled programme against Charnes and Cooper's, with every constraint written out."""
    experiment, classifier, data = parts
    few = data.take(np.arange(60))
    result = run((experiment, classifier, few), {"p": synthetic_policies()[policy]}, kind="sharp")
    _, sharp = result.costs.alone["p"]
    states, weights = sharp.states, sharp.weights(result.costs.view, None)
    ratio, s, nominal = states.ratio(), len(states.row), weights.nominal
    recorded = few.recorded[states.row]
    assert (states.sets <= recorded).all()
    h = sharp.functions.toarray()
    for required in np.unique(states.sets, axis=0):
        mine = (states.sets == required).all(axis=1)
        assert mine.sum() == (few.recorded | ~required).all(axis=1).sum()
        assert (h == mine).all(axis=1).any()  # all rows that have the set count in its constant, stopped in or not
    low, high = odds_box(nominal, 2.0)
    order = [
        np.eye(s)[j] - np.eye(s)[k]
        for j in range(s)
        for k in range(s)
        if j != k
        and states.row[j] == states.row[k]
        and (states.sets[j] <= states.sets[k]).all()
        and nominal[j] <= nominal[k]
    ]
    lines = np.vstack([np.eye(s), -np.eye(s), *order])
    right = np.concatenate([high, -low, np.zeros(len(order))])
    for sign, value in zip((-1, 1), bounds(ratio, weights, [2.0]), strict=True):
        solved = linprog(
            np.append(-sign * ratio.amount, 0),
            A_ub=np.column_stack([lines, -right]),
            b_ub=np.zeros(len(right)),
            A_eq=np.vstack([np.append(ratio.flow, 0), np.column_stack([h, -h @ nominal])]),
            b_eq=np.append(1, np.zeros(len(h))),
            bounds=(0, None),
        )
        assert_allclose(value[0], -sign * solved.fun, rtol=1e-6)
    w = weights.maximise(ratio.amount - ratio.at(nominal) * ratio.flow, 2.0)
    assert_allclose(h @ w, h @ nominal, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("kind", ["valid", "sharp"])
def test_row_weights_count_rows(parts, kind):
    """Bounds of a replicate are those of records in which each row stands as often as it was drawn."""
    experiment, classifier, data = parts
    drawn = np.random.default_rng(3).integers(3, size=len(data))
    options = {"propensity": experiment.mechanism.propensity(data), "missingness": afape.MCAR(), "kind": kind}
    once = run(parts, {"p": afape.AcquireAll()}, **options)
    often = run(
        (experiment, classifier, data.take(np.repeat(np.arange(len(data)), drawn))),
        {"p": afape.AcquireAll()},
        **options,
    )
    lower, upper = once.costs.bounds("p", LAMBDAS, row_weight=drawn.astype(float))
    assert_allclose(lower, often.table["bound_lower"], rtol=1e-6)
    assert_allclose(upper, often.table["bound_upper"], rtol=1e-6)


# --- the result -------------------------------------------------------------------------------------------------------


def test_table_has_bounds_and_intervals(found):
    table = found.table
    columns = ["policy", "target", "Lambda", "bound_lower", "bound_upper", "lower", "upper"]
    assert list(table.columns) == columns
    assert len(table) == 2 * len(LAMBDAS)
    assert (table["lower"] < table["bound_lower"]).all()
    assert (table["upper"] > table["bound_upper"]).all()
    for _, part in table.groupby("policy"):
        assert (part[["bound_lower", "lower"]].diff().dropna() < 0).all(axis=None)
        assert (part[["bound_upper", "upper"]].diff().dropna() > 0).all(axis=None)
    assert "valid bounds of the total cost, 1600 rows" in repr(found)
    assert found.bounds("Adaptive", 1.5) == tuple(table[["bound_lower", "bound_upper"]].iloc[6])
    assert found.relaxed == 0


def test_intervals_are_those_of_the_bootstrap(parts):
    """At Lambda = 1 the replicates of the misclassification cost are those of evaluate."""
    experiment, classifier, data = parts
    policy = synthetic_policies()["Adaptive"]
    result = run(parts, {"p": policy}, target="misclassification", bootstrap=25, confidence=0.8)
    known = afape.evaluate(
        data, policy, classifier, missingness=experiment.missingness, estimators=["ipw-semi"], bootstrap=25
    )
    replicates = known["ipw-semi"]["misclassification"].replicates
    assert_allclose(result.table.iloc[0][["lower", "upper"]].astype(float), np.quantile(replicates, [0.1, 0.9]))


@pytest.mark.parametrize(
    "options", [{"n_jobs": 2}, {"walk": afape.WalkOptions(chunk_lines=50)}], ids=["two jobs", "small chunks"]
)
def test_same_seed_same_numbers(parts, options):
    a, b = run(parts, bootstrap=4), run(parts, bootstrap=4, **options)
    pd.testing.assert_frame_equal(a.table, b.table, check_exact=True)
    other = run(parts, bootstrap=4, random_state=1, **options)
    assert not other.table["lower"].equals(a.table["lower"])


def test_sampled_walks_are_bounded_too(parts):
    policies = {"p": synthetic_policies()["Random 50 %"]}
    exact = run(parts, policies)
    sampled = run(parts, policies, walk=afape.WalkOptions(max_states=0, n_trajectories=100))
    assert_allclose(
        sampled.table[["bound_lower", "bound_upper"]], exact.table[["bound_lower", "bound_upper"]], rtol=0.03
    )
    small = run(parts, policies, walk=afape.WalkOptions(max_states=0, n_trajectories=100, chunk_lines=500))
    pd.testing.assert_frame_equal(sampled.table, small.table, check_exact=True)


def test_clusters_are_drawn_whole():
    rng = np.random.default_rng(0)
    n = 240
    frame = pd.DataFrame({"b": rng.integers(2, size=n).astype(float), "y": rng.integers(2, size=n)})
    frame.loc[rng.random(n) < 0.4, "b"] = np.nan
    doubled = pd.concat([frame, frame], ignore_index=True).assign(who=np.tile(np.arange(n), 2))
    problem = afape.Problem({"b": ["b"]}, {"b": 1.0}, "y", 1.0)
    options = {"missingness": afape.MCAR(), "n_folds": 1, "bootstrap": 20, "lambdas": [1.5]}
    once = afape.sensitivity(afape.Retrospective(frame, problem), afape.AcquireAll(), Zero(), **options)
    twice = afape.sensitivity(
        afape.Retrospective(doubled, problem, cluster="who"), afape.AcquireAll(), Zero(), **options
    )
    numbers = ["bound_lower", "bound_upper", "lower", "upper"]
    assert_allclose(once.table[numbers], twice.table[numbers], rtol=1e-6)


def test_tipping_lies_between_certainty_and_doubt(found, parts):
    tips = found.tipping("Adaptive", "Random 90 %", bootstrap=10)
    assert 1 < tips.Lambda < 2
    assert 1 <= tips.confident <= tips.Lambda
    # Their bounds meet earlier than the shared weights can turn them round.
    assert found.bounds("Adaptive", tips.Lambda)[1] > found.bounds("Random 90 %", tips.Lambda)[0]
    assert found.tipping("Random 90 %", "Adaptive", bootstrap=0).Lambda == 1
    assert np.isnan(found.tipping("Random 90 %", "Adaptive", bootstrap=0).confident)
    sharp = run(parts, kind="sharp").tipping("Adaptive", "Random 90 %")
    assert sharp.Lambda >= tips.Lambda
    assert np.isnan(sharp.confident)


def test_tipping_against_a_budget(found):
    upper = found.table.set_index(["policy", "Lambda"])["bound_upper"]
    tips = found.tipping("Adaptive", limit=upper["Adaptive", 1.5])
    assert 1.498 < tips.Lambda <= 1.5
    assert 1 <= tips.confident < tips.Lambda
    assert found.tipping("Adaptive", limit=1e6, bootstrap=0).Lambda == np.inf
    assert found.tipping("Adaptive", limit=1.0, bootstrap=0).Lambda == 1


def test_bounds_can_start_from_other_estimates(found, parts):
    """A policy that costs 0.3 more whatever the weights are reaches a limit where it reached a limit of 0.3 less before."""
    estimate = found.estimate("Adaptive")
    moved = found.starting_from({"Adaptive": estimate + 0.3})
    numbers, here = ["bound_lower", "bound_upper", "lower", "upper"], found.table["policy"] == "Adaptive"
    assert_allclose(moved.table.loc[here, numbers], found.table.loc[here, numbers] + 0.3)
    assert_allclose(moved.table.loc[~here, numbers], found.table.loc[~here, numbers])
    assert_allclose(moved.bounds("Adaptive", 1.7), np.add(found.bounds("Adaptive", 1.7), 0.3))
    assert_allclose(moved.starting_from({"Adaptive": estimate}).table[numbers], found.table[numbers])
    limit = found.table.loc[here, "bound_upper"].iloc[-2] + 0.3
    assert moved.tipping("Adaptive", limit=limit) == found.tipping("Adaptive", limit=limit - 0.3)
    both = {name: found.estimate(name) + 0.3 for name in found.policies}
    assert found.starting_from(both).tipping("Adaptive", "Random 90 %") == found.tipping("Adaptive", "Random 90 %")
    nothing = {"Adaptive": synthetic_policies()["Adaptive"], "nothing": afape.AcquireNone()}
    pair = run(parts, nothing)
    start = pair.estimate("nothing") - 0.3
    cheaper = pair.starting_from({"Adaptive": start}).tipping("Adaptive", "nothing").Lambda
    assert 1 < cheaper < 2
    limit = pair.estimate("nothing") + pair.estimate("Adaptive") - start
    assert cheaper == pytest.approx(pair.tipping("Adaptive", limit=limit).Lambda, rel=2e-3)
    for bad in ({"none": 1.0}, {"Adaptive": "1"}, [1.0]):
        with pytest.raises((TypeError, ValueError), match="estimates"):
            found.starting_from(bad)


def test_tipping_says_why_it_is_nan(found):
    assert "no bootstrap replicates" in found.tipping("Adaptive", "Random 90 %", bootstrap=0).reason
    assert found.tipping("Adaptive", "Random 90 %", bootstrap=2).reason == ""


def test_benchmark_measures_the_strength_of_given_groups():
    """One reason multiplies the odds by 3 or 1/3, the other does nothing."""
    rng = np.random.default_rng(1)
    n = 20_000
    x, z = rng.integers(2, size=(2, n)).astype(float)
    b = np.where(rng.random(n) < 1 / (1 + np.exp(-np.log(3.0) * (2 * x - 1))), 1.0, np.nan)
    frame = pd.DataFrame({"x": x, "z": z, "b": b, "y": rng.integers(2, size=n)})
    data = afape.Retrospective(frame, afape.Problem({g: [g] for g in "xzb"}, {"b": 1.0}, "y", 1.0))
    result = afape.sensitivity(
        data, afape.AcquireAll(), Zero(), missingness=afape.MAR(given=["x", "z"]), lambdas=[1.5], bootstrap=0
    )
    table = result.benchmark.set_index("group")
    assert_allclose(table.loc["x"], 3.0, rtol=0.1)  # without x the odds are 1
    assert (table.loc["z"] < 1.1).all()
    nothing = afape.sensitivity(data, afape.AcquireAll(), Zero(), missingness=afape.MCAR(), lambdas=[1.5], bootstrap=0)
    assert len(nothing.benchmark) == 0


def test_benchmark_needs_a_learned_propensity(parts):
    experiment, _, data = parts
    result = run(parts, propensity=experiment.mechanism.propensity(data))
    with pytest.raises(ValueError, match="propensity=None"):
        result.benchmark  # noqa: B018


def test_results_can_be_stored(found):
    again = pickle.loads(pickle.dumps(replace(found)))
    pd.testing.assert_frame_equal(again.table, found.table)
    assert again.tipping("Adaptive", limit=5.0, bootstrap=0) == pytest.approx(
        found.tipping("Adaptive", limit=5.0, bootstrap=0), nan_ok=True
    )


def test_figure_is_drawn(found, tmp_path):
    from matplotlib.figure import Figure

    file = tmp_path / "bands.png"
    found.figure(file)
    assert file.read_bytes()[:4] == b"\x89PNG"
    ax = found.plot(Figure().subplots())
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["Random 90 %", "Adaptive"]
    tips = found.tipping("Adaptive", "Random 90 %", bootstrap=0).Lambda
    assert any(f"Λ = {tips:.2f}" in text.get_text() for text in ax.texts)


def test_progress_reaches_its_end(parts):
    steps = []
    run(parts, bootstrap=3, progress=lambda done, todo: steps.append((done, todo)))
    assert steps[-1] == (2 * 1600 + 3,) * 2
    assert all(a <= b for a, b in itertools.pairwise(steps))


def test_no_module_hides_a_public_name():
    """A submodule becomes an attribute of the package when it is imported, whatever stood there."""
    assert [name for name in afape.__all__ if find_spec(f"afape.{name}") is not None] == []


# --- warnings and bad input -------------------------------------------------------------------------------------------


def test_policies_without_support_have_no_bounds():
    rng = np.random.default_rng(0)
    b = np.where(rng.random(60) < 0.5, 1.0, np.nan)
    frame = pd.DataFrame({"b": b, "c": np.where(np.isnan(b), 1.0, np.nan), "y": np.arange(60) % 2})
    data = afape.Retrospective(frame, afape.Problem({g: [g] for g in "bc"}, {"b": 1.0, "c": 1.0}, "y", 1.0))
    policies = {"b": afape.FixedOrder(["b"]), "all": afape.AcquireAll()}
    with pytest.warns(afape.warnings.SupportWarning, match="'all' want a set of groups that no similar row records"):
        result = afape.sensitivity(data, policies, Zero(), missingness=afape.MCAR(), lambdas=[1, 2], bootstrap=3)
    table = result.table.set_index("policy")
    assert table.loc["all", ["bound_lower", "bound_upper", "lower", "upper"]].isna().all(axis=None)
    assert table.loc["b", ["bound_lower", "bound_upper", "lower", "upper"]].notna().all(axis=None)
    for tips in (result.tipping("b", "all"), result.tipping("all", limit=1e6)):
        assert np.isnan([tips.Lambda, tips.confident]).all()
        assert "the records do not support what 'all' wants" in tips.reason


class Untouched:
    def probabilities(self, values, acquired):
        raise AssertionError("bad input must be refused before any work")


@pytest.mark.parametrize(
    ("spoiled", "error", "match"),
    [
        (
            {"lambdas": [0.9, 2]},
            ValueError,
            "'lambdas' must be finite odds ratios of at least 1, but is 0.9",
        ),
        ({"lambdas": [1, float("inf")]}, ValueError, "'lambdas' must be finite odds ratios"),
        ({"lambdas": [1, "2"]}, ValueError, "'lambdas' must be finite odds ratios"),
        ({"lambdas": [2, 1.5]}, ValueError, "'lambdas' must ascend"),
        ({"lambdas": [1, 1]}, ValueError, "'lambdas' must ascend"),
        ({"lambdas": []}, ValueError, "'lambdas' must be a list of at least one"),
        ({"lambdas": 2.0}, TypeError, "'lambdas' must be a list of numbers"),
        ({"target": "price"}, ValueError, "'target' must be one of"),
        ({"kind": "blunt"}, ValueError, "'kind' must be one of"),
        ({"policies": {}}, ValueError, "'policies' must be a mapping from names to policies, but is empty"),
        ({"policies": [Untouched()]}, TypeError, "'policies' must be a policy or a mapping"),
        ({"policies": {"a": Untouched(), "b": 3}}, TypeError, r"policies\['b'\]"),
        ({"policies": 3}, TypeError, "'policies' must have a method probabilities"),
        ({"propensity": [None]}, TypeError, "'propensity' must be one propensity"),
        ({"bootstrap": -1}, ValueError, "'bootstrap' must be a whole number"),
        ({"confidence": 2}, ValueError, "'confidence'"),
        ({"n_folds": 10_000}, ValueError, "'n_folds' must not exceed"),
        ({"missingness": "MAR"}, TypeError, "'missingness' must be"),
        ({"walk": 7}, TypeError, "'walk' must be"),
    ],
)
def test_bad_input_is_refused(parts, spoiled, error, match):
    with pytest.raises(error, match=match):
        run(parts, **({"policies": {"a": Untouched()}} | spoiled))


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"a": "Adaptive"}, "give one of them"),
        ({"a": "Adaptive", "b": "Random 90 %", "limit": 3.0}, "give one of them"),
        ({"a": "Nobody", "b": "Adaptive"}, r"'a' must be one of \['Random 90 %'"),
        ({"a": "Adaptive", "b": "Nobody"}, r"'b' must be one of \['Random 90 %'"),
        ({"a": "Adaptive", "limit": float("nan")}, "'limit' must be a finite number"),
        ({"a": "Adaptive", "limit": 3.0, "largest": 1}, "'largest' must be a finite number above 1"),
        ({"a": "Adaptive", "limit": 3.0, "bootstrap": -2}, "'bootstrap'"),
    ],
)
def test_bad_tipping_is_refused(found, arguments, match):
    with pytest.raises(ValueError, match=match):
        found.tipping(**arguments)
    with pytest.raises(ValueError, match="'policy' must be one of"):
        found.estimate("Nobody")


def hidden_coin(n, n_columns, seed):
    """A hidden coin u decides the label and, with an odds ratio of 3, what is recorded; the given columns are noise."""
    rng = np.random.default_rng(seed)
    u = rng.random(n) < 0.5
    p = np.where(u, 0.75, 0.5)  # odds 3 and 1
    noise = rng.normal(size=(n, n_columns))
    names = [f"x{j}" for j in range(n_columns)]
    frame = pd.DataFrame(noise, columns=names).assign(g=np.where(rng.random(n) < p, 1.0, np.nan), y=u.astype(int))
    problem = afape.Problem({"x": names, "g": ["g"]}, {"g": 1.0}, "y", 10.0)
    return afape.Retrospective(frame, problem)


@pytest.mark.parametrize(("n", "n_columns"), [(200, 1), (200, 8), (600, 30)])
def test_sharp_bounds_do_not_shut_out_the_truth_where_columns_are_many(n, n_columns):
    """Strata that knew their own row's cost, or many columns balanced in few rows, would pin the weights."""
    inside = 0
    for seed in range(8):
        found = afape.sensitivity(
            hidden_coin(n, n_columns, seed), afape.AcquireAll(), Zero(), missingness=afape.MAR(["x"]),
            lambdas=[3.0], kind="sharp", bootstrap=20, random_state=seed,
        ).table.iloc[0]  # fmt: skip
        inside += found["lower"] <= 1.0 + 5.0 <= found["upper"]
    assert inside >= 7


def test_sharp_bounds_are_refused_where_the_records_cannot_tell():
    data = hidden_coin(300, 1, 0)
    with pytest.raises(ValueError, match="'kind' must be 'valid' if recording depends on groups with gaps"):
        afape.sensitivity(
            data, afape.AcquireAll(), Zero(), missingness=afape.MNAR(adjust=["g"]), kind="sharp", bootstrap=0
        )


def test_graphs_have_valid_bounds_and_a_benchmark():
    experiment = synthetic_mnar(8000)
    classifier, data, complete = experiment.prepare()
    policy = synthetic_policies()["Random 50 %"]
    found = afape.sensitivity(
        data, policy, classifier, missingness=experiment.missingness, lambdas=[1, 1.5], bootstrap=0
    )
    lower, upper = found.table[["bound_lower", "bound_upper"]].to_numpy().T
    truth = afape.true_cost(complete, policy, classifier)["total"].value
    assert lower[1] < lower[0] == upper[0] < upper[1]
    assert lower[1] < truth < upper[1]
    assert found.benchmark["group"].tolist() == ["x1"]
    assert found.benchmark["q95"].iloc[0] > 2  # one unit of x1 is an odds ratio of e
