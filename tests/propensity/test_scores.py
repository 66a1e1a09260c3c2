"""Scores of learned propensities: gradients of probabilities, and what they add to influence values."""

from dataclasses import replace
from itertools import product

import by_hand
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from part_worlds import n_parts
from scipy.special import expit
from small_propensities import LINEAR, Sign, given
from worlds import World

import afape
from afape.action_values.known import KnownValues
from afape.estimators.drl import doubly_robust
from afape.estimators.ipw import inverse_probability
from afape.propensity.autoregressive import AutoregressivePropensity
from afape.propensity.drawn_patterns import drawn_moments
from afape.propensity.patterns import summed_moments
from afape.propensity.probabilities import PatternLines
from afape.propensity.unsupported import SupportMap, Violation
from afape.run.plan import assign_folds

WORLD = World(31, n_groups=5, n_levels=3, n_free=1, given=(0,))


@pytest.fixture(autouse=True)
def uncorrected(monkeypatch):
    """Scores are derivatives of the probability before the second-order correction of the weight."""
    monkeypatch.setattr(AutoregressivePropensity, "corrected", False)


def folds(data, n_folds):
    return assign_folds(data, n_folds, np.random.default_rng(0))


def learned(data, n_folds, unsupported=None):
    return AutoregressivePropensity(data, given(data, 0), folds(data, n_folds), LINEAR, unsupported=unsupported)


def asked(joint, data, rows):
    """Every set that these rows have recorded, as lines, some of them twice."""
    q = len(joint.order)
    sets = np.array(list(product([False, True], repeat=q)), dtype=bool).reshape(2**q, q)
    has = data.recorded[rows][:, joint.order]
    place, set_of = np.nonzero((has[:, None] | ~sets[None]).all(axis=2))
    lines = np.append(np.arange(len(place)), np.arange(0, len(place), 7))
    return PatternLines(rows[place[lines]], sets, set_of[lines])


def gradient(joint, lines):
    """Of every line, in all coefficients."""
    out = np.zeros((len(lines.rows), joint.models[-1].place.stop))
    seen = np.zeros(len(out), dtype=int)
    for mine, place, fold, columns in joint.gradients(lines):
        assert (joint.fold[lines.rows[mine]] == fold).all()
        out[mine] = columns[place]
        seen[mine] += 1
    assert (seen == lines.sets.any(axis=1)[lines.set_of]).all()  # once, and not where nothing is asked for
    return out


def log_probability(joint, lines):
    sets = np.zeros((len(lines.sets), joint.data.problem.n_groups), dtype=bool)
    sets[:, joint.order] = lines.sets
    return np.log(joint.probability(lines.rows, sets, lines.set_of))


def numeric(learn, function, step=1e-5):
    """Central differences of a function of a propensity in every coefficient, in all folds at once, as columns."""
    out = []
    for j, model in enumerate(learn().models):
        for c in range(model.place.stop - model.place.start):
            found = []
            for sign in (1, -1):
                joint = learn()
                for coefficients in joint.models[j].coefficients:
                    coefficients[c] += sign * step
                found.append(function(joint))
            out.append((found[0] - found[1]) / (2 * step))
    return np.column_stack(out)


@pytest.mark.parametrize("cells", [2**21, 50])  # in one piece, or in many
def test_gradients_are_derivatives_of_the_probability(cells, monkeypatch):
    monkeypatch.setattr("afape.propensity.patterns.CELLS", cells)
    monkeypatch.setattr("afape.propensity.autoregressive.CELLS", cells)
    data = WORLD.draw(400, 0)
    joint = learned(data, 3)
    lines = asked(joint, data, np.arange(60))
    expected = numeric(lambda: learned(data, 3), lambda moved: log_probability(moved, lines))
    assert_allclose(gradient(joint, lines), expected, rtol=1e-6, atol=1e-8)


def apart(n):
    """Records in which b is not recorded with a where x is 1."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, n).astype(float)
    recorded = rng.random((n, 3)) < [0.8, 0.6, 0.5]
    recorded[(x == 1) & recorded[:, 0], 1] = False
    values = np.where(recorded, rng.normal(size=(n, 3)), np.nan)
    frame = pd.DataFrame(values, columns=list("abc")).assign(x=x, y=rng.integers(0, 2, n))
    return afape.Retrospective(frame, afape.Problem({g: [g] for g in "xabc"}, dict.fromkeys("abc", 1.0), "y", 1.0))


def test_gradients_know_of_what_is_never_recorded_together():
    data = apart(600)
    never = SupportMap((Violation(np.array([False, True, True, False]), data.values[:, 0] == 1, 0),))
    joint = learned(data, 2, never)
    assert [data.problem.group_names[g] for g in joint.order] == ["a", "c", "b"]
    lines = asked(joint, data, np.arange(80))
    expected = numeric(lambda: learned(data, 2, never), lambda moved: log_probability(moved, lines))
    assert_allclose(gradient(joint, lines), expected, rtol=1e-6, atol=1e-8)


def evidence(data, propensity, **options):
    """What a method reads in the semi-offline view, put together by hand."""
    return by_hand.evidence(WORLD, data, propensity, given(data, 0), **options)


def some_values(width):
    """Any action values, in so many columns."""

    def function(values, acquired, labels):
        base = np.nansum(values, axis=1) + acquired @ np.arange(1.0, acquired.shape[1] + 1)
        return 3 + 2 * np.sin(base[:, None, None] + np.outer(np.arange(acquired.shape[1] + 1), np.arange(1, width + 1)))

    return function


def correction(joint, slopes):
    """By hand: derivatives of estimates in the coefficients, times inverse information and scores of every fit; (E, n)."""
    n = len(joint.fold)
    out = np.zeros((len(slopes), n))
    for model in joint.models:
        for k, fit in enumerate(model.fits):
            used, share = joint.fold != k, (joint.fold == k).mean()
            score = (model.response - expit(model.design @ fit.coefficients))[:, None] * model.design
            added = share * n * slopes[:, model.place] @ fit.inverse_information @ score.T * used
            out += added - used * added.sum(axis=1, keepdims=True) / used.sum()
    return out


@pytest.mark.parametrize("method", ["ipw", "plain ipw", "drl"])
@pytest.mark.parametrize("parts", [False, True], ids=["costs", "parts"])
def test_influence_adds_the_scores_of_every_model(method, parts):
    data = WORLD.draw(500, 1)
    values = KnownValues(some_values(2), parts=some_values(n_parts(WORLD) - 1)) if method == "drl" else None
    reduce = doubly_robust if method == "drl" else inverse_probability

    def booked(propensity):
        read = evidence(data, propensity, normalize=method != "plain ipw", values=values)
        return reduce(read).booked(read.part_columns if parts else read.cost_columns)

    joint = learned(data, 3)
    as_known = AutoregressivePropensity(data, given(data, 0), joint.fold, replace(LINEAR, stacked=False))
    slopes = numeric(lambda: learned(data, 3), lambda moved: booked(moved).values)
    added = booked(joint).influence - booked(as_known).influence
    assert_allclose(added.T, correction(joint, slopes), rtol=1e-5, atol=1e-6 * np.abs(added).max())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::afape.warnings.NormalizerWarning")  # the world is none that these models describe
@pytest.mark.parametrize(("n_folds", "clustered"), [(1, True), (3, False)])
def test_parts_have_the_errors_of_the_costs(n_folds, clustered):
    """Prices make costs of parts."""
    data = WORLD.draw(400, 2)
    frame = pd.DataFrame(data.values, columns=data.columns).assign(y=data.labels, unit=np.arange(400) // 2)
    problem = afape.Problem(data.problem.groups, data.problem.costs, "y", data.problem.misclassification_cost)
    data = afape.Retrospective(frame, problem, cluster="unit" if clustered else None)
    result = afape.evaluate(
        data,
        WORLD.policy,
        WORLD.classifier,
        missingness=afape.MAR(given=["g0"]),
        propensity=afape.LearnedPropensity(method="autoregressive", form="linear"),
        estimators=["ipw-semi", "ipw-miss", "drl-semi", "eff-semi"],
        n_folds=n_folds,
    )
    assert set(result.table["error_method"]) <= {"stacked", "conditional means as known"}
    again = result.reprice()
    for name in result.answers:
        for target, found in result[name].items():
            assert_allclose(again[name][target].influence, found.influence, rtol=1e-7, atol=1e-9)


@pytest.mark.filterwarnings("ignore::afape.warnings.AfapeWarning")  # what is not supported is the point
def test_bounds_have_the_errors_of_the_models_that_they_use():
    """Where x is 1, b is not recorded with a: bounds, whose parts and costs agree and whose errors are stacked."""
    data = apart(2000)
    result = afape.evaluate(
        data,
        afape.RandomSubset(0.5),
        Sign(),
        missingness=afape.MAR(given=["x"]),
        propensity=afape.LearnedPropensity(method="autoregressive", form="linear"),
        estimators=["ipw-semi", "drl-semi"],
        n_folds=2,
    )
    again = result.reprice()
    for name, answer in result.answers.items():
        assert answer.error_method == "stacked"
        for target, found in answer.estimates.items():
            assert isinstance(found, afape.Bounds)
            for end in ("least", "largest"):
                one, other = getattr(found, end), getattr(again[name][target], end)
                assert_allclose(other.influence, one.influence, rtol=1e-7, atol=1e-9)


@pytest.mark.slow
def test_errors_of_equal_models_are_equal():
    """One group of gaps, or two without regressors: chain and joint model are the same or both saturated."""
    world = World(33, n_groups=3, n_levels=3, n_free=1, given=(0,))
    data = world.draw(600, 0)
    rng = np.random.default_rng(0)
    one = data.values.copy()
    one[:, data.column_group == 2] = rng.integers(0, 3, (len(data), int((data.column_group == 2).sum())))
    frame = pd.DataFrame(one, columns=data.columns).assign(y=data.labels)
    problem = afape.Problem(data.problem.groups, data.problem.costs, "y", data.problem.misclassification_cost)
    for records, missingness in (
        (afape.Retrospective(frame, problem), afape.MAR(given=["g0"])),
        (data, afape.MCAR()),
    ):
        joint, chain = (
            afape.evaluate(
                records,
                world.policy,
                world.classifier,
                missingness=missingness,
                propensity=afape.LearnedPropensity(method=method, form="linear"),
                estimators=["ipw-semi", "ipw-miss", "drl-semi", "eff-semi"],
                n_folds=1,
            )
            for method in ("autoregressive", "chain")
        )
        for name in joint.answers:
            for target, found in joint[name].items():
                assert_allclose(found.value, chain[name][target].value, rtol=1e-9)
                assert_allclose(found.influence, chain[name][target].influence, rtol=1e-6, atol=1e-8)
                assert_allclose(joint.parts(name).influence, chain.parts(name).influence, rtol=1e-6, atol=1e-8)


def test_influence_is_the_derivative_of_the_refitted_estimate():
    """Infinitesimal jackknife: a row that weighs more moves every fit and every weight as the influence says."""
    data = WORLD.draw(600, 3)
    seen = evidence(data, learned(data, 1))
    influence = inverse_probability(seen).answer().estimates["total"].influence

    def weighing(row, by):
        drawn = np.ones(len(data))
        drawn[row] += by
        return inverse_probability(seen.fitted.refit(drawn).evidence(seen.key)).answer().estimates["total"].value

    rows = np.arange(0, len(data), 40)
    slopes = [len(data) * (weighing(row, 0.5) - weighing(row, -0.5)) for row in rows]
    assert_allclose(slopes, influence[rows], atol=0.005 * np.std(influence))


def test_drawn_patterns_give_the_moments_of_all_patterns():
    data = WORLD.draw(2000, 4)
    joint = learned(data, 1)
    lines = asked(joint, data, np.arange(2000))
    sets = lines.sets[lines.set_of]
    pairs = np.unique(np.column_stack([lines.rows, sets])[sets.any(axis=1)], axis=0)
    rows, sets = pairs[:, 0], pairs[:, 1:].astype(bool)
    exact, drawn = np.empty((2, *sets.shape, 1 + sets.shape[1]))
    for out, moments in ((exact, summed_moments), (drawn, drawn_moments)):
        for some, found in moments(joint.models, 0, rows, sets):
            out[some] = found * np.tri(*found.shape[1:])  # a model has no coefficients for later groups
    scale = np.sqrt((exact**2).mean(axis=0))
    assert np.abs(drawn - exact).mean() < 0.1 * scale.mean()
    assert_allclose(drawn.mean(axis=0), exact.mean(axis=0), atol=0.05 * scale.max())
    assert_allclose(drawn[~sets[:, -1], -1], 0.0, atol=1e-12)  # the last group, after all of S, moves nothing


def test_sampled_errors_are_those_of_all_patterns(monkeypatch):
    data = WORLD.draw(800, 5)
    exact = inverse_probability(evidence(data, learned(data, 3))).answer()
    monkeypatch.setattr("afape.propensity.autoregressive.MAX_SUMMED", 1)
    drawn = inverse_probability(evidence(data, learned(data, 3))).answer()
    assert exact.error_method == drawn.error_method == "stacked"
    for target, found in exact.estimates.items():
        assert_allclose(drawn.estimates[target].std_error, found.std_error, rtol=0.05)


def test_one_class_and_no_gaps_move_nothing():
    data = WORLD.draw(300, 6)
    values = data.values.copy()
    values[1:, data.column_group == 2] = np.nan  # recorded in the first row alone: some folds have never seen it
    frame = pd.DataFrame(values, columns=data.columns).assign(y=data.labels)
    problem = afape.Problem(data.problem.groups, data.problem.costs, "y", data.problem.misclassification_cost)
    joint = learned(afape.Retrospective(frame, problem), 3)
    assert [fit is None for fit in joint.models[-1].fits].count(True) >= 1
    assert np.isfinite(gradient(joint, asked(joint, joint.data, np.arange(1, 300)))).all()
    whole = afape.Retrospective(frame.fillna(0.0), problem)
    assert list(learned(whole, 3).gradients(asked(learned(whole, 3), whole, np.arange(5)))) == []


def dependent(n, seed):
    """Three groups, each more likely recorded where the one before it is, and where x is large."""
    rng = np.random.default_rng([7, seed])
    x = rng.normal(size=n)
    values = rng.normal(size=(n, 3)) + 0.3 * x[:, None]
    label = values.sum(axis=1) + x + rng.normal(size=n) > 0
    odds = 0.8 + 0.6 * x
    for g in range(3):
        has = rng.random(n) < expit(odds)
        odds = odds - 0.5 + has
        values[~has, g] = np.nan
    frame = pd.DataFrame(values, columns=list("abc")).assign(x=x, y=label.astype(int))
    return afape.Retrospective(frame, afape.Problem({g: [g] for g in "xabc"}, dict.fromkeys("abc", 1.0), "y", 10.0))


@pytest.mark.slow
def test_errors_are_the_spread_of_the_estimates():
    """Over many draws; an error that takes the propensity as known is several times as large for what is paid."""
    found = {True: [], False: []}
    draws = 200
    for seed in range(draws):
        for stacked in (True, False) if seed < 30 else (True,):
            result = afape.evaluate(
                dependent(500, seed),
                afape.RandomSubset(0.5),
                Sign(),
                missingness=afape.MAR(given=["x"]),
                propensity=afape.LearnedPropensity(method="autoregressive", stacked=stacked, form="linear"),
                estimators=["ipw-semi"],
                normalize=False,
                n_folds=1,
            )
            assert set(result.table["error_method"]) == {"stacked" if stacked else "propensity as known"}
            both = [result["ipw-semi"][t] for t in ("acquisition", "total")]
            found[stacked].append([(e.value, e.std_error) for e in both])
    spread = np.std(np.array(found[True])[:, :, 0], axis=0, ddof=1)
    ratio = np.array(found[True])[:, :, 1].mean(axis=0) / spread
    assert (np.abs(ratio - 1) < 3 / np.sqrt(2 * draws)).all()
    known = np.array(found[False])[:, :, 1].mean(axis=0) / spread
    assert known[0] > 4
    assert known[1] > 1.05 * ratio[1]


@pytest.mark.filterwarnings("ignore::afape.warnings.AfapeWarning")  # bounds, of which the deepest sets have no part
def test_parts_where_no_row_can_be_used_in_the_deepest_sets():
    """All of 14 groups are hardly ever recorded together: sets beyond some depth are unsupported in every row."""
    rng = np.random.default_rng([7, 0])
    n, x = 1000, rng.normal(size=1000)
    names = [f"g{g}" for g in range(14)]
    values = rng.normal(size=(n, 14)) + 0.3 * x[:, None]
    label = values.sum(axis=1) + x + rng.normal(size=n) > 0
    odds = 0.5 * x
    for g in range(14):
        has = rng.random(n) < expit(odds)
        odds = 0.7 * odds + 0.3 * (has - 0.5)
        values[~has, g] = np.nan
    frame = pd.DataFrame(values, columns=names).assign(x=x, y=label.astype(int))
    problem = afape.Problem({g: [g] for g in ["x", *names]}, dict.fromkeys(names, 1.0), "y", 10.0)
    result = afape.evaluate(
        afape.Retrospective(frame, problem),
        afape.AcquireAll(),
        Sign(),
        missingness=afape.MAR(given=["x"]),
        propensity=afape.LearnedPropensity(form="linear"),
        estimators=["ipw-semi"],
    )
    found, again = result["ipw-semi"]["total"], result.reprice()["ipw-semi"]["total"]
    assert isinstance(found, afape.Bounds)
    assert_allclose(again.least.value, found.least.value, rtol=1e-9)
    assert_allclose(again.least.influence, found.least.influence, rtol=1e-7, atol=1e-9)


def test_stacked_influence_is_the_derivative_of_the_refitted_estimate():
    """Infinitesimal jackknife: doubling a row moves estimate and propensity together, as the influence says."""
    data = World(23, n_groups=3, n_levels=3, n_free=1, given=(0,)).draw(900, 0)
    world = World(23, n_groups=3, n_levels=3, n_free=1, given=(0,))

    def fitted(d):
        return afape.evaluate(
            d, world.policy, world.classifier, missingness=afape.MAR(given=["g0"]), estimators=["ipw-semi"], n_folds=1,
            propensity=afape.LearnedPropensity(min_propensity=0.0),
        )["ipw-semi"]  # fmt: skip

    base = fitted(data)
    n = len(data)
    for i in range(0, n, 90):
        doubled = fitted(data.take(np.append(np.arange(n), i)))
        for target in ("acquisition", "misclassification", "total"):
            moved = (n + 1) * (doubled[target].value - base[target].value)
            assert_allclose(moved, base[target].influence[i], atol=0.02 * np.abs(base[target].influence).max())
