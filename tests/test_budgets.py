"""budget_curve(): one policy under several budgets."""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose
from small_records import Above, Look, frame, records

import afape
from afape.agents import CostBudget, StepBudget
from afape.estimators.differences import simultaneous_intervals
from afape.estimators.estimate import Estimate

MCAR = afape.MCAR()


@pytest.mark.parametrize(("kind", "budgets"), [("cost", [3.0, 0.0, 1.0, 2.5]), ("steps", [0, 1, 2])])
def test_each_budget_costs_what_it_costs_alone(kind, budgets):
    data = records(frame())
    policy = afape.RandomSubset(0.7)
    curve = afape.budget_curve(data, policy, Above(), budgets, kind=kind, missingness=MCAR)
    assert curve.budgets == tuple(sorted(budgets))
    limit = CostBudget if kind == "cost" else StepBudget
    for budget in budgets:
        alone = afape.evaluate(data, limit(policy, budget), Above(), missingness=MCAR, estimators=["drl-semi"])
        line = curve.table[curve.table["budget"] == budget].set_index("quantity")["estimate"]
        for target in ("total", "acquisition", "misclassification"):
            assert line[target] == pytest.approx(alone["drl-semi"][target].value, rel=1e-9, abs=1e-12)
        parts = alone.parts("drl-semi")
        assert line["acquisitions"] == pytest.approx(parts.acquisitions.value, rel=1e-9, abs=1e-12)
        wrong = sum(e.value for (true, predicted), e in parts.confusion.items() if true != predicted)
        assert line["error_rate"] == pytest.approx(wrong, rel=1e-9)


def test_complete_data_need_no_assumption():
    data = records(frame(gaps=False))
    curve = afape.budget_curve(data, Look(), Above(), [0, 100])
    for budget, value in zip([0, 100], curve["total"]["estimate"], strict=True):
        exact = afape.true_cost(data, CostBudget(Look(), budget), Above())["total"].value
        assert value == pytest.approx(exact, rel=1e-12)
    with pytest.raises(ValueError, match=r"'missingness' must be given, because \d+ of 500 rows have gaps"):
        afape.budget_curve(records(frame()), Look(), Above(), [0, 1])
    with pytest.raises(TypeError, match=r"'bootstrap' must be left out, because without 'missingness'"):
        afape.budget_curve(data, Look(), Above(), [0, 1], bootstrap=20)


def test_complete_data_are_walked_once():
    class Counting(Look):
        calls = 0

        def probabilities(self, values, acquired):
            Counting.calls += len(values)
            return super().probabilities(values, acquired)

    data = records(frame(gaps=False))
    afape.true_cost(data, Counting(), Above())
    once, Counting.calls = Counting.calls, 0
    afape.budget_curve(data, Counting(), Above(), [0, 1, 2, 3], kind="steps")
    assert Counting.calls <= once


def test_bounds_where_the_records_lack_a_set():
    table = frame()
    table.loc[table["b"].notna(), "c"] = np.nan  # b and c are never recorded together
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", afape.warnings.AfapeWarning)
        curve = afape.budget_curve(records(table), afape.AcquireAll(), Above(), [1, 2], kind="steps", missingness=MCAR)
    assert curve.table["bound_lower"].notna().any()
    unsupported = curve["error_rate"].iloc[1]
    assert unsupported["lower"] <= unsupported["bound_lower"] < unsupported["bound_upper"] <= unsupported["upper"]


def test_intervals_hold_for_all_budgets_at_once():
    rng = np.random.default_rng(0)
    shared = rng.normal(size=400)
    phi = [shared + 0.7 * rng.normal(size=400) for _ in range(6)]
    estimates = [Estimate(0.0, p - p.mean()) for p in phi]
    half = np.array([high for _, high in simultaneous_intervals(estimates, 0.9)]) / [e.std_error for e in estimates]
    covariance = np.cov(phi) / 400
    drawn = rng.multivariate_normal(np.zeros(6), covariance, size=20_000) / np.sqrt(np.diag(covariance))
    covered = (abs(drawn) <= half).all(axis=1).mean()
    assert abs(covered - 0.9) < 0.012
    assert (half > 1.645).all()
    assert (half < 2.394).all()  # narrower than Bonferroni's


def test_under_a_graph_budgets_may_adjust_for_different_groups():
    graph = afape.MNAR(graph="a -> R_b; b -> R_c")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", afape.warnings.AfapeWarning)
        curve = afape.budget_curve(
            records(frame()),
            afape.AcquireAll(),
            Above(),
            [0, 1, 2],
            kind="steps",
            missingness=graph,
            estimator="ipw-semi",
        )
    assert_allclose(curve["acquisitions"]["estimate"], [0, 1, 2], atol=1e-12)


def test_a_soft_budget_sweeps_a_family():
    data = records(frame())
    curve = afape.budget_curve(data, afape.RandomSubset, Above(), [0.0, 1.0], kind="soft", missingness=MCAR)
    assert_allclose(curve["acquisitions"]["estimate"], [0.0, len(data.problem.prices) - data.problem.free.sum()])
    with pytest.raises(TypeError, match=r"'policy' must be a function that makes the policy of each soft budget"):
        afape.budget_curve(data, Look(), Above(), [0.0, 1.0], kind="soft", missingness=MCAR)


def test_plot_and_json():
    curve = afape.budget_curve(records(frame()), Look(), Above(), [0, 1], kind="steps", missingness=MCAR)
    ax = curve.plot("error_rate")
    assert_allclose(ax.lines[0].get_ydata(), curve["error_rate"]["estimate"])
    assert "number of acquisitions" in ax.get_xlabel()
    plt.close(ax.figure)
    assert curve.to_dict()["table"][0]["quantity"] == "total"
    assert "steps budgets, estimates by drl-semi" in repr(curve)


def test_bad_input():
    data = records(frame())
    for budgets, error in (
        ([], r"'budgets' must have at least one number"),
        ([1, 1.0], r"'budgets' must be different numbers"),
        ([-1], r"'budgets' must be"),
    ):
        with pytest.raises(ValueError, match=error):
            afape.budget_curve(data, Look(), Above(), budgets, missingness=MCAR)
    with pytest.raises(ValueError, match=r"'budgets' must be a whole number"):
        afape.budget_curve(data, Look(), Above(), [0.5], kind="steps", missingness=MCAR)
    with pytest.raises(TypeError, match=r"'estimators' must be left out"):
        afape.budget_curve(data, Look(), Above(), [1], missingness=MCAR, estimators=["cc"])


def test_rounding_does_not_exceed_a_budget():
    problem = afape.Problem({"a": ["a"], "b": ["b"]}, {"a": 0.1, "b": 0.2}, "y", 1.0)
    budget = CostBudget(afape.AcquireAll(), 0.3).bind(problem)
    assert budget.probabilities(np.array([[1.0, np.nan]]), np.array([[True, False]]))[0].tolist() == [0.0, 1.0, 0.0]


def test_a_budget_in_single_precision_is_not_exceeded_by_rounding():
    """AFABench computes in single precision: four prices of 2/3 are a budget of 2.66666675."""
    prices = dict.fromkeys("abcde", 0.6666667)
    problem = afape.Problem({g: [g] for g in "abcde"}, prices, "y", 1.0)
    budget = CostBudget(afape.AcquireAll(), float(4 * np.float64(np.float32(2 / 3)))).bind(problem)
    three = np.array([[True, True, True, False, False]])
    assert budget.probabilities(np.where(three, 1.0, np.nan), three)[0, -1] == 0.0
    four = np.array([[True, True, True, True, False]])
    assert budget.probabilities(np.where(four, 1.0, np.nan), four)[0, -1] == 1.0
