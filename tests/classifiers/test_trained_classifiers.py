"""Choice of a classifier by the cost of its errors on held-out rows, and the default way to decide."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression

import afape
from afape.classifiers import train_classifier
from afape.warnings import UselessClassifierWarning

RARE = [[0.0, 500.0], [5000.0, 0.0]]


def rare_deaths(n=3000, seed=0, cost=RARE, classes=None):
    """About 8 % die; a is always recorded, b is recorded in 60 % of the rows."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n))
    died = rng.random(n) < 1 / (1 + np.exp(3.2 - a - b))
    frame = pd.DataFrame({"a": a, "b": np.where(rng.random(n) < 0.6, b, np.nan), "died": died.astype(int)})
    problem = afape.Problem(
        {"a": ["a"], "b": ["b"]}, costs={"b": 10.0}, label="died", misclassification_cost=cost, classes=classes
    )
    return afape.Retrospective(frame, problem)


@pytest.mark.parametrize(
    ("cost", "decides"),
    [
        (7.0, "label"),
        (RARE, "cost"),
        ([[2.0, 9.0], [8.0, 1.0]], "label"),  # an error costs 7 more than the right answer, whatever the label
        ([[0.0, 9.0], [8.0, 1.0]], "cost"),
    ],
)
def test_errors_of_different_cost_are_weighed_by_default(cost, decides):
    data = rare_deaths(300, cost=cost)
    found = afape.ImputedClassifier(LogisticRegression()).fit(data)
    assert found.decide_ == decides
    expected = (found.predict_proba(data.values, data.recorded) @ data.costs).argmin(axis=1)
    if decides == "cost":
        assert_array_equal(found.predict(data.values, data.recorded), expected)
        assert hasattr(found.estimator_, "calibrated_classifiers_")
    else:
        same = afape.ImputedClassifier(LogisticRegression(), decide="label").fit(data)
        assert_array_equal(found.predict(data.values, data.recorded), same.predict(data.values, data.recorded))
        assert isinstance(found.estimator_, LogisticRegression)


def test_too_few_rows_of_a_class_are_not_calibrated_unless_asked():
    data = rare_deaths(300)
    rows = np.concatenate([np.flatnonzero(data.labels == 1)[:3], np.flatnonzero(data.labels == 0)[:40]])
    found = afape.ImputedClassifier(LogisticRegression()).fit(data.take(rows))
    assert isinstance(found.estimator_, LogisticRegression)
    assert found.decide_ == "cost"


def test_without_imputation_the_model_sees_the_gaps():
    class Gaps(LogisticRegression):
        def fit(self, X, y):
            self.gaps_ = np.isnan(X).mean()
            return super().fit(np.nan_to_num(X), y)

    data = rare_deaths(400, cost=3.0)
    found = afape.ImputedClassifier(Gaps(), (0.5, 1.0), impute=False).fit(data)
    share = np.isnan(data.values[:, 1]).mean()
    # of three copies of b: as recorded, half of them dropped, all dropped
    assert_allclose(found.estimator_.gaps_, (share + (1 + share) / 2 + 1) / 6, atol=0.02)


@pytest.mark.slow
def test_the_chosen_classifier_is_never_dearer_than_the_best_constant_answer():
    train, test = rare_deaths(4000).split([0.4, 0.6], random_state=0)
    found = train_classifier(train)
    table = found.costs.set_index("classifier")
    assert found.kind == table["mean"].drop([i for i in table.index if i.startswith("always")]).idxmin()
    assert table["mean"][found.kind] <= table["mean"]["always 0"] * 1.001
    assert_allclose(table["mean"], table[["free", "half", "recorded"]].mean(axis=1))
    nothing = afape.evaluate(
        test, afape.AcquireNone(), found.classifier, missingness=afape.MAR(given=["a"]), estimators=["ipw-semi"]
    )["ipw-semi"]["misclassification"]
    constant = test.costs[test.labels].mean(axis=0).min()
    assert nothing.value <= constant
    again = train_classifier(train)
    assert_array_equal(found.costs.to_numpy()[:, 1:], again.costs.to_numpy()[:, 1:])


def test_clusters_are_not_torn_apart():
    data = rare_deaths(600, cost=3.0)
    frame = pd.DataFrame({"a": data.values[:, 0], "b": data.values[:, 1], "died": data.labels, "who": np.arange(600)})
    noisy = frame.assign(died=np.random.default_rng(1).integers(0, 2, 600))  # nothing can be learned
    twice = afape.Retrospective(pd.concat([noisy] * 4, ignore_index=True), data.problem, cluster="who")
    table = train_classifier(twice, kinds=["forest"]).costs.set_index("classifier")
    assert table["recorded"]["forest"] > 1.3  # 1.5 by chance; with copies in the training folds it would be near 0


def test_bad_kinds_are_refused():
    data = rare_deaths(200)
    with pytest.raises(ValueError, match="'kinds' must be one of"):
        train_classifier(data, kinds=["tree"])
    with pytest.raises(ValueError, match="'kinds' must name at least one"):
        train_classifier(data, kinds=[])
    with pytest.raises(ValueError, match="at least 3 rows of every class"):
        train_classifier(data.take(np.r_[np.flatnonzero(data.labels == 1)[:1], np.flatnonzero(data.labels == 0)[:9]]))


class Always:
    def __init__(self, code):
        self.code = code

    def predict(self, values, acquired):
        return np.full(len(values), self.code)


def test_a_classifier_that_is_dearer_than_a_constant_answer_gives_a_warning():
    data = rare_deaths(1500, cost=[[0.0, 500.0], [20000.0, 0.0]])
    judge = {"missingness": afape.MAR(given=["a"]), "estimators": ["ipw-semi"]}
    dearer, cheaper = sorted((0, 1), key=lambda k: -data.costs[data.labels, k].mean())
    with pytest.warns(
        UselessClassifierWarning, match=rf"Always.*'{cheaper}'.*{data.costs[data.labels, cheaper].mean():.4g}"
    ):
        afape.evaluate(data, afape.AcquireNone(), Always(dearer), **judge)
    afape.evaluate(data, afape.AcquireNone(), Always(cheaper), **judge)  # warnings are errors
