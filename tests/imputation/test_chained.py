"""Chained equations: drawn values follow known laws, parameters are drawn, groups are drawn whole."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from small_law import draw, population

import afape
from afape.estimators.estimate import Estimate
from afape.estimators.imputed import ImputedEstimate
from afape.imputation.regressions import near_donors

NUMBERS = afape.Problem({"x": ["x"], "z": ["z"]}, {"z": 1.0}, "y", 1.0)


@pytest.fixture(scope="module")
def law():
    return population()


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


@pytest.mark.slow
@pytest.mark.parametrize("model", ["trees", "linear"])
def test_rubin_intervals_cover_a_mean(model):
    covered, estimates, errors = [], [], []
    for seed in range(200):
        data, _ = normal_records(300, seed)
        tables = list(afape.ChainedImputer(model).impute(data, 10, seed))
        means = [t[:, 1].mean() for t in tables]
        each = [Estimate(m, t[:, 1] - m, None, "rows") for t, m in zip(tables, means, strict=True)]
        pooled = ImputedEstimate.pooled(each, "tables")
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
        assert_allclose(table[:, 2], 2 * table[:, 1], atol=0.15)
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


@pytest.mark.parametrize("options", [{"n_sweeps": 0}, {"min_leaf": 0}, {"min_leaf": 1.5}, {"model": "forest"}])
def test_bad_options_of_the_imputer_are_refused(options):
    with pytest.raises(ValueError, match=f"'{next(iter(options))}' must be"):
        afape.ChainedImputer(**options)


def test_imputer_describes_itself():
    assert repr(afape.ChainedImputer("linear")) == "ChainedImputer('linear', n_sweeps=5, min_leaf=5)"
    assert isinstance(afape.ChainedImputer(), afape.imputation.Imputer)
