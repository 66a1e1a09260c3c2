"""One contract for the whole catalogue: every method, every target."""

import copy
import json
import pickle
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from by_hand import fitted_by
from numpy.testing import assert_allclose, assert_array_equal
from small_records import Above, Look, frame, records
from typer.testing import CliRunner

import afape
from afape.commands.main import app
from afape.estimators.catalogue import METHODS, ranked
from afape.estimators.estimate import TARGETS
from afape.run.options import Options
from afape.run.plan import choices_under, make_plan
from afape.run.reduce import reduced

PAGE = Path(__file__).parents[2] / "docs" / "estimators.md"
EVERY = list(METHODS)
GRAPH = "a -> R_b; a, b -> R_c"
COSTS = records(frame(50)).costs
every_method = pytest.mark.parametrize("name", EVERY)


def assumption(name):
    """MAR given a; for hybrid methods a graph in which the recording of c may depend on b, which has gaps."""
    return afape.MNAR(GRAPH) if METHODS[name].view == "hybrid" else afape.MAR(given=["a"])


def run(name, data, policy=None, **options):
    options = {"missingness": assumption(name), "estimators": [name], **options}
    return afape.evaluate(data, policy or Look(), Above(), **options)


def values(result, name):
    return np.array([result[name][target].value for target in TARGETS])


@every_method
def test_nothing_missing_gives_the_truth(name):
    # Action values are regressions: their mean is the truth where nothing has to be learned.
    policy = afape.AcquireNone() if METHODS[name].needs <= {"values", "root"} and METHODS[name].needs else Look()
    data = records(frame(gaps=False))
    truth = afape.true_cost(data, policy, Above())
    found = run(name, data, policy)
    assert_allclose(values(found, name), [truth[t].value for t in TARGETS], rtol=1e-9)


@every_method
def test_row_order_does_not_matter(name):
    table = frame(gaps=not METHODS[name].needs & {"imputations", "components"})  # draws belong to rows
    order = np.random.default_rng(1).permutation(len(table))
    one, other = (run(name, records(t), n_folds=1) for t in (table, table.iloc[order]))
    assert_allclose(values(one, name), values(other, name), rtol=1e-7)


@every_method
def test_costs_scale(name):
    one, other = (run(name, records(frame(), scale)) for scale in (1.0, 3.0))
    assert_allclose(3 * values(one, name), values(other, name), rtol=1e-9)
    for target in TARGETS:
        assert_allclose(3 * one[name][target].std_error, other[name][target].std_error, rtol=1e-7, equal_nan=True)


@every_method
def test_a_cluster_of_one_row_is_no_cluster(name):
    # Bootstrap draws and folds go by clusters, numbered as they are met: the same where each row is one.
    one, other = (run(name, records(frame(), cluster=c), bootstrap=3) for c in (None, "row"))
    for target in TARGETS:
        a, b = one[name][target], other[name][target]
        assert_allclose([a.value, a.std_error, *a.interval()], [b.value, b.std_error, *b.interval()], rtol=1e-12)


@every_method
def test_a_replicate_with_unit_weights_is_the_estimate(name):
    data = records(frame())
    plan = make_plan(data, Above(), assumption(name), Options(estimators=[name]))
    fitted, unit, (choice,) = fitted_by(plan, Look()), np.ones(len(data)), plan.choices

    def costs(population):
        return reduced(choice, [population]).answer().costs.amounts.values

    assert_allclose(costs(fitted.reweight(unit)), costs(fitted), rtol=1e-12)
    assert_allclose(costs(fitted.refit(unit)), costs(fitted), rtol=1e-6)  # fits of replicates stop a little earlier


@every_method
def test_results_are_json_and_survive_copies(name):
    result = run(name, records(frame()), bootstrap=2)
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False))["table"]
    for other in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
        pd.testing.assert_frame_equal(other.table, result.table)
        if result[name]["total"].influence is not None:
            assert_array_equal(other[name]["total"].influence, result[name]["total"].influence)


@every_method
def test_a_method_that_weighs_has_a_twin_with_a_known_propensity(name):
    names = [c.name for c in choices_under(assumption(name), {"learned": None, "known": None})]
    assert (f"{name}-gt" in names) == bool(METHODS[name].needs & {"propensity", "root"})


# --- parts, prices, metrics ------------------------------------------------------------------------------------------


def wrong_prediction(values, acquired, labels):
    """An outcome that is the misclassification cost."""
    return COSTS[labels, Above().predict(values, acquired)]


@pytest.fixture(scope="module", params=EVERY)
def plain(request):
    """A method, what it answers, and the records."""
    data, options = records(frame()), {"bootstrap": 4, "outcomes": {"own": wrong_prediction}, "n_imputations": 3}
    return request.param, run(request.param, data, **options), data


@pytest.fixture(scope="module", params=[name for name in EVERY if METHODS[name].view != "none"])
def bounded(request):
    """A method, its bounds where b is never recorded in some rows, and the records."""
    table = frame(1500)
    table.loc[table["a"] < -0.7, "b"] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", afape.warnings.AfapeWarning)
        data = records(table)
        return request.param, run(request.param, data, bootstrap=4, outcomes={"own": wrong_prediction}), data


def test_parts_add_up_to_the_costs(plain):
    name, result, data = plain
    parts, found = result.parts(name), result[name]
    prices, n = data.problem.prices[~data.problem.free], len(parts.rates)
    both = np.concatenate([prices, data.costs.ravel()])
    for target, coefficients in (
        ("acquisition", np.where(np.arange(len(both)) < n, both, 0.0)),
        ("misclassification", np.where(np.arange(len(both)) < n, 0.0, both)),
        ("total", both),
    ):
        one = found[target]
        shares = [e.value for e in (*parts.rates.values(), *parts.confusion.values())]
        assert_allclose(shares @ coefficients, one.value, rtol=1e-9)
        error = np.sqrt(coefficients @ parts.covariance @ coefficients)
        assert_allclose(error, one.std_error, rtol=1e-7)
    assert_allclose(parts.outcomes["own"].value, found["own"].value, rtol=1e-9)
    assert_allclose(parts.outcomes["own"].std_error, found["own"].std_error, rtol=1e-7)
    assert_allclose(sum(e.value for e in parts.counts.values()), sum(e.value for e in parts.confusion.values()))


def test_parts_of_bounds_add_up_to_the_bounds(bounded):
    name, result, data = bounded
    parts = result.parts(name)
    columns, amounts = parts.found.columns, parts.found.amounts
    prices, costs = data.problem.prices[~data.problem.free], data.costs
    for k, side in enumerate(("least", "largest")):
        coefficients = np.zeros((columns.width, 2))
        coefficients[: len(prices), 0] = prices
        coefficients[columns.left, 0] = k * prices
        coefficients[columns.cells, 1] = costs.ravel()
        coefficients[columns.ended, 1] = (costs.min(axis=1), costs.max(axis=1))[k]
        after = len(amounts.values) - (k + 1) * columns.width  # the other bound, and parts under extrapolation
        coefficients = np.pad(coefficients, ((k * columns.width, after), (0, 0)))
        for j, target in enumerate(("acquisition", "misclassification", "total")):
            bounds = result[name][target]
            assert isinstance(bounds, afape.Bounds)
            assert bounds.bound_lower < bounds.bound_upper
            one, by_target = getattr(bounds, side), coefficients[:, j] if j < 2 else coefficients.sum(axis=1)
            assert_allclose(amounts.values @ by_target, one.value, rtol=1e-9)
            error = np.sqrt(by_target @ amounts.covariance @ by_target)
            assert_allclose(error, one.std_error, rtol=1e-7)
        rates = [getattr(e, side).value for e in parts.rates.values()]
        assert_allclose(rates @ prices, getattr(result[name]["acquisition"], side).value, rtol=1e-9)


def sides(estimate):
    """The estimate, or both bounds."""
    return (estimate.least, estimate.largest) if isinstance(estimate, afape.Bounds) else (estimate,)


def check_prices(name, result, costs):
    prices = dict(zip(result.tariff.groups, 2 * result.tariff.prices, strict=True))
    for factor, again in ((1, result.reprice()), (2, result.reprice(prices, 2 * costs))):
        for target, found in result[name].items():
            times = factor if target in TARGETS else 1  # an outcome has no price
            for one, other in zip(sides(found), sides(again[name][target]), strict=True):
                assert_allclose(other.value, times * one.value, rtol=1e-9)
                assert_allclose(other.std_error, times * one.std_error, rtol=1e-7)
            assert_allclose(again[name][target].interval(), times * np.array(found.interval()), rtol=1e-7, atol=1e-9)


def test_doubled_prices_double_the_costs(plain):
    name, result, data = plain
    check_prices(name, result, data.costs)


def test_doubled_prices_double_the_bounds(bounded):
    name, result, data = bounded
    check_prices(name, result, data.costs)


def test_an_outcome_is_estimated_as_the_costs_are(plain):
    name, result, _ = plain
    if METHODS[name].composed:
        pytest.skip("parts of a mixture have shares of their own")
    one, other = result[name]["misclassification"], result[name]["own"]
    assert_allclose(other.value, one.value, rtol=1e-9)
    assert_allclose(other.std_error, one.std_error, rtol=1e-7)


def test_metrics_are_those_of_the_parts(plain):
    name, result, _ = plain
    metrics, cells = result.metrics(name), result.parts(name).confusion
    assert len(metrics) == 4 * 3 + 2
    assert metrics["estimate"].between(0, 1).all()
    assert (metrics["std_error"] > 0).all()
    assert (metrics["lower"] < metrics["estimate"]).all()
    assert (metrics["upper"] > metrics["estimate"]).all()
    found = metrics.set_index(["metric", "label"])["estimate"]
    right = sum(cells[y, y].value for y in range(3))
    assert_allclose(found["accuracy", ""], right / sum(e.value for e in cells.values()))
    assert_allclose(found["sensitivity", 1], cells[1, 1].value / sum(cells[1, k].value for k in range(3)))
    assert_allclose(found["positive predictive value", 2], cells[2, 2].value / sum(cells[k, 2].value for k in range(3)))


def test_metrics_of_bounds_say_that_there_are_only_bounds(bounded):
    name, result, _ = bounded
    metrics = result.metrics(name)
    assert metrics["estimate"].isna().all()
    assert metrics["note"].str.contains("bounds").all()


# --- command line ----------------------------------------------------------------------------------------------------

PROBLEM = """
label = "y"
misclassification_cost = 5

[groups]
a = { columns = ["a"] }
b = { columns = ["b"], price = 1 }
c = { columns = ["c"], price = 2 }

[missingness]
"""


@every_method
@pytest.mark.parametrize("command", ["evaluate", "compare"])
def test_every_method_is_reachable_from_the_command_line(name, command, tmp_path):
    given = assumption(name)
    lines = (
        f'assumption = "MNAR"\ngraph = "{GRAPH}"'
        if isinstance(given, afape.MNAR)
        else 'assumption = "MAR"\ngiven = ["a"]'
    )
    frame(400).drop(columns="row").to_csv(tmp_path / "records.csv", index=False)
    (tmp_path / "problem.toml").write_text(PROBLEM + lines)
    policies = ["--policy", "fixed:b,c"] + (["--policy", "random:0.5"] if command == "compare" else [])
    files = [str(tmp_path / "records.csv"), "--problem", str(tmp_path / "problem.toml")]
    found = CliRunner().invoke(app, [command, *files, *policies, "--estimators", name, "--json", "--no-sensitivity"])
    assert found.exit_code == 0, found.output
    for evaluation in json.loads(found.stdout)["evaluations"].values():
        by_target = {line["target"]: line for line in evaluation["table"]}
        assert {line["estimator"] for line in evaluation["table"]} == {name}
        costs = by_target["acquisition"]["estimate"] + by_target["misclassification"]["estimate"]
        assert_allclose(by_target["total"]["estimate"], costs)


# --- the list --------------------------------------------------------------------------------------------------------


def test_ranks_are_distinct_and_leave_out_what_is_biased():
    assert [m.rank for m in ranked()] == list(range(1, len(ranked()) + 1))
    assert {m.name for m in METHODS.values() if m.biased} == set(METHODS) - {m.name for m in ranked()}


def test_the_page_of_estimators_lists_the_catalogue():
    lines = re.findall(r"^\| `([a-z-]+)` \| (.*?) \| (.*?) \| (.*?) \|$", PAGE.read_text(), re.MULTILINE)
    listed = {
        name: (practice.replace("**", ""), does, right) for name, practice, does, right in lines if name in METHODS
    }
    first = ranked()[0].name
    practice = {m.name: f"{m.practice}, recommended" if m.name == first else m.practice for m in METHODS.values()}
    assert list(listed) == list(METHODS)
    assert listed == {m.name: (practice[m.name], m.does, m.right_under) for m in METHODS.values()}
