"""Answers of user's objects: kept as they were given, and asked again about some states."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import afape
from afape.warnings import AfapeWarning, ChangingAnswersWarning


def records(n=400, gaps=True):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    frame["y"] = (frame["a"] + frame["b"] + rng.normal(size=n) > 0).astype(int)
    if gaps:
        frame.loc[rng.random(n) < 0.4, "b"] = np.nan
        frame.loc[rng.random(n) < 0.3, "c"] = np.nan
    return afape.Retrospective(frame, afape.Problem({g: [g] for g in "abc"}, {"b": 0.5, "c": 1.0}, "y", 5.0))


class Steady:
    """Acquires b with probability 0.6, then c if b is positive, else stops."""

    def probabilities(self, values, acquired):
        p = np.zeros((len(values), 4))
        p[:, 1] = np.where(acquired[:, 1], 0.0, 0.6)
        p[:, 2] = np.where(~acquired[:, 2] & (np.nan_to_num(values[:, 1]) > 0), 0.4, 0.0)
        p[:, 3] = 1 - p.sum(axis=1)
        return p


class Reusing(Steady):
    """Writes every answer into the same array, and its inputs full of zeros."""

    def __init__(self):
        self.buffer = np.zeros((100_000, 4))

    def probabilities(self, values, acquired):
        answer = super().probabilities(values, acquired)
        self.buffer[:] = 0.25
        self.buffer[: len(answer)] = answer
        values[:], acquired[:] = 0.0, True
        return self.buffer[: len(answer)]


class ByB:
    def predict(self, values, acquired):
        return (np.nan_to_num(values[:, 1]) > 0).astype(int)


class ReusingClassifier(ByB):
    def __init__(self):
        self.buffer = np.zeros(100_000, dtype=np.intp)

    def predict(self, values, acquired):
        answer = super().predict(values, acquired)
        self.buffer[:] = 0
        self.buffer[: len(answer)] = answer
        values[:], acquired[:] = 0.0, True
        return self.buffer[: len(answer)]


def size(values, acquired, labels):
    return np.nan_to_num(values).sum(axis=1)


def spoiling_size(values, acquired, labels):
    answer = size(values, acquired, labels)
    values[:], acquired[:], labels[:] = 0.0, True, 0
    return answer


def known_values(spoil):
    def function(values, acquired, labels):
        answer = np.zeros((len(values), 4, 2)) + 0.1 * np.nan_to_num(values[:, :1, None]) ** 2 + 0.6
        answer[:, 3, 0] = 0.0
        if spoil:
            values[:], acquired[:], labels[:] = 0.0, True, 0
        return answer

    return afape.KnownValues(function)


ESTIMATORS = ["blocking", "ipw-semi", "ipw-miss", "dm-semi", "drl-semi", "eff-semi", "mi"]


def tables(policy, classifier, outcome, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AfapeWarning)
        result = afape.evaluate(
            records(),
            policy,
            classifier,
            missingness=afape.MCAR(),
            outcomes={"size": outcome},
            n_imputations=2,
            **options,
        )
    return result.table.drop(columns="policy", errors="ignore")


def test_answers_are_kept_if_an_object_reuses_its_array_and_spoils_its_inputs():
    wanted = tables(Steady(), ByB(), size, estimators=ESTIMATORS)
    found = tables(Reusing(), ReusingClassifier(), spoiling_size, estimators=ESTIMATORS)
    pd.testing.assert_frame_equal(found, wanted)


def test_known_values_and_propensities_may_spoil_their_inputs():
    def propensity(values, required):
        answer = np.where(required[:, 1], 0.6, 1.0) * np.where(required[:, 2], 0.7, 1.0)
        return answer

    def spoiling(values, required):
        answer = propensity(values, required)
        values[:], required[:] = 0.0, True
        return answer

    found = [
        tables(
            Steady(), ByB(), size, estimators=["drl-semi"], values=known_values(s), propensity=afape.KnownPropensity(f)
        )
        for s, f in ((False, propensity), (True, spoiling))
    ]
    pd.testing.assert_frame_equal(*found)


class Drawing(Steady):
    """Draws its action from the global generator."""

    def probabilities(self, values, acquired):
        p = super().probabilities(values, acquired)
        action = (np.random.random((len(p), 1)) > np.cumsum(p, axis=1)).sum(axis=1)  # noqa: NPY002 (the mistake itself)
        return np.eye(4)[action]


class Counting(Steady):
    """Acquires nothing any more after some calls."""

    def __init__(self):
        self.calls = 0

    def probabilities(self, values, acquired):
        self.calls += 1
        stop = np.eye(4)[np.full(len(values), 3)]
        return stop if self.calls > 2 else super().probabilities(values, acquired)


class ByPosition(Steady):
    """Treats every second row of a call alike, whatever its values are."""

    def probabilities(self, values, acquired):
        stop = np.eye(4)[np.full(len(values), 3)]
        return np.where(np.arange(len(values))[:, None] % 2, stop, super().probabilities(values, acquired))


class DrawingClassifier:
    def predict(self, values, acquired):
        return np.random.randint(0, 2, len(values))  # noqa: NPY002


@pytest.mark.parametrize(
    ("policy", "classifier", "what"),
    [
        (Drawing(), ByB(), r"The policy Drawing .*row \d+ with the groups \['a'"),
        (Counting(), ByB(), "The policy Counting"),
        (ByPosition(), ByB(), "The policy ByPosition"),
        (Steady(), DrawingClassifier(), "The classifier DrawingClassifier"),
    ],
)
@pytest.mark.parametrize(
    "ask",
    [
        lambda p, c: afape.evaluate(records(), p, c, missingness=afape.MCAR(), estimators=["ipw-semi"]),
        lambda p, c: afape.true_cost(records(gaps=False), p, c),
    ],
)
def test_answers_that_change_are_noticed(policy, classifier, what, ask):
    if isinstance(policy, Counting):
        policy.calls = 0
    with pytest.warns(ChangingAnswersWarning, match=what):
        ask(policy, classifier)


def test_an_outcome_that_changes_is_noticed():
    rng = np.random.default_rng(0)
    with pytest.warns(ChangingAnswersWarning, match="The outcome 'luck'"):
        afape.evaluate(
            records(),
            Steady(),
            ByB(),
            missingness=afape.MCAR(),
            estimators=["ipw-semi"],
            outcomes={"luck": lambda values, acquired, labels: rng.random(len(values))},
        )


def test_the_mean_of_draws_of_an_afabench_method_may_change():
    torch = pytest.importorskip("torch")

    class Method:
        def act(self, masked_features, feature_mask, **_):
            free = feature_mask[:, 2:].any(dim=1, keepdim=True)
            return torch.where(free, 0, 3 * torch.randint(0, 2, (len(feature_mask), 1)))

    data = records(gaps=False)
    policy = afape.agents.from_afabench(Method(), data.problem.group_names, features=data.columns, n_draws=8)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ChangingAnswersWarning)
        afape.true_cost(data, policy, ByB())


@pytest.mark.parametrize("argument", ["propensity", "values"])
def test_models_that_scale_their_inputs_in_place_learn_what_others_learn(argument):
    last = LogisticRegression() if argument == "propensity" else LinearRegression()
    found = []
    for copy in (True, False):
        model = make_pipeline(SimpleImputer(copy=copy), StandardScaler(copy=copy), last)
        found.append(tables(Steady(), ByB(), size, estimators=["ipw-semi", "drl-semi"], **{argument: model}))
    pd.testing.assert_frame_equal(*found)


class Sorted(Steady):
    """Returns a table in another order of the rows, with their numbers as index."""

    def probabilities(self, values, acquired):
        return pd.DataFrame(super().probabilities(values, acquired)).sort_values(0, kind="stable")[::-1]


class SortedByB(ByB):
    def predict(self, values, acquired):
        return pd.Series(super().predict(values, acquired)).sort_values()


def sorted_size(values, acquired, labels):
    return pd.Series(size(values, acquired, labels)).sort_values()


def test_labelled_answers_are_put_in_the_order_of_the_rows():
    wanted = tables(Steady(), ByB(), size, estimators=["ipw-semi", "drl-semi"])
    found = tables(Sorted(), SortedByB(), sorted_size, estimators=["ipw-semi", "drl-semi"])
    pd.testing.assert_frame_equal(found, wanted)
