"""Errors, coverage and data efficiency, by hand."""

import numpy as np
import pandas as pd
import pytest

from afape.benchmark.summary import data_efficiency, summarise_results


def lines(estimator, estimates, *, rows=100, half=1.0, run="convergence"):
    return pd.DataFrame(
        {
            "run": run, "rows": rows, "draw": np.arange(len(estimates)), "agent": "a", "estimator": estimator,
            "target": "total", "truth": 10.0, "estimate": estimates, "std_error": half / 1.96, "ess": 50.0,
            "lower": np.array(estimates) - half, "upper": np.array(estimates) + half, "unsupported": 0.0, "support": "",
        }
    )  # fmt: skip


def test_bias_is_paired_with_the_same_rows():
    results = pd.concat([lines("complete", [9.0, 11.0, 10.5]), lines("ipw-semi", [9.5, 11.5, 11.0], half=0.9)])
    found = summarise_results(results).set_index("estimator")
    assert found.loc["ipw-semi", "bias"] == pytest.approx(0.5)
    assert found.loc["ipw-semi", "bias_mc_error"] == pytest.approx(0.0)
    assert found.loc["ipw-semi", "rmse"] == pytest.approx(np.sqrt((0.25 + 2.25 + 1.0) / 3))
    assert found.loc["ipw-semi", ["covered", "intervals"]].tolist() == [1, 3]
    assert found.loc["complete", "bias"] == pytest.approx(0.5 / 3)


def test_bias_is_against_the_truth_where_that_varies_less():
    results = pd.concat([lines("complete", [9.0, 11.0, 10.0]), lines("imp-mean", [10.4, 10.6, 10.5])])
    found = summarise_results(results).set_index("estimator").loc["imp-mean"]
    assert found["bias"] == pytest.approx(0.5)
    assert found["bias_mc_error"] == pytest.approx(0.1 / np.sqrt(3))


def test_estimates_that_are_missing_are_counted():
    results = pd.concat([lines("complete", [10.0, 10.0]), lines("cc", [np.nan, 12.0])])
    found = summarise_results(results).set_index("estimator").loc["cc"]
    assert found[["draws", "answered", "covered", "intervals"]].tolist() == [2, 1, 0, 1]
    assert np.isnan(found["biased"])


def test_efficiency_is_the_ratio_of_rows_times_squared_error():
    """Errors of 2 at 100 rows and 1 at 400 against half of each: 4 times fewer rows at both sizes."""
    parts = []
    for rows, error in ((100, 2.0), (400, 1.0)):
        wide = 10 + error * np.array([1, -1, 1, -1])
        parts += [lines("ipw-miss", wide, rows=rows), lines("ipw-semi", 10 + (wide - 10) / 2, rows=rows)]
        parts.append(lines("blocking", 13 + 0.01 * (wide - 10), rows=rows))
    found = data_efficiency(pd.concat(parts)).set_index("estimator")
    assert found.loc["ipw-semi", "ratio"] == pytest.approx(4.0)
    assert found.loc["ipw-semi", ["lower", "upper"]].tolist() == pytest.approx([4.0, 4.0])
    assert found.loc["blocking", "biased"]
    assert np.isnan(found.loc["blocking", "ratio"])


def test_known_propensities_are_compared_with_known_ones():
    rng = np.random.default_rng(0)
    parts = [lines(name, 10 + rng.normal(size=30)) for name in ("ipw-miss", "ipw-miss-gt", "ipw-semi", "ipw-semi-gt")]
    found = data_efficiency(pd.concat(parts)).set_index("estimator")["against"]
    assert found.to_dict() == {"ipw-semi": "ipw-miss", "ipw-semi-gt": "ipw-miss-gt"}
