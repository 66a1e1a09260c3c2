"""Assumptions about missing values, and mechanisms that make them missing."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import afape
from afape import MAR, MCAR, Problem, Retrospective
from afape.benchmark.synthetic import synthetic_mar, synthetic_mnar
from afape.missingness import GraphMechanism, IndependentMechanism, LogisticMechanism

PROBLEM = Problem(
    {"age": ["age"], "vitals": ["pulse", "bp"], "cbc": ["hgb", "wbc"], "lactate": ["lactate"]},
    costs={"cbc": 26.0, "lactate": 12.0},
    label="died",
    misclassification_cost=500.0,
)


def complete(n=5, seed=0):
    frame = pd.DataFrame(np.random.default_rng(seed).normal(size=(n, 6)), columns=PROBLEM.feature_columns)
    return Retrospective(frame.assign(died=np.arange(n) % 2), PROBLEM)


def hidden(rows, group, n=5):
    """Complete data in which these rows lack this group."""
    data = complete(n)
    keep = np.ones_like(data.recorded)
    keep[rows, PROBLEM.group_names.index(group)] = False
    return data.hide(keep)


# --------------------------------------------------------------------------------------------------------- assumptions


@pytest.mark.parametrize(
    ("assumption", "columns"),
    [
        (MCAR(), []),
        (MAR(given=["age"]), [0]),
        (MAR(given=["vitals"]), [1, 2]),
        (MAR(given=("vitals", "age")), [0, 1, 2]),
        (MAR(given=["lactate"]), [5]),  # the policy may have to pay for it, the weights need not
    ],
    ids=repr,
)
def test_columns_that_missingness_depends_on(assumption, columns):
    data = hidden([0, 3], "cbc")
    found = assumption.conditioning(data, np.ones(data.problem.n_groups, dtype=bool))
    assert found.columns(data).tolist() == columns
    assert not found.gaps.any()


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (["cbc"], ValueError, r"'given' groups must always be recorded, but 'cbc' is missing in 2 of 5 rows.*MNAR"),
        (["age", "cbc"], ValueError, "'cbc' is missing in 2 of 5 rows"),
        ([], ValueError, r"'given' must name at least one group; for none, use afape\.MCAR\(\)"),
        (["age", "age"], ValueError, "'given' must name each group once"),
        (["sex"], ValueError, r"'given' must name groups, but 'sex' is not a group. The groups are \['age', 'vitals'"),
        (["pulse"], ValueError, "'given' must name groups, but 'pulse' is not a group"),  # a column, not a group
        ("age", TypeError, "'given' must be a list of group names, but is 'age'"),
    ],
)
def test_mar_refuses_groups_that_cannot_be_given(given, error, message):
    with pytest.raises(error, match=message):
        MAR(given).conditioning(hidden([0, 3], "cbc"), np.ones(5, dtype=bool))


# ----------------------------------------------------------------------------------------------------------- mechanisms


def sigmoid(odds):
    return 1 / (1 + np.exp(-np.asarray(odds)))


LOGISTIC = LogisticMechanism(intercepts={"cbc": 0.4, "lactate": -1.0}, weights={"cbc": {"age": 0.5, "bp": -2.0}})
INDEPENDENT = IndependentMechanism({"lactate": 0.25, "cbc": 0.8, "vitals": 1.0})


def by_hand(mechanism, values):
    """P(R_g = 1) of age, vitals, cbc and lactate in each row."""
    age, _, bp, *_ = values.T
    one = np.ones(len(values))
    if mechanism is INDEPENDENT:
        return np.column_stack([one, one, 0.8 * one, 0.25 * one])
    return np.column_stack([one, one, sigmoid(0.4 + 0.5 * age - 2.0 * bp), sigmoid(-1.0 * one)])


mechanisms = pytest.mark.parametrize("mechanism", [LOGISTIC, INDEPENDENT], ids=["logistic", "independent"])


@mechanisms
def test_probability_of_each_group_by_hand(mechanism):
    data = complete()
    assert_allclose(mechanism.probabilities(data), by_hand(mechanism, data.values), rtol=1e-12)


def test_a_group_with_weights_alone_has_intercept_zero():
    data = complete()
    found = LogisticMechanism({}, {"cbc": {"age": 1.5}}).probabilities(data)
    assert_allclose(found[:, 2], sigmoid(1.5 * data.values[:, 0]), rtol=1e-12)
    assert_array_equal(found[:, [0, 1, 3]], 1)


def test_probabilities_at_other_values():
    values = np.array([[2.0, 0, 1.0, 0, 0, 0], [0.0, 0, 0.0, 0, 0, 0]])
    found = LOGISTIC.probabilities(complete(), values)
    assert_allclose(found[:, 2], sigmoid([0.4 + 1.0 - 2.0, 0.4]), rtol=1e-12)


@mechanisms
def test_hidden_shares_agree_with_the_probabilities(mechanism):
    data = complete(20_000)
    recorded = mechanism.hide(data, random_state=1).recorded
    p = by_hand(mechanism, data.values)
    error = np.sqrt((p * (1 - p)).sum(axis=0)) / len(data)
    assert (abs(recorded.mean(axis=0) - p.mean(axis=0)) <= 4 * error).all()
    both = p[:, 2] * p[:, 3]  # coins of their own: recorded together as often as the product says
    assert abs((recorded[:, 2] & recorded[:, 3]).mean() - both.mean()) < 4 * np.sqrt((both * (1 - both)).sum()) / len(
        data
    )


def test_hidden_shares_follow_the_values():
    data = complete(20_000)
    recorded = LOGISTIC.hide(data, random_state=2).recorded[:, 2]
    p = by_hand(LOGISTIC, data.values)[:, 2]
    for low, high in ((0.0, 0.2), (0.2, 0.5), (0.5, 0.8), (0.8, 1.0)):
        stratum = (p > low) & (p <= high)
        error = np.sqrt((p * (1 - p))[stratum].sum()) / stratum.sum()
        assert abs(recorded[stratum].mean() - p[stratum].mean()) < 4 * error


@mechanisms
def test_hide_forgets_values_with_their_group(mechanism):
    data = complete(200)
    gaps = mechanism.hide(data, random_state=0)
    expected = np.where(gaps.recorded[:, data.column_group], data.values, np.nan)
    assert_array_equal(gaps.values, expected)
    assert 0 < gaps.complete.mean() < 1
    assert data.complete.all()  # the original stays


@mechanisms
def test_hide_is_reproducible(mechanism):
    data = complete(200)
    first, again, other = (mechanism.hide(data, random_state=s).recorded for s in (5, 5, 6))
    assert_array_equal(first, again)
    assert (first != other).any()


def test_hide_never_brings_back_what_is_missing():
    data = hidden(np.arange(50), "cbc", n=200)
    gaps = INDEPENDENT.hide(data, random_state=0)
    assert not (gaps.recorded & ~data.recorded).any()
    assert not gaps.recorded[:50, 2].any()
    assert gaps.recorded[50:, 2].any()


@mechanisms
def test_superset_propensity_is_the_product_over_required_groups(mechanism):
    data = complete(40)
    p = by_hand(mechanism, data.values)
    known = mechanism.propensity(data)
    for required in product([False, True], repeat=4):
        expected = np.ones(40)
        for g in range(4):
            if required[g]:
                expected = expected * p[:, g]
        found = known.function(data.values, np.tile(required, (40, 1)))
        assert_allclose(found, expected, rtol=1e-12)


def test_superset_propensity_takes_one_set_a_row():
    data = complete(3)
    p = by_hand(LOGISTIC, data.values)
    required = np.array([[0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 0, 0]], dtype=bool)
    expected = [p[0, 2] * p[0, 3], p[1, 3], 1.0]
    assert_allclose(LOGISTIC.propensity(data).function(data.values, required), expected, rtol=1e-12)


@mechanisms
def test_known_propensity_weighs_gaps_back_to_the_whole(mechanism):
    """Inverse probabilities of what a row has recorded average to 1 for every set."""
    data = complete(20_000)
    gaps = mechanism.hide(data, random_state=3)
    known = mechanism.propensity(data).function
    for required in ([0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 1, 1]):
        required = np.array(required, dtype=bool)
        weight = gaps.recorded[:, required].all(axis=1) / known(data.values, np.tile(required, (len(data), 1)))
        assert abs(weight.mean() - 1) < 4 * weight.std() / np.sqrt(len(data))


def test_the_known_propensity_serves_evaluate():
    data = complete(2000)
    gaps = LOGISTIC.hide(data, random_state=0)

    class AlwaysZero:
        def predict(self, values, acquired):
            return np.zeros(len(values), dtype=int)

    result = afape.evaluate(
        gaps,
        afape.FixedOrder(["cbc"]),
        AlwaysZero(),
        missingness=MAR(given=["age", "vitals"]),
        propensity=LOGISTIC.propensity(data),
        estimators=["ipw-semi"],
        normalize=False,
    )
    weight = gaps.recorded[:, 2] / by_hand(LOGISTIC, data.values)[:, 2]
    expected = (weight * 500.0 * (data.labels == 1)).mean()
    assert result["ipw-semi"]["misclassification"].value == pytest.approx(expected, rel=1e-9)
    assert result["ipw-semi"]["acquisition"].value == pytest.approx(26.0, rel=1e-9)


# -------------------------------------------------------------------------------------------------------------- errors


REFUSED = {
    "unknown group": (
        lambda d: LogisticMechanism({"sex": 0.0}).hide(d),
        ValueError,
        "'intercepts' must name groups, but 'sex'",
    ),
    "unknown group in weights": (
        lambda d: LogisticMechanism({}, {"sex": {"age": 1.0}}).hide(d),
        ValueError,
        "'weights' must name groups, but 'sex'",
    ),
    "unknown column": (
        lambda d: LogisticMechanism({}, {"cbc": {"vitals": 1.0}}).hide(d),
        ValueError,
        r"'weights' must name columns of the data, but 'vitals' is not one of them. They are \['age', 'pulse'",
    ),
    "column of the group itself": (
        lambda d: LogisticMechanism({}, {"cbc": {"hgb": 1.0}}).hide(d),
        ValueError,
        "'hgb' belongs to 'cbc', which this mechanism hides.*not at random",
    ),
    "column of another hidden group": (
        lambda d: LogisticMechanism({"lactate": 0.0}, {"cbc": {"lactate": 1.0}}).hide(d),
        ValueError,
        "'lactate' belongs to 'lactate', which this mechanism hides",
    ),
    "column of a group hidden through weights alone": (
        lambda d: LogisticMechanism({}, {"cbc": {"bp": 1.0}, "vitals": {"age": 1.0}}).hide(d),
        ValueError,
        "'bp' belongs to 'vitals', which this mechanism hides",
    ),
    "column with gaps": (
        lambda d: LogisticMechanism({}, {"cbc": {"bp": 1.0}}).hide(hidden([1, 2], "vitals")),
        ValueError,
        r"'bp'.*2 of 5 rows",
    ),
    "intercept NaN": (
        lambda d: LogisticMechanism({"cbc": float("nan")}).hide(d),
        ValueError,
        "'intercepts' must be finite.*'cbc'",
    ),
    "weight infinite": (
        lambda d: LogisticMechanism({}, {"cbc": {"age": float("inf")}}).hide(d),
        ValueError,
        "'weights' must be finite.*'age'",
    ),
    "share 0": (
        lambda d: IndependentMechanism({"cbc": 0}),
        ValueError,
        r"'shares' must lie in \(0, 1\], but 'cbc' has 0",
    ),
    "share above 1": (lambda d: IndependentMechanism({"cbc": 1.1}), ValueError, r"'shares' must lie in \(0, 1\]"),
    "share negative": (lambda d: IndependentMechanism({"cbc": -0.5}), ValueError, r"'shares' must lie in \(0, 1\]"),
    "share NaN": (lambda d: IndependentMechanism({"cbc": float("nan")}), ValueError, "'shares' must be finite"),
    "share of an unknown group": (
        lambda d: IndependentMechanism({"sex": 0.5}).hide(d),
        ValueError,
        "'shares' must name groups, but 'sex' is not a group",
    ),
}


@pytest.mark.parametrize(("attempt", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_mechanisms_refuse(attempt, error, message):
    with pytest.raises(error, match=message):
        attempt(complete())


# ----------------------------------------------------------------------------------------------------- drawn mechanisms

DRAWN = GraphMechanism(
    "age, died -> R_cbc; cbc -> R_lactate; R_cbc -> R_lactate; R_cbc <-> R_vitals",
    intercepts={"cbc": 0.3, "lactate": -0.4, "vitals": 1.0},
    weights={"cbc": {"age": 0.6, "died": -0.8}, "lactate": {"hgb": 0.5, "R_cbc": 1.2}},
    hidden={("cbc", "vitals"): 0.7},
)


def superset_by_hand(values, labels, required):
    """P(R >= required) of vitals, cbc and lactate, written out over coin and patterns."""
    total = np.zeros(len(values))
    for coin in (-1, 1):
        vitals = sigmoid(1.0 + 0.7 * coin) * np.ones(len(values))
        cbc = sigmoid(0.3 + 0.6 * values[:, 0] - 0.8 * labels + 0.7 * coin)
        for r_vitals in (0, 1):
            for r_cbc in (0, 1):
                for r_lactate in (0, 1):
                    lactate = sigmoid(-0.4 + 0.5 * values[:, 3] + 1.2 * r_cbc)
                    p = 0.5 * np.where(r_vitals, vitals, 1 - vitals) * np.where(r_cbc, cbc, 1 - cbc)
                    p = p * np.where(r_lactate, lactate, 1 - lactate)
                    has = np.array([1, r_vitals, r_cbc, r_lactate], dtype=bool)
                    if (has | ~np.asarray(required)).all():
                        total += p
    return total


@pytest.mark.parametrize("required", list(product([False, True], repeat=4)))
def test_true_superset_probability_of_a_graph(required):
    data = complete(40)
    asked = np.tile(required, (len(data), 1))
    found = DRAWN.superset(data, data.values, asked, data.labels)
    assert_allclose(found, superset_by_hand(data.values, data.labels, required), rtol=1e-12)


def test_a_graph_hides_as_often_as_it_says():
    data = complete(30_000)
    hidden = DRAWN.hide(data, random_state=3)
    for required in product([False, True], repeat=4):
        p = superset_by_hand(data.values, data.labels, required)
        share = hidden.recorded[:, np.array(required)].all(axis=1).mean()
        assert abs(share - p.mean()) < 4 * np.sqrt((p * (1 - p)).sum()) / len(data) + 1e-12


def test_a_graph_knows_its_propensity_where_it_is_asked():
    """Only values that the required groups depend on are looked at."""
    data = DRAWN.hide(complete(200), random_state=1)
    rows = np.flatnonzero(data.recorded[:, 2])
    required = np.array([False, False, True, True])
    found = DRAWN.propensity(data).lookup(data).ask(rows, np.tile(required, (len(rows), 1)))
    assert_allclose(found, superset_by_hand(data.values[rows], data.labels[rows], required), rtol=1e-12)


def test_random_weights_follow_the_graph():
    data = complete(5000)
    graph = "age -> R_cbc; cbc, died -> R_lactate; R_cbc -> R_lactate"
    mechanism = GraphMechanism.random(graph, data, random_state=4)
    assert set(mechanism.weights["lactate"]) == {"hgb", "wbc", "died", "R_cbc"}
    assert repr(mechanism) == repr(GraphMechanism.random(graph, data, random_state=4))
    shares = mechanism.hide(data, 0).recorded.mean(axis=0)
    assert (shares[[0, 1]] == 1).all()
    assert ((shares[2:] > 0.45) & (shares[2:] < 0.85)).all()
    assert isinstance(mechanism.missingness, afape.MNAR)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: GraphMechanism("R_cbc", {"age": 1.0}), "'age' has none"),
        (lambda: GraphMechanism("R_cbc", {"cbc": np.inf}), "must be finite"),
        (lambda: GraphMechanism("R_cbc; R_lactate", hidden={("cbc", "lactate"): 1.0}), "not joined"),
        (
            lambda: GraphMechanism("age -> R_cbc", weights={"cbc": {"bp": 1.0}}).hide(complete()),
            "no edge vitals -> R_cbc",
        ),
        (lambda: GraphMechanism("R_sex").hide(complete()), "'sex' is not a group"),
        (
            lambda: GraphMechanism("cbc -> R_lactate", weights={"lactate": {"hgb": 1.0}}).hide(hidden([1], "cbc")),
            "complete",
        ),
    ],
)
def test_mechanisms_that_cannot_be_drawn(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_synthetic_mnar_has_the_papers_share_of_complete_cases():
    experiment = synthetic_mnar(150_000)
    x1 = experiment.complete.values[:, 1]
    assert abs((0.7 * sigmoid(-1.5 + x1)).mean() - 0.229) < 0.0015
    recorded = experiment.mechanism.hide(experiment.complete, 0)
    assert abs(recorded.complete.mean() - 0.229) < 4 * np.sqrt(0.229 * 0.771 / 150_000)
    assert_array_equal(experiment.complete.values, synthetic_mar(150_000).complete.values)


def joined(n_groups):
    """Complete records, and a graph that joins the indicators of all groups in pairs."""
    names = [f"g{i}" for i in range(n_groups)]
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(50, n_groups)), columns=names).assign(
        y=np.arange(50) % 2
    )
    data = Retrospective(frame, Problem({g: [g] for g in names}, dict.fromkeys(names, 1.0), "y", 1.0))
    pairs = [(a, b) for i, a in enumerate(names) for b in names[:i]]
    return data, pairs, "; ".join([*(f"R_{a} <-> R_{b}" for a, b in pairs), "R_g0 -> R_g2"])


def test_hidden_variables_are_summed_out():
    """Against a sum over all values of all hidden variables, for strengths that differ and indicators that depend on others."""
    data, pairs, graph = joined(4)
    strengths = {pair: 0.3 + 0.17 * k for k, pair in enumerate(pairs)}
    mechanism = GraphMechanism(graph, {"g1": 0.5}, {"g2": {"R_g0": 0.8}}, hidden=strengths)
    for required in ([1, 0, 0, 0], [0, 1, 1, 0], [0, 0, 1, 0], [1, 1, 1, 1]):
        required = np.array(required, dtype=bool)
        total = 0.0
        for coins in product([-1, 1], repeat=len(pairs)):
            for pattern in product([0, 1], repeat=4):
                if not (np.array(pattern) >= required).all():
                    continue
                p = 0.5 ** len(pairs)
                for g in range(4):
                    odds = sum(c * s for c, (pair, s) in zip(coins, strengths.items(), strict=True) if f"g{g}" in pair)
                    one = sigmoid(odds + 0.5 * (g == 1) + 0.8 * pattern[0] * (g == 2))
                    p *= one if pattern[g] else 1 - one
                total += p
        found = mechanism.superset(data, data.values, np.tile(required, (50, 1)), data.labels)
        assert_allclose(found, total, rtol=1e-12)


def test_many_hidden_variables_take_no_time():
    data, _, graph = joined(8)  # 28 hidden variables
    mechanism = GraphMechanism(graph)
    p = mechanism.superset(data, data.values, np.ones((50, 8), dtype=bool), data.labels)
    draws = np.concatenate([mechanism.hide(data, seed).complete for seed in range(400)])
    assert abs(draws.mean() - p.mean()) < 4 * np.sqrt(p.mean() / len(draws))
