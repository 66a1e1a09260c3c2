"""Action values as users meet them: presets, own regressors, folds, splits, bounds."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from by_hand import state_values, walked
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from worlds import WORLDS, Zero

import afape
from afape._models import fit_weighted
from afape.action_values.induction import InducedValues, Lessons
from afape.action_values.models import PRESETS, LearnedValues
from afape.action_values.ridge import QuadraticRidge
from afape.benchmark.synthetic import synthetic_mar, synthetic_policies
from afape.walk.columns import CostColumns
from afape.walk.tariff import Tariff


@pytest.fixture(scope="module")
def parts():
    experiment = synthetic_mar(6000)
    return (*experiment.prepare(), experiment)


def run(parts, policy="Adaptive", **options):
    classifier, data, _, experiment = parts
    options = {"estimators": ["ipw-semi", "dm-semi", "drl-semi"], **options}
    return afape.evaluate(data, synthetic_policies()[policy], classifier, missingness=experiment.missingness, **options)


@pytest.mark.parametrize("label", [True, False])
@pytest.mark.parametrize("preset", list(PRESETS))
def test_every_preset_finds_the_cost(parts, preset, label):
    classifier, _, complete, _ = parts
    result = run(parts, values=LearnedValues(preset, label), n_folds=2)
    truth = afape.true_cost(complete, synthetic_policies()["Adaptive"], classifier)
    for target in ("acquisition", "misclassification", "total"):
        found = result["drl-semi"][target]
        assert abs(found.value - truth[target].value) < 4 * np.hypot(found.std_error, truth[target].std_error)
        # the direct method leans on its regressions; near the truth, without a promise
        assert abs(result["dm-semi"][target].value / truth[target].value - 1) < 0.12


def rare_errors(seed, n=3000):
    """Errors are rare and dear: most costs are 0. Three groups of four columns, recorded completely at random."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 13))
    y = (X.sum(axis=1) / 3 + rng.normal(size=n) > 1.6).astype(int)
    names = [f"c{j}" for j in range(13)]
    groups = {"a": names[:1], "b": names[1:5], "c": names[5:9], "d": names[9:]}
    problem = afape.Problem(groups, {"b": 1.0, "c": 1.0, "d": 1.0}, "y", [[0.0, 100.0], [2000.0, 0.0]])
    complete = afape.Retrospective(pd.DataFrame(X, columns=names).assign(y=y), problem)
    return complete, complete.hide(np.column_stack([np.ones(n, bool), rng.random((n, 3)) < 0.5]))


class Threshold:
    def predict(self, values, acquired):
        return (np.nan_to_num(values).sum(axis=1) / 3 > 0.9).astype(int)


def test_rare_and_dear_errors_do_not_bias_the_direct_method():
    """Predictions that are cut at 0 would have a mean that is too large, the more so after every step."""
    ratios = []
    for seed in range(6):
        complete, data = rare_errors(seed)
        truth = afape.true_cost(complete, afape.AcquireAll(), Threshold())["misclassification"].value
        options = {"missingness": afape.MCAR(), "estimators": ["dm-semi"]}
        found = afape.evaluate(data, afape.AcquireAll(), Threshold(), **options)["dm-semi"]["misclassification"]
        ratios.append(found.value / truth)
    assert abs(np.mean(ratios) - 1) < 4 * np.std(ratios, ddof=1) / np.sqrt(6)
    assert abs(np.mean(ratios) - 1) < 0.2


def test_the_penalty_is_the_one_of_least_generalised_cross_validation_error():
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(60, 3)), rng.normal(size=60)
    for strength in (0.0, 3.0):
        y = strength * X[:, 0] + noise
        model = QuadraticRidge().fit(X, y)
        errors = []
        for alpha in 10.0 ** np.arange(-1.0, 3.5, 0.5):
            Z = model._expand(X) - model.offset_
            hat = Z @ np.linalg.solve(Z.T @ Z + alpha * np.eye(Z.shape[1]), Z.T)
            centred = y - y.mean()
            errors.append(((centred - hat @ centred) ** 2).sum() / (60 - 1 - np.trace(hat)) ** 2)
        assert_allclose(model.alpha_, 10.0 ** (-1.0 + 0.5 * np.argmin(errors)))
    assert QuadraticRidge().fit(X, noise).alpha_ > QuadraticRidge().fit(X, 3 * X[:, 0] + noise).alpha_


def induced(data, table, lessons):
    """Action values of the costs, and the columns of these."""
    tariff = Tariff.of(data)
    columns = CostColumns(tariff, data.labels)
    return InducedValues(data, table, lessons, (columns,), tariff), columns


def test_with_the_label_stopping_costs_what_it_costs():
    world = WORLDS[1]
    data = world.draw(200, 0)
    table = walked(data, world.policy, world.classifier)
    stops = np.flatnonzero(table.stop > 0)
    for label in (True, False):
        lessons = Lessons(np.array([0]), np.zeros(200, dtype=int), LearnedValues(augment_label=label))
        learned, columns = induced(data, table, lessons)
        assert (learned.within(0).stops(stops) is None) == label  # what it costs itself, not what it may cost
    assert_array_equal(columns.stops(table, stops)[:, 1], table.cost[stops])


def test_nothing_missing_drl_is_the_truth(parts):
    classifier, _, complete, _ = parts
    policy = synthetic_policies()["Adaptive"]
    truth = afape.true_cost(complete, policy, classifier)
    result = afape.evaluate(complete, policy, classifier, missingness=afape.MCAR(), estimators=["drl-semi"])
    for target, estimate in truth.items():
        assert_allclose(result["drl-semi"][target].value, estimate.value, rtol=1e-9)
        assert_allclose(result["drl-semi"][target].influence, estimate.influence, atol=1e-8)


@pytest.mark.filterwarnings("ignore::afape.warnings.AssumptionWarning", "ignore::afape.warnings.BalanceWarning")
def test_given_groups_enter_even_where_never_acquired():
    """Missingness and outcome depend on z, which the policy never buys; without it the direct method is biased."""
    rng = np.random.default_rng(0)
    n = 4000
    z, x = rng.normal(size=(2, n))
    y = (z + 0.5 * x > 0).astype(int)
    has = rng.random(n) < 1 / (1 + np.exp(-2 * z))
    frame = pd.DataFrame({"z": z, "x": np.where(has, x, np.nan), "y": y})
    problem = afape.Problem({"z": ["z"], "x": ["x"]}, {"z": 5.0, "x": 1.0}, "y", 10.0)
    data = afape.Retrospective(frame, problem)
    complete = afape.Retrospective(frame.assign(x=x), problem)

    class Sign:  # wrong where z is low, which is where x is hardly ever recorded
        def predict(self, values, acquired):
            return np.ones(len(values), dtype=int)

    policy = afape.FixedOrder(["x"])
    truth = afape.true_cost(complete, policy, Sign())["misclassification"].value
    options = {"estimators": ["dm-semi"], "values": LearnedValues(augment_label=False)}
    with_z = afape.evaluate(data, policy, Sign(), missingness=afape.MAR(given=["z"]), **options)
    without = afape.evaluate(data, policy, Sign(), missingness=afape.MCAR(), **options)
    error = [abs(r["dm-semi"]["misclassification"].value - truth) for r in (with_z, without)]
    assert error[0] < 1
    assert error[1] > 2


def test_split_learns_from_some_rows_and_averages_over_the_others(parts):
    _, data, _, _ = parts
    result = run(parts, split=0.5)
    influence = result["drl-semi"]["misclassification"].influence
    assert len(influence) == len(data)
    assert result.table.set_index("estimator").loc["dm-semi", "ess"].iloc[0] == len(data) / 2
    both = run(parts)
    ratio = result["drl-semi"]["total"].std_error / both["drl-semi"]["total"].std_error
    assert 1.2 < ratio < 1.7  # half the rows: about the root of two


@pytest.mark.filterwarnings("ignore::afape.warnings.NormalizerWarning")
@pytest.mark.filterwarnings("ignore::afape.warnings.SupportWarning")
def test_rows_that_only_teach_have_no_say():
    """In a split, weights of the learning rows by models of the few others are nobody's business."""
    rng = np.random.default_rng(0)
    n = 300
    c = np.where(rng.random(n) < 0.04, 1.0, np.nan)
    frame = pd.DataFrame({"a": rng.normal(size=n), "c": c, "y": np.arange(n) % 2})
    data = afape.Retrospective(frame, afape.Problem({"a": ["a"], "c": ["c"]}, {"c": 1.0}, "y", 1.0))

    result = afape.evaluate(
        data, afape.RandomSubset(0.5), Zero(), missingness=afape.MCAR(), split=0.9, estimators=["ipw-semi", "drl-semi"],
        propensity=afape.LearnedPropensity(min_propensity=0.0),
    )  # fmt: skip
    assert np.isfinite(result["drl-semi"]["total"].value)
    with pytest.raises(ValueError, match="'n_folds' and 'split' exclude each other"):
        afape.evaluate(data, afape.AcquireNone(), Zero(), missingness=afape.MCAR(), split=0.5, n_folds=3)


def test_own_regressor_and_its_nonsense(parts):
    linear = afape.action_values.ValueRegressor(
        make_pipeline(StandardScaler(), LinearRegression()), pooled=False, multi_output=True
    )
    assert np.isfinite(run(parts, values=linear)["drl-semi"]["total"].value)

    class Blank(RegressorMixin, BaseEstimator):
        def fit(self, X, y):
            return self

        def predict(self, X):
            return np.full(len(X), np.nan)

    class Short(Blank):
        def predict(self, X):
            return np.zeros(len(X) + 1)

    with pytest.raises(ValueError, match=r"The regressor Blank must predict .* finite"):
        run(parts, values=Blank())
    with pytest.raises(ValueError, match=r"Short"):
        run(parts, values=Short())


@pytest.mark.parametrize(
    ("values", "error", "match"),
    [
        ("cubic", ValueError, "'values' must be one of"),
        (7, TypeError, "'values' must be a preset"),
        (LinearRegression, TypeError, "'values' must be a preset"),
        (afape.KnownValues(lambda v, a, y: np.zeros((len(v), 2))), ValueError, "KnownValues must return shape"),
    ],
)
def test_bad_values_are_refused(parts, values, error, match):
    with pytest.raises(error, match=match):
        run(parts, values=values)


@pytest.mark.parametrize("split", [0.0, 1.0, -1, 2])
def test_bad_split_is_refused(parts, split):
    with pytest.raises(ValueError, match="'split' must lie strictly between 0 and 1"):
        run(parts, split=split)


@pytest.mark.filterwarnings("ignore::afape.warnings.ClippedWeightsWarning")
@pytest.mark.filterwarnings("ignore::afape.warnings.NormalizerWarning")
@pytest.mark.filterwarnings("ignore::afape.warnings.SupportWarning")
def test_a_fold_without_any_row_to_learn_from_is_told(parts):
    """One row has b: the fold that holds it learns from none."""
    rng = np.random.default_rng(0)
    b = np.full(40, np.nan)
    b[0] = 1.0
    frame = pd.DataFrame({"a": rng.normal(size=40), "b": b, "y": np.arange(40) % 2})
    data = afape.Retrospective(frame, afape.Problem({"a": ["a"], "b": ["b"]}, {"b": 1.0}, "y", 1.0))

    for preset in ("quadratic", "boosting"):
        with pytest.warns(
            afape.warnings.ValueFallbackWarning, match="could not be learned from rows with the same set and action"
        ):
            result = afape.evaluate(
                data,
                afape.AcquireAll(),
                Zero(),
                missingness=afape.MCAR(),
                estimators=["dm-semi", "drl-semi"],
                values=preset,
            )
        assert 0 <= result["dm-semi"]["misclassification"].value <= 1
        assert result["dm-semi"]["acquisition"].value == 1.0


def test_quadratic_ridge_recovers_a_quadratic():
    """Within 1.5 standard deviations; beyond them only lines go on."""
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, -0.5, 0.0, 0.5, 1.0], size=(400, 3))
    y = 1 + X[:, 0] - 2 * X[:, 1] * X[:, 2] + X[:, 2] ** 2
    assert_allclose(QuadraticRidge(1e-9).fit(X, y).predict(X), y, atol=1e-6)
    assert_allclose(QuadraticRidge(1e-9).fit(1e-10 * X, y).predict(1e-10 * X), y, atol=1e-6)
    wide = rng.normal(size=(200, 40))
    assert QuadraticRidge().fit(wide, wide[:, 0]).coef_.shape == (80,)
    both = QuadraticRidge(1e-9).fit(X, np.column_stack([y, -y])).predict(X)
    assert_allclose(both[:, 1], -y, atol=1e-6)
    fit = QuadraticRidge(1e-9).fit(X, y)
    edge = fit.centre_ + 1.5 * fit.scale_
    far = np.array([edge, edge + 1, edge + 2])
    assert_allclose(np.diff(fit.predict(far), 2), 0, atol=1e-6)


def test_weights_are_repetitions():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 2)), rng.normal(size=50)
    weight = rng.integers(0, 3, 50).astype(float)
    repeated = np.repeat(np.arange(50), weight.astype(int))
    for model in (LinearRegression(), make_pipeline(StandardScaler(), LinearRegression())):
        a = fit_weighted(model, X, y, weight).predict(X)
        assert_allclose(a, fit_weighted(model, X[repeated], y[repeated], None).predict(X), atol=1e-9)

    class NoWeights(LinearRegression):
        def fit(self, X, y):
            return super().fit(X, y)

    assert_allclose(fit_weighted(NoWeights(), X, y, weight).predict(X), a, atol=1e-9)


def test_a_row_has_no_say_in_its_own_values():
    """Cross-fitting: other predictions in fold 0 change the values of fold 1, and of fold 1 alone."""
    world = WORLDS[1]
    data = world.draw(300, 0)
    fold = np.arange(300) % 2
    table = walked(data, world.policy, world.classifier)
    own = fold[table.row] == 0
    other = replace(table, predicted=np.where(own & (table.predicted >= 0), 1 - table.predicted, table.predicted))
    lessons = Lessons(np.array([0]), fold, LearnedValues(augment_label=False))
    found = []
    for each in (table, other):
        learned, columns = induced(data, each, lessons)
        found.append(state_values(learned.within(0), each, columns))
    assert_array_equal(found[0][own], found[1][own])
    assert np.abs(found[0][~own] - found[1][~own]).max() > 0.01


def test_a_set_without_rows_falls_back_to_a_smaller_one():
    """b and c are never recorded together, so after b the best guess about b and c is what is known with b alone."""
    rng = np.random.default_rng(0)
    n = 2000
    a, b, c = rng.normal(size=(3, n))
    y = (a > 0).astype(int)
    coin = rng.random(n) < 0.5
    frame = pd.DataFrame({"a": a, "b": np.where(coin, b, np.nan), "c": np.where(coin, np.nan, c), "y": y})
    problem = afape.Problem({k: [k] for k in "abc"}, {"b": 1.0, "c": 1.0}, "y", 10.0)
    data = afape.Retrospective(frame, problem)

    class Either:  # b or c at first, then the other one in half of the cases
        def probabilities(self, values, acquired):
            p = np.zeros((len(values), 4))
            p[:, 1:3] = np.where(acquired[:, 1:], 0.0, 0.5)
            p[:, 3] = 1 - p.sum(axis=1)
            return p

    fold = np.arange(n) % 2
    table = walked(data, Either(), Zero())
    learned, columns = induced(data, table, Lessons(np.array([0]), fold))
    assert learned.fallbacks > 0  # second purchases: no row has both
    first = table.depth == 0
    right = np.where(a[table.row[first]] > 0, 10.0, 0.0)
    # stopping costs the same with or without c, so nothing is lost; with a middling guess rows would be off by 2.5
    assert np.abs(state_values(learned.within(0), table, columns)[first, 1] - right).mean() < 0.1
