"""Propensity of sets by the chain rule: against shares, its folds, and its weights."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.ensemble import RandomForestClassifier
from small_propensities import LINEAR, Sign, ask, given, one_fold
from worlds import World

import afape
from afape import LearnedPropensity
from afape.propensity.autoregressive import AutoregressivePropensity
from afape.propensity.chain import ChainPropensity
from afape.run.plan import assign_folds


@pytest.fixture(scope="module")
def binary():
    """Two levels, one given group: a logistic model of one binary column is saturated."""
    return World(21, n_groups=4, n_levels=2, n_free=1, given=(0,)).draw(3000, 0)


def shares(data, required, given=0):
    """Share of rows with the required groups, by the level of the given column."""
    level = data.values[:, given]
    has = data.recorded[:, required].all(axis=1)
    return np.where(level == 1, has[level == 1].mean(), has[level == 0].mean())


@pytest.mark.parametrize("required", [[1], [2], [1, 3], [1, 2, 3], []])
def test_chain_equals_shares_in_a_saturated_world(binary, required):
    chain = ChainPropensity(binary, given(binary, 0), one_fold(binary), LINEAR)
    mask = np.isin(np.arange(4), required)
    assert_allclose(ask(chain, binary, mask), shares(binary, required), rtol=1e-7)


def test_without_given_columns_the_share_is_exact(binary):
    for make in (ChainPropensity, AutoregressivePropensity):
        p = make(binary, given(binary), one_fold(binary), LINEAR)
        assert_allclose(ask(p, binary, [False, True, True, False]), binary.recorded[:, [1, 2]].all(axis=1).mean())


def test_always_recorded_groups_have_probability_one(binary):
    chain = ChainPropensity(binary, given(binary, 0), one_fold(binary), LINEAR)
    assert (ask(chain, binary, [True, False, False, False]) == 1.0).all()
    assert chain.factors == {}


def test_only_sets_that_are_asked_for_are_fitted(binary):
    chain = ChainPropensity(binary, given(binary, 0), one_fold(binary), LINEAR)
    ask(chain, binary, [False, True, False, True])
    assert len(chain.factors) == 2
    before = dict(chain.factors)
    ask(chain, binary, [False, True, False, True])
    assert chain.factors == before


def test_order_is_by_share_then_name(binary):
    chain = ChainPropensity(binary, given(binary, 0), one_fold(binary), LINEAR)
    share = binary.recorded.mean(axis=0)
    assert chain.order == sorted([1, 2, 3], key=lambda g: -share[g])


def test_one_class_only_is_certain():
    """A group recorded exactly when another is: the factor given the other is 1, and scikit-learn is not asked."""
    rng = np.random.default_rng(0)
    a = np.where(rng.random(200) < 0.5, 1.0, np.nan)
    frame = pd.DataFrame({"x": rng.normal(size=200), "a": a, "b": 2 * a, "c": np.nan, "y": rng.integers(0, 2, 200)})
    problem = afape.Problem({n: [n] for n in "xabc"}, {"a": 1.0, "b": 1.0, "c": 1.0}, "y", 1.0)
    data = afape.Retrospective(frame, problem)
    chain = ChainPropensity(data, given(data, 0), assign_folds(data, 4, rng), LINEAR)
    assert_allclose(ask(chain, data, [0, 1, 1, 0]), ask(chain, data, [0, 1, 0, 0]), rtol=0)
    assert (ask(chain, data, [0, 0, 0, 1]) == 0).all()
    assert (ask(chain, data, [0, 1, 0, 1]) == 0).all()


def test_rows_are_predicted_by_models_that_have_not_seen_them(binary):
    fold = assign_folds(binary, 5, np.random.default_rng(0))
    forest = RandomForestClassifier(n_estimators=5, random_state=0)
    chain = ChainPropensity(binary, given(binary, 0), fold, LearnedPropensity(forest))
    p = ask(chain, binary, [False, True, False, False])
    for k in range(5):
        model = RandomForestClassifier(n_estimators=5, random_state=0)
        model.fit(binary.values[fold != k][:, [0]], binary.recorded[fold != k, 1].astype(int))
        assert_allclose(p[fold == k], model.predict_proba(binary.values[fold == k][:, [0]])[:, 1])


@pytest.mark.parametrize(("n", "k"), [(30, 0), (30, 1), (30, 3), (30, 15), (30, 30)])
def test_cross_fitted_weights_of_a_cell_are_about_n_plus_1_over_k_plus_1(n, k):
    """A level with N rows outside the fold, k of them recorded: neither infinite nor overconfident."""
    level = np.repeat([0.0, 1.0], [200, 2 * n])
    first = np.tile([0, 1], 100 + n)  # folds, N rows of the level in each
    has = np.zeros(len(level), dtype=bool)
    has[:100] = True
    inside = np.flatnonzero((level == 1) & (first == 0))
    has[inside[:k]] = True
    has[np.flatnonzero((level == 1) & (first == 1))[:5]] = True
    frame = pd.DataFrame({"x": level, "a": np.where(has, 1.0, np.nan), "y": np.arange(len(level)) % 2})
    data = afape.Retrospective(frame, afape.Problem({"x": ["x"], "a": ["a"]}, {"a": 1.0}, "y", 1.0))
    chain = ChainPropensity(data, given(data, 0), first, LINEAR)
    weight = 1 / ask(chain, data, [False, True])[(level == 1) & (first == 1)]
    assert_allclose(weight, (n + 1) / (k + 1), rtol=0.3 if k == 0 else 0.06)
    assert chain.converged


def shocked(n, seed):
    """Two groups recorded by a shared coin most of the time: correlated given x, though each is a fair coin."""
    rng = np.random.default_rng([5, seed])
    x, a, b = rng.normal(size=(3, n))
    shock = rng.random(n) < 0.5
    alone = rng.random(n) < 0.2
    has_a = shock
    has_b = np.where(alone, rng.random(n) < 0.5, shock)
    frame = pd.DataFrame({"x": x, "a": np.where(has_a, a, np.nan), "b": np.where(has_b, b, np.nan)})
    problem = afape.Problem({n: [n] for n in "xab"}, {"a": 1.0, "b": 3.0}, "y", 5.0)
    return afape.Retrospective(frame.assign(y=(x + a + b > 0).astype(int)), problem)


def test_correlated_recording_breaks_independence_but_not_the_default():
    """After a, the policy buys b, then b's price is paid in full: the acquisition cost is 4 for everybody.

    P(R_a, R_b) = 0.45, but independence says 0.25, so weights come out 1.8 times too large.
    """

    def buy_b_where_a_is_positive(values, acquired):
        return np.where(~acquired[:, 1], 1, np.where((values[:, 1] > 0) & ~acquired[:, 2], 2, 3))

    # acquisition is paid before b is seen, so look at the paper's weight, which needs P(R >= {a, b})
    policy = afape.DecisionRule(buy_b_where_a_is_positive)
    truth = 1.0 + 3.0 * 0.5
    options = {
        "missingness": afape.MAR(given=["x"]),
        "estimators": ["ipw-semi"],
        "acquisition_weight": "after",
        "normalize": False,
    }
    errors = {"auto": [], "independent": []}
    for seed in range(30):
        data = shocked(1000, seed)
        for method, found in errors.items():
            with warnings.catch_warnings():
                # The wrong product is what one of the two is here for; its mean weight is far from 1.
                warnings.simplefilter("ignore", afape.warnings.NormalizerWarning)
                result = afape.evaluate(
                    data, policy, Sign(), propensity=afape.LearnedPropensity(method=method), **options
                )
            found.append(result["ipw-semi"]["acquisition"].value - truth)
    for method, found in errors.items():
        error = np.std(found, ddof=1) / np.sqrt(len(found))
        off = abs(np.mean(found)) / error
        assert off < 4 if method == "auto" else off > 20, (method, off)


@pytest.mark.filterwarnings("ignore::afape.warnings.NormalizerWarning")
def test_clipped_propensities_are_counted_and_warned_of():
    data = shocked(300, 0)
    with pytest.warns(afape.warnings.ClippedWeightsWarning, match="fell below 'min_propensity'"):
        result = afape.evaluate(
            data,
            afape.AcquireAll(),
            Sign(),
            missingness=afape.MCAR(),
            propensity=afape.LearnedPropensity(min_propensity=0.6),
            estimators=["ipw-semi"],
        )
    both = int(data.recorded.all(axis=1).sum())
    assert result.table["clipped"].max() >= both
    assert result.support.sets["smallest_propensity"].min() < 0.6  # raw values are kept
    assert result.support.sets["largest_weight"].max() <= 1 / 0.6 + 1e-12


def test_probability_zero_without_a_floor_is_not_estimable():
    """One row has b; its fold's model has never seen b, so without 'min_propensity' its weight would be infinite."""
    rng = np.random.default_rng(0)
    b = np.full(40, np.nan)
    b[0] = 1.0
    frame = pd.DataFrame({"a": rng.normal(size=40), "b": b, "y": np.arange(40) % 2})
    data = afape.Retrospective(frame, afape.Problem({"a": ["a"], "b": ["b"]}, {"b": 1.0}, "y", 1.0))
    options = {"missingness": afape.MCAR(), "estimators": ["ipw-semi"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", afape.warnings.AfapeWarning)
        none = afape.evaluate(
            data, afape.AcquireAll(), Sign(), propensity=afape.LearnedPropensity(min_propensity=0.0), **options
        )
        floor = afape.evaluate(data, afape.AcquireAll(), Sign(), **options)
    assert "probability 0" in none.table["note"].iloc[0]
    assert floor.table["clipped"].tolist() == [1, 1, 1]
    assert np.isfinite(floor["ipw-semi"]["total"].value)
