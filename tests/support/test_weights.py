"""What an estimate depends on: heavy rows, mean weights, balance, and probabilities that are probabilities."""

import json
import warnings

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from worlds import Zero

import afape
from afape._arrays import share_of_heaviest
from afape.propensity.probabilities import Probabilities
from afape.propensity.weights import View
from afape.support.balance import balance_table
from afape.support.thresholds import SupportThresholds, few_rows_dominate

mpl.use("Agg")


def records(x, b, has, y=None, **columns):
    """A free column x and one costly group b."""
    frame = pd.DataFrame(
        {"x": x, "b": np.where(has, b, np.nan), "y": np.arange(len(x)) % 2 if y is None else y, **columns}
    )
    problem = afape.Problem({"x": ["x"], "b": ["b"]}, {"b": 1.0}, "y", 10.0)
    return afape.Retrospective(frame, problem, cluster="who" if "who" in columns else None)


def known(chance):
    return afape.KnownPropensity(lambda values, required: np.where(required[:, 1], chance(values[:, 0]), 1.0))


class Signs:
    """Predicts the sign of b where it is known."""

    def predict(self, values, acquired):
        return (np.nan_to_num(values[:, 1]) > 0.5).astype(int)


def steep(seed=0, n=5840, slope=3.5, level=-2.0):
    """Recording falls steeply with x, but never to 0."""
    rng = np.random.default_rng(seed)
    x, b = rng.normal(size=(2, n))
    return records(x, b, rng.random(n) < 1 / (1 + np.exp(-level - slope * x)), (x + b > 0) * 1)


def test_share_of_the_heaviest_by_hand():
    assert_allclose(share_of_heaviest(np.array([1.0, 2.0, -3.0]), None, 1), 9 / 14)
    assert_allclose(share_of_heaviest(np.array([1.0, 2.0, -3.0, 1.0]), np.array([0, 0, 1, 1]), 1), 9 / 13)
    assert share_of_heaviest(np.zeros(3), None) == 0.0
    assert_allclose(share_of_heaviest(np.ones(40), None), 10 / 40)


@pytest.mark.parametrize(
    ("n", "rows", "ess", "ten", "few"),
    [
        (5840, 1500, 38, 0.4, True),  # fewer than 50, and than a fiftieth of the rows
        (1500, 400, 4, 0.9, True),
        (5000, 100, 98, 0.1, False),  # few rows, of equal weight
        (12, 12, 12, 0.9, False),
        (2400, 1100, 435, 0.3, False),
        (2400, 1100, 435, 0.8, True),
    ],
)
def test_when_a_few_rows_dominate_an_estimate(n, rows, ess, ten, few):
    assert few_rows_dominate(SupportThresholds(), n, rows, ess, ten) is few


def thin():
    """58 rows have a probability of 0.0011, of which two are recorded by chance; the others one of a half."""
    n = 5840
    x = np.repeat([3.0, 0.0], [58, n - 58]) + np.linspace(-0.1, 0.1, n)
    has = np.arange(n) % 2 == 0
    has[:58] = np.arange(58) < 2
    return records(x, np.sin(np.arange(n)), has, np.sin(np.arange(n)) > 0), known(
        lambda x: np.where(x > 2, 0.0011, 0.5)
    )


def test_heavy_rows_are_named_with_what_can_be_done():
    """ess = (2 * 2891 + 2 / 0.0011)^2 / (4 * 2891 + 2 / 0.0011^2)."""
    data, propensity = thin()
    options = {"missingness": afape.MAR(["x"]), "propensity": propensity}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = afape.evaluate(data, afape.AcquireAll(), Signs(), estimators=["ipw-semi", "drl-semi"], **options)
    told = [str(w.message) for w in caught if w.category is afape.warnings.HeavyWeightsWarning]
    support = result.support
    assert len(told) == 1
    assert not support.holds
    line = support.estimators.set_index("estimator").loc["ipw-semi"]
    assert_allclose(line["ess"], (2 * 2891 + 2 / 0.0011) ** 2 / (4 * 2891 + 2 / 0.0011**2))
    assert line["ess"] < 38
    for words in (
        "belong to 'b' (see support.heaviest)",
        "skip 'b' in rows like these",
        "depends least on its heaviest rows",
    ):
        assert words in told[0]
    influence = result["ipw-semi"]["total"].influence
    assert_allclose(line["ten_heaviest"], np.sort(influence**2)[-10:].sum() / (influence**2).sum())
    assert support.heaviest["row"].tolist()[:2] == [0, 1]
    assert_allclose(support.heaviest["weight"][:2], 1 / 0.0011)
    assert_allclose(support.heaviest["share"][0], 0.0011**-2 / (4 * 2891 + 2 * 0.0011**-2))
    plain = json.loads(json.dumps(result.to_dict()))
    assert [line["row"] for line in plain["heaviest"]][:2] == [0, 1]
    assert plain["balance"]
    with pytest.warns(
        afape.warnings.HeavyWeightsWarning, match=r"the ten heaviest rows have 99 % of the sum of squared"
    ):
        assert not afape.check_support(data, afape.AcquireAll(), **options).holds


def test_even_weights_are_no_reason_to_warn():
    data = steep(slope=0.5, level=0.0)
    support = afape.check_support(data, afape.AcquireAll(), missingness=afape.MAR(["x"]))
    assert support.heavy == ()
    assert support.holds


class Below:
    """Wants b where x is below a limit."""

    def __init__(self, limit):
        self.limit = limit

    def probabilities(self, values, acquired):
        want = (values[:, 0] < self.limit) & ~acquired[:, 1]
        return np.column_stack([np.zeros(len(values)), want, ~want])


def test_rows_that_want_a_set_are_counted():
    """b is recorded in 300 of 600 rows, and wanted below 0: in 50 rows that have it, 100 in all."""
    x = np.repeat([-1.0, 1.0], [100, 500])
    has = np.arange(600) % 2 == 0
    support = afape.check_support(records(x, x, has), Below(0.0), missingness=afape.MCAR(), n_folds=1)
    line = support.sets.set_index("set").loc["b"]
    assert (line["rows_recorded"], line["rows_wanting"]) == (300, 50)
    assert support.groups["rows_wanting"].tolist() == [50]
    assert_allclose(line["wanted"], 1 / 6)
    assert_allclose(line["ten_heaviest"], 10 / 50)
    assert_allclose(line["ess"], 50)


class Chain:
    """Acquires b, then c, surely."""

    def probabilities(self, values, acquired):
        out = np.zeros((len(values), 4))
        step = np.where(~acquired[:, 1], 1, np.where(~acquired[:, 2], 2, 3))
        out[np.arange(len(values)), step] = 1.0
        return out


@pytest.mark.filterwarnings("ignore::afape.warnings.HeavyWeightsWarning", "ignore::afape.warnings.SupportWarning")
@pytest.mark.parametrize("seed", range(5))
def test_wanted_is_a_probability(seed):
    """A known propensity that is too small by half makes weights twice as large; what is wanted stays a probability."""
    rng = np.random.default_rng(seed)
    n = 400
    has = rng.random((n, 2)) < 0.5
    frame = pd.DataFrame(
        {"x": rng.normal(size=n), "b": np.where(has[:, 0], 1.0, np.nan), "c": np.where(has[:, 1], 1.0, np.nan)}
    )
    problem = afape.Problem({g: [g] for g in "xbc"}, {"b": 1.0, "c": 1.0}, "y", 10.0)
    data = afape.Retrospective(frame.assign(y=np.arange(n) % 2), problem)
    low = afape.KnownPropensity(lambda values, required: 0.25 ** required[:, 1:].sum(axis=1))
    support = afape.check_support(data, Chain(), missingness=afape.MCAR(), propensity=low)
    sets = support.sets.set_index("set")["wanted"]
    assert sets["b"] == 1.0
    assert_allclose(sets["b + c"], 1.0)  # 2 by the weights, 2 by the mean weight before the decision
    assert support.sets["wanted"].between(0, 1).all()
    assert support.groups["wanted"].between(0, 1).all()


def test_mean_weight_is_judged_by_its_own_error():
    """The error of a mean weight, learned propensity included, is that over draws."""
    means, errors = [], []
    for seed in range(60):
        data = steep(seed, n=800, slope=0.8, level=0.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", afape.warnings.AfapeWarning)
            out = afape.evaluate(
                data, afape.AcquireAll(), Zero(), missingness=afape.MAR(["x"]), estimators=["ipw-semi"]
            )
        outcome = out.answers["ipw-semi"]
        means.append(outcome.normalizer)
        errors.append(outcome.normalizer_error)
    spread = np.std(means, ddof=1)
    monte_carlo = spread / np.sqrt(2 * 59)
    assert abs(np.sqrt(np.mean(np.square(errors))) - spread) < 4 * monte_carlo + 0.1 * spread
    assert abs(np.mean(means) - 1) < 4 * spread / np.sqrt(60) + 0.01


@pytest.mark.parametrize(
    ("factor", "match"),
    [(1.0, None), (0.5, "should be near 1. The sets that the policy wants are recorded more often")],
)
def test_a_wrong_propensity_shows_in_the_mean_weight(factor, match):
    rng = np.random.default_rng(3)
    x = rng.normal(size=3000)
    data = records(x, x, rng.random(3000) < 0.6)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        afape.evaluate(
            data, afape.AcquireAll(), Zero(), missingness=afape.MAR(["x"]), estimators=["ipw-semi"],
            propensity=known(lambda x: np.full(len(x), 0.6 * factor)),
        )  # fmt: skip
    told = [str(w.message) for w in caught if w.category is afape.warnings.NormalizerWarning]
    assert bool(told) is (match is not None)
    assert match is None or match in told[0]


# --- balance ------------------------------------------------------------------------------------------------------------


class Fixed:
    """A propensity of 0.8 above 0 and 0.2 below."""

    learned, min_propensity = True, 0.0

    def __init__(self, data, low=0.2):
        self.data, self.low = data, low

    def probabilities(self, rows, sets, lines):
        return Probabilities(np.where(self.data.values[rows, 0] > 0, 0.8, self.low))

    def scores(self, row_weight):
        return None


def test_balance_by_hand():
    """Ten rows at 1 of which eight are recorded, ten at -1 of which two are: weights 5/4 and 5 balance exactly."""
    x = np.repeat([1.0, -1.0], 10)
    has = np.array([1] * 8 + [0] * 2 + [1] * 2 + [0] * 8, dtype=bool)
    data = records(x, x, has, y=np.arange(20) < 5)
    required = {"b": np.array([True, True])}
    table = balance_table(data, View(Fixed(data), data.recorded, np.zeros(2, dtype=bool)), required).set_index("column")
    assert_allclose(table.loc["x", ["before", "after"]].astype(float), [0.6, 0.0], atol=1e-12)
    # y is true in 5 of 20 rows, all recorded: 5 of 10 before, (5 * 5/4) / 20 after; its standard deviation is sqrt(3/16)
    spread = np.sqrt(3 / 16)
    assert_allclose(table.loc["y=True", ["before", "after"]].astype(float), [0.25 / spread, 0.0625 / spread])
    wrong = balance_table(data, View(Fixed(data, 0.8), data.recorded, np.zeros(2, dtype=bool)), required).set_index(
        "column"
    )
    assert_allclose(wrong["before"], wrong["after"])


@pytest.mark.slow
def test_standard_errors_of_balance_know_that_the_propensity_was_learned():
    """A logistic propensity nearly balances what it depends on: over 300 data sets, errors are as large as they say."""
    after, error = [], []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=400)
        has = rng.random(400) < 1 / (1 + np.exp(-x))
        data = records(x, x + rng.normal(size=400), has, y=rng.random(400) < 1 / (1 + np.exp(-x)))
        spec = afape.LearnedPropensity(form="linear")
        found = afape.evaluate(data, afape.AcquireAll(), Zero(), missingness=afape.MAR(["x"]), estimators=["ipw-semi"],
                               propensity=spec).support.balance  # fmt: skip
        found = found.set_index("column").loc[["x", "y=True"]]
        after.append(found["after"].to_numpy(dtype=float))
        error.append(found["std_error"].to_numpy(dtype=float))
    spread, told = np.std(after, axis=0, ddof=1), np.sqrt(np.mean(np.square(error), axis=0))
    assert_allclose(told / spread, 1.0, atol=4 / np.sqrt(2 * 300) + 0.05)


def test_balance_is_worst_first_and_drawn():
    support = afape.check_support(steep(slope=1.0, level=0.0), afape.AcquireAll(), missingness=afape.MAR(["x"]))
    after = support.balance["after"].abs()
    assert after.is_monotonic_decreasing
    assert set(support.balance["column"]) == {"x", "y=1"}
    assert (after < 0.1).all()
    assert support.balance["before"].abs().max() > 0.3
    axes = support.plot_balance()
    assert [t.get_text() for t in axes.get_yticklabels()][-1] == f"{support.balance['column'][0]} (b)"
    assert len(axes.collections) >= 2


def test_weighting_that_leaves_a_difference_warns():
    """Recording depends on the square of x, the propensity is a line."""
    rng = np.random.default_rng(0)
    x, b = rng.normal(size=(2, 4000))
    data = records(x, b, rng.random(4000) < np.where(np.abs(x) > 1, 0.9, 0.3), (x**2 + b > 1) * 1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        afape.evaluate(
            data,
            afape.AcquireAll(),
            Zero(),
            missingness=afape.MAR(["x"]),
            propensity=afape.LearnedPropensity(form="linear"),
            estimators=["ipw-semi"],
        )
    told = [str(w.message) for w in caught if w.category is afape.warnings.BalanceWarning]
    assert len(told) == 1
    assert "y=1 by 0.3" in told[0]


def test_balance_is_quiet_where_the_model_is_right():
    loud = 0
    for seed in range(30):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            data = steep(seed, n=1000, slope=1.2, level=-0.5)
            afape.evaluate(data, afape.AcquireAll(), Zero(), missingness=afape.MAR(["x"]), estimators=["ipw-semi"])
        loud += any(w.category is afape.warnings.BalanceWarning for w in caught)
    assert loud <= 1
