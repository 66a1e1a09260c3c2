"""Superset propensities: learned along the chain, at once, as known, and what learning does to errors."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from worlds import World

import afape
from afape import Problem, Retrospective
from afape.missingness import Conditioning
from afape.nuisance.propensity import AutoregressivePropensity, ChainPropensity
from afape.nuisance.propensity.logistic import fit_logistic, logistic_design
from afape.plan import assign_folds


def given(data, *groups):
    """Conditioning on always recorded groups."""
    mask = np.isin(np.arange(data.problem.n_groups), groups)
    return Conditioning(mask, label=False, gaps=np.zeros_like(mask))


def ask(propensity, data, required):
    """P(R >= required) in every row."""
    sets = np.asarray(required, dtype=bool)[None]
    return propensity.probability(np.arange(len(data)), sets, np.zeros(len(data), dtype=np.intp))


def one_fold(data):
    return np.zeros(len(data), dtype=np.intp)


@pytest.fixture(scope="module")
def binary():
    """Two levels, one given group: a logistic model of one binary column is saturated."""
    return World(21, n_groups=4, n_levels=2, n_free=1, given=(0,)).draw(3000, 0)


def shares(data, required, given=0):
    """Share of rows with the required groups, by the level of the given column."""
    level = data.values[:, given]
    has = data.recorded[:, required].all(axis=1)
    return np.where(level == 1, has[level == 1].mean(), has[level == 0].mean())


@pytest.mark.parametrize("required", [[1], [2], [1, 3], [1, 2, 3], []])
def test_chain_equals_shares_in_a_saturated_world(binary, required):
    chain = ChainPropensity(binary, given(binary, 0), one_fold(binary))
    mask = np.isin(np.arange(4), required)
    assert_allclose(ask(chain, binary, mask), shares(binary, required), rtol=1e-7)


def test_without_given_columns_the_share_is_exact(binary):
    for make in (ChainPropensity, AutoregressivePropensity):
        p = make(binary, given(binary), one_fold(binary))
        assert_allclose(ask(p, binary, [False, True, True, False]), binary.recorded[:, [1, 2]].all(axis=1).mean())


def additive(n, seed):
    """Three groups whose indicators act additively on each other's log-odds, as the joint model assumes."""
    rng = np.random.default_rng([9, seed])
    x = rng.normal(size=n)
    recorded = [np.ones(n, dtype=bool)]
    odds = 1.2 + 0.5 * x
    for _ in range(3):
        recorded.append(rng.random(n) < 1 / (1 + np.exp(-odds)))
        odds = odds - 1.2 + recorded[-1]
    values = np.where(np.column_stack(recorded), np.column_stack([x, x, x, x]), np.nan)
    problem = afape.Problem({n: [n] for n in "xabc"}, {"a": 1.0, "b": 1.0, "c": 1.0}, "y", 1.0)
    frame = pd.DataFrame(values, columns=list("xabc")).assign(y=rng.integers(0, 2, n))
    return afape.Retrospective(frame, problem)


@pytest.mark.parametrize("required", [[0, 1, 0, 0], [0, 0, 1, 0], [0, 1, 1, 0], [0, 0, 0, 1], [0, 1, 1, 1]])
def test_autoregressive_agrees_with_the_chain(required):
    data = additive(20_000, 0)
    chain, joint = (make(data, given(data, 0), one_fold(data)) for make in (ChainPropensity, AutoregressivePropensity))
    assert [data.problem.group_names[g] for g in chain.order] == ["a", "b", "c"]
    inner = np.abs(data.values[:, 0]) < 2
    assert_allclose(ask(joint, data, required)[inner], ask(chain, data, required)[inner], atol=0.02)


def test_autoregressive_supersets_are_sums_over_patterns(binary):
    joint = AutoregressivePropensity(
        binary, given(binary, 0), assign_folds(len(binary), 3, None, np.random.default_rng(0))
    )
    everything = joint._supersets(np.arange(50))
    assert_allclose(everything[:, 0], 1.0, rtol=1e-12)  # every pattern contains the empty set
    for bit in (1, 2, 4):  # more groups are never more likely
        for mask in range(8):
            assert (everything[:, mask | bit] <= everything[:, mask] + 1e-15).all()


def test_always_recorded_groups_have_probability_one(binary):
    chain = ChainPropensity(binary, given(binary, 0), one_fold(binary))
    assert (ask(chain, binary, [True, False, False, False]) == 1.0).all()
    assert chain.factors == {}


def test_only_sets_that_are_asked_for_are_fitted(binary):
    chain = ChainPropensity(binary, given(binary, 0), one_fold(binary))
    ask(chain, binary, [False, True, False, True])
    assert len(chain.factors) == 2
    before = dict(chain.factors)
    ask(chain, binary, [False, True, False, True])
    assert chain.factors == before


def test_order_is_by_share_then_name(binary):
    chain = ChainPropensity(binary, given(binary, 0), one_fold(binary))
    share = binary.recorded.mean(axis=0)
    assert chain.order == sorted([1, 2, 3], key=lambda g: -share[g])


def test_one_class_only_is_certain():
    """A group recorded exactly when another is: the factor given the other is 1, and scikit-learn is not asked."""
    rng = np.random.default_rng(0)
    a = np.where(rng.random(200) < 0.5, 1.0, np.nan)
    frame = pd.DataFrame({"x": rng.normal(size=200), "a": a, "b": 2 * a, "c": np.nan, "y": rng.integers(0, 2, 200)})
    problem = afape.Problem({n: [n] for n in "xabc"}, {"a": 1.0, "b": 1.0, "c": 1.0}, "y", 1.0)
    data = afape.Retrospective(frame, problem)
    chain = ChainPropensity(data, given(data, 0), assign_folds(200, 4, None, rng))
    assert_allclose(ask(chain, data, [0, 1, 1, 0]), ask(chain, data, [0, 1, 0, 0]), rtol=0)
    assert (ask(chain, data, [0, 0, 0, 1]) == 0).all()
    assert (ask(chain, data, [0, 1, 0, 1]) == 0).all()


def test_rows_are_predicted_by_models_that_have_not_seen_them(binary):
    fold = assign_folds(len(binary), 5, None, np.random.default_rng(0))
    forest = RandomForestClassifier(n_estimators=5, random_state=0)
    chain = ChainPropensity(binary, given(binary, 0), fold, forest)
    p = ask(chain, binary, [False, True, False, False])
    for k in range(5):
        model = RandomForestClassifier(n_estimators=5, random_state=0)
        model.fit(binary.values[fold != k][:, [0]], binary.recorded[fold != k, 1].astype(int))
        assert_allclose(p[fold == k], model.predict_proba(binary.values[fold == k][:, [0]])[:, 1])


def test_folds_are_balanced_and_keep_clusters_together():
    cluster = np.repeat(np.arange(40), 3)
    fold = assign_folds(120, 4, cluster, np.random.default_rng(0))
    assert (fold.reshape(40, 3) == fold.reshape(40, 3)[:, :1]).all()
    assert np.bincount(fold).tolist() == [30, 30, 30, 30]
    with pytest.raises(ValueError, match="'n_folds' must not exceed the number of clusters, but is 5 for 3"):
        assign_folds(6, 5, np.array([0, 0, 1, 1, 2, 2]), np.random.default_rng(0))


def test_logistic_fit_has_zero_score_and_copes_with_collinear_columns():
    rng = np.random.default_rng(0)
    level = rng.integers(0, 3, 500)
    columns = np.column_stack([np.eye(3)[level], rng.normal(size=500), np.ones(500)])
    design = logistic_design(columns)
    y = rng.random(500) < 1 / (1 + np.exp(-level + columns[:, 3]))
    fit = fit_logistic(design, y)
    p = 1 / (1 + np.exp(-design @ fit.coefficients))
    assert fit.converged
    assert_allclose(design.T @ (y - p), 0, atol=1e-5)
    reference = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(columns[:, 1:4], y)
    assert_allclose(p, reference.predict_proba(columns[:, 1:4])[:, 1], atol=1e-5)


def test_firth_takes_away_the_bias_of_the_coefficients():
    rng = np.random.default_rng(0)
    design = logistic_design(rng.normal(size=(60, 1)))
    theta = np.array([0.4, 1.0])
    p = 1 / (1 + np.exp(-design @ theta))
    outcomes = [rng.random(60) < p for _ in range(2000)]
    for firth in (False, True):
        found = np.array([fit_logistic(design, y, firth=firth).coefficients for y in outcomes]) - theta
        off = np.abs(found.mean(axis=0)) / (found.std(axis=0) / np.sqrt(len(found)))
        assert off.max() < 4 if firth else off.max() > 6


@pytest.mark.parametrize(("n", "k"), [(30, 0), (30, 1), (30, 3), (30, 15), (30, 30)])
def test_cross_fitted_weights_of_a_cell_are_about_n_plus_1_over_k_plus_1(n, k):
    """A level with N rows outside the fold, k of them recorded: neither infinite nor overconfident."""
    level = np.repeat([0.0, 1.0], [200, 2 * n])
    first = np.tile([0, 1], 100 + n)  # folds, N rows of the level in each
    has = np.zeros(len(level), dtype=bool)
    has[:100] = True
    inside = np.flatnonzero((level == 1) & (first == 0))
    has[inside[:k]] = True
    has[np.flatnonzero((level == 1) & (first == 1))[:5]] = True
    frame = pd.DataFrame({"x": level, "a": np.where(has, 1.0, np.nan), "y": np.arange(len(level)) % 2})
    data = afape.Retrospective(frame, afape.Problem({"x": ["x"], "a": ["a"]}, {"a": 1.0}, "y", 1.0))
    chain = ChainPropensity(data, given(data, 0), first)
    weight = 1 / ask(chain, data, [False, True])[(level == 1) & (first == 1)]
    assert_allclose(weight, (n + 1) / (k + 1), rtol=0.3 if k == 0 else 0.06)
    assert chain.converged


class Sign:
    def predict(self, values, acquired):
        return (np.nansum(values, axis=1) > 0).astype(int)


def shocked(n, seed):
    """Two groups recorded by a shared coin most of the time: correlated given x, though each is a fair coin."""
    rng = np.random.default_rng([5, seed])
    x, a, b = rng.normal(size=(3, n))
    shock = rng.random(n) < 0.5
    alone = rng.random(n) < 0.2
    has_a = shock
    has_b = np.where(alone, rng.random(n) < 0.5, shock)
    frame = pd.DataFrame({"x": x, "a": np.where(has_a, a, np.nan), "b": np.where(has_b, b, np.nan)})
    problem = afape.Problem({n: [n] for n in "xab"}, {"a": 1.0, "b": 3.0}, "y", 5.0)
    return afape.Retrospective(frame.assign(y=(x + a + b > 0).astype(int)), problem)


def test_correlated_recording_breaks_independence_but_not_the_default():
    """After a, the policy buys b, then b's price is paid in full: the acquisition cost is 4 for everybody.

    P(R_a, R_b) = 0.45, but independence says 0.25, so weights come out 1.8 times too large.
    """

    def buy_b_where_a_is_positive(values, acquired):
        return np.where(~acquired[:, 1], 1, np.where((values[:, 1] > 0) & ~acquired[:, 2], 2, 3))

    # acquisition is paid before b is seen, so look at the paper's weight, which needs P(R >= {a, b})
    policy = afape.DecisionRule(buy_b_where_a_is_positive)
    truth = 1.0 + 3.0 * 0.5
    options = {
        "missingness": afape.MAR(given=["x"]),
        "estimators": ["ipw-semi"],
        "acquisition_weight": "after",
        "normalize": False,
    }
    errors = {"auto": [], "independent": []}
    for seed in range(30):
        data = shocked(1000, seed)
        for method, found in errors.items():
            with warnings.catch_warnings():
                # The wrong product is what one of the two is here for; its mean weight is far from 1.
                warnings.simplefilter("ignore", afape.NormalizerWarning)
                result = afape.evaluate(
                    data, policy, Sign(), propensity=afape.LearnedPropensity(method=method), **options
                )
            found.append(result["ipw-semi"]["acquisition"].value - truth)
    for method, found in errors.items():
        error = np.std(found, ddof=1) / np.sqrt(len(found))
        off = abs(np.mean(found)) / error
        assert off < 4 if method == "auto" else off > 20, (method, off)


def test_many_sets_switch_to_one_model_of_all_indicators():
    rng = np.random.default_rng(0)
    names = [f"g{i}" for i in range(8)]
    values = rng.normal(size=(400, 8))
    values[:, 1:][rng.random((400, 7)) < 0.3] = np.nan
    problem = afape.Problem({n: [n] for n in names}, dict.fromkeys(names[1:], 1.0), "y", 5.0)
    frame = pd.DataFrame(values, columns=names).assign(y=rng.integers(0, 2, 400))
    data = afape.Retrospective(frame, problem)
    results = {
        method: afape.evaluate(
            data,
            afape.RandomSubset(0.5),
            Sign(),
            missingness=afape.MCAR(),
            propensity=afape.LearnedPropensity(method=method, min_propensity=0.0),
            estimators=["ipw-semi"],
            n_folds=1,
        )
        for method in ("auto", "autoregressive", "chain")
    }
    auto, joint, chain = (r["ipw-semi"]["total"] for r in results.values())
    assert auto.value == joint.value
    assert results["auto"].table["error_method"].unique().tolist() == ["stacked"]
    assert results["chain"].table["error_method"].unique().tolist() == ["stacked"]
    # two models of the same probabilities: apart by a fraction of the standard error
    assert abs(joint.value - chain.value) < chain.std_error


@pytest.mark.filterwarnings("ignore::afape.NormalizerWarning")
def test_clipped_propensities_are_counted_and_warned_of():
    data = shocked(300, 0)
    with pytest.warns(afape.ClippedWeightsWarning, match="fell below 'min_propensity'"):
        result = afape.evaluate(
            data,
            afape.AcquireAll(),
            Sign(),
            missingness=afape.MCAR(),
            propensity=afape.LearnedPropensity(min_propensity=0.6),
            estimators=["ipw-semi"],
        )
    both = int(data.recorded.all(axis=1).sum())
    assert result.table["clipped"].max() >= both
    assert result.support.sets["smallest_propensity"].min() < 0.6  # raw values are kept
    assert result.support.sets["largest_weight"].max() <= 1 / 0.6 + 1e-12


def test_stacked_influence_is_the_derivative_of_the_refitted_estimate():
    """Infinitesimal jackknife: doubling a row moves estimate and propensity together, as the influence says."""
    data = World(23, n_groups=3, n_levels=3, n_free=1, given=(0,)).draw(900, 0)
    world = World(23, n_groups=3, n_levels=3, n_free=1, given=(0,))

    def fitted(d):
        return afape.evaluate(
            d, world.policy, world.classifier, missingness=afape.MAR(given=["g0"]), estimators=["ipw-semi"], n_folds=1,
            propensity=afape.LearnedPropensity(min_propensity=0.0),
        )["ipw-semi"]  # fmt: skip

    base = fitted(data)
    n = len(data)
    for i in range(0, n, 90):
        doubled = fitted(data.take(np.append(np.arange(n), i)))
        for target in ("acquisition", "misclassification", "total"):
            moved = (n + 1) * (doubled[target].value - base[target].value)
            assert_allclose(moved, base[target].influence[i], atol=0.02 * np.abs(base[target].influence).max())


def test_probability_zero_without_a_floor_is_not_estimable():
    """One row has b; its fold's model has never seen b, so without 'min_propensity' its weight would be infinite."""
    rng = np.random.default_rng(0)
    b = np.full(40, np.nan)
    b[0] = 1.0
    frame = pd.DataFrame({"a": rng.normal(size=40), "b": b, "y": np.arange(40) % 2})
    data = afape.Retrospective(frame, afape.Problem({"a": ["a"], "b": ["b"]}, {"b": 1.0}, "y", 1.0))
    options = {"missingness": afape.MCAR(), "estimators": ["ipw-semi"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", afape.AfapeWarning)
        none = afape.evaluate(
            data, afape.AcquireAll(), Sign(), propensity=afape.LearnedPropensity(min_propensity=0.0), **options
        )
        floor = afape.evaluate(data, afape.AcquireAll(), Sign(), **options)
    assert "probability 0" in none.table["note"].iloc[0]
    assert floor.table["clipped"].tolist() == [1, 1, 1]
    assert np.isfinite(floor["ipw-semi"]["total"].value)


def shaped(n, seed, log_odds):
    """Records in which group b is recorded with these log-odds of column a."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    b = np.where(rng.random(n) < 1 / (1 + np.exp(-log_odds(a))), rng.normal(size=n), np.nan)
    frame = pd.DataFrame({"a": a, "b": b, "y": rng.integers(0, 2, n)})
    return Retrospective(frame, Problem({"a": ["a"], "b": ["b"]}, {"b": 1.0}, "y", 1.0))


@pytest.mark.parametrize(
    ("log_odds", "forms"),
    [
        (lambda a: 0.5 + a, {"linear"}),
        (lambda a: 1.5 - a**2, {"spline"}),
        (lambda a: np.where(np.sin(6 * a) > 0, 2.0, -2.0), {"boosting"}),
    ],
    ids=["linear", "curved", "jumps"],
)
def test_the_records_choose_the_form(log_odds, forms):
    chosen = []
    for seed in range(4):
        data = shaped(4000, seed, log_odds)
        chain = ChainPropensity(data, given(data, 0), one_fold(data), form="auto")
        found = chain.forms.of(1)
        chosen.append(found.kind)
        assert 0.7 < found.slope < 1.3
        assert found.gap < 0.15
        p = ask(chain, data, [False, True])
        truth = 1 / (1 + np.exp(-log_odds(data.values[:, 0])))
        assert np.abs(p - truth).mean() < 0.06
    assert set(chosen) == forms


def test_many_columns_are_shrunk():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 60))
    b = np.where(rng.random(300) < 1 / (1 + np.exp(-x[:, 0])), 0.0, np.nan)
    frame = pd.DataFrame(x, columns=[f"x{j}" for j in range(60)]).assign(b=b, y=rng.integers(0, 2, 300))
    data = Retrospective(frame, Problem({"x": list(frame.columns[:60]), "b": ["b"]}, {"b": 1.0}, "y", 1.0))
    chain = ChainPropensity(data, given(data, 0), one_fold(data), form="auto")
    assert chain.forms.of(1).ridge > 0
    assert "shrunk" in chain.forms.of(1).name


def test_one_mistyped_value_does_not_decide_the_fit():
    data = shaped(4000, 0, lambda a: 0.5 + a)
    values = data.values[:, 0].copy()
    values[np.flatnonzero(~data.recorded[:, 1])[0]] = 1e6
    frame = pd.DataFrame({"a": values, "b": data.values[:, 1], "y": data.labels})
    typo = Retrospective(frame, data.problem)
    clean, spoiled = (ask(ChainPropensity(d, given(d, 0), one_fold(d)), d, [False, True]) for d in (data, typo))
    inside = np.abs(values) < 3
    assert np.abs(spoiled - clean)[inside].mean() < 0.02
    with pytest.warns(afape.FarValuesWarning, match=r"'a' \(1 of 4000 rows\)"):
        afape.evaluate(typo, afape.AcquireAll(), Zeros(), missingness=afape.MAR(given=["a"]), estimators=["ipw-semi"])


class Zeros:
    def predict(self, values, acquired):
        return np.zeros(len(values), dtype=int)


def test_sampled_patterns_agree_with_all_patterns(monkeypatch):
    data = additive(2000, 0)
    joint = AutoregressivePropensity(data, given(data, 0), one_fold(data))
    sets = [[0, 1, 0, 0], [0, 0, 1, 0], [0, 1, 1, 0], [0, 0, 0, 1], [0, 1, 1, 1]]
    exact = [ask(joint, data, required) for required in sets]
    monkeypatch.setattr("afape.nuisance.propensity.autoregressive.MAX_GROUPS", 1)
    for required, whole in zip(sets, exact, strict=True):
        drawn = ask(joint, data, required)
        assert np.abs(drawn - whole).max() < 0.05
        assert np.abs((drawn - whole).mean()) < 0.01


def test_many_groups_have_an_answer_and_say_how():
    rng = np.random.default_rng(0)
    names = [f"g{j}" for j in range(18)]
    x = rng.normal(size=(40, 18))
    table = pd.DataFrame(x, columns=names).assign(y=[0, 1] * 20)
    for j in range(1, 18):
        table.loc[rng.random(40) > 0.8, names[j]] = np.nan
    data = Retrospective(table, Problem({n: [n] for n in names}, dict.fromkeys(names[1:], 1.0), "y", 20.0))
    with pytest.warns(afape.AfapeWarning):
        found = afape.evaluate(
            data, afape.RandomSubset(0.3), Zeros(), missingness=afape.MAR(given=["g0"]), estimators=["ipw-semi", "blocking"],
            walk=afape.WalkOptions(max_states=0, n_trajectories=8),
        )  # fmt: skip
    assert any("sampled patterns" in text for text in found.assumption)
    assert np.isfinite(found["blocking"]["total"].value)
