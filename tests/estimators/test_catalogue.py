"""One contract for the whole catalogue: every method, every target."""

import copy
import json
import pickle
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from small_records import Above, Look, frame, records

import afape
from afape.agents.policy import bind
from afape.estimators import METHODS, TARGETS
from afape.estimators.catalogue import ranked
from afape.plan import Options, choices_under, make_plan
from afape.run import answer, bind_propensities, fit, views_of, walk_policies

README = Path(__file__).parents[2] / "README.md"
EVERY = list(METHODS)
every_method = pytest.mark.parametrize("name", EVERY)


def assumption(name):
    """MAR given a; for hybrid methods a graph in which the recording of c may depend on b, which has gaps."""
    return afape.MNAR("a -> R_b; a, b -> R_c") if METHODS[name].view == "hybrid" else afape.MAR(given=["a"])


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
    policies = {"look": bind(Look(), data.problem)}
    walked = walk_policies(plan, policies)
    propensities = bind_propensities(plan, walked.values())
    fitted = fit(plan, policies["look"], walked["look"], propensities, views_of(plan, propensities, walked["look"]))
    (choice,) = plan.choices
    estimate, unit = answer(choice, fitted).values, np.ones(len(data))
    assert answer(choice, fitted.reweight(unit)).values == estimate
    again = answer(choice, fitted.refit(unit)).values
    assert_allclose(
        list(again.values()), list(estimate.values()), rtol=1e-6
    )  # fits of replicates stop a little earlier


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


def test_ranks_are_distinct_and_leave_out_what_is_biased():
    assert [m.rank for m in ranked()] == list(range(1, len(ranked()) + 1))
    assert {m.name for m in METHODS.values() if m.biased} == set(METHODS) - {m.name for m in ranked()}


def test_the_readme_lists_the_catalogue():
    lines = re.findall(r"^\| `([a-z-]+)` \| (.*?) \| (.*?) \| (.*?) \|$", README.read_text(), re.MULTILINE)
    listed = {
        name: (practice.replace("**", ""), does, right) for name, practice, does, right in lines if name in METHODS
    }
    first = ranked()[0].name
    practice = {m.name: f"{m.practice}, recommended" if m.name == first else m.practice for m in METHODS.values()}
    assert list(listed) == list(METHODS)
    assert listed == {m.name: (practice[m.name], m.does, m.right_under) for m in METHODS.values()}
