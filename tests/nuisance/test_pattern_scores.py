"""Stacked errors of the autoregressive propensity: gradients over patterns, and what they do to influence values."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit
from worlds import World

import afape
from afape.estimators.drl import doubly_robust
from afape.estimators.ipw import inverse_probability
from afape.missingness import Conditioning
from afape.nuisance import Evidence, Fitted, Recipe
from afape.nuisance.propensity import AutoregressivePropensity
from afape.nuisance.propensity.answer import PatternParts
from afape.nuisance.values.known import KnownValues
from afape.nuisance.values.models import LearnedValues
from afape.nuisance.weights import View
from afape.plan import assign_folds
from afape.support import SupportMap, Violation
from afape.walk import Ground, Tables, WalkTable, walk

WORLD = World(31, n_groups=5, n_levels=3, n_free=1, given=(0,))


def given(data, *groups):
    mask = np.isin(np.arange(data.problem.n_groups), groups)
    return Conditioning(mask, label=False, gaps=np.zeros_like(mask))


def folds(data, n_folds):
    return assign_folds(len(data), n_folds, None, np.random.default_rng(0))


def learned(data, n_folds, unsupported=None):
    return AutoregressivePropensity(data, given(data, 0), folds(data, n_folds), unsupported=unsupported)


def asked(joint, data, rows):
    """Every set that these rows have recorded, as lines, some of them twice."""
    q = len(joint.order)
    sets = np.array(list(product([False, True], repeat=q)), dtype=bool).reshape(2**q, q)
    has = data.recorded[rows][:, joint.order]
    place, set_of = np.nonzero((has[:, None] | ~sets[None]).all(axis=2))
    lines = np.append(np.arange(len(place)), np.arange(0, len(place), 7))
    return PatternParts(rows[place[lines]], sets, set_of[lines])


def gradient(joint, parts):
    """Of every line, in all coefficients."""
    out = np.zeros((len(parts.rows), joint.models[-1].place.stop))
    seen = np.zeros(len(out), dtype=int)
    for lines, place, fold, columns in joint.gradients(parts):
        assert (joint.fold[parts.rows[lines]] == fold).all()
        out[lines] = columns[place]
        seen[lines] += 1
    assert (seen == parts.sets.any(axis=1)[parts.set_of]).all()  # once, and not where nothing is asked for
    return out


def log_probability(joint, parts):
    sets = np.zeros((len(parts.sets), joint.data.problem.n_groups), dtype=bool)
    sets[:, joint.order] = parts.sets
    return np.log(joint.probability(parts.rows, sets, parts.set_of))


def moved(joint, function, step=1e-5):
    """Central differences of a function in every coefficient, in all folds at once, as columns."""
    out = []
    for j, model in enumerate(joint.models):
        for c in range(model.place.stop - model.place.start):
            found = []
            for sign in (1, -1):
                for fits in joint.fits:
                    fits[j].coefficients[c] += sign * step
                found.append(function())
                for fits in joint.fits:
                    fits[j].coefficients[c] -= sign * step
            out.append((found[0] - found[1]) / (2 * step))
    return np.column_stack(out)


@pytest.mark.parametrize("cells", [2**21, 50])  # in one piece, or in many
def test_gradients_are_derivatives_of_the_probability(cells, monkeypatch):
    monkeypatch.setattr("afape.nuisance.propensity.patterns.CELLS", cells)
    monkeypatch.setattr("afape.nuisance.propensity.autoregressive.CELLS", cells)
    data = WORLD.draw(400, 0)
    joint = learned(data, 3)
    parts = asked(joint, data, np.arange(60))
    assert_allclose(gradient(joint, parts), moved(joint, lambda: log_probability(joint, parts)), rtol=1e-6, atol=1e-8)


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
    parts = asked(joint, data, np.arange(80))
    numeric = moved(joint, lambda: log_probability(joint, parts))
    assert_allclose(gradient(joint, parts), numeric, rtol=1e-6, atol=1e-8)


def evidence(data, joint, *, normalize=True, values=None):
    """What a method reads in the semi-offline view, put together by hand."""
    conditioning = given(data, 0)
    table = WalkTable.concatenate(list(walk(Ground.recorded(data, WORLD.policy, WORLD.classifier))))
    if values is not None:
        values = values.values(data, table, conditioning.columns(data))
    view = View(joint, data.recorded, conditioning.gaps)
    recipe = Recipe(LearnedValues(), normalize, "before", joint.fold, None)
    fitted = Fitted(data, recipe, conditioning, Tables([table]), {}, {("sets", "learned"): view}, (), table=table)
    return Evidence(fitted, view, values=values)


def some_values(values, acquired, labels):
    base = np.nansum(values, axis=1) + acquired @ np.arange(1.0, acquired.shape[1] + 1)
    return 3 + 2 * np.sin(base[:, None, None] + np.arange(acquired.shape[1] + 1)[None, :, None] * [[[1.0, 2.0]]])


@pytest.mark.parametrize("method", ["ipw", "plain ipw", "drl"])
def test_slopes_are_derivatives_of_the_estimate(method):
    """Of costs and, for weighting alone, of their parts; all folds moved together."""
    data = WORLD.draw(500, 1)
    joint = learned(data, 3)
    values = KnownValues(some_values) if method == "drl" else None
    reduce = doubly_robust if method == "drl" else inverse_probability

    def seen():  # a view keeps its weights, and parameters are moved under it
        return evidence(data, joint, normalize=method != "plain ipw", values=values)

    sums = reduce(seen())
    targets, directions = sums.formula.linearise(sums._mean)
    slopes = [
        np.concatenate([np.einsum("tq,ktqp->p", d, sums.tally.scores._derivative[m]) for m in joint.models])
        for d in directions.values()
    ]
    numeric = moved(joint, lambda: np.array(list(reduce(seen()).values.values())))
    assert_allclose(np.array(slopes) / len(data), numeric, rtol=1e-6, atol=1e-8)
    if values is None:
        booked = sums.booked()
        pulls = booked.pulls(sums.tally.sums.shape[1:], method != "plain ipw")
        of_parts = np.column_stack(
            [
                np.einsum("etq,ktqp->ep", pulls, sums.tally.scores._derivative[m]) + booked.slopes.found[m].sum(axis=0)
                for m in joint.models
            ]
        )
        numeric = moved(joint, lambda: reduce(seen()).booked().values)
        assert_allclose(of_parts / len(data), numeric, rtol=1e-6, atol=1e-8)
        assert list(targets) == ["acquisition", "misclassification", "total"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::afape.NormalizerWarning")  # the world is none that these models describe
@pytest.mark.parametrize(("n_folds", "clustered"), [(1, True), (3, False)])
def test_parts_have_the_errors_of_the_costs(n_folds, clustered):
    """Parts are moved from the weights of states, costs from quantities by depth: prices make one of the other."""
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
    assert set(result.table["error_method"]) == {"stacked"}
    again = result.reprice()
    for name in result.outcomes:
        for target, found in result[name].items():
            assert_allclose(again[name][target].influence, found.influence, rtol=1e-7, atol=1e-9)


@pytest.mark.filterwarnings("ignore::afape.AfapeWarning")  # what is not supported is the point
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
    for name, outcome in result.outcomes.items():
        assert outcome.error_method == "stacked"
        for target, found in outcome.estimates.items():
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
        for name in joint.outcomes:
            for target, found in joint[name].items():
                assert_allclose(found.value, chain[name][target].value, rtol=1e-9)
                assert_allclose(found.influence, chain[name][target].influence, rtol=1e-6, atol=1e-8)
                assert_allclose(joint.parts(name).influence, chain.parts(name).influence, rtol=1e-6, atol=1e-8)


def test_influence_is_the_derivative_of_the_refitted_estimate():
    """Infinitesimal jackknife: a row that weighs more moves every fit and every weight as the influence says."""
    data = WORLD.draw(600, 3)
    seen = evidence(data, learned(data, 1))
    influence = inverse_probability(seen).outcome("", 0.95).estimates["total"].influence

    def weighing(row, by):
        drawn = np.ones(len(data))
        drawn[row] += by
        return inverse_probability(seen.fitted.refit(drawn).evidence(("sets", "learned"))).values["total"]

    rows = np.arange(0, len(data), 40)
    slopes = [len(data) * (weighing(row, 0.5) - weighing(row, -0.5)) for row in rows]
    assert_allclose(slopes, influence[rows], atol=0.005 * np.std(influence))


def test_drawn_patterns_give_the_gradients_of_all_patterns(monkeypatch):
    data = WORLD.draw(2000, 4)
    joint = learned(data, 2)
    parts = asked(joint, data, np.arange(2000))
    exact = gradient(joint, parts)
    monkeypatch.setattr("afape.nuisance.propensity.autoregressive.MAX_GROUPS", 1)
    assert joint.sampled
    drawn = gradient(joint, parts)
    scale = np.sqrt((exact**2).mean(axis=0))
    assert np.abs(drawn - exact).mean() < 0.1 * scale.mean()
    assert_allclose(drawn.mean(axis=0), exact.mean(axis=0), atol=0.05 * scale.max())
    last = parts.sets[parts.set_of].shape[1] - 1  # what comes after all of S moves nothing
    before = ~parts.sets[parts.set_of][:, last]
    assert_allclose(drawn[before][:, joint.models[last].place], 0.0, atol=1e-12)


def test_sampled_errors_are_those_of_all_patterns(monkeypatch):
    data = WORLD.draw(800, 5)
    exact = inverse_probability(evidence(data, learned(data, 3))).outcome("", 0.95)
    monkeypatch.setattr("afape.nuisance.propensity.autoregressive.MAX_GROUPS", 1)
    drawn = inverse_probability(evidence(data, learned(data, 3))).outcome("", 0.95)
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
    parts = asked(joint, joint.data, np.arange(1, 300))
    assert np.isfinite(gradient(joint, parts)).all()
    whole = afape.Retrospective(frame.fillna(0.0), problem)
    assert list(learned(whole, 3).gradients(asked(learned(whole, 3), whole, np.arange(5)))) == []


class Sign:
    def predict(self, values, acquired):
        return (np.nansum(values, axis=1) > 0).astype(int)


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


@pytest.mark.filterwarnings("ignore::afape.AfapeWarning")  # bounds, of which the deepest sets have no part
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
