"""The form of the default model: chosen by the records, shrunk with many columns, robust against far values."""

import numpy as np
import pandas as pd
import pytest
from small_propensities import LINEAR, Sign, ask, given, one_fold

import afape
from afape import LearnedPropensity, Problem, Retrospective
from afape.propensity.chain import ChainPropensity


def shaped(n, seed, log_odds):
    """Records in which group b is recorded with these log-odds of column a."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    b = np.where(rng.random(n) < 1 / (1 + np.exp(-log_odds(a))), rng.normal(size=n), np.nan)
    frame = pd.DataFrame({"a": a, "b": b, "y": rng.integers(0, 2, n)})
    return Retrospective(frame, Problem({"a": ["a"], "b": ["b"]}, {"b": 1.0}, "y", 1.0))


@pytest.mark.parametrize(
    ("log_odds", "forms"),
    [
        (lambda a: 0.5 + a, {"linear"}),
        (lambda a: 1.5 - a**2, {"spline"}),
        (lambda a: np.where(np.sin(6 * a) > 0, 2.0, -2.0), {"boosting"}),
    ],
    ids=["linear", "curved", "jumps"],
)
def test_the_records_choose_the_form(log_odds, forms):
    chosen = []
    for seed in range(4):
        data = shaped(4000, seed, log_odds)
        chain = ChainPropensity(data, given(data, 0), one_fold(data), LearnedPropensity())
        found = chain.forms.of(1)
        chosen.append(found.kind)
        assert 0.7 < found.slope < 1.3
        assert found.gap < 0.15
        p = ask(chain, data, [False, True])
        truth = 1 / (1 + np.exp(-log_odds(data.values[:, 0])))
        assert np.abs(p - truth).mean() < 0.06
    assert set(chosen) == forms


def test_many_columns_are_shrunk():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 60))
    b = np.where(rng.random(300) < 1 / (1 + np.exp(-x[:, 0])), 0.0, np.nan)
    frame = pd.DataFrame(x, columns=[f"x{j}" for j in range(60)]).assign(b=b, y=rng.integers(0, 2, 300))
    data = Retrospective(frame, Problem({"x": list(frame.columns[:60]), "b": ["b"]}, {"b": 1.0}, "y", 1.0))
    chain = ChainPropensity(data, given(data, 0), one_fold(data), LearnedPropensity())
    assert chain.forms.of(1).ridge > 0
    assert "shrunk" in chain.forms.of(1).name


def test_one_mistyped_value_does_not_decide_the_fit():
    data = shaped(4000, 0, lambda a: 0.5 + a)
    values = data.values[:, 0].copy()
    values[np.flatnonzero(~data.recorded[:, 1])[0]] = 1e6
    frame = pd.DataFrame({"a": values, "b": data.values[:, 1], "y": data.labels})
    typo = Retrospective(frame, data.problem)
    clean, spoiled = (ask(ChainPropensity(d, given(d, 0), one_fold(d), LINEAR), d, [False, True]) for d in (data, typo))
    inside = np.abs(values) < 3
    assert np.abs(spoiled - clean)[inside].mean() < 0.02
    with pytest.warns(afape.warnings.FarValuesWarning, match=r"'a' \(1 of 4000 rows\)"):
        afape.evaluate(typo, afape.AcquireAll(), Sign(), missingness=afape.MAR(given=["a"]), estimators=["ipw-semi"])
