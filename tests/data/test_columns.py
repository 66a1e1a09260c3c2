"""Columns become the same records, whatever library holds the table."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal
from small_tables import NAN, categorical, library, problem, records

from afape import Problem, Retrospective
from afape.warnings import PartialGroupWarning

# ---------------------------------------------------------------------------------------------- columns of any kind


NUMBERS = [1.0, None, 2.5, 3.0]
WHOLE = [1, None, 2, 3]
LONG = [2**60, 2**60 + 1, 5, 6]
FLAGS = [True, None, False, True]
TEXT = ["x", None, "w", "x"]
SORTED_LEVELS = (("b=w", "b=x"), [[0, 1], [NAN, NAN], [1, 0], [0, 1]])
DECLARED_LEVELS = (("b=z", "b=x", "b=w"), [[0, 1, 0], [NAN, NAN, NAN], [0, 0, 1], [0, 1, 0]])

# what it is, table, the column as that library holds it
COLUMNS = {
    "numbers": (
        (("b",), [[1], [NAN], [2.5], [3]]),
        {
            "pandas float64": (pd.DataFrame, np.array([1, NAN, 2.5, 3])),
            "pandas Float64": (pd.DataFrame, pd.array(NUMBERS, dtype="Float64")),
            "pandas double[pyarrow]": (pd.DataFrame, pd.array(NUMBERS, dtype="double[pyarrow]")),
            "pandas object": (pd.DataFrame, pd.Series([1, None, 2.5, np.int8(3)], dtype=object)),
            "pandas object with NaN": (pd.DataFrame, pd.Series([1, NAN, 2.5, 3], dtype=object)),
            "pandas object with NA": (pd.DataFrame, pd.Series([1, pd.NA, 2.5, 3], dtype=object)),
            "polars null": (pl.DataFrame, NUMBERS),
            "polars NaN": (pl.DataFrame, [1.0, NAN, 2.5, 3.0]),
            "polars Float32": (pl.DataFrame, pl.Series(NUMBERS, dtype=pl.Float32)),
            "polars Object": (pl.DataFrame, pl.Series(NUMBERS, dtype=pl.Object)),
            "pyarrow null": (pa.table, NUMBERS),
            "pyarrow NaN": (pa.table, [1.0, NAN, 2.5, 3.0]),
        },
    ),
    "whole numbers": (
        (("b",), [[1], [NAN], [2], [3]]),
        {
            "pandas Int64": (pd.DataFrame, pd.array(WHOLE, dtype="Int64")),
            "pandas UInt8": (pd.DataFrame, pd.array(WHOLE, dtype="UInt8")),
            "pandas int64[pyarrow]": (pd.DataFrame, pd.array(WHOLE, dtype="int64[pyarrow]")),
            "polars Int64": (pl.DataFrame, WHOLE),
            "polars UInt8": (pl.DataFrame, pl.Series(WHOLE, dtype=pl.UInt8)),
            "polars Decimal": (pl.DataFrame, pl.Series(WHOLE, dtype=pl.Decimal(10, 2))),
            "pyarrow int64": (pa.table, WHOLE),
            "pyarrow int8": (pa.table, pa.array(WHOLE, pa.int8())),
        },
    ),
    "whole numbers past 2**53": (
        (("b",), [[float(v)] for v in LONG]),
        {
            "pandas int64": (pd.DataFrame, LONG),
            "polars Int64": (pl.DataFrame, LONG),
            "pyarrow int64": (pa.table, LONG),
        },
    ),
    "booleans": (
        (("b",), [[1], [NAN], [0], [1]]),
        {
            "pandas boolean": (pd.DataFrame, pd.array(FLAGS, dtype="boolean")),
            "pandas bool[pyarrow]": (pd.DataFrame, pd.array(FLAGS, dtype="bool[pyarrow]")),
            "pandas object": (pd.DataFrame, pd.Series(FLAGS, dtype=object)),
            "polars": (pl.DataFrame, FLAGS),
            "pyarrow": (pa.table, FLAGS),
        },
    ),
    "text": (
        SORTED_LEVELS,
        {
            "pandas str": (pd.DataFrame, TEXT),
            "pandas object": (pd.DataFrame, pd.Series(TEXT, dtype=object)),
            "pandas string": (pd.DataFrame, pd.array(TEXT, dtype="string")),
            "pandas string[pyarrow]": (pd.DataFrame, pd.array(TEXT, dtype="string[pyarrow]")),
            "polars": (pl.DataFrame, TEXT),
            "pyarrow string": (pa.table, TEXT),
            "pyarrow large_string": (pa.table, pa.array(TEXT, pa.large_string())),
        },
    ),
    "categories": (  # 'x' stands first in the rows, 'w' first in the alphabet
        SORTED_LEVELS,
        {
            "pandas category": (pd.DataFrame, categorical(TEXT)),
            "polars Categorical": (pl.DataFrame, pl.Series(TEXT, dtype=pl.Categorical)),
            "pyarrow dictionary": (pa.table, pa.array(TEXT).dictionary_encode()),
        },
    ),
    "categories declared by the table": (  # in their order, the one that no row has included
        DECLARED_LEVELS,
        {
            "pandas category": (pd.DataFrame, categorical(TEXT, ["z", "x", "w"])),
            "polars Enum": (pl.DataFrame, pl.Series(TEXT, dtype=pl.Enum(["z", "x", "w"]))),
        },
    ),
    "categories that are numbers": (
        (("b=2", "b=10"), [[1, 0], [NAN, NAN], [0, 1], [1, 0]]),
        {"pandas category": (pd.DataFrame, categorical([2, None, 10, 2]))},
    ),
    "never recorded": (
        (("b",), [[NAN], [NAN], [NAN], [NAN]]),
        {
            "pandas float64": (pd.DataFrame, [NAN] * 4),
            "pandas object": (pd.DataFrame, pd.Series([None] * 4, dtype=object)),
            "polars Float64": (pl.DataFrame, pl.Series([None] * 4, dtype=pl.Float64)),
            "polars Null": (pl.DataFrame, [None] * 4),
            "pyarrow double": (pa.table, pa.nulls(4, pa.float64())),
            "pyarrow null": (pa.table, pa.nulls(4)),
        },
    ),
}


@pytest.mark.parametrize(
    ("table", "column", "names", "block"),
    [
        pytest.param(table, column, *expected, id=f"{kind}-{variant}")
        for kind, (expected, variants) in COLUMNS.items()
        for variant, (table, column) in variants.items()
    ],
)
def test_a_column_becomes_the_same_numbers_in_every_library(table, column, names, block):
    data = Retrospective(table({"a": [1.0, 2.0, 3.0, 4.0], "b": column, "y": [0, 1, 0, 1]}), problem())
    block = np.array(block, dtype=float)
    assert data.columns == ("a", *names)
    assert_array_equal(data.values, np.column_stack([[1, 2, 3, 4], block]))
    assert_array_equal(data.recorded, np.column_stack([[True] * 4, ~np.isnan(block[:, 0])]))
    assert_array_equal(data.column_group, [0] + [1] * len(names))


MIXED = {
    "age": [50, 61, 72, 83, 44],
    "ward": ["icu", "er", "icu", None, "er"],
    "hgb": [9.5, None, 11.0, 12.5, 13.0],
    "wbc": [4, None, 6, 7, 8],
    "ventilated": [True, None, False, None, True],
    "died": ["no", "yes", "yes", "no", "no"],
}


@library
def test_a_table_gives_the_same_records_in_every_library(table):
    groups = {"age": ["age"], "ward": ["ward"], "cbc": ["hgb", "wbc"], "vent": ["ventilated"]}
    costs = {"ward": 1.0, "cbc": 26.0, "vent": 3.0}
    data = Retrospective(table(MIXED), Problem(groups, costs, label="died", misclassification_cost=500.0))
    assert data.columns == ("age", "ward=er", "ward=icu", "hgb", "wbc", "ventilated")
    assert data.column_group.tolist() == [0, 1, 1, 2, 2, 3]
    expected = [
        [50, 0, 1, 9.5, 4, 1],
        [61, 1, 0, NAN, NAN, NAN],
        [72, 0, 1, 11, 6, 0],
        [83, NAN, NAN, 12.5, 7, NAN],
        [44, 1, 0, 13, 8, 1],
    ]
    assert_array_equal(data.values, expected)
    assert data.recorded.astype(int).tolist() == [[1, 1, 1, 1], [1, 1, 0, 0], [1, 1, 1, 1], [1, 0, 1, 0], [1, 1, 1, 1]]
    assert data.labels.tolist() == [0, 1, 1, 0, 0]
    assert data.classes.tolist() == ["no", "yes"]
    assert (data.values.dtype, data.recorded.dtype, data.labels.dtype) == (float, bool, np.intp)
    assert data.complete.tolist() == [True, False, True, False, True]
    assert data.always_recorded.tolist() == [True, False, False, False]
    assert (len(data), data.partial, data.cluster) == (5, {}, None)


def test_the_index_of_a_pandas_table_means_nothing():
    frame = records(b=[1.0, None, 3.0, 4.0]).set_index(pd.Index([7, 7, 0, 1]))
    assert_array_equal(Retrospective(frame, problem()).values[:, 1], [1, NAN, 3, 4])


def test_columns_follow_the_groups_and_not_the_table():
    frame = records(c=["v", "u", "v", "u"])[["c", "y", "b", "a"]]
    data = Retrospective(frame, problem({"both": ["c", "a"], "b": ["b"]}))
    assert data.columns == ("c=u", "c=v", "a", "b")
    assert data.column_group.tolist() == [0, 0, 0, 1]
    assert data.values[0].tolist() == [0, 1, 1, 0]


def test_a_recorded_table_cannot_be_changed_by_accident():
    data = Retrospective(records(), problem())
    for array in (data.values, data.recorded, data.labels):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


# ------------------------------------------------------------------------------------------------------ partial groups


@library
def test_a_group_recorded_in_part_counts_as_not_recorded(table):
    groups = {"a": ["a"], "panel": ["b", "race"], "c": ["c"]}
    columns = {
        "a": [1.0, 2.0, 3.0, 4.0, 5.0],
        "b": [1.0, None, 3.0, None, 5.0],
        "race": ["u", "v", None, None, "v"],  # half recorded in rows 1 and 2, not at all in row 3
        "c": [1.0, None, 3.0, 4.0, 5.0],
        "y": [0, 1, 0, 1, 0],
    }
    with pytest.warns(PartialGroupWarning, match=r"not recorded: 'panel' in 2 of 5 rows.*blank_means") as caught:
        data = Retrospective(table(columns), problem(groups))
    assert caught[0].filename == __file__
    assert data.partial == {"panel": 2}
    assert data.recorded[:, 1].tolist() == [True, False, False, False, True]
    assert data.columns[1:4] == ("b", "race=u", "race=v")
    assert_array_equal(data.values[:, 1:4], [[1, 1, 0], [NAN] * 3, [NAN] * 3, [NAN] * 3, [5, 0, 1]])


def test_every_torn_group_is_named():
    columns = {"c": [1.0, None, 3.0, 4.0], "d": [None, 2.0, 3.0, 4.0], "e": [1.0, 2.0, 3.0, None]}
    groups = {"a": ["a"], "one": ["b", "c"], "two": ["d", "e"]}
    with pytest.warns(PartialGroupWarning, match="'one' in 1, 'two' in 2 of 4 rows"):
        Retrospective(records(**columns), problem(groups))


# -------------------------------------------------------------------------------------------- blanks with a meaning


BLANK_MEANS = {
    # column, what a blank means, declared categories, names, values of row 1
    "number": (NUMBERS, 0, {}, ("b",), [0]),
    "negative number": (NUMBERS, -1.5, {}, ("b",), [-1.5]),
    "text": (TEXT, "none", {}, ("b=none", "b=w", "b=x"), [1, 0, 0]),
    "text that occurs": (TEXT, "w", {}, ("b=w", "b=x"), [1, 0]),
    "text with categories": (TEXT, "none", {"b": ["x", "w", "none"]}, ("b=x", "b=w", "b=none"), [0, 0, 1]),
    "boolean": (FLAGS, False, {}, ("b",), [0]),
    "boolean as 0": (FLAGS, 0, {}, ("b",), [0]),
    "numeric category": (WHOLE, 0, {"b": [0, 1, 2, 3]}, ("b=0", "b=1", "b=2", "b=3"), [1, 0, 0, 0]),
}


@library
@pytest.mark.parametrize(("column", "meaning", "categories", "names", "filled"), BLANK_MEANS.values(), ids=BLANK_MEANS)
def test_a_blank_with_a_meaning_is_recorded(table, column, meaning, categories, names, filled):
    frame = table({"a": [1.0, 2.0, 3.0, 4.0], "b": column, "y": [0, 1, 0, 1]})
    data = Retrospective(frame, problem(blank_means={"b": meaning}, categories=categories))
    assert data.columns == ("a", *names)
    assert data.recorded.all()
    assert data.values[1, 1:].tolist() == filled
    plain = Retrospective(frame, problem(categories=categories))
    for j, name in enumerate(plain.columns):  # the other rows stay as they are
        assert_array_equal(data.values[[0, 2, 3], data.columns.index(name)], plain.values[[0, 2, 3], j])


@pytest.mark.parametrize(
    ("table", "column"),
    [
        pytest.param(pd.DataFrame, categorical(TEXT, ["z", "x", "w"]), id="pandas category"),
        pytest.param(pl.DataFrame, pl.Series(TEXT, dtype=pl.Enum(["z", "x", "w"])), id="polars Enum"),
    ],
)
def test_a_filled_blank_keeps_the_levels_that_the_table_declares(table, column):
    frame = table({"a": [1.0, 2.0, 3.0, 4.0], "b": column, "y": [0, 1, 0, 1]})
    data = Retrospective(frame, problem(blank_means={"b": "w"}))
    assert data.columns == ("a", "b=z", "b=x", "b=w")
    assert data.values[:, 1:].tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 1], [0, 1, 0]]


def test_blanks_elsewhere_stay_blank():
    frame = records(b=[None, 1.0, 2.0, 3.0], c=[1.0, None, 2.0, 3.0])
    data = Retrospective(frame, problem({"a": ["a"], "b": ["b"], "c": ["c"]}, blank_means={"c": 9.0}))
    assert data.recorded.all(axis=0).tolist() == [True, False, True]
    assert data.values[1].tolist() == [2, 1, 9]


# ----------------------------------------------------------------------------------------------- declared categories


CATEGORIES = {
    "text, in the order declared": (TEXT, ["x", "w"], ("b=x", "b=w"), [[1, 0], [NAN, NAN], [0, 1], [1, 0]]),
    "text, a level that no row has": (
        TEXT,
        ["w", "x", "y"],
        ("b=w", "b=x", "b=y"),
        [[0, 1, 0], [NAN] * 3, [1, 0, 0], [0, 1, 0]],
    ),
    "text, as found": (TEXT, None, *SORTED_LEVELS),
    "numbers": (WHOLE, [3, 2, 1], ("b=3", "b=2", "b=1"), [[0, 0, 1], [NAN] * 3, [0, 1, 0], [1, 0, 0]]),
    "numbers, as found": (NUMBERS, None, ("b=1", "b=2.5", "b=3"), [[1, 0, 0], [NAN] * 3, [0, 1, 0], [0, 0, 1]]),
}


@library
@pytest.mark.parametrize(("column", "levels", "names", "block"), CATEGORIES.values(), ids=CATEGORIES)
def test_declared_categories(table, column, levels, names, block):
    frame = table({"a": [1.0, 2.0, 3.0, 4.0], "b": column, "y": [0, 1, 0, 1]})
    data = Retrospective(frame, problem(categories={"b": levels}))
    assert data.columns == ("a", *names)
    assert_array_equal(data.values[:, 1:], np.array(block, dtype=float))


def test_declared_categories_make_separately_built_tables_agree():
    declared = problem(categories={"b": ["u", "v", "w"]})
    one = Retrospective(records(b=["u", "v", "u", "v"]), declared)
    other = Retrospective(records(b=["w", "v", "w", "v"]), declared)
    assert one.columns == other.columns == ("a", "b=u", "b=v", "b=w")
    assert one.values[1, 1:].tolist() == other.values[1, 1:].tolist() == [0, 1, 0]
