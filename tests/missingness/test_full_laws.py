"""The oracle of identification is right on textbook graphs, and its laws are what they say."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from full_laws import FullLaw, Graph, all_graphs, looks_identified, random_graphs, refute, refutes

pytestmark = pytest.mark.slow

# Text, wanted groups (counted from 0), always recorded groups.
IDENTIFIED = {
    "completely at random": ("", (0, 1), ()),
    "at random given the label": ("y -> R_x1; y -> R_x2; R_x1 -> R_x2", (0, 1), ()),
    "at random given a recorded group": ("x2 -> R_x1", (0,), (1,)),
    "self-censoring outside the wanted": ("x1 -> R_x1; y -> R_x2", (1,), ()),
    "value, indicator, indicator": ("x2 -> R_x1; R_x1 -> R_x2", (0, 1), ()),
    "crossed": ("x1 -> R_x2; x2 -> R_x1", (0, 1), ()),
    "sequential": ("x1 -> R_x2; R_x1 -> R_x2", (0, 1), ()),
    "common cause": ("x2 -> R_x1; R_x1 <-> R_x2", (0, 1), ()),
    "common cause and arrow into the dependent one": ("x2 -> R_x1; R_x2 -> R_x1; R_x1 <-> R_x2", (0, 1), ()),
    "cycle of three": ("x2 -> R_x1; R_x1 -> R_x2; x3 -> R_x2; R_x2 -> R_x3; x1 -> R_x3", (0, 1, 2), ()),
    "first indicator is seen beside the third": (
        "x2 -> R_x1; x3 -> R_x1; x3 -> R_x2; R_x3 -> R_x2; x1 -> R_x3",
        (0, 1, 2),
        (),
    ),
    "indicator as covariate": ("x2 -> R_x1; R_x1 -> R_x3; R_x3 -> R_x2; x3 -> R_x2", (1, 2), ()),
}
REFUTED = {
    "self-censoring": ("x1 -> R_x1", (0,), ()),
    "self-censoring beside a recorded group": ("x1 -> R_x1; x2 -> R_x1", (0,), (1,)),
    "colluder": ("x1 -> R_x2; R_x1 -> R_x2; x2 -> R_x1", (0, 1), ()),
    "crossed with a common cause": ("x1 -> R_x2; x2 -> R_x1; R_x1 <-> R_x2", (0, 1), ()),
    "common cause and arrow out of the dependent one": ("x2 -> R_x1; R_x1 -> R_x2; R_x1 <-> R_x2", (1,), ()),
    "colluder through a third": ("x3 -> R_x1; x3 -> R_x2; x1 -> R_x3; x2 -> R_x3; R_x1 -> R_x3", (0, 1, 2), ()),
    "more levels than equations": ("x2 -> R_x1; R_x3 -> R_x1; x1 -> R_x2; x2 -> R_x3; R_x2 -> R_x3", (0, 1), ()),
}


@pytest.mark.parametrize("name", IDENTIFIED)
def test_finds_nothing_against_identified_targets(name):
    text, wanted, always = IDENTIFIED[name]
    graph = Graph.read(text, 3 if "3" in text else 2, always)
    assert refute(graph, wanted) is None
    assert looks_identified(graph, wanted)


@pytest.mark.parametrize("name", REFUTED)
def test_refutes_with_an_explicit_pair(name):
    text, wanted, always = REFUTED[name]
    graph = Graph.read(text, 3 if "3" in text else 2, always)
    a, b = refute(graph, wanted)
    assert a.graph == b.graph == graph
    # The joint tables alone, without the numbering of records that the search uses, say the same.
    k, levels = graph.n_groups, a.shape.levels
    for pattern in itertools.product([0, 1], repeat=len(graph.gapped)):
        hidden = tuple(g for g, r in zip(graph.gapped, pattern, strict=True) if r == 0)
        one, two = (law.joint()[(..., *pattern)].sum(axis=hidden) for law in (a, b))
        np.testing.assert_allclose(one, two, rtol=0, atol=1e-12)
    others = tuple(g for g in graph.gapped if g not in wanted) + tuple(range(k + 1, k + 1 + len(graph.gapped)))
    one, two = (law.joint().sum(axis=others) for law in (a, b))
    assert one.size == np.prod([levels[g] for g in {*wanted, *graph.always}]) * a.shape.labels
    assert np.abs(one - two).sum() / 2 >= 1e-3
    assert refutes((a, b), wanted)
    assert not refutes((a, a), wanted)


def test_a_law_has_the_independences_of_its_graph():
    law = FullLaw.random(Graph.read("x2 -> R_x1; R_x1 -> R_x3; R_x1 <-> R_x2", 3), 7)
    joint = law.joint()
    assert joint.shape == (2,) * 7
    assert joint.sum() == pytest.approx(1, abs=1e-14)
    given = joint / joint.sum(axis=(4, 5, 6), keepdims=True)  # p(R1, R2, R3 | x1, x2, x3, y)
    first = given.sum(axis=(5, 6))
    assert np.ptp(first, axis=(0, 2, 3)).max() < 1e-14
    assert np.ptp(first, axis=1).max() > 0.01
    pair = given.sum(axis=6)
    assert np.abs(pair - pair.sum(5, keepdims=True) * pair.sum(4, keepdims=True)).max() > 0.01
    third = given / pair[..., None]
    assert np.ptp(third, axis=(0, 1, 2, 3, 5)).max() < 1e-14
    assert np.ptp(third, axis=4).max() > 0.01


def test_slopes_are_the_derivatives():
    law = FullLaw.random(Graph.read("x2 -> R_x1; R_x1 -> R_x2; R_x1 <-> R_x2; y -> R_x1", 2), 5, levels=(2, 3))
    steps = 1e-6 * np.eye(law.shape.n_parameters)
    apart = np.array([law.moved(step).observed() - law.moved(-step).observed() for step in steps]).T / 2e-6
    np.testing.assert_allclose(law.slopes(law.shape.observed), apart, rtol=0, atol=1e-9)


def test_rows_are_the_population():
    law = FullLaw.random(Graph.read("x3 -> R_x1; x1 -> R_x2", 3, always=(2,)), 6, levels=(2, 3, 2))
    levels, label, recorded, mass = law.rows()
    assert len(levels) == 2 * 3 * 2 * 2 * 4
    assert recorded[:, 2].all()
    seen = np.column_stack([recorded, np.where(recorded, levels, -1), label])
    codes = np.unique(seen, axis=0, return_inverse=True)[1].ravel()
    np.testing.assert_allclose(np.sort(np.bincount(codes, mass)), np.sort(law.observed()), rtol=0, atol=1e-15)


def test_the_same_law_in_a_larger_graph():
    law = FullLaw.random(Graph.read("x2 -> R_x1", 2), 7)
    larger = law.within(Graph.read("x1 -> R_x2; x2 -> R_x1; y -> R_x1; R_x1 -> R_x2; R_x1 <-> R_x2", 2))
    np.testing.assert_allclose(larger.joint(), law.joint(), rtol=0, atol=1e-15)


def test_every_graph_over_two_groups_is_there_once():
    graphs = list(all_graphs(2))
    assert len(graphs) == len(set(graphs)) == 6 * 2**6 + 2 * 2**3
    assert all(Graph.read(graph.edges(), 2, graph.always) == graph for graph in graphs)
    assert Graph.read("x1 -> R_x2", 3, always=(0,)).isolated() == ["R_x3"]


def test_random_graphs_differ_and_repeat():
    graphs = random_graphs(3, 200, seed=1)
    assert graphs == random_graphs(3, 200, seed=1)
    assert len(set(graphs)) == 200
    assert 0.05 < np.mean([bool(graph.always) for graph in graphs]) < 0.6
    assert 0.05 < np.mean([any(f"x{g + 1}" in graph.parents[g] for g in graph.gapped) for graph in graphs]) < 0.5
    assert 0.2 < np.mean([bool(graph.bidirected) for graph in graphs]) < 0.9


def test_adjustment_follows_paths_through_indicators():
    graph = Graph.read("x3 -> R_x1; R_x1 -> R_x2; x1 -> R_x3", 3)
    assert graph.adjustment((1,)) == (0, 2)
    assert Graph.read("x1 -> R_x2; x1 -> R_x3; x2 -> R_x3", 3, always=(0,)).adjustment((2,)) == (1,)
    assert Graph.read("x1 -> R_x2", 2).adjustment((0,)) == ()
