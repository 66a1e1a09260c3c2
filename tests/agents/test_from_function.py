"""A policy from a function of one row, and a budget around any policy."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import afape
from afape.agents.budgets import StepBudget
from afape.agents.function import from_function

PROBLEM = afape.Problem(
    {"age": ["age", "sex"], "lactate": ["lactate"], "grade": ["grade"]},
    {"lactate": 1.0, "grade": 2.0},
    label="y",
    misclassification_cost=10.0,
    categories={"sex": ["f", "m"], "grade": [1, 2]},
)
FRAME = pd.DataFrame(
    {"age": [70, 70, 50], "sex": ["f", "f", "m"], "lactate": [3.0, 3.0, 1.0], "grade": [1, 1, 2], "y": [0, 1, 1]}
)


def ask(policy, acquired, problem=PROBLEM):
    data = afape.Retrospective(FRAME, problem)
    acquired = np.array([acquired] * len(data), dtype=bool)
    return policy.bind(problem).probabilities(np.where(acquired[:, data.column_group], data.values, np.nan), acquired)


def test_sees_known_columns_by_name_once_per_distinct_state():
    rows = []

    def rule(row):
        rows.append(row)
        return "lactate" if row["age"] > 65 else None

    p = ask(from_function(rule), [1, 0, 1])
    assert_array_equal(p.argmax(axis=1), [1, 1, 3])
    assert sorted(rows, key=lambda row: row["age"]) == [
        {"age": 50.0, "sex": "m", "grade": 2},
        {"age": 70.0, "sex": "f", "grade": 1},
    ]


def test_a_free_value_with_a_gap_is_absent():
    policy = from_function(lambda row: None if "age" in row else "lactate").bind(PROBLEM)
    values = np.array([[np.nan, np.nan, np.nan, np.nan, np.nan, np.nan]])
    assert policy.probabilities(values, np.array([[True, False, False]])).argmax() == 1
    assert policy.probabilities(values[:0], np.zeros((0, 3), dtype=bool)).shape == (0, 4)


def test_a_group_that_is_acquired_stops_the_run():
    assert_array_equal(ask(from_function(lambda row: "lactate"), [1, 1, 0]).argmax(axis=1), [3, 3, 3])


def test_refuses_a_group_outside_the_problem_and_a_column_that_is_not_known():
    with pytest.raises(ValueError, match=r"returned 'lactat' for \{.*\}. Did you mean 'lactate'\? The groups are"):
        ask(from_function(lambda row: "lactat"), [1, 0, 0])
    with pytest.raises(ValueError, match=r"asked for 'agee', but the columns known here are \['age'.*absent"):
        ask(from_function(lambda row: row["agee"]), [1, 0, 0])
    with pytest.raises(TypeError, match=r"'function' must be callable, but is str"):
        from_function("lactate")
    with pytest.raises(RuntimeError, match=r"This FunctionPolicy is not bound to a problem yet"):
        from_function(lambda row: None).probabilities(np.zeros((1, 6)), np.zeros((1, 3), dtype=bool))


def test_is_not_stored_without_a_flag(tmp_path):
    with pytest.raises(ValueError, match=r"FunctionPolicy, which cannot be saved without running code"):
        afape.save(from_function(lambda row: None), tmp_path / "f", PROBLEM)
    with pytest.raises(ValueError, match=r"cannot be pickled.*Guideline"):
        afape.save(from_function(lambda row: None), tmp_path / "f", PROBLEM, unsafe=True)
    assert list(tmp_path.iterdir()) == []


def test_budget_stops_any_policy():
    every = afape.AcquireAll()
    assert_array_equal(ask(StepBudget(every, 1), [1, 0, 0]).argmax(axis=1), 1)
    assert_array_equal(ask(StepBudget(every, 1), [1, 0, 1]).argmax(axis=1), 3)
    assert_array_equal(ask(StepBudget(every, 0), [1, 0, 0]).argmax(axis=1), 3)
    assert_array_equal(ask(StepBudget(every, 2), [1, 1, 0]).argmax(axis=1), 2)
    assert repr(StepBudget(every, 2)) == "StepBudget(AcquireAll(), 2)"


def test_budget_refuses_bad_arguments():
    with pytest.raises(ValueError, match=r"'n_steps' must be a whole number of at least 0, but is -1"):
        StepBudget(afape.AcquireAll(), -1)
    with pytest.raises(TypeError, match=r"'policy' must have a method probabilities"):
        StepBudget(3, 1)
    with pytest.raises(RuntimeError, match=r"policy.bind\(problem\)"):
        StepBudget(afape.AcquireAll(), 1).probabilities(np.zeros((1, 6)), np.zeros((1, 3), dtype=bool))
