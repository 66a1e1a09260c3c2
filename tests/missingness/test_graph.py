"""Missingness graphs: how they are written, what they decide in words, and what they refuse."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import afape
from afape import MGraph

mpl.use("Agg")

PAPER = "x1 -> R_x2; x1 -> R_x3; x2 -> R_x3"


# -------------------------------------------------------------------------------------------------------------- writing


@pytest.mark.parametrize(
    "same",
    [
        MGraph([("x1", "R_x2"), ("x1", "R_x3"), ("x2", "R_x3")]),
        MGraph("x1 -> R_x2, R_x3; R_x3 <- x2"),
        MGraph("x1 -> R_x2\nx1, x2 -> R_x3\n"),
        MGraph(MGraph(PAPER)),
        MGraph(str(MGraph(PAPER))),
    ],
    ids=["pairs", "commas", "lines", "copy", "its own text"],
)
def test_one_graph_can_be_written_in_many_ways(same):
    assert same == MGraph(PAPER)
    assert hash(same) == hash(MGraph(PAPER))
    assert same.missing == ("x2", "x3")


def test_arrows_in_a_row_and_lonely_indicators():
    graph = MGraph("x2 -> R_x1 -> R_x2 <-> R_x3; R_x4")
    assert set(graph.directed) == {("x2", "R_x1"), ("R_x1", "R_x2")}
    assert graph.bidirected == (("R_x2", "R_x3"),)
    assert set(graph.missing) == {"x1", "x2", "x3", "x4"}
    assert "R_x4" in str(graph)


def test_a_table_knows_edges_both_ways():
    table = pd.DataFrame(0, index=["age", "R_a", "R_b"], columns=["age", "R_a", "R_b"])
    table.loc["age", "R_a"] = 1
    table.loc["R_a", "R_b"] = table.loc["R_b", "R_a"] = 1
    graph = MGraph.from_adjacency(table)
    assert graph == MGraph("age -> R_a; R_a <-> R_b")


def test_the_drawing_shows_every_node():
    graph = MGraph("age, y -> R_a; a -> R_b; R_a <-> R_b")
    axes = graph.draw()
    assert {text.get_text() for text in axes.texts} == set(graph.nodes)
    assert len(axes.patches) == len(graph.edges)


# ------------------------------------------------------------------------------------------------------------ decisions


def test_the_papers_example():
    found = MGraph(PAPER).identify(["x2", "x3"])
    assert found.kind == "MNAR"
    assert found.formula == "P(R_x2 | x1) P(R_x3 | x1, x2, R_x2 = 1)"
    assert found.adjust == ("x1", "x2")
    assert found.gaps == ("x2",)
    assert found.views == {"semi-offline": False, "hybrid": True, "missing-data": True}
    assert found.full_law
    assert "Weights can be computed in rows that have x2 recorded." in found.reasons


@pytest.mark.parametrize(
    ("text", "wanted", "kind", "adjust"),
    [
        ("R_a; R_b", ["a", "b"], "MCAR", set()),
        ("age -> R_a; R_b", ["a", "b"], "MAR", {"age"}),
        ("age -> R_a; y -> R_b", ["a", "b"], "MAR", {"age"}),
        ("age -> R_a -> R_b", ["b"], "MAR", {"age"}),  # by way of another indicator
        ("age -> R_a <-> R_b", ["b"], "MAR", set()),  # a collider between, nothing flows
        ("age -> R_a; a -> R_b", ["b"], "MNAR", {"age", "a"}),  # closed: what a's recording depends on counts too
        ("age -> R_a; a -> R_b", ["a"], "MNAR", {"age"}),  # a policy that wants less has less to adjust for
        ("b -> R_a -> R_b", ["a"], "MNAR", {"b"}),
    ],
)
def test_kind_and_adjustment_set(text, wanted, kind, adjust):
    found = MGraph(text).identify(wanted, label="y")
    assert (found.kind, set(found.adjust)) == (kind, adjust)
    assert found.identified


def test_label_is_told_apart():
    found = MGraph("y -> R_a; age -> R_a").identify(["a"], label="y")
    assert found.label == "y"
    assert found.formula == "P(R_a | age, y)"
    assert MGraph("age -> R_a; y -> R_b").identify(["a"], label="y").label is None


def test_odds_ratios_where_no_regression_will_do():
    found = MGraph("x2 -> R_x1 -> R_x2").identify(["x1", "x2"])
    assert "P(R_x1=r | x2) proportional to P(R_x1=r | x2, R_x2 = 1) / P(R_x2 = 1 | R_x1 = r)" in found.formula
    assert found.full_law


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a -> R_a", "recording of 'a' depends on its own value"),
        ("b -> R_a -> R_b; a -> R_b", "no factorisation"),
    ],
)
def test_what_is_not_identified_says_why(text, words):
    found = MGraph(text).identify()
    assert not found.identified
    assert found.views == {"semi-offline": False, "hybrid": False, "missing-data": False}
    assert words in str(found)
    assert "Views that apply: none." in found.reasons


def test_full_law_is_information_only():
    colluder = MGraph("a -> R_b <- R_a").identify(["a", "b"])
    assert colluder.identified
    assert not colluder.full_law
    assert "colluder" in str(colluder)
    selfish = MGraph("a -> R_a; R_b").identify(["b"])
    assert selfish.identified
    assert selfish.views == {"semi-offline": True, "hybrid": True, "missing-data": False}


def test_edges_among_values_decide_nothing():
    assert MGraph("age -> a; " + PAPER).identify(["x3"]).formula == MGraph(PAPER).identify(["x3"]).formula


# ------------------------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("edges", "error", "words"),
    [
        ("R_a -> R_b -> R_a", ValueError, "no cycle, but has R_a -> R_b -> R_a"),
        ("a -> b; b -> a", ValueError, "no cycle"),
        ("R_a -> b", ValueError, "measuring must not change values"),
        ("a <-> R_b", ValueError, "'<->' must join two indicators"),
        ("a <-> b", ValueError, "'<->' must join two indicators"),
        ("R_a <-> R_a", ValueError, "'<->' must join two indicators"),
        ("a - > R_b", ValueError, "must have the form"),
        ("a -> ", ValueError, "must have the form"),
        ([("a",)], ValueError, "must be pairs"),
        (["a -> R_b"], ValueError, "must be pairs"),
        ([("a", "R_b", "--")], ValueError, "must be pairs"),
    ],
)
def test_graphs_that_cannot_be(edges, error, words):
    with pytest.raises(error, match=words):
        MGraph(edges)


def test_tables_that_cannot_be():
    with pytest.raises(ValueError, match="same names, in the same order"):
        MGraph.from_adjacency(pd.DataFrame([[0, 1]], index=["a"], columns=["a", "R_b"]))
    with pytest.raises(ValueError, match="has gaps"):
        MGraph.from_adjacency(pd.DataFrame([[0, np.nan], [0, 0]], index=["a", "R_b"], columns=["a", "R_b"]))


def test_unknown_groups_and_strings():
    with pytest.raises(ValueError, match="'wanted' must name groups of the graph"):
        MGraph(PAPER).identify(["x9"])
    with pytest.raises(TypeError, match="list of groups"):
        MGraph(PAPER).identify("x2")
    with pytest.raises(TypeError, match="list of names"):
        MGraph(PAPER, nodes="R_x1")


PROBLEM = afape.Problem(
    {"age": ["age"], "cbc": ["hgb", "wbc"], "lactate": ["lactate"]}, {"cbc": 2.0, "lactate": 1.0}, "died", 5.0
)


def records():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(60, 4))
    values[::3, 1:3] = np.nan
    values[::4, 3] = np.nan
    return afape.Retrospective(
        pd.DataFrame(values, columns=["age", "hgb", "wbc", "lactate"]).assign(died=rng.integers(0, 2, 60)), PROBLEM
    )


@pytest.mark.parametrize(
    ("missingness", "words"),
    [
        (lambda: afape.MNAR("age -> R_cbc; sex -> R_lactate"), "'sex' is not a group. The groups are"),
        (lambda: afape.MNAR("age -> R_cbc; hgb -> R_lactate"), "'hgb' is not a group"),  # a column, not a group
        (
            lambda: afape.MNAR("age -> R_cbc"),
            "'lactate' is missing in 15 of 60 rows, but the graph has no node R_lactate",
        ),
        (lambda: afape.MNAR("age -> R_cbc; R_died; R_lactate"), "indicator of the label 'died'"),
        (lambda: afape.MNAR("lactate -> R_lactate; R_cbc"), "recording of 'lactate' depends on its own value"),
        (lambda: afape.MNAR("cbc -> R_lactate <- R_cbc; lactate -> R_cbc"), "must identify the propensity"),
        (lambda: afape.MNAR(), "either 'graph' or 'adjust'"),
        (lambda: afape.MNAR("R_cbc", adjust=["cbc"]), "either 'graph' or 'adjust'"),
        (lambda: afape.MNAR("R_cbc", label=True), "'label' needs 'adjust'"),
        (lambda: afape.MNAR(adjust=["sex"]), "'adjust' must name groups"),
    ],
)
def test_assumptions_that_do_not_fit_the_records(missingness, words):
    with pytest.raises(ValueError, match=words):
        afape.evaluate(records(), afape.AcquireAll(), _Zero(), missingness=missingness())


def test_types_of_the_assumption():
    with pytest.raises(TypeError, match=r"an afape\.MGraph or its text, not list"):
        afape.MNAR(graph=[("a", "R_b")])
    with pytest.raises(TypeError, match="'adjust' must be a list"):
        afape.MNAR(adjust="cbc")


def test_an_indicator_of_what_is_always_recorded_is_no_indicator():
    data = records()
    found = afape.MNAR("age -> R_cbc; R_lactate; cbc -> R_age").identify(data)
    assert found.kind == "MAR"
    assert "age" not in found.missing


class _Zero:
    def predict(self, values, acquired):
        return np.zeros(len(values), dtype=int)


def test_nodes_of_a_graph_on_records_are_in_the_order_of_the_groups():
    """Not in that of a set, which differs from one process to the next."""
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, 3.0], "c": [None, 2.0], "d": [1.0, 2.0], "y": [0, 1]})
    groups = {name: [name] for name in "dbca"}
    data = afape.Retrospective(frame, afape.Problem(groups, {"c": 1.0}, "y", 1.0))
    assert str(afape.MAR(given=["b"]).graph_on(data)) == "b -> R_c; d; c; a; y"
