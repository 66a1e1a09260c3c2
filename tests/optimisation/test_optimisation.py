"""Choosing a policy from a family."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.tree import DecisionTreeRegressor

import afape
from afape.agents.fitted_q import FittedQ
from afape.benchmark.synthetic import synthetic_mar

pytestmark = pytest.mark.slow

TREE = DecisionTreeRegressor(min_samples_leaf=200, random_state=0)


@pytest.fixture(scope="module")
def parts():
    experiment = synthetic_mar(12_000)
    classifier, data, complete = experiment.prepare()
    return experiment.missingness, classifier, data, complete


def closer(threshold):
    """Acquire x1 where X0 is this close to 0."""
    return afape.DecisionRule(lambda v, a: np.where((np.abs(v[:, 0]) < threshold) & ~a[:, 1], 1, 3))


def test_the_cheapest_of_a_family_wins_and_is_judged_on_other_rows(parts):
    missingness, classifier, data, complete = parts
    thresholds = [0.0, 0.5, 1.0, 2.0, 9.0]
    named = {"missingness": missingness, "estimators": ["drl-semi", "ipw-semi"]}
    found = afape.optimize(data, closer, classifier, parameters=thresholds, **named)
    assert found.estimator == "drl-semi"
    curve = found.curve
    assert list(curve.columns) == ["member", "parameter", "estimate", "std_error", "lower", "upper", "chosen"]
    assert curve["parameter"].tolist() == thresholds
    assert curve["member"][curve["chosen"]].tolist() == [found.winner]
    assert curve["estimate"].idxmin() == curve["chosen"].idxmax()
    assert (curve["lower"] < curve["estimate"]).all()
    choice, held = data.split([0.7, 0.3], 0)
    for k, threshold in enumerate(thresholds):  # the curve is what compare says of the rows of the choice
        alone = afape.evaluate(
            choice, closer(threshold), classifier, missingness=missingness, estimators=["drl-semi", "ipw-semi"]
        )["drl-semi"]["total"]
        assert_allclose(
            curve.loc[k, ["estimate", "std_error"]].astype(float), [alone.value, alone.std_error], rtol=1e-9
        )
        truth = afape.true_cost(complete, closer(threshold), classifier)["total"].value
        assert abs(curve["estimate"][k] - truth) < 4 * curve["std_error"][k]
    fresh = afape.evaluate(
        held, found.policy, classifier, missingness=missingness, estimators=["drl-semi", "ipw-semi"]
    )["drl-semi"]["total"]
    assert_allclose([found.cost.value, found.cost.std_error], [fresh.value, fresh.std_error], rtol=1e-9)
    assert found.optimism == pytest.approx(fresh.value - curve["estimate"].min())
    assert found.winner in repr(found)


def test_the_same_seed_gives_the_same_choice(parts):
    missingness, classifier, data, _ = parts
    first, again = (
        afape.optimize(
            data,
            closer,
            classifier,
            parameters=[0.0, 1.0],
            missingness=missingness,
            random_state=3,
            estimators=["ipw-semi"],
        )
        for _ in range(2)
    )
    assert first.curve.equals(again.curve)
    assert first.cost.value == again.cost.value
    assert first.estimator == "ipw-semi"


def test_trained_members_are_judged_on_rows_that_they_were_not_trained_on(parts):
    missingness, classifier, data, _ = parts
    trained_on = []

    def train(rows):
        trained_on.append(set(rows.positions.tolist()))
        return FittedQ(TREE).fit(rows, classifier)

    found = afape.optimize(
        data, {"fitted": train, "all": afape.AcquireAll()}, classifier, missingness=missingness, n_splits=3,
        estimators=["ipw-semi"],
    )  # fmt: skip
    assert found.winner == "fitted"
    choice, held = data.split([0.7, 0.3], 0)
    everyone, unseen = set(choice.positions.tolist()), set(held.positions.tolist())
    assert trained_on[3] == everyone  # the winner, trained again on all rows of the choice
    for rows in trained_on:
        assert rows <= everyone
        assert not rows & unseen
    judged = [everyone - rows for rows in trained_on[:3]]
    assert sum(map(len, judged)) == len(everyone)  # each row judges once
    assert set.union(*judged) == everyone


def test_prices_that_are_multiplied_make_a_family(parts):
    missingness, classifier, data, _ = parts

    def family(multiplier):
        return lambda rows: FittedQ(TREE, price_multiplier=multiplier).fit(rows, classifier)

    found = afape.optimize(
        data, family, classifier, parameters=[1.0, 0.0], missingness=missingness, n_splits=2, estimators=["ipw-semi"]
    )
    assert found.winner == "1.0"
    assert found.curve["estimate"].diff().iloc[1] > 0


def test_selection_among_equals_looks_too_cheap_where_it_was_made():
    """Members that ask for random noise all cost the same: the least estimate is too low, the held-out one is not."""
    rng = np.random.default_rng(0)
    n = 4000
    frame = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n), "y": rng.integers(0, 2, n)})
    problem = afape.Problem({"a": ["a"], "b": ["b"]}, costs={"b": 0.01}, label="y", misclassification_cost=1.0)
    data = afape.Retrospective(frame, problem).hide(np.column_stack([np.ones(n, bool), rng.random(n) < 0.5]))

    class Guess:
        """The label that a hash of the values says."""

        def predict(self, values, acquired):
            return (np.floor(1e4 * np.nansum(values, axis=1)) % 2).astype(int)

    def member(seed):
        return afape.DecisionRule(
            lambda v, a: np.where((np.floor(v[:, 0] * 1000 * (seed + 1)) % 2 == 0) & ~a[:, 1], 1, 2)
        )

    gaps = []
    for seed in range(5):
        found = afape.optimize(
            data,
            member,
            Guess(),
            parameters=range(12),
            missingness=afape.MCAR(),
            estimators=["ipw-semi"],
            random_state=seed,
        )
        low, high = found.cost.interval(0.999)
        assert low < 0.505 < high
        gaps.append(found.optimism)
    assert np.mean(gaps) > 0


def test_a_list_is_named_by_place(parts):
    missingness, classifier, data, _ = parts
    policies = [afape.RandomSubset(0.5), afape.AcquireNone()]
    found = afape.optimize(data, policies, classifier, missingness=missingness, estimators=["ipw-semi"])
    assert found.curve["member"].tolist() == ["0: RandomSubset(0.5)", "1: AcquireNone()"]
    assert found.policy is policies[1]


NONE = afape.AcquireNone()


@pytest.mark.parametrize(
    ("family", "settings", "error", "message"),
    [
        ({}, {}, ValueError, "'family' must have at least one member, but has none. List the policies"),
        ([], {}, ValueError, "'family' must have at least one member"),
        (closer, {"parameters": []}, ValueError, "'family' must have at least one member"),
        (
            closer,
            {},
            TypeError,
            "'family' must be a mapping or list of policies, or a function with 'parameters', but is func",
        ),
        ([NONE], {"parameters": [1]}, TypeError, "'family' must be callable if 'parameters' are given, but is list"),
        (closer, {"parameters": "12"}, TypeError, "'parameters' must be a list .*, but is '12'"),
        (closer, {"parameters": [1, 1]}, ValueError, r"'parameters' must be different, but are \[1, 1\]"),
        ({"x": 3}, {}, TypeError, "'family' must hold policies, or functions .*, but 'x' is int"),
        ({"x": lambda rows: 3}, {}, TypeError, "must hold functions that return a policy, but 'x' returned int"),
        ([NONE], {"holdout": 1.0}, ValueError, "'holdout' must be a share strictly between 0 and 1, but is 1.0"),
        ([NONE], {"holdout": "0.3"}, ValueError, "'holdout' must be a share .*'0.3'"),
        ([NONE], {"n_splits": 1}, ValueError, "'n_splits' must be a whole number of at least 2, but is 1"),
        ([NONE], {"estimatrs": []}, TypeError, "estimatrs"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_bad_families(parts, family, settings, error, message):
    missingness, classifier, data, _ = parts
    with pytest.raises(error, match=message):
        afape.optimize(data, family, classifier, missingness=missingness, **settings)


def test_data_have_to_be_records(parts):
    with pytest.raises(TypeError, match=r"'data' must be an afape.Retrospective, not list"):
        afape.optimize([1], [NONE], parts[1], missingness=parts[0])


def test_a_family_that_the_records_cannot_carry_is_refused(parts):
    """x2 is recorded only where X0 > 0, so that its cost elsewhere has bounds alone."""
    _, classifier, data, _ = parts
    keep = np.ones(data.recorded.shape, dtype=bool)
    keep[data.values[:, 0] < 0, 2] = False
    with (
        pytest.raises(ValueError, match=r"'family' must have a member whose cost .* can estimate, but the records"),
        pytest.warns(afape.warnings.AfapeWarning),
    ):
        afape.optimize(data.hide(keep), [afape.FixedOrder(["x2"])], classifier, missingness=afape.MAR(given=["x0"]))


class JointAgent:
    """Acquires nothing, and predicts one label: a policy and a classifier in one."""

    def __init__(self, label):
        self.label = label

    def probabilities(self, values, acquired):
        return np.eye(acquired.shape[1] + 1)[np.full(len(acquired), acquired.shape[1])]

    def predict(self, values, acquired):
        return np.full(len(values), self.label)


def test_members_that_classify_are_judged_with_their_own_predictions():
    experiment = synthetic_mar(3000)
    classifier, data, _ = experiment.prepare()
    best = int(np.argmin([data.costs[data.labels, k].mean() for k in (0, 1)]))
    family = {"own": JointAgent(best), "worse": JointAgent(1 - best), "shared": afape.AcquireNone()}
    settings = {"missingness": experiment.missingness, "estimators": ["ipw-semi"]}
    found = afape.optimize(data, family, Constant(1 - best), **settings)
    estimate = found.curve.set_index("member")["estimate"]
    assert found.winner == "own"
    assert estimate["worse"] == estimate["shared"] > estimate["own"]
    joined = afape.optimize(data, {"trained": lambda rows: JointAgent(best)}, classifier, **settings)
    assert joined.cost.value == pytest.approx(found.cost.value)


class Constant:
    def __init__(self, label):
        self.label = label

    def predict(self, values, acquired):
        return np.full(len(values), self.label)
