"""The second-order correction of weights: against derivatives by differences, and in repeated samples."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from small_propensities import LINEAR, given, one_fold

import afape
from afape.propensity.autoregressive import AutoregressivePropensity
from afape.propensity.chain import ChainPropensity
from afape.propensity.factor import Crossfit
from afape.propensity.logistic import clustered_covariance, fit_logistic, logistic_design, sigmoid
from afape.propensity.patterns import summed_probability
from afape.run.plan import assign_folds

SETS = np.array([[a, b, c] for a in (False, True) for b in (False, True) for c in (False, True)])


def records(n, seed, n_groups=3, shared=0.0, cluster=None):
    """Groups that are recorded together; ``shared`` is what the rows of a cluster have in common."""
    rng = np.random.default_rng([n, seed])
    x = rng.normal(size=n)
    odds = 0.4 + 0.6 * x + (0.0 if cluster is None else shared * rng.normal(size=cluster.max() + 1)[cluster])
    columns = {"x": x}
    for g in range(n_groups):
        has = rng.random(n) < sigmoid(odds)
        columns[f"g{g}"] = np.where(has, x, np.nan)
        odds = odds + 0.8 * (has - 0.5)
    names = list(columns)
    frame = pd.DataFrame(columns).assign(y=rng.integers(0, 2, n), patient=0 if cluster is None else cluster)
    problem = afape.Problem({n: [n] for n in names}, dict.fromkeys(names[1:], 1.0), "y", 1.0)
    return afape.Retrospective(frame, problem, cluster=None if cluster is None else "patient")


def learned(data, n_folds, kind=AutoregressivePropensity):
    return kind(data, given(data, 0), assign_folds(data, n_folds, np.random.default_rng(0)), LINEAR)


def shifts(joint, rows):
    """s of every row and set: minus the relative change of 1 / P under small errors of the coefficients, by differences.

    :math:`E[1 / P(\\theta + e)] = (1 / P) (1 + tr V H / 2)` with H the second derivative of 1 / P, times P.
    """
    index = np.tile(np.arange(len(SETS)), len(rows))
    of = np.repeat(rows, len(SETS))

    def weight():
        return 1 / summed_probability(joint.models, joint.fold, of, SETS, index)

    base, total, h = weight(), np.zeros(len(of)), 1e-3
    for model in joint.models:
        for k in range(joint.n_folds):
            values, vectors = np.linalg.eigh(model.variance(k))
            kept = model.coefficients[k].copy()
            for value, vector in zip(values, vectors.T, strict=True):
                around = []
                for sign in (1, -1):
                    model.coefficients[k] = kept + sign * h * vector
                    around.append(weight())
                model.coefficients[k] = kept
                total += value * (around[0] + around[1] - 2 * base) / h**2 / 2
    return of, index, total / base


@pytest.mark.parametrize("clustered", [False, True])
def test_the_shift_is_that_of_second_derivatives(clustered):
    cluster = np.arange(400) // 4 if clustered else None
    joint = learned(records(400, 0, shared=1.0, cluster=cluster), 2)
    rows, index, expected = shifts(joint, np.arange(0, 400, 40))
    before = summed_probability(joint.models, joint.fold, rows, SETS, index)
    after = summed_probability(joint.models, joint.fold, rows, SETS, index, corrected=True)
    inner = SETS.any(axis=1)[index]
    odds = [p[inner] / (1 - p[inner]) for p in (before, after)]
    found = np.log(odds[1] / odds[0]) * (1 - before[inner])
    assert_allclose(found, expected[inner], rtol=1e-4, atol=1e-8)
    assert_allclose(after[~inner], 1.0, rtol=1e-12)


def test_one_group_is_corrected_as_in_a_chain():
    data = records(300, 1, n_groups=1)
    joint, chain = learned(data, 3), learned(data, 3, ChainPropensity)
    rows, sets, index = np.arange(300), np.array([[False, True]]), np.zeros(300, dtype=np.intp)
    assert_allclose(joint.probability(rows, sets, index), chain.probability(rows, sets, index), rtol=1e-6)


def test_models_of_their_own_rows_and_many_groups_are_not_corrected():
    data = records(300, 1)
    joint = AutoregressivePropensity(data, given(data, 0), one_fold(data), LINEAR)
    assert not joint.corrected
    many = records(60, 1, n_groups=11)
    assert not learned(many, 2).corrected
    assert learned(records(60, 1, n_groups=10), 2).corrected


def test_the_clustered_covariance_is_the_sandwich_by_hand():
    rng = np.random.default_rng(0)
    design, cluster = logistic_design(rng.normal(size=(60, 1))), rng.integers(0, 9, 60)
    response = rng.random(60) < 0.5
    fit = fit_logistic(design, response)
    s = (response - sigmoid(design @ fit.coefficients))[:, None] * design
    meat = sum(np.outer(t, t) for t in (s[cluster == c].sum(axis=0) for c in range(9)))
    inverse = np.linalg.inv(fit.inverse_information)
    expected = np.linalg.solve(inverse, np.linalg.solve(inverse, meat).T) * 9 / 8
    assert_allclose(clustered_covariance(fit, design, response, None, cluster), expected, rtol=1e-8)
    known = Crossfit(np.zeros(60, dtype=np.intp))
    assert known.covariance(fit, design, response, np.arange(60)) is fit.inverse_information


def mean_weights(make, draws):
    """Mean weight of the set of all groups in each data set; 1 on average if weights are unbiased."""
    out = []
    for seed in range(draws):
        data = make(seed)
        joint = learned(data, 5)
        required = ~data.always_recorded
        has = np.flatnonzero(data.recorded.all(axis=1))
        p = joint.probability(has, required[None], np.zeros(len(has), dtype=np.intp))
        out.append((1 / p).sum() / len(data))
    return np.mean(out), np.std(out) / np.sqrt(draws)


@pytest.mark.parametrize("clustered", [False, True])
def test_the_mean_weight_is_one(clustered, monkeypatch):
    """Four groups, 200 rows: without the correction weights are too large."""
    cluster = np.arange(200) // 5 if clustered else None

    def make(seed):
        return records(200, seed, n_groups=4, shared=0.7, cluster=cluster)

    mean, error = mean_weights(make, 60)
    assert abs(mean - 1) < 3 * error
    monkeypatch.setattr(AutoregressivePropensity, "corrected", False)
    assert mean_weights(make, 60)[0] > mean + 0.01
