"""Problem and Retrospective: the same records, whatever library holds the table."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

from afape import PartialGroupWarning, Problem, Retrospective

NAN = float("nan")
LIBRARIES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}

library = pytest.mark.parametrize("table", LIBRARIES.values(), ids=LIBRARIES)


def problem(groups=None, costs=None, **options):
    """Group a is free; every other group costs 1."""
    groups = groups or {"a": ["a"], "b": ["b"]}
    costs = {name: 1.0 for name in groups if name != "a"} if costs is None else costs
    return Problem(
        groups, costs=costs, label="y", misclassification_cost=options.pop("misclassification_cost", 5.0), **options
    )


def records(n=4, **columns):
    return pd.DataFrame({"a": np.arange(1.0, n + 1), "b": np.arange(n) / 2, "y": np.arange(n) % 2} | columns)


# ---------------------------------------------------------------------------------------------- columns of any kind


def categorical(values, categories=None):
    return pd.Categorical(values, categories=categories)


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


# --------------------------------------------------------------------------------------------------- labels and costs


LABELS = {
    "text": (["yes", "no", "yes", "maybe"], ["maybe", "no", "yes"], [2, 1, 2, 0]),
    "whole numbers": ([7, 3, 7, 3], [3, 7], [1, 0, 1, 0]),
    "whole numbers past 2**53": ([2**60 + 1, 2**60, 2**60 + 1, 2**60], [2**60, 2**60 + 1], [1, 0, 1, 0]),
    "negative numbers": ([-1, 1, 1, -1], [-1, 1], [0, 1, 1, 0]),
    "booleans": ([True, False, True, True], [False, True], [1, 0, 1, 1]),
    "floats": ([1.5, 0.5, 0.5, 1.5], [0.5, 1.5], [1, 0, 0, 1]),
}


@library
@pytest.mark.parametrize(("labels", "classes", "codes"), LABELS.values(), ids=LABELS)
def test_labels_become_codes_and_back(table, labels, classes, codes):
    data = Retrospective(table({"a": [1.0] * 4, "b": [1.0] * 4, "y": labels}), problem())
    assert data.labels.tolist() == codes
    assert data.classes.tolist() == classes
    assert [type(c) for c in data.classes.tolist()] == [type(c) for c in classes]
    assert data.classes[data.labels].tolist() == labels


@library
@pytest.mark.parametrize(("labels", "classes", "codes"), LABELS.values(), ids=LABELS)
def test_rows_without_label_are_dropped_on_demand(table, labels, classes, codes):
    column = [None, *labels[:2], None, *labels[2:]]
    if table is pd.DataFrame:  # a plain list would become floats before afape sees it
        column = pd.array(column)
    frame = table({"a": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], "b": [1.0] * 6, "y": column})
    data = Retrospective(frame, problem(), missing_labels="drop")
    assert data.values[:, 0].tolist() == [1, 2, 4, 5]
    assert data.positions.tolist() == [1, 2, 4, 5]
    assert data.labels.tolist() == codes
    assert data.classes.tolist() == classes
    assert [type(c) for c in data.classes.tolist()] == [type(c) for c in classes]


def test_categorical_labels_read_as_they_were_written():
    data = Retrospective(records(y=categorical([10, 2, 10, 2])), problem())
    assert data.classes.tolist() == [2, 10]
    assert data.labels.tolist() == [1, 0, 1, 0]


CLASSES = {
    "reversed": (["no", "yes", "no", "yes"], ["yes", "no"], [1, 0, 1, 0]),
    "one that no row has": (["no", "yes", "no", "yes"], ["no", "unknown", "yes"], [0, 2, 0, 2]),
    "only one in the rows": (["yes"] * 4, ["no", "yes"], [1, 1, 1, 1]),
    "whole numbers": ([1, 0, 2, 1], [2, 1, 0], [1, 2, 0, 1]),
    "whole numbers for floats": ([1.0, 0.0, 1.0, 0.0], [1, 0], [0, 1, 0, 1]),
    "booleans": ([True, False, False, True], [True, False], [0, 1, 1, 0]),
}


@library
@pytest.mark.parametrize(("labels", "classes", "codes"), CLASSES.values(), ids=CLASSES)
def test_declared_classes_order_the_codes(table, labels, classes, codes):
    data = Retrospective(table({"a": [1.0] * 4, "b": [1.0] * 4, "y": labels}), problem(classes=classes))
    assert data.classes.tolist() == classes
    assert data.labels.tolist() == codes


@pytest.mark.parametrize(
    ("cost", "labels", "expected"),
    [
        (5.0, [0, 1, 0, 1], [[0, 5], [5, 0]]),
        (2, ["a", "b", "c", "a"], [[0, 2, 2], [2, 0, 2], [2, 2, 0]]),
        ([[0, 1], [9, 0]], [0, 1, 0, 1], [[0, 1], [9, 0]]),
        ([[0, 1, 2], [3, 0, 4], [5, 6, 0]], ["a", "b", "c", "a"], [[0, 1, 2], [3, 0, 4], [5, 6, 0]]),
    ],
)
def test_cost_of_each_true_and_predicted_class(cost, labels, expected):
    data = Retrospective(records(y=labels), problem(misclassification_cost=cost))
    assert data.costs.tolist() == expected


# ------------------------------------------------------------------------------------------------------------ groups


@pytest.mark.parametrize(
    ("costs", "prices", "free"),
    [
        ({"b": 26.0, "c": 12}, [0, 26, 12], [True, False, False]),
        ({"a": 0, "b": 26.0, "c": 12}, [0, 26, 12], [True, False, False]),
        ({"a": 1.0, "b": 0.0, "c": 12}, [1, 0, 12], [False, True, False]),
        ({"c": 0.5, "a": 2.0, "b": 1.0}, [2, 1, 0.5], [False, False, False]),
        ({}, [0, 0, 0], [True, True, True]),
    ],
)
def test_a_group_without_a_price_is_free(costs, prices, free):
    priced = problem({"a": ["a"], "b": ["b"], "c": ["c"]}, costs)
    assert priced.prices.tolist() == prices
    assert priced.free.tolist() == free
    assert priced.n_groups == 3


def test_problem_lists_groups_and_columns_in_order():
    panel = problem({"z": ["c", "b"], "one": "a"}, {"z": 2.5})  # one column may go without brackets
    assert panel.group_names == ("z", "one")
    assert panel.feature_columns == ("c", "b", "a")
    assert panel.group_index(["one", "z"], "given").tolist() == [1, 0]
    assert repr(panel) == "Problem(z (2.5), one (free); label 'y')"


# ------------------------------------------------------------------------------------------------- parts of a table


def large(n=100, **options):
    return Retrospective(records(n, patient=np.arange(n) // 4), problem(), **options)


@pytest.mark.parametrize(
    ("n", "shares", "sizes"),
    [
        (100, [0.5, 0.5], [50, 50]),
        (100, [0.2, 0.8], [20, 80]),
        (100, [0.5, 0.3, 0.2], [50, 30, 20]),
        (10, [0.25, 0.75], [2, 8]),  # 2.5 rounds to the even 2
        (7, [1.0], [7]),
        (3, [1 / 3, 1 / 3, 1 / 3], [1, 1, 1]),
    ],
)
def test_split_is_complete_and_disjoint_in_these_shares(n, shares, sizes):
    data = large(n)
    parts = data.split(shares, random_state=3)
    assert [len(part) for part in parts] == sizes
    assert sorted(np.concatenate([part.positions for part in parts])) == list(range(n))
    for part in parts:
        assert part.source == data.source
        assert_array_equal(part.values, data.values[part.positions])
        assert_array_equal(part.recorded, data.recorded[part.positions])
        assert_array_equal(part.labels, data.labels[part.positions])


def test_split_is_random_and_reproducible():
    first, again, other = (large().split([0.5, 0.5], random_state=s)[0].positions for s in (1, 1, 2))
    assert_array_equal(first, again)
    assert len(np.setdiff1d(first, other)) > 10
    assert len(np.setdiff1d(first, np.arange(50))) > 10  # not simply the first half


def test_split_gives_every_row_the_same_chance():
    data = large(20)
    share = np.mean([np.isin(np.arange(20), data.split([0.3, 0.7], s)[0].positions) for s in range(1000)], axis=0)
    assert np.abs(share - 0.3).max() < 4.5 * np.sqrt(0.3 * 0.7 / 1000)


def test_split_keeps_clusters_together():
    parts = large(cluster="patient").split([0.4, 0.6], random_state=0)
    assert [len(part) for part in parts] == [40, 60]
    patients = [set((part.positions // 4).tolist()) for part in parts]
    assert patients[0].isdisjoint(patients[1])
    assert patients[0] | patients[1] == set(range(25))


def test_split_of_a_part_keeps_its_clusters_together():
    half = large(cluster="patient").split([0.5, 0.5])[1]
    parts = half.split([0.5, 0.5])
    assert set((parts[0].positions // 4).tolist()).isdisjoint((parts[1].positions // 4).tolist())
    assert sorted(np.concatenate([part.positions for part in parts])) == sorted(half.positions)


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ([0.5, 0.6], r"'shares' must be positive and sum to 1, but is \[0.5, 0.6\]"),
        ([1.5, -0.5], "'shares' must be positive and sum to 1"),
        ([1.0, 0.0], "'shares' must be positive and sum to 1"),
        ([], "'shares' must be positive and sum to 1"),
        ([[0.5, 0.5]], "'shares' must be positive and sum to 1"),
        ([float("nan"), 0.5], "'shares' must be positive and sum to 1"),
        (0.5, "'shares' must be positive and sum to 1"),
        ([0.999, 0.001], r"'shares' \[0.999, 0.001\] leave part 1 without a row of 100"),
    ],
)
def test_split_refuses_shares_that_make_no_sense(shares, message):
    with pytest.raises(ValueError, match=message):
        large().split(shares)


def test_split_counts_clusters_and_not_rows():
    with pytest.raises(ValueError, match="leave part 1 without a row of 25 rows or clusters"):
        large(cluster="patient").split([0.985, 0.015])


@pytest.mark.parametrize("rows", [np.array([4, 0, 2]), [4, 0, 2]], ids=["array", "list"])
def test_take_by_position_keeps_the_order(rows):
    data = large(6, cluster="patient")
    part = data.take(rows)
    assert part.values[:, 0].tolist() == [5, 1, 3]
    assert part.labels.tolist() == [0, 0, 0]
    assert part.positions.tolist() == [4, 0, 2]
    assert part.cluster.tolist() == [1, 0, 0]
    assert (part.columns, part.source, len(part)) == (data.columns, data.source, 3)


def test_take_by_mask():
    data = large(6)
    assert data.take(data.labels == 1).positions.tolist() == [1, 3, 5]
    assert data.take(data.labels == 1).classes.tolist() == [0, 1]  # codes keep their meaning


def test_take_of_take_points_to_the_table():
    assert large(10).take(np.arange(5, 10)).take([0, 3]).positions.tolist() == [5, 8]


def test_hide_forgets_groups_and_reveals_nothing():
    data = Retrospective(
        records(b=[1.0, None, 3.0, 4.0], c=["u", "v", "u", "v"]), problem({"a": ["a"], "b": ["b"], "c": ["c"]})
    )
    keep = np.array([[1, 1, 0], [1, 1, 1], [0, 0, 1], [1, 1, 1]], dtype=bool)
    hidden = data.hide(keep)
    assert hidden.recorded.astype(int).tolist() == [[1, 1, 0], [1, 0, 1], [0, 0, 1], [1, 1, 1]]
    expected = [[1, 1, NAN, NAN], [2, NAN, 0, 1], [NAN, NAN, 1, 0], [4, 4, 0, 1]]
    assert_array_equal(hidden.values, expected)
    assert_array_equal(hidden.labels, data.labels)
    assert hidden.source == data.source
    assert_array_equal(data.values[:, 0], [1, 2, 3, 4])  # the original stays


# ---------------------------------------------------------------------------------------------------------- clusters


@library
@pytest.mark.parametrize(
    "patients",
    [
        ["p", "q", "p", "r"],
        [5, 3, 5, 4],
        [2.0, 1.0, 2.0, 3.0],
        [2**60, 2**60 + 1, 2**60, 2**60 + 2],
    ],
    ids=["text", "numbers", "floats", "long numbers"],
)
def test_rows_with_one_cluster_value_belong_together(table, patients):
    frame = table({"a": [1.0] * 4, "b": [1.0] * 4, "y": [0, 1, 0, 1], "patient": patients})
    cluster = Retrospective(frame, problem(), cluster="patient").cluster
    together = cluster[:, None] == cluster[None, :]
    assert together.astype(int).tolist() == [[1, 0, 1, 0], [0, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1]]


def test_a_dropped_row_needs_no_cluster():
    frame = records(y=[0, None, 0, 1], patient=["p", None, "p", "q"])
    assert Retrospective(frame, problem(), cluster="patient", missing_labels="drop").cluster.tolist() == [0, 0, 1]


# ------------------------------------------------------------------------------------------------------ fingerprints


def fingerprint(a, b, y):
    return Retrospective(pd.DataFrame({"a": a, "b": b, "y": y}), problem(classes=[0, 1])).fingerprints()


def test_equal_rows_have_equal_fingerprints_in_any_table():
    a, b, y = [1.0, 2.0, 1.0], [0.5, NAN, 0.5], [0, 1, 0]
    prints = fingerprint(a, b, y)
    assert prints[0] == prints[2] != prints[1]
    assert_array_equal(prints, fingerprint(a, b, y))
    assert_array_equal(prints[::-1], fingerprint(a[::-1], b[::-1], y[::-1]))


@pytest.mark.parametrize(
    "other",
    [
        ([1.5], [2.0], [0]),
        ([1.0], [NAN], [0]),
        ([1.0], [2.0], [1]),
        ([2.0], [1.0], [0]),
        ([np.nextafter(1, 2)], [2.0], [0]),
    ],
    ids=["value", "gap", "label", "swapped", "last bit"],
)
def test_different_rows_have_different_fingerprints(other):
    assert fingerprint([1.0], [2.0], [0])[0] != fingerprint(*other)[0]


def test_no_two_rows_of_a_grid_share_a_fingerprint():
    a, b, y = (axis.ravel() for axis in np.meshgrid(np.arange(-100.0, 100), np.arange(0, 50, 0.5), [0, 1]))
    assert len(np.unique(fingerprint(a, b, y))) == 200 * 100 * 2


def test_zero_and_blank_have_one_fingerprint_each():
    quiet, payload = np.array([0x7FF8000000000000, 0xFFF8000000000123], dtype=np.uint64).view(float)
    assert np.isnan([quiet, payload]).all()
    prints = fingerprint([0.0, -0.0, 0.0, -0.0], [quiet, quiet, payload, payload], [0, 0, 0, 0])
    assert len(set(prints.tolist())) == 1


def test_hide_wants_one_flag_a_row_and_group():
    data = Retrospective(pd.DataFrame({"a": [1.0, 2.0], "y": [0, 1]}), Problem({"a": ["a"]}, {"a": 1.0}, "y", 1.0))
    with pytest.raises(ValueError, match=r"'keep' must have shape \(2, 1\), rows by groups, but has \(2,\)"):
        data.hide(np.array([True, False]))
