"""Missing not at random: weights along the factorisation of a graph, against brute force over every pattern."""

import numpy as np
import pandas as pd
import pytest
from by_hand import KEY, costs_of, evidence
from numpy.testing import assert_allclose
from sklearn.neighbors import KNeighborsClassifier
from worlds import GRAPH_WORLDS, ExactValues, GraphWorld, Shares, Zero

import afape
from afape.action_values.models import LearnedValues
from afape.estimators.dm import direct_method
from afape.estimators.drl import doubly_robust
from afape.estimators.ipw import inverse_probability
from afape.propensity.binding import Propensities
from afape.propensity.chain import ChainPropensity
from afape.propensity.known import BoundKnownPropensity
from afape.propensity.learned import LearnedPropensity

pytestmark = [
    # Rows that enumerate a world are no sample of it: mean weights need not be near 1, and few rows may carry much.
    pytest.mark.filterwarnings("ignore::afape.warnings.NormalizerWarning"),
    pytest.mark.filterwarnings("ignore::afape.warnings.SupportWarning"),
    pytest.mark.filterwarnings(
        "ignore::afape.warnings.HeavyWeightsWarning",
        "ignore::afape.warnings.BalanceWarning",
        "ignore::afape.warnings.AssumptionWarning",
    ),
]

worlds = pytest.mark.parametrize("world", GRAPH_WORLDS.values(), ids=list(GRAPH_WORLDS))
HYBRID = ("ipw-semi-miss", "dm-semi-miss", "drl-semi-miss")  # those with an exact twin here


def row_terms(estimates):
    """Per-row terms of a plain average, acquisition and misclassification."""
    return np.column_stack([estimates[t].influence + estimates[t].value for t in ("acquisition", "misclassification")])


def run(world, data, **options):
    options = {"missingness": world.missingness, "propensity": world.known_propensity(), "normalize": False} | options
    return afape.evaluate(data, world.policy, world.classifier, **options)


@worlds
@pytest.mark.parametrize("estimator", ["ipw-semi-miss", "ipw-miss"])
def test_plain_weighting_equals_truth_over_every_pattern(world, estimator):
    data, _, mass = world.everything()
    for acquisition_weight in ("before", "after"):
        result = run(world, data, estimators=[estimator], acquisition_weight=acquisition_weight)
        assert_allclose(mass @ row_terms(result[estimator]), world.true_costs(), rtol=1e-9)


BY_SHARES = LearnedPropensity(Shares(), min_propensity=0.0)


@worlds
def test_the_factorisation_recovers_the_true_propensity(world):
    """From the exact observed law: every row of the world, weighted by its probability."""
    data, levels, mass = world.everything()
    found = world.missingness.conditioning(data, np.ones(world.n_groups, dtype=bool))
    chain = ChainPropensity(data, found, np.zeros(len(data), dtype=np.intp), BY_SHARES, mass)
    rows = np.arange(len(data)) if found.usable(data) is None else np.flatnonzero(found.usable(data))
    for required in world.patterns:
        asked = (required | found.gaps)[None]
        p = chain.probability(rows, asked, np.zeros(len(rows), dtype=np.intp))
        truth = np.array(
            [world.superset(x, asked[0] & ~world.always, y) for x, y in zip(levels, data.labels, strict=True)]
        )
        if not found.beside:
            assert_allclose(p, truth[rows], rtol=1e-9)
        having = data.recorded[rows][:, asked[0]].all(axis=1)
        cell = np.unique(np.column_stack([levels, data.labels]), axis=0, return_inverse=True)[1].ravel()
        back = np.bincount(cell[rows], np.where(having, mass[rows] / p, 0.0))
        assert_allclose(back, np.bincount(cell, mass), rtol=1e-9)  # weights have mean one given the values


@worlds
def test_weighting_learned_from_the_exact_law_equals_truth(world):
    data, _, mass = world.everything()
    given = world.missingness.conditioning(data, np.ones(world.n_groups, dtype=bool))
    chain = ChainPropensity(data, given, np.zeros(len(data), dtype=np.intp), BY_SHARES, mass)
    found = inverse_probability(evidence(world, data, chain, given, row_weight=mass, normalize=False))
    assert_allclose(costs_of(found), world.true_costs(), rtol=1e-9)


@pytest.mark.parametrize("name", ["peeling", "comparison"])
def test_doubly_robust_with_weights_learned_from_the_exact_law_survives_wrong_values(name):
    """Also where these weights depend on indicators that the policy's sets hold."""
    world = GRAPH_WORLDS[name]
    data, _, mass = world.everything()
    given = world.missingness.conditioning(data, np.ones(world.n_groups, dtype=bool))
    chain = ChainPropensity(data, given, np.zeros(len(data), dtype=np.intp), BY_SHARES, mass)
    wrong = afape.KnownValues(wrong_values, wrong_root)
    seen = evidence(world, data, chain, given, row_weight=mass, normalize=False, values=wrong)
    assert_allclose(costs_of(doubly_robust(seen)), world.true_costs(), rtol=1e-9)


TWICE = GraphWorld(  # peeled, then compared
    56, n_groups=5,
    graph="R_g3, R_g4 -> R_g1; R_g4, g1, g4 -> R_g2; R_g4, g2 -> R_g3; g1, g3 -> R_g4",
)  # fmt: skip


@pytest.mark.parametrize(
    "world",
    [*(GRAPH_WORLDS[name] for name in ("odds ratio", "peeling", "comparison")), TWICE],
    ids=["odds ratio", "peeling", "comparison", "peeled and compared"],
)
def test_stacked_influence_follows_weights_of_weights(world):
    """Infinitesimal jackknife: a row that weighs more moves every fit and every weight as the influence says."""
    data = world.draw(1500, 1)
    given = world.missingness.conditioning(data, np.ones(world.n_groups, dtype=bool))
    how = LearnedPropensity(form="linear", min_propensity=0.0)
    chain = ChainPropensity(data, given, np.zeros(len(data), dtype=np.intp), how)
    seen = evidence(world, data, chain, given)
    influence = inverse_probability(seen).answer().estimates["total"].influence

    def moved(row, by):
        drawn = np.ones(len(data))
        drawn[row] += by
        return costs_of(inverse_probability(seen.fitted.refit(drawn).evidence(KEY))).sum()

    rows = np.random.default_rng(0).choice(len(data), 25, replace=False)
    slopes = [len(data) * (moved(row, 0.5) - moved(row, -0.5)) for row in rows]
    assert_allclose(slopes, influence[rows], atol=0.005 * np.std(influence))


def wrong_values(values, acquired, labels):
    base = np.nansum(values, axis=1) + acquired @ np.arange(1.0, acquired.shape[1] + 1)
    return 3 + 2 * np.sin(base[:, None, None] + np.arange(acquired.shape[1] + 1)[None, :, None] * [[[1.0, 2.0]]])


def wrong_root(values, labels):
    return np.column_stack([1 + np.nansum(values, axis=1), np.full(len(values), 2.0)])


def distorted(world, data, inner, root):
    """The true propensity with a wrong P(R >= S | X_adj, R_adj = 1), a wrong P(R_adj = 1 | X_adj), or both."""
    right = world.known_propensity().function
    gaps = world.missingness.conditioning(data, np.ones(world.n_groups, dtype=bool)).gaps

    def wrong(values, required, labels):
        adjusted = right(values, np.broadcast_to(gaps, required.shape), labels)
        rest = right(values, required, labels) / adjusted
        beyond = (required & ~gaps).any(axis=1)
        if inner:
            rest = np.where(beyond, 0.3 + 0.5 * np.sin(7 * rest) ** 2, 1.0)
        if root:
            adjusted = 0.3 + 0.5 * np.cos(5 * adjusted) ** 2
        return adjusted * rest

    return afape.KnownPropensity(wrong, labels=True)


@worlds
@pytest.mark.parametrize("label", [False, True], ids=["without label", "with label"])
def test_doubly_robust_survives_wrong_values_or_a_wrong_inner_propensity(world, label):
    data, _, mass = world.everything()
    conditioning = world.missingness.conditioning(data, np.ones(world.n_groups, dtype=bool))
    if conditioning.label and not label:
        pytest.skip("recording depends on the label: values have to know it")
    exact = ExactValues(world, label)
    right_q, wrong_q = afape.KnownValues(exact.function, exact.root), afape.KnownValues(wrong_values, wrong_root)
    truth = np.array(world.true_costs())

    def drl(values, inner=False, root=False):
        propensity = distorted(world, data, inner, root)
        return mass @ row_terms(
            run(world, data, values=values, propensity=propensity, estimators=["drl-semi-miss"])["drl-semi-miss"]
        )

    assert_allclose(drl(right_q), truth, rtol=1e-9)
    assert_allclose(drl(wrong_q), truth, rtol=1e-9)
    assert_allclose(drl(right_q, inner=True), truth, rtol=1e-9)
    assert np.abs(drl(right_q, root=True) - truth).max() > 1e-3  # never robust to P(R_adj)
    if not conditioning.gaps[~world.always].all():
        assert np.abs(drl(wrong_q, inner=True) - truth).max() > 1e-3


@worlds
@pytest.mark.parametrize("normalize", [False, True])
def test_direct_method_with_exact_values_and_root_is_the_truth(world, normalize):
    data, _, mass = world.everything()
    given = world.missingness.conditioning(data, np.ones(world.n_groups, dtype=bool))
    exact = ExactValues(world, True)
    values = afape.KnownValues(exact.function, exact.root)
    propensity = BoundKnownPropensity(world.known_propensity(), data)
    seen = evidence(world, data, propensity, given, row_weight=mass, normalize=normalize, values=values)
    assert_allclose(costs_of(direct_method(seen)), world.true_costs(), rtol=1e-9)


def test_with_everything_given_always_recorded_it_is_the_semi_offline_view():
    world = GraphWorld(51, graph="g0 -> R_g1; g0 -> R_g2; R_g1 -> R_g2")
    data = world.draw(1500, 0)
    hybrid = run(
        world,
        data,
        propensity=None,
        normalize=True,
        estimators=["ipw-semi", "ipw-semi-miss", "drl-semi", "drl-semi-miss", "dm-semi", "dm-semi-miss"],
    )
    semi = run(
        world, data, propensity=None, normalize=True, missingness=afape.MAR(["g0"]),
        estimators=["ipw-semi", "drl-semi", "dm-semi"],
    )  # fmt: skip
    for name in ("ipw-semi", "drl-semi", "dm-semi"):
        for target in ("acquisition", "misclassification", "total"):
            one, two, three = hybrid[f"{name}-miss"][target], hybrid[name][target], semi[name][target]
            assert one.value == two.value == three.value
            if one.influence is not None:
                assert_allclose(one.influence, three.influence, rtol=0, atol=0)


def test_with_everything_to_adjust_for_it_is_the_missing_data_view():
    world = GRAPH_WORLDS["each other's"]
    data = world.draw(1500, 0)
    result = run(world, data, propensity=None, normalize=True, estimators=["ipw-miss", "ipw-semi-miss"])
    for target in ("acquisition", "misclassification", "total"):
        a, b = result["ipw-miss"][target], result["ipw-semi-miss"][target]
        assert a.value == b.value
        assert_allclose(a.influence, b.influence, rtol=0, atol=0)


def test_which_estimators_are_offered_follows_from_graph_and_policy():
    world = GRAPH_WORLDS["paper"]
    data = world.draw(400, 0)
    everyone = run(world, data, propensity=None)
    assert list(everyone.answers) == ["imp-mean", "blocking", "cc", "ipw-miss", *HYBRID, "eff-semi-miss"]
    modest = afape.evaluate(data, afape.FixedOrder(["g1"]), world.classifier, missingness=world.missingness)
    assert list(modest.answers) == [
        "imp-mean",
        "blocking",
        "cc",
        "ipw-miss",
        "ipw-semi",
        "dm-semi",
        "drl-semi",
        "eff-semi",
    ]
    with pytest.raises(ValueError, match=r"'ipw-semi', but here.*'ipw-semi-miss'"):
        run(world, data, propensity=None, estimators=["ipw-semi"])


def test_self_censoring_is_refused_only_where_the_policy_needs_it():
    world = GRAPH_WORLDS["paper"]
    data = world.draw(400, 0)
    graph = afape.MNAR("g0 -> R_g1; g2 -> R_g2")
    with pytest.raises(ValueError, match="'g2' depends on its own value"):
        run(world, data, missingness=graph, propensity=None)
    fine = afape.evaluate(data, afape.FixedOrder(["g1"]), world.classifier, missingness=graph)
    assert "ipw-semi" in fine
    assert "ipw-miss" not in fine.answers
    with pytest.raises(ValueError, match="complete row is not identified"):
        afape.evaluate(data, afape.FixedOrder(["g1"]), world.classifier, missingness=graph, estimators=["ipw-miss"])


def test_adjusting_by_hand_is_the_graph_that_it_stands_for():
    world = GraphWorld(52, n_groups=4, graph="R_g1; g1 -> R_g2; g1 -> R_g3; g2 -> R_g3")
    data = world.draw(2000, 0)
    by_hand = afape.MNAR(adjust=["g1", "g2"])
    for normalize in (False, True):
        a = run(world, data, propensity=None, normalize=normalize, estimators=["ipw-semi-miss", "drl-semi-miss"])
        b = run(
            world, data, propensity=None, normalize=normalize, missingness=by_hand,
            estimators=["ipw-semi-miss", "drl-semi-miss"],
        )  # fmt: skip
        for name in ("ipw-semi-miss", "drl-semi-miss"):
            assert_allclose(a[name]["total"].value, b[name]["total"].value, rtol=1e-12)


@pytest.mark.parametrize("name", ["paper", "odds ratio", "label", "peeling", "comparison"])
def test_learned_weights_are_unbiased_and_their_errors_honest(name):
    """Bias below its Monte Carlo error, and standard errors like the spread of the estimates."""
    world = GRAPH_WORLDS[name]
    truth = sum(world.true_costs())
    values, errors = [], []
    linear = afape.LearnedPropensity(form="linear")
    for seed in range(120):
        data = world.draw(700, seed)
        found = run(world, data, propensity=linear, normalize=True, estimators=["ipw-semi-miss"], random_state=seed)
        estimate = found["ipw-semi-miss"]["total"]
        values.append(estimate.value)
        errors.append(estimate.std_error)
    spread = np.std(values, ddof=1)
    assert abs(np.mean(values) - truth) < 3.5 * spread / np.sqrt(len(values)) + 0.15 * spread
    assert 0.8 < np.mean(errors) / spread < 1.25


def test_a_model_that_takes_no_weights_is_refused_where_rows_are_weighted():
    nearest = afape.LearnedPropensity(KNeighborsClassifier(25))
    for name in ("odds ratio", "peeling"):
        world = GRAPH_WORLDS[name]
        with pytest.raises(TypeError, match=r"'estimator' must accept 'sample_weight'.*KNeighborsClassifier"):
            run(world, world.draw(400, 0), propensity=nearest, estimators=["ipw-semi-miss"])
    world = GRAPH_WORLDS["paper"]
    assert "ipw-semi-miss" in run(world, world.draw(400, 0), propensity=nearest, estimators=["ipw-semi-miss"])


def test_label_dependent_missingness_needs_no_graph():
    """MAR given the label alone: weights condition on it."""
    world = GraphWorld(53, graph="y -> R_g1; y -> R_g2; R_g1 -> R_g2")
    data, _, mass = world.everything()
    by_label = run(world, data, missingness=afape.MAR([], label=True), estimators=["ipw-semi"])
    assert_allclose(mass @ row_terms(by_label["ipw-semi"]), world.true_costs(), rtol=1e-9)
    chain = ChainPropensity(
        data,
        afape.MAR([], label=True).conditioning(data, np.ones(3, dtype=bool)),
        np.zeros(len(data), dtype=np.intp),
        LearnedPropensity(Shares()),
        mass,
    )
    both = np.array([[False, True, True]])
    p = chain.probability(np.arange(len(data)), both, np.zeros(len(data), dtype=np.intp))
    truth = [world.superset(np.zeros(3, dtype=int), both[0], y) for y in data.labels]
    assert_allclose(p, truth, rtol=1e-9)


@pytest.mark.parametrize("augment", [False, True])
def test_values_know_a_label_that_decides_what_is_recorded(augment):
    """Without it the direct method would be biased; asked or not, it is conditioned on."""
    world = GraphWorld(53, graph="y -> R_g1; y -> R_g2; R_g1 -> R_g2")
    data = world.draw(1500, 1)
    found, always = (
        run(world, data, propensity=None, values=LearnedValues(augment_label=label), estimators=["dm-semi"])["dm-semi"]
        for label in (augment, True)
    )
    assert found["total"].value == always["total"].value


def test_bootstrap_learns_the_root_again():
    world = GRAPH_WORLDS["odds ratio"]
    data = world.draw(800, 3)
    result = run(
        world, data, propensity=None, normalize=True, estimators=["ipw-semi-miss", "dm-semi-miss", "drl-semi-miss"],
        bootstrap=60,
    )  # fmt: skip
    stacked = result["ipw-semi-miss"]["total"]
    assert 0.6 < stacked.bootstrap_std_error / stacked.std_error < 1.6
    assert np.isfinite(result["dm-semi-miss"]["total"].std_error)


def test_complete_rows_know_a_label_that_the_policy_does_not_need():
    """What the policy wants is recorded whatever the label, complete rows are not."""
    world = GraphWorld(53, graph="R_g1; y -> R_g2")
    data, _, mass = world.everything()
    chain = Propensities.bind(
        data, world.missingness, {"learned": LearnedPropensity(Shares())}, np.zeros(len(data), dtype=np.intp),
        np.array([[True, True, False]]),
    )  # fmt: skip
    assert not chain.conditioning.label
    complete = chain.of_complete["learned"].refit(mass)
    rows = np.flatnonzero(data.complete)
    p = complete.probability(rows, np.ones((1, 3), dtype=bool), np.zeros(len(rows), dtype=np.intp))
    truth = [world.superset(np.zeros(3, dtype=int), np.array([False, True, True]), y) for y in data.labels[rows]]
    assert_allclose(p, truth, rtol=1e-9)


def test_support_counts_rows_that_have_what_is_adjusted_for():
    """g2 is recorded only where g1 is not: no row can be weighted for it."""
    rng = np.random.default_rng(0)
    n = 3000
    g1, g2, y = rng.normal(size=n), rng.normal(size=n), rng.integers(0, 2, n)
    has1 = rng.random(n) < 0.5
    has2 = ~has1 & (rng.random(n) < 0.6)
    frame = pd.DataFrame({"g1": np.where(has1, g1, np.nan), "g2": np.where(has2, g2, np.nan), "y": y})
    problem = afape.Problem({"g1": ["g1"], "g2": ["g2"]}, {"g1": 1.0, "g2": 1.0}, "y", 4.0)
    data = afape.Retrospective(frame, problem)
    graph = afape.MNAR("R_g1; g1 -> R_g2; R_g1 -> R_g2")
    with pytest.warns(afape.warnings.SupportWarning, match="g2"):
        result = afape.evaluate(
            data, afape.RandomSubset(0.3), Zero(), missingness=graph, estimators=["ipw-semi-miss", "drl-semi-miss"]
        )
    line = result.support.sets.set_index("set").loc["g2"]
    assert line["rows_recorded"] == 0
    assert result.support.views["view"].iloc[0] == "hybrid"
    assert 0.2 < result.support.unsupported < 0.4
    for name in ("ipw-semi-miss", "drl-semi-miss"):
        bounds = result[name]["total"]
        truth = 0.6 + 4.0 * y.mean()  # two groups at 0.3 each; the classifier always says 0
        assert isinstance(bounds, afape.Bounds)
        low, high = bounds.interval()
        assert low <= truth <= high


def test_bounds_where_what_is_adjusted_for_is_never_recorded_in_some_rows():
    """g1 is never recorded for x below 0: these rows stand for themselves, within what their label allows."""
    rng = np.random.default_rng(1)
    n = 4000
    x, g1, g2 = rng.normal(size=(3, n))
    y = (x + g1 + g2 > 0).astype(int)
    has1 = (x > 0) & (rng.random(n) < 0.7)
    has2 = rng.random(n) < 1 / (1 + np.exp(-0.5 - g1))
    columns = {"x": x, "g1": np.where(has1, g1, np.nan), "g2": np.where(has2, g2, np.nan), "y": y}
    problem = afape.Problem({"x": ["x"], "g1": ["g1"], "g2": ["g2"]}, {"g1": 1.0, "g2": 1.0}, "y", 4.0)
    data = afape.Retrospective(pd.DataFrame(columns), problem)
    graph = afape.MNAR("x -> R_g1; g1 -> R_g2")
    policy = afape.FixedOrder(["g2"])
    with pytest.warns(afape.warnings.SupportWarning, match="x < "):
        result = afape.evaluate(
            data, policy, Zero(), missingness=graph, estimators=["ipw-semi-miss", "drl-semi-miss", "dm-semi-miss"]
        )
    truth = 1.0 + 4.0 * y.mean()
    for name in ("ipw-semi-miss", "drl-semi-miss", "dm-semi-miss"):
        bounds = result[name]["total"]
        assert bounds.bound_lower - 0.1 < truth < bounds.bound_upper + 0.1
        assert (
            1.5 < bounds.bound_upper - bounds.bound_lower < 4.5
        )  # half of the rows, between nothing and two prices plus an error


def test_a_replicate_that_cannot_be_learned_is_lost_not_fatal():
    world = GRAPH_WORLDS["odds ratio"]
    data = world.draw(30, 4)
    result = run(world, data, propensity=None, normalize=True, estimators=["ipw-semi-miss"], n_folds=1, bootstrap=150)
    outcome = result.answers["ipw-semi-miss"]
    assert outcome.replicates == 150
    assert 0 < outcome.lost < 60
    assert np.isfinite(outcome.estimates["total"].bootstrap_std_error)


def test_a_known_propensity_must_know_a_label_that_matters():
    world = GRAPH_WORLDS["label"]
    data = world.draw(100, 0)
    ignorant = afape.KnownPropensity(lambda values, required: np.full(len(values), 0.5))
    with pytest.raises(ValueError, match="must use the label"):
        run(world, data, propensity=ignorant)


def test_comparisons_under_a_graph_rank_by_its_own_estimators():
    world = GRAPH_WORLDS["paper"]
    data = world.draw(500, 0)
    found = afape.compare(
        data, {"all": afape.AcquireAll(), "none": afape.AcquireNone()}, world.classifier, missingness=world.missingness
    )
    assert found.best_estimator == "eff-semi-miss"
    assert "by eff-semi-miss" in repr(found)
    assert_allclose(found.ranking()["estimate"], found.ranking("eff-semi-miss")["estimate"])
    assert len(found.differences()) == 1
