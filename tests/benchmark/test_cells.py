"""Statistics over data sets, their Monte Carlo errors, and the rules, by hand."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest

from afape.agents import RandomSubset
from afape.benchmark.cells import Cells, Measured, cells_of, growth, measured
from afape.benchmark.rules import above, below, inside, together
from afape.benchmark.synthetic import synthetic_mar
from afape.benchmark.trajectories import count_table, n_trajectories, recorded_shares, shares_table
from afape.walk.ground import Ground
from afape.walk.walker import walk


def lines(agent, estimator, estimates, half=1.0, truth=10.0):
    estimates = np.asarray(estimates, dtype=float)
    return pd.DataFrame(
        {
            "run": "r", "rows": 100, "draw": np.arange(len(estimates)), "agent": agent, "estimator": estimator,
            "target": "total", "truth": truth, "estimate": estimates, "std_error": half / 2, "lower": estimates - half,
            "upper": estimates + half,
        }
    )  # fmt: skip


def test_bias_error_and_coverage_by_hand():
    table = pd.concat([lines("a", "complete", [9.0, 11.0]), lines("a", "ipw-semi", [9.5, 12.5], half=1.0)])
    cells = cells_of(table, "r", "total")
    assert cells.names == (("a", "ipw-semi"),)
    assert cells.bias() == pytest.approx([0.1])  # (0.5 + 1.5) / 2 from the rows without gaps, as a share of 10
    assert cells.rmse() == pytest.approx([np.sqrt((0.25 + 6.25) / 2) / 10])
    assert cells.coverage() == 0.5
    assert cells.narrowness() == pytest.approx(0.5 / np.std([9.5, 12.5], ddof=1))


def test_the_jackknife_error_of_a_mean_is_its_standard_error():
    estimates = np.random.default_rng(0).normal(10, 1, 12)
    cells = cells_of(
        pd.concat([lines("a", "complete", np.full(12, np.nan)), lines("a", "cc", estimates)]), "r", "total"
    )
    (found,) = measured(Cells.bias, cells)
    assert found.value == pytest.approx((estimates.mean() - 10) / 10)
    assert found.error == pytest.approx(estimates.std(ddof=1) / np.sqrt(12) / 10)


def test_agents_that_share_data_sets_are_not_independent():
    """Four agents with the same estimates tell no more about coverage than one of them; apart they would."""
    rng = np.random.default_rng(1)
    same, apart = [], []
    shared = rng.normal(10, 0.6, 40)
    for agent in "abcd":
        own = rng.normal(10, 0.6, 40)
        complete = lines(agent, "complete", np.full(40, 10.0))
        same += [complete, lines(agent, "cc", shared)]
        apart += [complete, lines(agent, "cc", own)]
    one = measured(Cells.coverage, cells_of(pd.concat(same[:2]), "r", "total"))[0]
    four = measured(Cells.coverage, cells_of(pd.concat(same), "r", "total"))[0]
    free = measured(Cells.coverage, cells_of(pd.concat(apart), "r", "total"))[0]
    assert four.error == pytest.approx(one.error)
    assert free.error < 0.75 * four.error


def test_growth_recovers_a_power_of_the_rows():
    rows = [100, 400, 1600]
    found = growth(rows, [Measured(3 * n**-0.5, 0.1 * 3 * n**-0.5) for n in rows])
    assert found.value == pytest.approx(-0.5)
    weights = np.log(rows) - np.log(rows).mean()
    assert found.error == pytest.approx(0.1 / np.sqrt((weights**2).sum()))
    assert np.isnan(growth([100], [Measured(1.0, 0.1)]).value)


def test_rules_by_hand():
    assert below(Measured(1.0, 0.4), 2.0) == "agrees"  # two errors below
    assert below(Measured(1.3, 0.4), 2.0) == "undecided"
    assert below(Measured(3.1, 0.4), 2.0) == "undecided"
    assert below(Measured(3.3, 0.4), 2.0) == "disagrees"  # three errors above
    assert above(Measured(3.0, 0.4), 2.0) == "agrees"
    assert above(Measured(0.7, 0.4), 2.0) == "disagrees"
    assert below(Measured(1.0, float("nan")), 2.0) == "undecided"
    assert [inside(a, b, (0.5, 2)) for a, b in ((0.6, 1.9), (0.4, 1.0), (2.1, 3.0), (0.1, 0.4))] == [
        "agrees", "undecided", "disagrees", "disagrees",
    ]  # fmt: skip
    assert together(["agrees", "undecided"]) == "undecided"
    assert together(["agrees", "disagrees", "undecided"]) == "disagrees"
    assert together([]) == "undecided"


@pytest.mark.parametrize("n", range(7))
def test_trajectories_are_the_ordered_choices(n):
    assert n_trajectories(n) == sum(1 for k in range(n + 1) for _ in permutations(range(n), k))


def test_the_walk_has_the_sets_of_the_table():
    """Random agents reach every set of the recorded groups with a price: two groups give up to four sets."""
    classifier, data, _ = synthetic_mar(400).prepare()
    tables = list(walk(Ground.recorded(data, RandomSubset(0.5).bind(data.problem), classifier)))
    states = np.bincount(np.concatenate([table.row for table in tables]), minlength=len(data))
    priced = data.recorded[:, ~data.problem.free].sum(axis=1)
    assert states.tolist() == (2**priced).tolist()
    shares = recorded_shares(data)
    assert sum(shares) == pytest.approx(1)
    line = shares_table({"x": shares}).iloc[0]
    assert line["sets walked, semi-offline view, at most"] == f"{states.mean():,.1f}"
    mean = np.mean([n_trajectories(k) for k in priced])
    assert line["trajectories, semi-offline view"] == f"{mean:,.1f}"
    assert count_table(3)["trajectories"].tolist() == ["2", "5", "16"]
