"""The block mechanism: groups of a block come together, and its propensity is the one it draws by."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import afape
from afape.missingness import BlockMechanism, GraphMechanism, IndependentMechanism, LogisticMechanism

GROUPS = ("a", "b", "c", "d")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40_000, 4)), columns=GROUPS).assign(y=rng.integers(0, 2, 40_000))
    problem = afape.Problem({g: [g] for g in GROUPS}, dict.fromkeys("bcd", 1.0), "y", 5.0)
    return afape.Retrospective(frame, problem)


@pytest.fixture(scope="module")
def mechanism():
    return afape.missingness.BlockMechanism(
        {"panel": ["b", "c"], "d": ["d"]}, {"panel": 0.4}, {"panel": {"a": 0.7}, "d": {"a": -1.0}}
    )


def test_groups_of_a_block_are_recorded_together(data, mechanism):
    hidden = mechanism.hide(data, 3)
    assert (hidden.recorded[:, 1] == hidden.recorded[:, 2]).all()
    assert hidden.recorded[:, 0].all()
    assert 0.1 < (hidden.recorded[:, 1] != hidden.recorded[:, 3]).mean() < 0.9


def test_the_propensity_is_a_product_over_blocks(data, mechanism):
    a = data.values[:, 0]
    first, second = expit(0.4 + 0.7 * a), expit(-a)
    known = mechanism.propensity(data).function
    for bits in product([False, True], repeat=3):
        required = np.tile([False, *bits], (len(data), 1))
        expected = np.where(bits[0] or bits[1], first, 1.0) * np.where(bits[2], second, 1.0)
        np.testing.assert_allclose(known(data.values, required), expected, rtol=1e-12)


def test_draws_follow_the_propensity(data, mechanism):
    recorded = mechanism.hide(data, 1).recorded
    required = np.tile([False, True, True, True], (len(data), 1))
    p = mechanism.propensity(data).function(data.values, required)
    difference = recorded[:, 1:].all(axis=1) - p
    assert abs(difference.mean()) < 4 * difference.std() / np.sqrt(len(data))


def test_blocks_of_one_group_are_the_logistic_mechanism(data):
    intercepts, weights = {"b": 0.3, "d": -0.5}, {"b": {"a": 1.0}}
    blocks = afape.missingness.BlockMechanism({"b": ["b"], "d": ["d"]}, intercepts, weights)
    each = afape.missingness.LogisticMechanism(intercepts, weights)
    required = np.random.default_rng(0).random((len(data), 4)) < 0.5
    found, expected = (m.propensity(data).function(data.values, required & [0, 1, 0, 1]) for m in (blocks, each))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (({"p": ["b"], "q": ["b", "c"]},), "'b' is in more than one"),
        (({"p": []},), "'p' has none"),
        (({"p": ["b"]}, {"q": 1.0}), "'intercepts' must name blocks"),
        (({"p": ["b"]}, {}, {"q": {"a": 1.0}}), "'weights' must name blocks"),
    ],
)
def test_what_makes_no_blocks_is_refused(arguments, match):
    with pytest.raises(ValueError, match=match):
        afape.missingness.BlockMechanism(*arguments)


def test_unknown_groups_and_hidden_columns_are_refused(data):
    with pytest.raises(ValueError, match="'z'"):
        afape.missingness.BlockMechanism({"p": ["z"]}).hide(data)
    with pytest.raises(ValueError, match="never hidden"):
        afape.missingness.BlockMechanism({"p": ["b", "c"]}, {}, {"p": {"c": 1.0}}).hide(data)


def test_mechanisms_hide_labels():
    """Shares of rows and known probabilities agree, for the label alone and together with groups."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(20_000, 3)), columns=["a", "b", "c"]).assign(y=rng.integers(0, 2, 20_000))
    problem = afape.Problem({g: [g] for g in "abc"}, {"b": 1.0, "c": 1.0}, "y", 5.0)
    data = afape.Retrospective(frame, problem)
    mechanisms = (
        LogisticMechanism({"b": 0.5, "y": 0.3}, {"y": {"a": 1.0}}),
        IndependentMechanism({"c": 0.6, "y": 0.7}),
        BlockMechanism({"panel": ["b", "y"]}, {"panel": 0.2}, {"panel": {"a": 0.5}}),
        GraphMechanism("a -> R_b; R_b -> R_y; b -> R_y", {"b": 0.5, "y": 0.2}, {"y": {"R_b": 0.8, "b": 0.5}}),
    )
    for mechanism in mechanisms:
        hidden = mechanism.hide(data, random_state=1)
        assert 0.1 < 1 - hidden.labelled.mean() < 0.6
        assert (hidden.labels[hidden.labelled] == data.labels[hidden.labelled]).all()
        required = np.tile([False, True, False, True], (len(data), 1))
        p = mechanism.propensity(data).function(data.values, required)
        has = hidden.recorded[:, 1] & hidden.labelled
        assert abs((has - p).mean()) < 4 * has.std() / np.sqrt(len(data))
        assert abs(np.corrcoef(has, p)[0, 1]) > 0.05 or np.ptp(p) == 0
    with pytest.raises(ValueError, match="One more column hides labels"):
        data.hide(np.ones((len(data), 2), dtype=bool))
