"""Propensity from one model of all indicators: sums over patterns, draws of patterns, and when it is used."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from small_propensities import LINEAR, Sign, ask, given, one_fold

import afape
from afape import Problem, Retrospective
from afape.propensity.autoregressive import AutoregressivePropensity
from afape.propensity.chain import ChainPropensity
from afape.propensity.drawn_patterns import drawn_probability
from afape.propensity.patterns import summed_probability
from afape.run.plan import assign_folds


def additive(n, seed):
    """Three groups whose indicators act additively on each other's log-odds, as the joint model assumes."""
    rng = np.random.default_rng([9, seed])
    x = rng.normal(size=n)
    recorded = [np.ones(n, dtype=bool)]
    odds = 1.2 + 0.5 * x
    for _ in range(3):
        recorded.append(rng.random(n) < 1 / (1 + np.exp(-odds)))
        odds = odds - 1.2 + recorded[-1]
    values = np.where(np.column_stack(recorded), np.column_stack([x, x, x, x]), np.nan)
    problem = afape.Problem({n: [n] for n in "xabc"}, {"a": 1.0, "b": 1.0, "c": 1.0}, "y", 1.0)
    frame = pd.DataFrame(values, columns=list("xabc")).assign(y=rng.integers(0, 2, n))
    return afape.Retrospective(frame, problem)


@pytest.mark.parametrize("required", [[0, 1, 0, 0], [0, 0, 1, 0], [0, 1, 1, 0], [0, 0, 0, 1], [0, 1, 1, 1]])
def test_autoregressive_agrees_with_the_chain(required):
    data = additive(20_000, 0)
    chain, joint = (
        make(data, given(data, 0), one_fold(data), LINEAR) for make in (ChainPropensity, AutoregressivePropensity)
    )
    assert [data.problem.group_names[g] for g in chain.order] == ["a", "b", "c"]
    inner = np.abs(data.values[:, 0]) < 2
    assert_allclose(ask(joint, data, required)[inner], ask(chain, data, required)[inner], atol=0.02)


def test_probabilities_of_sets_add_up():
    data = additive(300, 1)
    fold = assign_folds(data, 3, np.random.default_rng(0))
    joint = AutoregressivePropensity(data, given(data, 0), fold, LINEAR)
    rows, index = np.arange(len(data)), np.zeros(len(data), dtype=np.intp)

    def chance(s):  # before the correction of the weight
        return summed_probability(joint.models, joint.fold, rows, np.array([s], dtype=bool), index)

    p = {s: chance(s) for s in product([0, 1], repeat=3)}
    assert_allclose(p[0, 0, 0], 1.0, rtol=1e-12)  # every pattern contains the empty set
    for s in p:  # more groups are never more likely
        for more in (np.maximum(s, one) for one in np.eye(3, dtype=int)):
            assert (p[tuple(more.tolist())] <= p[s] + 1e-15).all()
    nothing = sum((-1) ** sum(s) * p[s] for s in p)  # by inclusion and exclusion
    assert_allclose(nothing, nothing_by_hand(joint, data), rtol=1e-9)


def nothing_by_hand(joint, data):
    """P(R = 0) in every row: the product of the probabilities that each group is missing after missing ones."""
    out = np.ones(len(data))
    for model in joint.models:
        for i in range(len(data)):
            theta = model.coefficients[joint.fold[i]][: model.given.shape[1]]
            out[i] /= 1 + np.exp(model.given[i] @ theta)
    return out


def test_asking_again_gives_the_same_probabilities():
    """Results are kept by rows and sets: other rows, other sets and learning again give other probabilities."""
    data = additive(400, 2)
    joint = AutoregressivePropensity(data, given(data, 0), one_fold(data), LINEAR)
    sets = np.array([[False, True, False, False], [False, True, True, False]])
    rows, half = np.arange(400), [np.arange(200), np.arange(200, 400)]

    def asked(propensity, rows, sets):
        return propensity.probabilities(rows, sets, half).probability

    first = asked(joint, rows, sets)
    assert_allclose(first, joint.probability(rows, sets, np.repeat([0, 1], 200)), rtol=0)
    assert_allclose(asked(joint, rows, sets), first, rtol=0)
    assert_allclose(asked(joint, rows[::-1], sets), joint.probability(rows[::-1], sets, np.repeat([0, 1], 200)), rtol=0)
    assert_allclose(asked(joint, rows, sets[::-1]), joint.probability(rows, sets, np.repeat([1, 0], 200)), rtol=0)
    drawn = np.random.default_rng(0).integers(0, 3, size=400).astype(float)
    assert np.abs(asked(joint.refit(drawn), rows, sets) - first).max() > 0.01


def test_drawn_patterns_agree_with_all_patterns():
    data = additive(2000, 0)
    joint = AutoregressivePropensity(data, given(data, 0), one_fold(data), LINEAR)
    rows, index = np.arange(len(data)), np.zeros(len(data), dtype=np.intp)
    for required in [[1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1], [1, 1, 1]]:
        sets = np.array([required], dtype=bool)
        exact = summed_probability(joint.models, joint.fold, rows, sets, index)
        drawn = drawn_probability(joint.models, joint.fold, rows, sets[index])
        assert np.abs(drawn - exact).max() < 0.05
        assert np.abs((drawn - exact).mean()) < 0.01


def test_many_groups_have_an_answer_and_say_how():
    rng = np.random.default_rng(0)
    names = [f"g{j}" for j in range(18)]
    x = rng.normal(size=(40, 18))
    table = pd.DataFrame(x, columns=names).assign(y=[0, 1] * 20)
    for j in range(1, 18):
        table.loc[rng.random(40) > 0.8, names[j]] = np.nan
    data = Retrospective(table, Problem({n: [n] for n in names}, dict.fromkeys(names[1:], 1.0), "y", 20.0))
    with pytest.warns(afape.warnings.AfapeWarning):
        found = afape.evaluate(
            data, afape.RandomSubset(0.3), Sign(), missingness=afape.MAR(given=["g0"]), estimators=["ipw-semi", "blocking"],
            walk=afape.WalkOptions(max_states=0, n_trajectories=8),
        )  # fmt: skip
    assert any("sampled patterns" in text for text in found.assumption)
    assert np.isfinite(found["blocking"]["total"].value)


def test_many_sets_switch_to_one_model_of_all_indicators():
    rng = np.random.default_rng(0)
    names = [f"g{i}" for i in range(8)]
    values = rng.normal(size=(400, 8))
    values[:, 1:][rng.random((400, 7)) < 0.3] = np.nan
    problem = afape.Problem({n: [n] for n in names}, dict.fromkeys(names[1:], 1.0), "y", 5.0)
    frame = pd.DataFrame(values, columns=names).assign(y=rng.integers(0, 2, 400))
    data = afape.Retrospective(frame, problem)
    results = {
        method: afape.evaluate(
            data,
            afape.RandomSubset(0.5),
            Sign(),
            missingness=afape.MCAR(),
            propensity=afape.LearnedPropensity(method=method, min_propensity=0.0),
            estimators=["ipw-semi"],
            n_folds=1,
        )
        for method in ("auto", "autoregressive", "chain")
    }
    auto, joint, chain = (r["ipw-semi"]["total"] for r in results.values())
    assert auto.value == joint.value
    assert results["auto"].table["error_method"].unique().tolist() == ["stacked"]
    assert results["chain"].table["error_method"].unique().tolist() == ["stacked"]
    # two models of the same probabilities: apart by a fraction of the standard error
    assert abs(joint.value - chain.value) < chain.std_error
