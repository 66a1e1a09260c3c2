"""Known action values with the wrong sign, unit or without prices are noticed; the right ones are not."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest

import afape
from afape.warnings import KnownValuesWarning

PRICES = np.array([0.0, 1.0, 2.0])


def records(n=500):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    frame["y"] = rng.integers(0, 2, n)  # a coin: every stop costs 5 with probability one half
    frame.loc[rng.random(n) < 0.3, "b"] = np.nan
    frame.loc[rng.random(n) < 0.3, "c"] = np.nan
    return afape.Retrospective(frame, afape.Problem({g: [g] for g in "abc"}, {"b": 1.0, "c": 2.0}, "y", 5.0))


class First:
    def predict(self, values, acquired):
        return np.zeros(len(values), dtype=int)


def true_values(values, acquired, labels):
    """Q of a policy that acquires all: the prices of what is left, and 5/2."""
    left = np.where(acquired, 0.0, PRICES).sum(axis=1)
    q = np.empty((len(values), 4, 2))
    q[:, :, 0], q[:, :, 1] = left[:, None], 2.5
    q[:, 3, 0] = 0.0
    return q


def evaluated(change):
    known = afape.KnownValues(lambda *state: change(true_values(*state)))
    return afape.evaluate(
        records(), afape.AcquireAll(), First(), missingness=afape.MCAR(), estimators=["drl-semi"], values=known
    )


def test_right_values_give_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error", KnownValuesWarning)
        evaluated(lambda q: q)
        evaluated(lambda q: q + np.random.default_rng(0).normal(0, 0.05, q.shape))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda q: -q, "possible costs are from 0 to 3"),
        (lambda q: 100 * q, "undo any scaling"),
        (lambda q: q / 100, r"cost of 0\.025 where runs stop"),
        (lambda q: q - np.append(PRICES, 0.0)[:, None] * [1, 0], "include the price of the action"),
    ],
)
def test_values_with_another_sign_or_unit_are_noticed(change, match):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        evaluated(change)
    texts = [str(w.message) for w in found if w.category is KnownValuesWarning]
    assert any(re.search(match, text) for text in texts)
