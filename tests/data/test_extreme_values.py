"""Extreme values: found in clean data never, moved to the nearest other value, and without effect on estimates."""

import warnings

import numpy as np
import pandas as pd
import pytest

import afape
from afape.benchmark.synthetic import synthetic_mar
from afape.data.extreme_values import limit_extreme_values
from afape.warnings import AfapeWarning, FarValuesWarning

RNG = np.random.default_rng(0)
N = 2000
CLEAN = {
    "normal": RNG.normal(size=N),
    "uniform": RNG.uniform(size=N),
    "exponential": RNG.exponential(size=N),
    "lognormal": RNG.lognormal(0, 1, N),
    "zeros and a tail": np.where(RNG.random(N) < 0.9, 0.0, RNG.lognormal(8, 1, N)),
    "rare level": (np.arange(N) == 3).astype(float),
    "counts": RNG.poisson(1, N),
    "constant": np.ones(N),
    "blank": np.full(N, np.nan),
    "gaps": np.where(RNG.random(N) < 0.5, np.nan, RNG.normal(size=N)),
    "two kinds": np.where(RNG.random(N) < 0.05, 1e6, RNG.normal(size=N)),
}


@pytest.mark.parametrize("name", CLEAN)
def test_clean_columns_stay_as_they_are(name):
    values = np.asarray(CLEAN[name], dtype=float)[:, None]
    limited, count = limit_extreme_values(values)
    assert limited is values
    assert not count.any()


@pytest.mark.parametrize("typo", [1e3, -1e4, 1e6, 1e300, -1.7e308])
@pytest.mark.parametrize("n", [12, 50, N])
def test_typing_errors_move_to_the_nearest_other_value(typo, n):
    values = RNG.normal(70, 10, size=(n, 2))
    values[3, 1] = np.nan
    spoiled = values.copy()
    spoiled[5, 1] = typo
    limited, count = limit_extreme_values(spoiled)
    assert count.tolist() == [0, 1]
    usual = np.delete(values[:, 1], [3, 5])
    assert limited[5, 1] == (usual.max() if typo > 0 else usual.min())
    np.testing.assert_array_equal(np.delete(limited, 5, axis=0), np.delete(values, 5, axis=0))


def estimates(data, policy, classifier, experiment):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AfapeWarning)
        names = ["ipw-semi", "dm-semi", "drl-semi", "eff-semi", "mi"]
        result = afape.evaluate(
            data, policy, classifier, missingness=experiment.missingness, estimators=names, n_imputations=5
        )
    return pd.Series({name: result[name]["total"].value for name in names})


@pytest.mark.parametrize("column", [0, 1])
@pytest.mark.parametrize("typo", [50.0, -1e4, 1e6])
def test_one_typing_error_moves_no_estimate(column, typo):
    """One value of 3,200 may matter by a few thousandths; it mattered by 1 to 190 where costs are between 0 and 6."""
    experiment = synthetic_mar(4000)
    classifier, data, _ = experiment.prepare()
    values = data.values.copy()
    values[np.flatnonzero(~np.isnan(values[:, column]))[7], column] += typo
    spoiled = data.take(np.arange(len(data)))
    spoiled.values = values
    policy = afape.RandomSubset(0.5)
    clean = estimates(data, policy, classifier, experiment)
    gap = (estimates(spoiled, policy, classifier, experiment) - clean).abs()
    assert (gap[["ipw-semi", "dm-semi", "drl-semi"]] < 0.02).all()
    assert (gap < 0.12).all()  # the seeds of `mi` and `eff-semi` matter by 0.05


def test_the_warning_names_column_rows_and_estimators():
    experiment = synthetic_mar(1000)
    classifier, data, _ = experiment.prepare()
    frame = pd.DataFrame(data.values, columns=data.columns).assign(Y=data.labels)
    frame.loc[np.flatnonzero(data.recorded[:, 1])[0], "X1"] = 1e6
    spoiled = afape.Retrospective(frame, data.problem)
    with pytest.warns(FarValuesWarning, match=r"'X1' \(1 of \d+ rows\).*behind drl-semi they are moved") as found:
        afape.evaluate(
            spoiled,
            afape.AcquireAll(),
            classifier,
            missingness=experiment.missingness,
            estimators=["ipw-semi", "drl-semi"],
        )
    assert sum(isinstance(w.message, FarValuesWarning) for w in found) == 1
