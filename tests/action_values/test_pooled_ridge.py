"""One ridge regression for lines of many sets."""

import numpy as np
import pytest

import afape
from afape.action_values.ridge import PooledRidge, QuadraticRidge


def test_without_blanks_it_is_the_quadratic_ridge():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    y = X[:, 0] ** 2 + rng.normal(size=200)
    expected = QuadraticRidge().fit(X, y).predict(X)
    np.testing.assert_allclose(PooledRidge().fit(X, y).predict(X), expected, rtol=1e-12)


def test_blanks_are_means_told_apart_by_an_indicator():
    """Known, the first column is y; blank, y is 5: the indicator carries that, and a blank adds nothing of its own."""
    rng = np.random.default_rng(1)
    x, known = rng.normal(size=4000), rng.random(4000) < 0.5
    y = np.where(known, x, 5.0)
    X = np.column_stack([np.where(known, x, np.nan), known])
    found = PooledRidge(alpha=1e-6).fit(X, y).predict(X)
    np.testing.assert_allclose(found, y, atol=1e-3)


@pytest.mark.parametrize("agent", [afape.RandomSubset(0.5), afape.AcquireAll()], ids=repr)
def test_the_preset_gives_values_that_agree_with_the_default(parts, experiment, agent):
    classifier, data, complete = parts
    options = {"missingness": experiment.missingness, "estimators": ["dm-semi", "drl-semi"]}
    found = afape.evaluate(data, agent, classifier, values="pooled", **options)
    truth = afape.true_cost(complete, agent, classifier)["total"].value
    drl = found["drl-semi"]["total"]
    assert abs(drl.value - truth) < 4 * drl.std_error
    usual = afape.evaluate(data, agent, classifier, **options)["drl-semi"]["total"]
    assert abs((drl - usual).value) < 4 * max((drl - usual).std_error, 0.01)
