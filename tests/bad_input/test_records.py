"""Bad problems and records are refused with the argument's name, the rule, what came and the way out."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from good_input import GROUPS, INF, NAN, WRONG, Bad, N, column_twice, frame, refused

import afape

PROBLEM = [
    Bad("no groups", lambda w: w.problem(groups={}), ValueError, "'groups' must be a mapping from at least one group"),
    Bad("groups as list", lambda w: w.problem(groups=["a", "b"]), WRONG, "'groups' must be a mapping"),
    Bad("group without columns", lambda w: w.problem(groups=GROUPS | {"b": []}), ValueError, "'b' has none"),
    Bad("columns no list", lambda w: w.problem(groups=GROUPS | {"b": 7}), WRONG, "'groups' must .*'b'.* 7"),
    Bad(
        "column twice in a group",
        lambda w: w.problem(groups=GROUPS | {"cd": ["c", "c"]}),
        ValueError,
        "'groups' must name each column once, but 'c' is in 'cd' and again in 'cd'",
    ),
    Bad(
        "column in two groups",
        lambda w: w.problem(groups=GROUPS | {"cd": ["c", "b"]}),
        ValueError,
        "'groups' must name each column once, but 'b' is in 'b' and again in 'cd'",
    ),
    Bad("costs as list", lambda w: w.problem(costs=[1.0]), TypeError, "'costs' must be a mapping .*, not list"),
    Bad("price negative", lambda w: w.problem(costs={"b": -1}), ValueError, "'costs' must .* price of 'b' is -1"),
    Bad("price NaN", lambda w: w.problem(costs={"b": NAN}), ValueError, "'costs' must be finite .* of 'b' is nan"),
    Bad("price infinite", lambda w: w.problem(costs={"b": INF}), ValueError, "'costs' must be finite .* of 'b' is inf"),
    Bad("price None", lambda w: w.problem(costs={"b": None}), WRONG, "'costs' must .* of 'b' is None"),
    Bad("price as text", lambda w: w.problem(costs={"b": "cheap"}), WRONG, "'costs' must .* of 'b' is 'cheap'"),
    Bad("price as list", lambda w: w.problem(costs={"b": [1.0]}), WRONG, r"'costs' must .* of 'b' is \[1.0\]"),
    Bad(
        "price of an unknown group",
        lambda w: w.problem(costs={"c": 1.0}),
        ValueError,
        r"'costs' must name groups, but 'c' is not a group. The groups are \['a', 'b', 'cd'\]",
    ),
    Bad(
        "cost vector",
        lambda w: w.problem(misclassification_cost=[1, 2]),
        ValueError,
        r"'misclassification_cost' must be one number or a square matrix .* shape \(2,\)",
    ),
    Bad("cost matrix not square", lambda w: w.problem(misclassification_cost=np.ones((2, 3))), ValueError, r"\(2, 3\)"),
    Bad(
        "cost matrix ragged",
        lambda w: w.problem(misclassification_cost=[[0, 1], [1]]),
        WRONG,
        "'misclassification_cost' must",
    ),
    Bad(
        "cost as text",
        lambda w: w.problem(misclassification_cost="high"),
        WRONG,
        "'misclassification_cost' must .*'high'",
    ),
    Bad(
        "cost negative",
        lambda w: w.problem(misclassification_cost=-5),
        ValueError,
        "'misclassification_cost' must .* -5",
    ),
    Bad(
        "cost NaN",
        lambda w: w.problem(misclassification_cost=NAN),
        ValueError,
        "'misclassification_cost' must be finite",
    ),
    Bad(
        "cost infinite in a matrix",
        lambda w: w.problem(misclassification_cost=[[0, INF], [1, 0]]),
        ValueError,
        "'misclassification_cost' must be finite",
    ),
    Bad("label is a feature", lambda w: w.problem(label="b"), ValueError, "'label' must not be a feature, but 'b'"),
    Bad(
        "one declared class",
        lambda w: w.problem(classes=["no"]),
        ValueError,
        "'classes' must be at least two different",
    ),
    Bad(
        "class declared twice",
        lambda w: w.problem(classes=["no", "no"]),
        ValueError,
        "'classes' must be a list of different labels",
    ),
    Bad("classes as number", lambda w: w.problem(classes=2), WRONG, "'classes' must .* 2"),
    Bad("classes as text", lambda w: w.problem(classes="no"), WRONG, "'classes' must .*'no'"),
    Bad(
        "cost matrix for other classes",
        lambda w: w.problem(classes=["no", "yes"], misclassification_cost=np.ones((3, 3))),
        ValueError,
        r"'misclassification_cost' must .* shape \(3, 3\) for 2 classes",
    ),
    Bad(
        "categories of no column",
        lambda w: w.problem(categories={"cd": ["u"]}),
        ValueError,
        "'categories' must name columns .* 'cd'",
    ),
    Bad("categories as list", lambda w: w.problem(categories=["b"]), WRONG, "'categories' must be a mapping"),
    Bad("categories as text", lambda w: w.problem(categories={"b": "uv"}), WRONG, "'categories' .*'b'"),
    Bad(
        "category declared twice",
        lambda w: w.problem(categories={"b": ["u", "v", "u"]}),
        ValueError,
        "'categories' .*'b'",
    ),
    Bad(
        "blank_means of no column",
        lambda w: w.problem(blank_means={"z": 0}),
        ValueError,
        "'blank_means' must name columns .* 'z'",
    ),
    Bad("blank_means as list", lambda w: w.problem(blank_means=["b"]), WRONG, "'blank_means' must be a mapping"),
]

RECORDS = [
    Bad(
        "a dictionary",
        lambda w: w.data({"a": [1]}),
        TypeError,
        "'frame' must be a pandas, polars or pyarrow table .* not dict",
    ),
    Bad("an array", lambda w: w.data(np.zeros((3, 5))), TypeError, "'frame' must be .* not ndarray"),
    Bad("a series", lambda w: w.data(pd.Series([1.0])), TypeError, "'frame' must be .* not Series"),
    Bad("a path", lambda w: w.data("data.csv"), TypeError, "'frame' must be .* not str"),
    Bad(
        "a lazy table",
        lambda w: w.data(pl.DataFrame(frame()).lazy()),
        TypeError,
        "collect a lazy one first.* not LazyFrame",
    ),
    Bad("no rows", lambda w: w.data(frame().iloc[:0]), ValueError, "'frame' must have rows, but is empty"),
    Bad(
        "no problem",
        lambda w: afape.Retrospective(frame(), GROUPS),
        TypeError,
        "'problem' must be an afape.Problem, not dict",
    ),
    Bad("column absent", lambda w: w.data(frame().drop(columns="c")), ValueError, "'frame' has no column 'c'"),
    Bad(
        "label absent",
        lambda w: w.data(frame().drop(columns="y")),
        ValueError,
        "'frame' has no column 'y', .* as label",
    ),
    Bad(
        "column twice in the table",
        lambda w: w.data(column_twice()),
        ValueError,
        r"must not repeat a column .*\['b'\] more than once",
    ),
    Bad(
        "cluster absent", lambda w: w.data(cluster="patient"), ValueError, "'frame' has no column 'patient'.*'cluster'"
    ),
    Bad(
        "cluster with blanks",
        lambda w: w.data(frame(patient=[None, *range(1, N)]), cluster="patient"),
        ValueError,
        "cluster column 'patient' is blank in 1 of 40 rows",
    ),
    Bad(
        "infinite value",
        lambda w: w.data(frame(b=[INF, -INF] + [1.0] * 38)),
        ValueError,
        "Column 'b' must be finite, but 2 of 40",
    ),
    Bad(
        "infinite in polars",
        lambda w: w.data(pl.DataFrame(frame(a=[INF] + [1.0] * 39))),
        ValueError,
        "Column 'a' must be finite, but 1 of 40",
    ),
    Bad("infinite meaning of a blank", lambda w: w.data(blank_means={"b": INF}), ValueError, "'b' must be finite"),
    Bad("blank meaning of a blank", lambda w: w.data(blank_means={"b": NAN}), ValueError, "'blank_means' .*'b'"),
    Bad(
        "text for a number",
        lambda w: w.data(blank_means={"b": "none"}),
        ValueError,
        "'blank_means' of the numeric column 'b' must be a number, but is 'none'",
    ),
    Bad(
        "number for a text",
        lambda w: w.data(frame(b=["u", None] * (N // 2)), blank_means={"b": 0}),
        ValueError,
        "'blank_means' .*'b' .*0",
    ),
    Bad(
        "dates",
        lambda w: w.data(frame(b=pd.Timestamp("2020-01-01"))),
        ValueError,
        "Column 'b' has type Datetime.*days since",
    ),
    Bad(
        "numbers and text",
        lambda w: w.data(frame(b=pd.Series([1, "u"] * (N // 2), dtype=object))),
        ValueError,
        r"Column 'b' mixes values of types \['int', 'str'\]",
    ),
    Bad(
        "level that was not declared",
        lambda w: w.data(frame(b=["u", "v"] * (N // 2)), categories={"b": ["u", "w"]}),
        ValueError,
        r"Column 'b' holds 'v' in 20 rows, which is not among its declared categories \['u', 'w'\]",
    ),
    Bad(
        "number that was not declared",
        lambda w: w.data(frame(b=[1.0, 2.0] * (N // 2)), categories={"b": [1, 3]}),
        ValueError,
        r"Column 'b' holds 2(\.0)? in 20 rows, which is not among its declared categories \[1, 3\]",
    ),
    Bad(
        "labels blank",
        lambda w: w.data(frame(y=["no", None, "yes", None] * (N // 4))),
        ValueError,
        "label column 'y' is blank in 20 of 40 rows.*missing_labels='drop'",
    ),
    Bad(
        "labels NaN",
        lambda w: w.data(frame(y=[NAN, 1.0] * (N // 2))),
        ValueError,
        "blank in 20 of 40 rows.*missing_labels='drop'",
    ),
    Bad(
        "labels that are lists",
        lambda w: w.data(frame(y=[[1], [2]] * (N // 2))),
        ValueError,
        r"'y' must hold finite .*40 rows",
    ),
    Bad(
        "labels that are dicts",
        lambda w: w.data(frame(y=[{}, 1] * (N // 2))),
        ValueError,
        r"'y' must hold finite .*20 rows",
    ),
    Bad(
        "objects as labels",
        lambda w: w.data(frame(y=[object(), 1] * (N // 2))),
        ValueError,
        r"'y' must hold finite .*20 rows",
    ),
    Bad(
        "infinite label",
        lambda w: w.data(frame(y=[1.0, float("inf")] * (N // 2))),
        ValueError,
        "'y' must hold finite .* inf",
    ),
    Bad(
        "costs for 1 and '1'",
        lambda w: afape.Problem({"a": ["a"]}, {}, "y", {0: {1: 5.0}, 1: {0: 1.0}, "1": {0: 2.0}}),
        ValueError,
        "'misclassification_cost' must name each label once, but has 1, '1', which are one label",
    ),
    Bad("every label blank", lambda w: w.data(frame(y=NAN)), ValueError, "blank in 40 of 40 rows"),
    Bad(
        "every label dropped",
        lambda w: w.data(frame(y=NAN), missing_labels="drop"),
        ValueError,
        "No row has a label in column 'y'",
    ),
    Bad(
        "missing_labels",
        lambda w: w.data(missing_labels="ignore"),
        ValueError,
        "'missing_labels' must be one of .*'raise', 'drop'.*, but is 'ignore'",
    ),
    Bad(
        "one class",
        lambda w: w.data(frame(y="no")),
        ValueError,
        "label column 'y' must have at least two classes, but every row is 'no'.*'classes'",
    ),
    Bad(
        "one class after dropping",
        lambda w: w.data(frame(y=["no", None] * (N // 2)), missing_labels="drop"),
        ValueError,
        "every row is 'no'",
    ),
    Bad(
        "continuous label",
        lambda w: w.data(frame(y=np.arange(N) / 7)),
        ValueError,
        "40 different values in 40 rows and looks continuous",
    ),
    Bad(
        "undeclared label",
        lambda w: w.data(classes=["no", "maybe"]),
        ValueError,
        r"label column 'y' holds 'yes' in 20 rows.*'classes' \['no', 'maybe'\]",
    ),
    Bad(
        "undeclared number as label",
        lambda w: w.data(frame(y=[0, 1] * 20), classes=[0, 2]),
        ValueError,
        r"holds 1 in 20 rows.*'classes' \[0, 2\]",
    ),
    Bad(
        "cost matrix for three classes",
        lambda w: w.data(misclassification_cost=np.ones((3, 3))),
        ValueError,
        r"'misclassification_cost' must have .* \(2, 2\) here, but has shape \(3, 3\).*'classes'",
    ),
]


@pytest.mark.parametrize("bad", PROBLEM + RECORDS, ids=lambda bad: bad.what)
def test_bad_input_is_refused_before_any_model_is_called(bad):
    refused(bad)
