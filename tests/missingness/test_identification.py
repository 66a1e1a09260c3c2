"""Decisions about small graphs agree with the numerical oracle, and what is found recovers the truth from the observed law."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pandas as pd
import pytest
from full_laws import FullLaw, Graph, all_graphs, random_graphs, refute, refutes
from numpy.testing import assert_allclose
from worlds import Shares

import afape
from afape.missingness.factors import in_order
from afape.propensity.chain import ChainPropensity

pytestmark = pytest.mark.slow

TWO = list(all_graphs(2))
THREE = random_graphs(3, 520, seed=11)
CHUNK = 40

# Identified by more than regressions and odds ratios; text, adjusted groups (counted from 0).
BESIDE = {  # another indicator is a regressor
    "x2 -> R_x1; R_x3 -> R_x2; x3 -> R_x2; R_x1 -> R_x3": (1, 2),
    "x2 -> R_x1; R_x1 -> R_x2; x3 -> R_x2; R_x1 -> R_x3; R_x2 <-> R_x3": (1, 2),
    "x2 -> R_x1; x3 -> R_x2; R_x1 -> R_x3; R_x2 <-> R_x3": (1, 2),
}
PEELED = {
    "R_x2 -> R_x1; R_x3 -> R_x1; x1 -> R_x2; R_x2 -> R_x3; x1 -> R_x3; x2 -> R_x3": (0, 1),
    "R_x2 -> R_x1; R_x3 -> R_x2; x3 -> R_x2; x1 -> R_x3": (0, 2),
    "x3 -> R_x1; R_x1 -> R_x2; x1 -> R_x2; R_x2 -> R_x3": (0, 2),
    "x2 -> R_x1; x3 -> R_x2; R_x1 -> R_x3; R_x2 -> R_x3; R_x1 <-> R_x2": (1, 2),
}
COMPARED = {
    "R_x2 -> R_x1; x3 -> R_x1; x1 -> R_x2; y -> R_x2; R_x2 -> R_x3; x2 -> R_x3; y -> R_x3": (0, 1, 2),
    "x2 -> R_x1; R_x1 -> R_x2; x3 -> R_x2; R_x1 -> R_x3; x1 -> R_x3; x2 -> R_x3": (0, 1, 2),
    "R_x2 -> R_x1; x2 -> R_x1; x3 -> R_x1; R_x3 -> R_x2; x1 -> R_x3": (0, 1, 2),
    "R_x2 -> R_x1; x2 -> R_x1; x3 -> R_x1; x3 -> R_x2; R_x2 -> R_x3; x1 -> R_x3; y -> R_x3; R_x1 <-> R_x2": (0, 1, 2),
    "R_x3 -> R_x1; R_x4 -> R_x1; R_x4 -> R_x2; x1 -> R_x2; x4 -> R_x2; R_x4 -> R_x3; x2 -> R_x3; x1 -> R_x4; x3 -> R_x4": (
        0,
        1,
        2,
        3,
    ),
}


def drawn(graph):
    names = [f"x{g + 1}" for g in range(graph.n_groups)]
    return afape.MGraph(graph.edges(), nodes=[*graph.isolated(), *names, "y"])


def targets(graph):
    """Adjustment sets with gaps, each with the largest set of wanted groups that leads to it."""
    found = {}
    for size in range(1, graph.n_groups + 1):
        for wanted in itertools.combinations(range(graph.n_groups), size):
            found[graph.adjustment(wanted)] = wanted
    found.pop((), None)
    return found


def records(law):
    """The population of a law as weighted records, and the number of every row's values and label."""
    levels, label, recorded, mass = law.rows()
    names = [f"x{g + 1}" for g in range(law.graph.n_groups)]
    problem = afape.Problem({n: [n] for n in names}, dict.fromkeys(names, 1.0), "y", 1.0, classes=[0, 1])
    frame = pd.DataFrame(np.where(recorded, levels, np.nan), columns=names).assign(y=label)
    cell = np.unique(np.column_stack([levels, label]), axis=0, return_inverse=True)[1].ravel()
    return afape.Retrospective(frame, problem), mass, cell


def assert_recovers(graph, wanted, seed, levels=2):
    """One over the learned probability has mean one given the values; without other indicators in it, it is the true one."""
    data, mass, cell = records(FullLaw.random(graph, seed, levels=levels))
    asked = np.isin(np.arange(graph.n_groups), wanted)
    given = afape.MNAR(drawn(graph)).conditioning(data, asked)
    assert tuple(np.flatnonzero(given.gaps)) == graph.adjustment(wanted)
    chain = ChainPropensity(data, given, np.zeros(len(data), dtype=np.intp), afape.LearnedPropensity(Shares()), mass)
    total = np.bincount(cell, mass)
    for extra in itertools.product([False, True], repeat=graph.n_groups):
        required = given.gaps | (asked & extra)
        rows = np.flatnonzero(data.recorded[:, required].all(axis=1))
        p = chain.probability(rows, required[None], np.zeros(len(rows), dtype=np.intp))
        assert_allclose(np.bincount(cell[rows], mass[rows] / p), total, rtol=1e-9)
        if not given.beside:
            assert_allclose(p, (np.bincount(cell[rows], mass[rows]) / total)[cell[rows]], rtol=1e-9)


def assert_agrees(graph, number, largest):
    for target, wanted in targets(graph).items():
        found = drawn(graph).identify([f"x{g + 1}" for g in wanted], label="y")
        assert found.gaps == tuple(g for g in drawn(graph).variables if g in {f"x{t + 1}" for t in target})
        if found.identified:
            assert_recovers(graph, wanted, [number, 3], levels=3 if number % 8 == 0 else 2)
        else:
            assert not found.cut_short
            pair = refute(graph, target, largest=largest)
            assert pair is not None, f"{graph.edges()} {target}: refused, but nothing refutes it"
            assert refutes(pair, target)


def test_every_graph_over_two_groups():
    for number, graph in enumerate(TWO):
        assert_agrees(graph, number, largest=4)


@pytest.mark.parametrize("start", range(0, len(THREE), CHUNK))
def test_random_graphs_over_three_groups(start):
    for number, graph in enumerate(THREE[start : start + CHUNK]):
        assert_agrees(graph, number, largest=3)


@pytest.mark.parametrize(("kind", "text", "target", "levels"), [
    (kind, text, target, levels)
    for kind, cases in (("beside", BESIDE), ("peeled", PEELED), ("compared", COMPARED))
    for text, target in cases.items()
    for levels in ((2,) if "x4" in text else (2, 3))
])  # fmt: skip
def test_what_takes_more_than_regressions_and_odds_ratios(kind, text, target, levels):
    graph = Graph.read(text, 4 if "x4" in text else 3)
    wanted = targets(graph)[target]
    found = drawn(graph).identify([f"x{g + 1}" for g in wanted], label="y")
    blocks = in_order(found.blocks)
    assert any(block.compared for block in blocks) == (kind == "compared")
    if kind != "compared":
        assert any(w.everyone for block in blocks for w in block.weights) == (kind == "peeled")
        assert found.beside
    assert_recovers(graph, wanted, 5, levels)


def test_peeling_in_words():
    found = afape.MGraph("x3 -> R_x1; R_x1, x1 -> R_x2; R_x2 -> R_x3").identify()
    assert found.adjust == ("x3", "x1")
    assert found.beside == ("x2",)
    assert found.formula == "P(R_x3 | R_x2) P(R_x1 | x3) P(R_x2 | x1, x3, R_x3 = 1, R_x1 = 1)"
    assert "Fit P(R_x3 | R_x2) on rows with anything recorded (all rows)." in found.reasons
    assert "Fit P(R_x1 | x3) on rows with x3 recorded, weighted by 1 / P(R_x3 = 1 | R_x2)." in found.reasons
    assert "The weights also depend on whether x2 is recorded" in str(found)


def test_comparison_in_words():
    found = afape.MGraph("x1 -> R_x2 -> R_x1; x3 -> R_x1; R_x2 -> R_x3; x2 -> R_x3").identify()
    words = str(found)
    assert "Fit P(R_x1 | x3, R_x3 = 1, R_x2 = 0) on rows with x3 recorded, x2 missing." in words
    assert (
        "P(R_x2 | x1) compares rows with x1 recorded, x2 missing, with rows with x1, x3, x2 recorded, weighted by"
        in words
    )
    assert "P(R_x1 = 1 | x3, R_x3 = 1, R_x2 = 0) / [" in words


def test_the_simplest_factorisation_comes_first():
    assert afape.MGraph("x1 -> R_x2; x1 -> R_x3; x2 -> R_x3").identify(["x2", "x3"]).formula == (
        "P(R_x2 | x1) P(R_x3 | x1, x2, R_x2 = 1)"
    )
    ratio = afape.MGraph("x2 -> R_x1 -> R_x2").identify(["x2"])
    assert ratio.beside == ()
    assert "P(R_x1=r | x2) proportional to P(R_x1=r | x2, R_x2 = 1) / P(R_x2 = 1 | R_x1 = r)" in ratio.formula


def test_a_search_that_did_not_try_everything_says_so():
    names = [f"x{i}" for i in range(10)]
    pairs = list(itertools.permutations(names, 2))
    crossed = [(a, f"R_{b}") for a, b in pairs] + [(f"R_{a}", f"R_{b}", "<->") for a, b in pairs if a < b]
    start = time.perf_counter()
    large = afape.MGraph(crossed).identify()
    assert time.perf_counter() - start < 20
    assert (large.identified, large.cut_short, large.formula) == (False, True, "no factorisation found")
    assert "one may exist" in str(large)
    small = afape.MGraph("x1 -> R_x2; x2 -> R_x1; R_x1 <-> R_x2").identify()
    assert (small.identified, small.cut_short, small.formula) == (False, False, "not identified")
    selfish = afape.MGraph([*crossed, ("x3", "R_x3")]).identify()
    assert (selfish.identified, selfish.cut_short) == (False, False)
