"""Implications of an assumption about missingness: which there are, their tests, sentences and advice."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit
from scipy.stats import chi2
from worlds import Zero

import afape
from afape.propensity.logistic import fit_logistic, flexible_design, score_test
from afape.support.implications import holm, implications
from afape.warnings import DroppedRowsWarning

MAR = afape.MAR(["base"])
GRAPH = afape.MNAR("base -> R_a; base, a -> R_b; base, R_a -> R_c")


def world(seed, n=5000, label=0.0, value=0.0, curved=False, cluster=None):
    """Recording depends on age and sex, and by these log-odds on the label (group a) and on b (group c)."""
    rng = np.random.default_rng(seed)
    age, bmi, sex = rng.normal(size=n), rng.normal(size=n), rng.integers(0, 2, n)
    a, b = 0.6 * age + rng.normal(size=n), 0.5 * age - 0.4 * bmi + rng.normal(size=n)
    c = a + b + rng.normal(size=n)
    y = (rng.random(n) < expit(age + a + 0.5 * b + 0.5 * (age**2 - 1))).astype(int)
    score = 0.8 * age - 0.5 * sex + (0.7 * (age**2 - 1) + 0.5 * age * bmi if curved else 0.0)
    log_odds = {"a": 0.2 + score + label * (y - 0.5), "b": 0.5 * score + 0.5 * bmi - 0.3, "c": 0.3 - score + value * b}
    frame = pd.DataFrame({"age": age, "bmi": bmi, "sex": sex, "died": y})
    for name, x in {"a": a, "b": b, "c": c}.items():
        frame[name] = np.where(rng.random(n) < expit(log_odds[name]), x, np.nan)
    problem = afape.Problem(
        {"base": ["age", "bmi", "sex"], **{g: [g] for g in "abc"}}, dict.fromkeys("abc", 1.0), "died", 9.0
    )
    if cluster is None:
        return afape.Retrospective(frame, problem)
    frame = pd.concat([frame] * cluster).assign(who=np.tile(np.arange(n), cluster))
    return afape.Retrospective(frame, problem, cluster="who")


def told(found):
    return {(i.group, i.of, i.given, i.beside, i.rows) for i in found}


def test_implications_of_mar():
    data = world(0, n=300)
    found = told(implications(MAR.graph_on(data)))
    others = {(g, v, ("base",), (), (v,)) for g in "abc" for v in "abc" if v != g}
    assert found == others | {(g, "died", ("base",), (), ()) for g in "abc"}
    assert {i[:2] for i in told(implications(afape.MCAR().graph_on(data)))} == {
        (g, v) for g in "abc" for v in (*"abc", "base", "died") if v != g
    }
    with_label = afape.MAR(["base"], label=True).graph_on(data)
    assert {i[1] for i in told(implications(with_label))} == set("abc")


def test_implications_of_a_graph():
    """R_b depends on a: no statement about a. R_c depends on R_a: given too. Indicators without an edge are independent."""
    found = {(i.group, i.of): i for i in implications(GRAPH.graph_on(world(0, n=300)))}
    assert ("b", "a") not in found
    assert ("c", "R_a") not in found
    assert found["b", "died"].given == ("base", "a")
    assert found["b", "died"].rows == ("a",)
    assert found["c", "died"].beside == ("a",)
    assert found["c", "a"].beside == ()  # rows that have a
    assert found["a", "R_b"].given == ("base",)
    assert ("b", "R_a") not in found  # told once


def test_what_depends_on_itself_has_no_implication():
    graph = afape.MGraph("age -> R_a; a -> R_a; age -> R_b")
    assert {i.group for i in implications(graph)} == {"b"}


def test_order_of_adjustment_implies_what_its_graph_does():
    data = world(0, n=300)
    found = {(i.group, i.of): i for i in implications(afape.MNAR(adjust=["base", "a"]).graph_on(data))}
    assert found["a", "died"].given == ("base",)
    assert found["b", "died"].given == ("base", "a")
    assert found["c", "b"].rows == ("a", "b")
    assert not any(of.startswith("R_") for _, of in found)


def test_holm_by_hand():
    assert_allclose(holm(np.array([0.04, 0.01, np.nan, 0.03])), [0.06, 0.03, np.nan, 0.06])
    assert_allclose(holm(np.array([0.9, 0.8])), [1.0, 1.0])


def test_score_test_in_a_two_by_two_table():
    """Without a design the robust score test is n (p1 - p0)^2 over its plug-in variance: by hand from the counts."""
    outcome = np.repeat([True, False, True, False], [30, 20, 15, 35])
    added = np.repeat([1.0, 0.0], [50, 50])[:, None]
    p, centred = 0.45, np.repeat([0.5, -0.5], [50, 50])
    score = (outcome - p) * centred
    statistic, degrees = score_test(np.ones((100, 1)), outcome, added)
    assert degrees == 1
    assert_allclose(statistic, score.sum() ** 2 / (score**2).sum())
    assert_allclose(statistic, (30 * 0.5 - 15 * 0.5) ** 2 / (0.25 * (45 * 0.55**2 + 55 * 0.45**2)))


def test_score_test_agrees_with_the_likelihood_ratio():
    """Asymptotically the same statistic; close for a small effect on many rows."""
    rng = np.random.default_rng(1)
    x, z = rng.normal(size=(20_000, 2)), rng.normal(size=(20_000, 2))
    outcome = rng.random(20_000) < expit(0.3 + x @ [0.5, -0.3] + 0.03 * z[:, 0])
    design = np.column_stack([np.ones(20_000), x])

    def likelihood(columns):
        odds = columns @ fit_logistic(columns, outcome).coefficients
        return (outcome * odds - np.logaddexp(0, odds)).sum()

    ratio = 2 * (likelihood(np.column_stack([design, z])) - likelihood(design))
    statistic, degrees = score_test(design, outcome, z)
    assert degrees == 2
    assert_allclose(statistic, ratio, rtol=0.03)


def test_columns_that_are_given_already_have_no_test():
    x = np.random.default_rng(0).normal(size=(200, 1))
    outcome = np.arange(200) % 3 == 0
    assert score_test(np.column_stack([np.ones(200), x]), outcome, 2 * x - 1)[1] == 0


def test_repeated_rows_of_a_cluster_count_once():
    plain, repeated = (afape.check_missingness(world(2, n=800, cluster=k), MAR).table for k in (None, 3))
    keys = ["recording", "of"]
    merged = plain.merge(repeated, on=keys)
    assert_allclose(
        merged["statistic_x"], merged["statistic_y"], rtol=0.02
    )  # quantiles, at which curves bend, differ a little


def test_curves_and_products_fit_what_lines_do_not():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 2))
    design = flexible_design(x, rng.random(4000) < 0.5)
    for target in (np.minimum(x[:, 0] ** 2, 6.0), x[:, 0] * x[:, 1], np.sin(x[:, 1])):
        left = target - design @ np.linalg.lstsq(design, target, rcond=None)[0]
        assert left.var() < 0.1 * target.var()
    few = flexible_design(x[:100], np.arange(100) < 20)
    assert few.shape[1] == 3  # intercept and lines: rows are too few for more


@pytest.mark.parametrize(("curved", "missingness"), [(False, MAR), (True, MAR), (False, GRAPH)])
def test_size_where_the_assumption_holds(curved, missingness):
    """Every test rejects in 5 % of worlds, within four Monte Carlo errors; over all tests within 3 to 7 %."""
    n_worlds = 60
    p = pd.concat(
        [
            afape.check_missingness(world(s, n=1500, curved=curved), missingness).table.set_index(["recording", "of"])[
                "p_value"
            ]
            for s in range(n_worlds)
        ],
        axis=1,
    )
    rates = (p < 0.05).mean(axis=1)
    assert (np.abs(rates - 0.05) < 4 * np.sqrt(0.05 * 0.95 / n_worlds)).all(), rates
    assert 0.03 < rates.mean() < 0.07


def test_power_where_it_fails_moderately():
    """An odds ratio of 2, 5,000 rows."""
    found = [afape.check_missingness(world(s, label=np.log(2), value=np.log(2)), MAR) for s in range(15)]
    for pair in (("a", "died"), ("c", "b")):
        assert np.mean([pair in set(zip(f.rejected["recording"], f.rejected["of"], strict=True)) for f in found]) >= 0.8
    ratios = [f.table.set_index(["recording", "of"])["odds_ratio"]["a", "died"] for f in found]
    assert_allclose(np.exp(np.mean(np.log(ratios))), 2.0, rtol=0.1)


def test_words_and_what_follows():
    found = afape.check_missingness(world(0, label=np.log(2)), MAR)
    assert not found.holds
    assert found.findings == ("died predicts the recording of a given base, odds ratio 2.1, p < 1e-12",)
    assert "Use afape.MAR(given=['base'], label=True), and check again" in found.advice[0]
    assert "9 implications tested, 1 rejected at level 0.05" in repr(found)
    assert afape.check_missingness(world(0, label=np.log(2)), afape.MAR(["base"], label=True)).holds
    by_value = afape.check_missingness(world(0, value=np.log(2)), MAR)
    assert 'use afape.MNAR(graph=...) with "b -> R_c" in the graph' in by_value.advice[0]
    assert "A report (to_html) says if dependences of this size could change the order" in by_value.advice[0]
    assert "per standard deviation" in by_value.findings[0]
    assert "Use afape.MAR(given=['base'])" in afape.check_missingness(world(0), afape.MCAR()).advice[0]
    edge = afape.check_missingness(world(0, value=np.log(2)), GRAPH)
    gaps = "Recording depends on groups with many gaps."
    assert edge.advice == (f'{gaps} Add "b -> R_c" to the graph.',)
    assert found.suggestion.toml.endswith('assumption = "MAR"\n    given = ["base"]\n    label = true')
    assert edge.suggestion.toml == f"{gaps} Add \"b -> R_c\" to 'graph' in the problem file."
    assert 'assumption = "MNAR" and a graph with "b -> R_c"' in by_value.suggestion.toml


def test_a_group_with_few_gaps_is_offered_with_its_price_in_rows():
    """R_b depends on z, which 2 % of the rows lack; z is far the strongest reason."""
    rng = np.random.default_rng(0)
    a, z, b = rng.normal(size=(3, 4000))
    has = rng.random(4000) < 1 / (1 + np.exp(-1.5 * z))
    frame = pd.DataFrame({"a": a, "z": np.where(rng.random(4000) < 0.02, np.nan, z), "b": np.where(has, b, np.nan)})
    problem = afape.Problem({"a": ["a"], "z": ["z"], "b": ["b"]}, {"b": 1.0}, "y", 1.0)
    data = afape.Retrospective(frame.assign(y=rng.integers(0, 2, 4000)), problem)
    lost = int((~data.recorded[:, 1]).sum())
    graph = afape.check_missingness(data, afape.MNAR(graph="a -> R_b; a -> R_z")).suggestion
    assert graph.edges == ("z -> R_b",)
    assert f"which only {lost} of 4000 rows lack" in graph.toml
    found = afape.check_missingness(data, afape.MAR(["a"]))
    assert f"{int(data.values[:, 1].size - data.recorded[:, 1].sum())} of 4000 rows lack" in found.advice[0]
    assert "afape.MAR(given=['a', 'z'], drop_gaps=True)" in found.advice[0]
    with pytest.warns(DroppedRowsWarning):
        assert afape.check_missingness(data, found.suggestion.assumption).holds


def test_too_few_rows_are_said():
    data = world(0, n=60)
    found = afape.check_missingness(data, MAR)
    assert (found.table["words"] == "too few rows: not testable").any()
    assert "not testable" in repr(found)


def test_bad_arguments():
    with pytest.raises(TypeError, match="'missingness' must be"):
        afape.check_missingness(world(0, n=100), "MAR")
    with pytest.raises(TypeError, match="'data' must be"):
        afape.check_missingness("data", MAR)
    with pytest.raises(ValueError, match="'level' must lie strictly between 0 and 1"):
        afape.check_missingness(world(0, n=100), MAR, level=5)


def warned(category, data, missingness, policy=None, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = afape.evaluate(data, policy or afape.AcquireAll(), Zero(), missingness=missingness, **options)
    return result, [str(w.message) for w in caught if w.category is category]


def test_evaluate_tests_the_label():
    _, told = warned(afape.warnings.AssumptionWarning, world(1, label=np.log(2)), MAR, estimators=["ipw-semi"])
    assert len(told) == 1
    assert told[0].startswith(
        "The records contradict MAR(given=['base']): died predicts the recording of a given base, odds"
    )
    assert "label=True" in told[0]
    quiet = [
        warned(afape.warnings.AssumptionWarning, world(s, n=2000), MAR, estimators=["ipw-semi"])[1] for s in range(10)
    ]
    assert sum(map(bool, quiet)) <= 1
    only = afape.FixedOrder(["b"])  # what the policy does not want is not tested
    assert not warned(afape.warnings.AssumptionWarning, world(1, label=np.log(2)), MAR, only, estimators=["ipw-semi"])[
        1
    ]


def graph_world(seed, label):
    rng = np.random.default_rng(seed)
    n = 6000
    x, a, b = rng.normal(size=(3, n))
    y = (a + x + rng.normal(size=n) > 0).astype(int)
    has = {"a": rng.random(n) < expit(0.3 + x + label * (y - 0.5)), "b": rng.random(n) < expit(0.5 + a)}
    frame = pd.DataFrame({"x": x, "a": np.where(has["a"], a, np.nan), "b": np.where(has["b"], b, np.nan), "y": y})
    problem = afape.Problem({g: [g] for g in "xab"}, {"a": 1.0, "b": 1.0}, "y", np.array([[0.0, 2.0], [6.0, 0.0]]))
    return afape.Retrospective(frame, problem)


@pytest.mark.parametrize(("label", "doubtful"), [(0.0, False), (1.5, True)])
def test_acquiring_nothing_is_a_test_of_a_graph(label, doubtful):
    """Its cost is known from all rows; weights that follow from a wrong graph give another one."""
    data, graph = graph_world(0, label), afape.MNAR("x -> R_a; a -> R_b")
    result, told = warned(
        afape.warnings.AssumptionWarning, data, graph, afape.FixedOrder(["b"]), estimators=["ipw-semi-miss"]
    )
    plain = (6.0 * (data.labels == 1)).mean()
    words = result.assumption[-1]
    assert words.startswith(f"Acquiring nothing costs {plain:.4g} as the mean of all rows, which needs no graph, and ")
    assert any("Acquiring nothing" in text for text in told) is doubtful


def test_the_gap_has_the_error_that_it_says():
    """Over draws in which the graph is right its ratio to the error has variance 1, within Monte Carlo error."""
    ratios = []
    for seed in range(30):
        result, _ = warned(
            afape.warnings.AssumptionWarning, graph_world(seed, 0.0), afape.MNAR("x -> R_a; a -> R_b"), afape.FixedOrder(["b"]),
            estimators=["ipw-semi-miss"],
        )  # fmt: skip
        p = float(result.assumption[-1].rsplit("p = ", 1)[1].removesuffix("."))
        ratios.append(chi2.isf(p, 1))
    assert abs(np.mean(ratios) - 1) < 4 * np.sqrt(2 / 30)


def test_a_graph_gets_edges_of_one_kind_joined_as_it_is_written():
    """First arrows from groups that every row has, in the notation of a graph, then groups that are recorded together."""
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(3, 3000))
    ward = rng.random(3000) < 1 / (1 + np.exp(-1.5 * a))
    gone = [~ward & (rng.random(3000) < 0.6) for _ in range(2)]
    frame = pd.DataFrame({"a": a, "b": np.where(gone[0], np.nan, b), "c": np.where(gone[1], np.nan, c)})
    problem = afape.Problem({"a": ["a"], "b": ["b"], "c": ["c"]}, {"b": 1.0, "c": 1.0}, "y", 1.0)
    data = afape.Retrospective(frame.assign(y=rng.integers(0, 2, 3000)), problem)
    first = afape.check_missingness(data, afape.MNAR(graph="b -> R_c; R_b")).suggestion
    assert first.python.startswith("Recording depends on groups that every row has.")
    assert 'Add "a -> R_b, R_c" to the graph' in first.python
    second = afape.check_missingness(data, afape.MNAR(graph="a -> R_b, R_c")).suggestion
    assert second.python == 'Groups are recorded together. Add "R_c <-> R_b" to the graph.'
    both = "a -> R_b, R_c; R_b <-> R_c"
    assert afape.check_missingness(data, afape.MNAR(graph=both)).suggestion is None
