"""Guidelines as text: what they mean, how they print, where they go wrong."""

import numpy as np
import pandas as pd
import pytest

import afape
from afape.agents.guideline import Guideline, GuidelineError

PROBLEM = afape.Problem(
    {"history": ["age", "sex"], "lactate": ["lactate"], "troponin": ["tn"], "blood count": ["hgb", "wbc"]},
    {"lactate": 1.0, "troponin": 2.0, "blood count": 3.0},
    label="died",
    misclassification_cost=50.0,
    categories={"sex": ["female", "male"]},
)
COLUMNS = ["age", "sex=female", "sex=male", "lactate", "tn", "hgb", "wbc"]


def next_step(text, problem=PROBLEM, **known):
    """What a guideline does where these values are known; a group with a known column is acquired."""
    values = np.full((1, len(COLUMNS)), np.nan)
    for name, value in known.items():
        if name == "sex":
            values[0, 1:3] = value == "female", value == "male"
        else:
            values[0, COLUMNS.index(name)] = value
    acquired = np.array([[any(column in known for column in columns) for columns in problem.groups.values()]])
    p = Guideline(text).bind(problem).probabilities(values, acquired)
    assert p.sum() == 1.0
    return (*problem.group_names, "stop")[p[0].argmax()]


SPOKEN = "if age > 65: lactate, then troponin if lactate > 2"


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({"age": 70.0}, "lactate"),
        ({"age": 65.0}, "stop"),
        ({"age": 70.0, "lactate": 2.5}, "troponin"),
        ({"age": 70.0, "lactate": 2.0}, "stop"),
        ({"age": 70.0, "lactate": 2.5, "tn": 0.1}, "stop"),
        ({"age": 50.0, "lactate": 2.5}, "stop"),
        ({}, "stop"),  # not even the age is known
    ],
)
def test_the_rule_of_the_readme(known, expected):
    assert next_step(SPOKEN, **known) == expected


CHAIN = """
# the first line of a chain that applies counts
if age >= 65 and sex = female: lactate
else if age >= 65: troponin   # men
else: "blood count", then stop
lactate if hgb < 9
"""


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({"age": 65.0, "sex": "female"}, "lactate"),
        ({"age": 65.0, "sex": "male"}, "troponin"),
        ({"age": 64.0, "sex": "male"}, "blood count"),
        ({"age": 64.0, "sex": "male", "hgb": 8.0, "wbc": 1.0}, "stop"),  # stop ends the guideline, not only its line
        ({"age": 70.0, "sex": "male", "tn": 1.0, "hgb": 8.0, "wbc": 1.0}, "lactate"),  # a line of its own applies too
        ({"age": 70.0, "sex": "male", "tn": 1.0, "hgb": 9.0, "wbc": 1.0}, "stop"),
    ],
)
def test_chains_and_lines_of_their_own(known, expected):
    assert next_step(CHAIN, **known) == expected


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("age < 50", False),
        ("age <= 50", True),
        ("age = 50", True),
        ("age == 50.0", True),
        ("age != 50", False),
        ("age ≥ 5e1", True),
        ("sex != male", True),
        ("not age > 60", True),
        ("age > 60 or sex = female", True),
        ("age > 60 and sex = female", False),
        ("(age > 60 or age < 55) and not sex = male", True),
        ("not (age > 40 and sex = female)", False),
        # and binds closer than or: false and unknown, or true
        ("age > 60 and lactate > 2 or sex = female", True),
        # unknown is neither true nor false ...
        ("lactate > 2", False),
        ("not lactate > 2", False),
        ("lactate > 2 and age = 50", False),
        # ... unless the rest decides
        ("lactate > 2 or age = 50", True),
        ("not (lactate > 2 and age > 60)", True),
    ],
)
def test_conditions(condition, holds):
    assert next_step(f"if {condition}: troponin", age=50.0, sex="female") == ("troponin" if holds else "stop")


def test_prints_back_as_a_tree():
    assert str(Guideline(CHAIN)).splitlines() == [
        "guideline",
        "├─ if age >= 65 and sex = female",
        "│  └─ lactate",
        "├─ else if age >= 65",
        "│  └─ troponin",
        "├─ else",
        "│  ├─ blood count",
        "│  └─ stop",
        "└─ always",
        "   └─ lactate, if hgb < 9",
    ]


def test_reads_a_file(tmp_path):
    path = tmp_path / "guideline.txt"
    path.write_text(CHAIN, encoding="utf-8")
    assert str(Guideline.from_file(path)) == str(Guideline(CHAIN))


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("if age > 65 lactate", 1, 13, "expected ':', but found 'lactate'"),
        ("\n  if age 65: lactate", 2, 10, "expected one of < <= = != >= >, but found '65'"),
        ("if age > : lactate", 1, 10, "expected a number or a level, but found ':'"),
        ("if > 3: lactate", 1, 4, "expected the name of a column, but found '>'"),
        ("if age > 65:", 1, 13, "expected the name of a group or 'stop', but found 'the end of the line'"),
        ("lactate\ntroponin lactate", 2, 10, "expected ', then' and another group"),
        ("lactate, then", 1, 14, "expected the name of a group"),
        ("if (age > 65: lactate", 1, 13, r"expected '\)', but found ':'"),
        ("else: lactate", 1, 1, "'else' needs a line with 'if' above it"),
        ("lactate\nelse: troponin", 2, 1, "'else' needs a line with 'if' above it"),
        ("if age > 65: lactate\nelse: stop\nelse: stop", 3, 1, "'else' needs a line with 'if' above it"),
        ("lactate; troponin", 1, 8, "';' cannot be read here"),
        ("# nothing but a remark", 1, 1, "there is no rule"),
        ("", 1, 1, "there is no rule"),
    ],
)
def test_syntax_errors_have_a_place(text, line, column, message):
    with pytest.raises(GuidelineError, match=message) as caught:
        Guideline(text)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert f"line {line}, column {column}" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("stop if age > 1\nlactat", 2, 1, "'lactat' is not a group. Did you mean 'lactate'?"),
        ("lactate if aeg > 3", 1, 12, "'aeg' is not a column. Did you mean 'age'?"),
        ("zzz", 1, 1, r"'zzz' is not a group. Known: \['history', "),
        ("lactate if sex = femal", 1, 18, "'femal' is not a level of 'sex'. Did you mean 'female'?"),
        ("lactate if sex > female", 1, 12, "column 'sex' holds categories"),
        ("lactate if age = old", 1, 18, "column 'age' holds numbers and cannot be compared with 'old'"),
    ],
)
def test_unknown_names_have_a_place_and_a_suggestion(text, line, column, message):
    with pytest.raises(GuidelineError, match=message) as caught:
        Guideline(text).bind(PROBLEM)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_text_columns_without_declared_levels_need_the_columns():
    frame = pd.DataFrame({"ward": ["icu", "er", "icu", "er"], "x": [1.0, 2.0, 3.0, 4.0], "y": [0, 1, 0, 1]})
    problem = afape.Problem({"ward": ["ward"], "x": ["x"]}, {"x": 1.0}, label="y", misclassification_cost=5.0)
    data = afape.Retrospective(frame, problem)
    bound = Guideline("x if ward = icu", columns=data.columns).bind(problem)
    start = np.array([[True, False]] * 4)
    values = np.where(start[:, data.column_group], data.values, np.nan)
    assert bound.probabilities(values, start).argmax(axis=1).tolist() == [1, 2, 1, 2]
    with pytest.raises(GuidelineError, match=r"If it holds text, pass columns=data.columns"):
        Guideline("x if ward = icu").bind(problem)
    with pytest.raises(ValueError, match=r"pass columns=data.columns"):
        Guideline("x").bind(problem).probabilities(values, start)
    with pytest.raises(ValueError, match=r"has none for 'ward'. Pass data.columns"):
        Guideline("x", columns=["x"]).bind(problem)


def test_is_evaluated_like_any_policy_and_survives_a_file(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"age": rng.normal(60, 10, 300), "lactate": rng.normal(2, 1, 300), "died": rng.integers(0, 2, 300)}
    )
    problem = afape.Problem({"age": ["age"], "lactate": ["lactate"]}, {"lactate": 3.0}, "died", 10.0)
    data = afape.Retrospective(frame, problem)
    rule = Guideline("if age > 65: lactate")

    class Zero:
        def predict(self, values, acquired):
            return np.zeros(len(values), dtype=int)

    afape.save(rule, tmp_path / "rule", problem)
    for policy in (rule, afape.load(tmp_path / "rule", problem)):
        cost = afape.true_cost(data, policy, Zero())["acquisition"].value
        assert cost == pytest.approx(3.0 * (frame["age"] > 65).mean(), rel=1e-12)


def test_refuses_what_is_no_text_and_answers_only_when_bound():
    with pytest.raises(TypeError, match=r"'text' must be the rules as text, not int"):
        Guideline(3)
    with pytest.raises(RuntimeError, match=r"policy.bind\(problem\)"):
        Guideline("lactate").probabilities(np.zeros((1, 7)), np.zeros((1, 4), dtype=bool))
