"""Parts of a cost: against brute force in exact worlds, and everything that is made of them."""

import itertools
import json
import pickle
from fractions import Fraction

import numpy as np
import pytest
from by_hand import state_values, walked
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from part_worlds import ExactParts, n_parts, own_outcome, run_parts, true_parts, weighted_parts
from small_rule import COSTS, MAR, RULE, Sign, evaluated, problem_with, table_of
from worlds import WORLDS, ExactValues, World, enumerated

import afape
from afape.action_values.induction import InducedValues, Lessons
from afape.results.frontier import on_frontier
from afape.walk.columns import CostColumns, PartColumns
from afape.walk.table import FREE
from afape.walk.tariff import Tariff

each_world = pytest.mark.parametrize("world", [*WORLDS[:3], *WORLDS[4:]], ids=lambda w: f"world{w.seed}")
pytestmark = enumerated


def run(world, data, **options):
    options = {"propensity": world.known_propensity(), "outcomes": {"own": own_outcome}} | options
    missingness = afape.MAR(given=[f"g{i}" for i in world.given])
    return afape.evaluate(data, world.policy, world.classifier, missingness=missingness, **options)


def columns(parts):
    """All columns as rows of influence plus value."""
    amounts = parts.found.amounts
    return amounts.influence + amounts.values


# --- exact worlds ----------------------------------------------------------------------------------------------


@each_world
def test_true_parts_enumerate_every_trajectory(world):
    found = afape.true_parts(world.complete(), world.policy, world.classifier, outcomes={"own": own_outcome})
    expected = [run_parts(world, world.values(x), y) for x, y in zip(world.cell_levels, world.cell_label, strict=True)]
    assert_allclose(columns(found), expected, rtol=1e-9, atol=1e-12)


@each_world
def test_plain_weighting_equals_the_truth_over_every_pattern(world):
    data, levels, mass = world.everything()
    for weight in ("before", "after"):
        result = run(world, data, normalize=False, estimators=["ipw-semi", "ipw-miss"], acquisition_weight=weight)
        for name in result.answers:
            assert_allclose(mass @ columns(result.parts(name)), true_parts(world), rtol=1e-9, atol=1e-12)
    rows = [
        weighted_parts(
            world,
            world.values(levels[i]),
            data.labels[i],
            data.recorded[i],
            lambda s, i=i: 1 / world.superset(levels[i], s & ~data.always_recorded),
        )
        for i in range(0, len(data), 7)
    ]
    result = run(world, data, normalize=False, estimators=["ipw-semi"])
    assert_allclose(columns(result.parts("ipw-semi"))[::7], rows, rtol=1e-9, atol=1e-12)


@each_world
@pytest.mark.parametrize("label", [False, True])
def test_doubly_robust_and_direct_parts_equal_the_truth(world, label):
    """With the right action values any propensity is right, and with the right propensity any action values."""
    data, _, mass = world.everything()
    exact, parts = ExactValues(world, label), ExactParts(world, label)
    known = afape.KnownValues(exact.function, exact.root, parts.function, parts.root)
    wrong = afape.KnownPropensity(lambda values, required: 0.3 + 0.5 / (1 + required.sum(axis=1)))
    for propensity in (world.known_propensity(), wrong):
        options = {"values": known, "normalize": False, "propensity": propensity}
        found = run(world, data, estimators=["drl-semi"], **options).parts("drl-semi")
        assert_allclose(mass @ columns(found), true_parts(world), rtol=1e-9, atol=1e-12)
    arbitrary = afape.KnownValues(
        lambda v, a, y: np.ones((len(v), world.n_groups + 1, 2)),
        lambda v, y: np.ones((len(v), 2)),
        lambda v, a, y: np.full((len(v), world.n_groups + 1, n_parts(world)), 0.7),
        lambda v, y: np.full((len(v), n_parts(world)), 0.7),
    )
    found = run(world, data, estimators=["drl-semi"], values=arbitrary, normalize=False).parts("drl-semi")
    assert_allclose(mass @ columns(found), true_parts(world), rtol=1e-9, atol=1e-12)
    # The direct method is the mean over all rows of V at the start; every row counts once here.
    direct = run(world, data, estimators=["dm-semi"], values=known).parts("dm-semi")
    table = {t: e.value for t, e in run(world, data, estimators=["dm-semi"], values=known)["dm-semi"].items()}
    assert_allclose(direct.values @ np.concatenate([world.prices[world.costly], world.costs.ravel()]), table["total"])
    assert_allclose(direct.outcomes["own"].value, direct.found.amounts.values[-1])


@pytest.mark.parametrize("world", [WORLDS[0], WORLDS[2], WORLDS[5]], ids=lambda w: f"world{w.seed}")
def test_every_estimator_adds_up_to_its_costs(world):
    """Prices times rates and costs times confusion are the costs, their errors and their intervals."""
    data = world.draw(150, 0)
    for options in ({}, {"normalize": False}, {"values": afape.LearnedValues(augment_label=False)}):
        names = None if not options and world.seed == 1 else ["ipw-semi", "dm-semi", "drl-semi"]
        names = [*names, "eff-semi"] if names and not options else names
        result = run(world, data, propensity=None, n_imputations=2, estimators=names, **options)
        again = result.reprice()
        for name, outcome in result.answers.items():
            for target in COSTS:
                one, other = outcome.estimates[target], again[name][target]
                assert_allclose(other.value, one.value, rtol=1e-9, atol=1e-10)
                assert_allclose(other.std_error, one.std_error, rtol=1e-6, atol=1e-10)
                assert_allclose(other.interval(), one.interval(), rtol=1e-6, atol=1e-8)
            parts = result.parts(name)
            stopped = sum(e.value for e in parts.counts.values())
            assert_allclose(stopped, parts.values[len(parts.rates) :].sum(), atol=1e-8)
        if not options:
            break_down = result.parts("eff-semi")
            assert break_down.influence.shape == (len(data), len(break_down.names))
            errors = [e.std_error for e in (*break_down.rates.values(), *break_down.confusion.values())]
            assert_allclose(np.sqrt(np.diag(break_down.covariance)), errors, rtol=1e-9, atol=1e-12)


def test_components_of_parts_equal_components_of_costs():
    """A cost matrix with one cell of 1 makes that cell's rate the cost: a second evaluation gives the same numbers."""
    world = World(3, n_groups=3, n_levels=3, n_classes=3)
    data = world.draw(500, 1)
    result = run(world, data, propensity=None, estimators=["eff-semi", "ipw-semi", "mi"], n_imputations=3)
    for name in result.answers:
        parts = result.parts(name)
        for target in ("acquisition", "misclassification"):
            assert_allclose(
                result.reprice(
                    dict(zip(parts.tariff.groups, [0.0] * len(parts.tariff.groups), strict=True)),
                    np.eye(3)[[0]].T @ np.eye(3)[[1]] if target == "misclassification" else 0.0,
                )[name]["total"].value,
                parts.confusion[0, 1].value if target == "misclassification" else 0.0,
                atol=1e-10,
            )


# --- other prices ------------------------------------------------------------------------------------------------


SHOWN = ["estimate", "std_error", "lower", "upper", "degrees_of_freedom"]
OTHER = {"b": 5.0, "c": 0.5}
WRONG = {2: [[0.0, 3.0], [20.0, 1.0]], 3: [[0.0, 3.0, 9.0], [20.0, 1.0, 0.5], [2.0, 30.0, 0.0]]}


class Thirds:
    """Predicts one of three labels by the sum of what it sees."""

    classes_ = np.array([0, 1, 2])

    def predict(self, values, acquired):
        return np.digitize(np.nan_to_num(values).sum(axis=1), [-1, 1])


def priced_twice(n_classes, frame=None, rule=RULE, **options):
    """An evaluation under unit prices that is priced anew, and an evaluation of the other problem."""
    frame = table_of(500, n_classes=n_classes) if frame is None else frame
    classifier = Sign() if n_classes == 2 else Thirds()
    problems = problem_with({"b": 2.0, "c": 2.0}, 10.0, n_classes), problem_with(OTHER, WRONG[n_classes], n_classes)
    first, second = (
        afape.evaluate(afape.Retrospective(frame, p), rule, classifier, missingness=MAR, **options) for p in problems
    )
    return first.reprice(OTHER, WRONG[n_classes]), second


class Mixed:
    """b or c at first, then perhaps the other one, the likelier the larger is what it sees."""

    def probabilities(self, values, acquired):
        p = np.zeros((len(values), 4))
        p[:, 1:3] = np.where(acquired[:, 1:], 0.0, 0.2 + 0.2 * (np.nan_to_num(values).sum(axis=1)[:, None] > 0))
        p[:, 3] = 1 - p.sum(axis=1)
        return p


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("rule", [RULE, Mixed()], ids=["rule", "mixed"])
def test_other_prices_are_those_of_a_new_evaluation(n_classes, rule):
    """Every estimator, its errors and its intervals."""
    first, second = priced_twice(n_classes, rule=rule, n_imputations=3)
    assert {"dm-semi", "drl-semi", "eff-semi"} < set(first.answers)
    assert set(first.answers) == set(second.answers)
    assert_allclose(first.table[SHOWN], second.table[SHOWN], rtol=1e-9, atol=1e-9)
    for name, outcome in first.answers.items():
        for target, estimate in outcome.estimates.items():
            if estimate.influence is not None:
                assert_allclose(estimate.influence, second[name][target].influence, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("label", [True, False])
def test_nothing_that_action_values_choose_depends_on_prices(n_classes, label):
    options = {"values": afape.LearnedValues(augment_label=label), "estimators": ["dm-semi", "drl-semi"]}
    for rule in (RULE, Mixed()):
        first, second = priced_twice(n_classes, rule=rule, **options)
        assert_allclose(first.table[SHOWN], second.table[SHOWN], rtol=1e-9, atol=1e-9)
    # Replicates choose as the estimate does, with parts beside the costs or without.
    first, second = priced_twice(n_classes, bootstrap=4, random_state=0, **options | {"estimators": ["dm-semi"]})
    assert_allclose(first.table[SHOWN], second.table[SHOWN], rtol=1e-9, atol=1e-9)


def columns_of(data):
    """Columns of the costs, and of their parts."""
    return CostColumns(Tariff.of(data), data.labels), PartColumns.of(data)


def induced(data, table, lessons, *columns):
    """Action values in each of these columns, learned together."""
    learned = InducedValues(data, table, lessons, columns, Tariff.of(data))
    return [learned.within(place) for place in range(len(columns))]


@pytest.mark.parametrize("label", [True, False])
def test_guesses_about_what_nobody_has_are_the_same_parts_under_any_prices(label):
    """A free group that no row has: right in half of the cases, wrong in either way in the others."""
    frame = table_of(200, n_classes=3).assign(a=np.nan)
    found = []
    for problem in (problem_with({"b": 2.0, "c": 2.0}, 10.0, 3), problem_with(OTHER, WRONG[3], 3)):
        data = afape.Retrospective(frame, problem)
        table = walked(data, Mixed(), Thirds())
        nothing = np.array([], dtype=int)
        lessons = Lessons(nothing, np.zeros(200, dtype=int), afape.LearnedValues(augment_label=label))
        costs, broken_down = induced(data, table, lessons, *columns_of(data))
        edges = np.arange(len(table.edge_state))
        assert (table.edge_group == FREE).all()
        found.append(broken_down.edges(edges))
        coefficients = np.concatenate([problem.prices[1:], data.costs.ravel(), np.zeros(3)])
        assert_allclose(costs.edges(edges).sum(axis=1), found[-1] @ coefficients, rtol=1e-9)
        cells = found[-1][0, 2:11].reshape(3, 3)
        assert_allclose(np.diag(cells).sum(), 0.5)
        assert_allclose(cells.sum(), 1.0)
    assert_allclose(found[0], found[1], rtol=1e-12)


@pytest.mark.parametrize("label", [True, False])
def test_action_values_of_costs_are_those_of_their_parts_whatever_is_learned_beside_them(label):
    """With ridge regression, under the prices of the problem and where every group and every error costs 1."""
    world = WORLDS[4]
    data = world.draw(300, 0)
    table, tariff = walked(data, world.policy, world.classifier, predicts=True), Tariff.of(data)
    lessons = Lessons(np.array([0]), np.arange(300) % 2, afape.LearnedValues(augment_label=label))
    (costs, parts), unit = columns_of(data), CostColumns(tariff.unit, data.labels)
    (alone,) = induced(data, table, lessons, costs)
    beside, broken_down, units = induced(data, table, lessons, costs, parts, unit)
    state = state_values(broken_down, table, parts)
    assert_allclose(state_values(alone, table, costs), state @ parts.priced(tariff), rtol=1e-9, atol=1e-10)
    assert_allclose(state_values(beside, table, costs), state @ parts.priced(tariff), rtol=1e-9, atol=1e-10)
    assert_allclose(state_values(units, table, unit), state @ parts.priced(tariff.unit), rtol=1e-9, atol=1e-10)
    groups, off = len(parts.costly), ~np.eye(world.n_classes, dtype=bool).ravel()
    wrong = state[:, groups : groups + world.n_classes**2][:, off].sum(axis=1)
    expected = np.column_stack([state[:, :groups].sum(axis=1), wrong])
    assert_allclose(state_values(units, table, unit), expected, rtol=1e-9, atol=1e-10)


def test_other_prices_of_bounds_are_those_of_a_new_evaluation():
    frame = table_of(1500)
    frame.loc[frame["a"] < -0.5, "c"] = np.nan
    other, wrong, names = (
        {"b": 5.0, "c": 0.5},
        [[0.0, 3.0], [20.0, 1.0]],
        ["ipw-semi", "dm-semi", "drl-semi", "eff-semi"],
    )
    for weight in ("before", "after"):
        first = evaluated(frame, estimators=names, acquisition_weight=weight)
        same = first.reprice()
        for name in names:
            assert isinstance(first[name]["total"], afape.Bounds)
            for target in COSTS:
                a, b = first[name][target], same[name][target]
                assert_allclose([b.bound_lower, b.bound_upper], [a.bound_lower, a.bound_upper], rtol=1e-9, atol=1e-10)
                assert_allclose(b.interval(), a.interval(), rtol=1e-6, atol=1e-8)
    first = evaluated(frame, estimators=names).reprice(other, wrong)
    second = evaluated(frame, other, wrong, estimators=names)
    shown = ["bound_lower", "bound_upper", "lower", "upper"]
    assert_allclose(first.table[shown], second.table[shown], rtol=1e-8)
    parts = first.parts("ipw-semi")
    assert isinstance(parts.rates["c"], afape.Bounds)
    assert parts.rates["c"].bound_lower <= parts.rates["c"].bound_upper
    assert first.metrics("ipw-semi")["note"].str.contains("bounds").all()
    with pytest.raises(afape.NotEstimableError, match="only bounds"):
        first.price_plane({"c": (0, 5)}, "ipw-semi")
    assert json.loads(json.dumps(parts.to_dict()))["parts"]


def test_parts_of_the_direct_method_have_the_errors_of_the_bootstrap_without_theory():
    options = {"estimators": ["dm-semi", "ipw-semi"], "values": "boosting"}
    result = evaluated(table_of(300), bootstrap=4, by=np.arange(300) % 2, **options)
    again = result.reprice()
    for one, other in ((result, again), *zip(result.subgroups.values(), again.subgroups.values(), strict=True)):
        assert one["dm-semi"]["total"].std_error > 0
        assert other["dm-semi"]["total"].std_error > 0
    parts = result.parts("dm-semi")
    assert np.isfinite(parts.covariance).all()
    assert parts.influence is None
    assert np.isnan(evaluated(table_of(300), **options).parts("dm-semi").covariance).all()


def test_known_values_of_costs_alone_have_no_parts():
    ones = afape.KnownValues(lambda v, a, y: np.ones((len(v), 4, 2)))
    result = evaluated(table_of(300), values=ones, estimators=["drl-semi", "ipw-semi"])
    with pytest.raises(afape.NotEstimableError, match="'parts'"):
        result.parts("drl-semi")
    assert "drl-semi" not in result.reprice()
    assert result.best_estimator == "ipw-semi"
    bad = afape.KnownValues(lambda v, a, y: np.ones((len(v), 4, 2)), parts=lambda v, a, y: np.ones((len(v), 4, 2)))
    with pytest.raises(ValueError, match="KnownValues must return shape"):
        evaluated(table_of(300), values=bad, estimators=["eff-semi"])  # made of parts
    with pytest.raises(ValueError, match="KnownValues must return shape"):
        evaluated(table_of(300), values=bad, estimators=["drl-semi"]).parts("drl-semi")


def test_parts_of_other_regressors_are_learned_by_ridge_regression():
    names = ["drl-semi", "dm-semi"]
    boosted, ridge = (evaluated(table_of(400), values=values, estimators=names) for values in ("boosting", "quadratic"))
    for name in names:
        assert boosted[name]["total"].value != ridge[name]["total"].value
        assert_allclose(boosted.parts(name).values, ridge.parts(name).values, rtol=1e-9, atol=1e-12)
        again = boosted.reprice()[name]["total"].value
        assert again == pytest.approx(ridge[name]["total"].value, rel=1e-9)
        assert again == pytest.approx(boosted[name]["total"].value, rel=0.1)


@pytest.fixture(scope="module")
def several():
    policies = {"rule": RULE, "all": afape.AcquireAll(), "none": afape.AcquireNone()}
    data = afape.Retrospective(table_of(), problem_with({"b": 2.0, "c": 3.0}, 10.0))
    return afape.compare(data, policies, Sign(), missingness=MAR, estimators=["eff-semi", "ipw-semi"])


def test_comparisons_are_priced_anew(several):
    free = several.reprice({"b": 0.0, "c": 0.0})
    assert free.ranking().iloc[-1]["policy"] == "none"
    dear = several.reprice({"b": 50.0, "c": 50.0})
    assert dear.ranking().iloc[0]["policy"] == "none"
    same = several.reprice()
    assert_allclose(same.differences()["std_error"], several.differences()["std_error"], rtol=1e-8)
    assert set(several.table.columns) == set(dear.table.columns)


@given(st.floats(0, 1e4), st.floats(0, 1e4), st.lists(st.floats(-1e3, 1e3), min_size=4, max_size=4))
@settings(max_examples=40, deadline=None)
def test_totals_are_linear_in_prices(several, b, c, wrong):
    result, costs = several["rule"], np.reshape(wrong, (2, 2))
    parts = result.parts("ipw-semi")
    priced = result.reprice({"b": b, "c": c}, costs)["ipw-semi"]
    expected = b * parts.rates["b"].value + c * parts.rates["c"].value
    assert priced["acquisition"].value == pytest.approx(expected, rel=1e-9, abs=1e-9)
    wrongs = sum(costs[y, k] * e.value for (y, k), e in parts.confusion.items())
    assert priced["misclassification"].value == pytest.approx(wrongs, rel=1e-9, abs=1e-6)
    coefficients = np.concatenate([[b, c], costs.ravel()])
    variance = float(coefficients @ parts.covariance @ coefficients)
    assert priced["total"].std_error ** 2 == pytest.approx(variance, rel=1e-6, abs=1e-6)
    doubled = result.reprice({"b": 2 * b, "c": 2 * c}, 2 * costs)["ipw-semi"]["total"]
    assert doubled.value == pytest.approx(2 * priced["total"].value, rel=1e-9, abs=1e-9)


def test_price_plane(several):
    plane = several.price_plane({"b": (0, 40), "misclassification": (1, 60)}, points=9)
    assert len(plane.table) == 81
    line = plane.table.iloc[40]
    wrong = float(line["misclassification"])
    priced = several.reprice({"b": float(line["b"]), "c": 3.0}, wrong)
    best = priced.ranking().iloc[0]
    assert (line["cheapest"], line["total"]) == (best["policy"], pytest.approx(best["estimate"]))
    assert line["probability"] == pytest.approx(best["best"], abs=0.03)
    assert_allclose(plane.std_errors[40], [priced[p]["eff-semi"]["total"].std_error for p in plane.policies], rtol=1e-8)
    assert plane.table["uncertain"].any()
    assert not plane.table["uncertain"].all()
    assert "cheapest" in repr(plane)
    json.dumps(plane.to_dict())
    alone = several["rule"].price_plane({"c": (0, 5)}, points=3)
    assert_allclose(alone.totals[1, 0], several["rule"].reprice({"b": 2.0, "c": 2.5})["eff-semi"]["total"].value)


def test_frontier(several):
    frontier = several.frontier()
    table = frontier.table.set_index("policy")
    assert table.loc["none", "cost"] == pytest.approx(0.0)
    assert bool(table.loc["none", "on_frontier"])
    assert table.loc["none", "probability"] > 0.9
    assert (np.diff(frontier.table["cost"]) >= 0).all()
    parts = several["all"].parts("eff-semi")
    assert table.loc["all", "found"] == pytest.approx(parts.confusion[1, 1].value)
    assert "frontier" in repr(frontier)
    json.dumps(frontier.to_dict())
    assert several.frontier(label=0).effect == "0 and predicted so"
    with pytest.raises(ValueError, match="'label' must be one of the classes"):
        several.frontier(label="sick")


def test_figures(several):
    pytest.importorskip("matplotlib").use("Agg")
    several.price_plane({"b": (0, 40)}, points=5).plot()
    several.price_plane({"b": (0, 40), "c": (0, 40)}, points=5).plot()
    several.frontier().plot()
    evaluated(table_of(400), outcomes={"risk": afape.score(Sign())}, estimators=["ipw-semi"]).calibration().plot()


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=6))
@settings(max_examples=200, deadline=None)
def test_the_frontier_is_the_best_at_some_price_of_a_case(points):
    """Which policy is best can change only at prices where two are worth the same: between these, one price is enough."""
    pairs = itertools.combinations(points, 2)
    ties = {Fraction(c - d, e - f) for (c, e), (d, f) in pairs if e != f}
    prices = sorted({Fraction(0), *(price for price in ties if price > 0)})
    prices += [(low + high) / 2 for low, high in itertools.pairwise(prices)] + [prices[-1] + 1]
    worth = [[price * found - cost for cost, found in points] for price in prices]
    best = [any(line[i] == max(line) for line in worth) for i in range(len(points))]
    cost, found = (np.array(part, dtype=float) for part in zip(*points, strict=True))
    assert on_frontier(cost, found).tolist() == best


# --- parts that wait until they are asked for ------------------------------------------------------------------------


def noting_values(asked):
    """Known action values that note when they are asked about parts."""
    return afape.KnownValues(
        lambda v, a, y: np.ones((len(v), 4, 2)), parts=lambda v, a, y: asked.append(1) or np.ones((len(v), 4, 9))
    )


def test_parts_are_computed_once_and_only_when_asked_for():
    asked = []
    result = evaluated(table_of(300), estimators=["ipw-semi", "drl-semi"], values=noting_values(asked))
    result.metrics("ipw-semi")
    assert not asked
    first = result.parts("drl-semi").values
    assert len(asked) == 1
    assert_allclose(result.reprice({"b": 1.0, "c": 1.0}).parts("drl-semi").values, first, rtol=0)
    result.metrics("drl-semi")
    assert len(asked) == 1


def test_parts_go_along_into_a_file():
    """Without what they are computed from: these functions could not be pickled."""
    asked = []
    names, options = ["ipw-semi", "drl-semi", "eff-semi"], {"by": np.arange(300) % 2, "values": noting_values(asked)}
    result = evaluated(table_of(300), estimators=names, **options)
    again = pickle.loads(pickle.dumps(result))
    for name in names:
        assert_allclose(again.parts(name).values, result.parts(name).values, rtol=0)
        assert_allclose(
            again.subgroups["1"].parts(name).covariance, result.subgroups["1"].parts(name).covariance, rtol=0
        )
        assert_allclose(again.reprice().reprice().parts(name).values, result.parts(name).values, rtol=0)


def test_known_values_of_costs_alone_leave_eff_without_parts():
    """Its candidates are then mixed by both costs, not by parts."""
    ones = afape.KnownValues(lambda v, a, y: np.ones((len(v), 4, 2)))
    result = evaluated(table_of(300), values=ones, estimators=["eff-semi", "ipw-semi"])
    assert "acquisition: " in result.answers["eff-semi"].caveat
    assert result["eff-semi"]["total"].std_error > 0
    costs = result["eff-semi"]["acquisition"].value + result["eff-semi"]["misclassification"].value
    assert_allclose(result["eff-semi"]["total"].value, costs)
    with pytest.raises(afape.NotEstimableError, match="'parts'"):
        result.parts("eff-semi")
