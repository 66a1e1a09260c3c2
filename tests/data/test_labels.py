"""Labels, the costs of mistaking them, and the prices of groups."""

import pandas as pd
import pytest
from small_tables import categorical, library, problem, records

from afape import Problem, Retrospective

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


@pytest.mark.parametrize("labels", [[0, 1], [0.0, 1.0]])
@pytest.mark.parametrize("keys", [("0", "1"), (0, 1), (0.0, 1.0)])
def test_a_nested_cost_is_aligned_by_label_whatever_the_type_of_its_keys(labels, keys):
    no, yes = keys
    cost = {yes: {no: 50.0}, no: {yes: 10.0}}
    problem = Problem({"a": ["a"]}, {}, "y", cost)
    data = Retrospective(pd.DataFrame({"a": [1.0, 2.0], "y": labels}), problem)
    assert data.costs.tolist() == [[0.0, 10.0], [50.0, 0.0]]
    turned = Problem({"a": ["a"]}, {}, "y", cost, classes=labels[::-1])
    data = Retrospective(pd.DataFrame({"a": [1.0, 2.0], "y": labels}), turned)
    assert data.costs.tolist() == [[0.0, 50.0], [10.0, 0.0]]


@pytest.mark.parametrize(
    ("cost", "words"),
    [
        ({"no": {"yes": 1.0}}, "lacks that of predicting 'no' if 'yes' is true"),
        ({"no": 3.0, "yes": 2.0}, "give each true label a mapping"),
        ({}, "give each true label a mapping"),
    ],
)
def test_a_nested_cost_must_be_complete(cost, words):
    with pytest.raises(ValueError, match=words):
        Problem({"a": ["a"]}, {}, "y", cost)
