"""Impute-then-regress, rows seen in training, and the check of what any classifier returns."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import afape
from afape import ImputedClassifier, Problem, Retrospective
from afape.classifiers import ask_classifier
from afape.warnings import SeenRowsWarning, UnrecordedColumnWarning

NAN = float("nan")
GROUPS = {"a": ["a"], "bc": ["b", "c"], "d": ["d"]}
PROBLEM = Problem(GROUPS, costs={"bc": 1.0, "d": 2.0}, label="y", misclassification_cost=5.0)
STUMP = DecisionTreeClassifier(max_depth=2, random_state=0)


def draw(n=150, seed=0):
    """Draw a complete table whose label is the sign of the sum of its features."""
    frame = pd.DataFrame(np.random.default_rng(seed).normal(size=(n, 4)), columns=list("abcd"))
    return frame.assign(y=np.where(frame.sum(axis=1) > 0, "high", "low"))


def judge(classifier, data, **settings):
    """Evaluate in the cheapest way that asks the classifier."""
    settings = {"missingness": afape.MCAR(), "estimators": ["blocking"]} | settings
    return afape.evaluate(data, afape.RandomSubset(0.5), classifier, **settings)


# --------------------------------------------------------------------------------------------------------- imputation


TINY = pd.DataFrame(
    {
        "a": [1.0, 2.0, 3.0, 6.0],
        "b": [10.0, None, 30.0, None],
        "c": [5.0, None, 7.0, None],
        "d": [None, 4.0, None, 8.0],
        "y": ["low", "high", "low", "high"],
    }
)
TINY_MEANS = [(1 + 2 + 3 + 6) / 4, (10 + 30) / 2, (5 + 7) / 2, (4 + 8) / 2]


class Recorder(ClassifierMixin, BaseEstimator):
    """Keeps what it is trained on and what it is asked."""

    def fit(self, X, y):
        self.trained_, self.labels_, self.asked_ = X.copy(), y.copy(), []
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        self.asked_.append(X.copy())
        return np.zeros(len(X), dtype=int)


def test_means_are_those_of_the_recorded_training_values():
    classifier = ImputedClassifier(STUMP).fit(Retrospective(TINY, PROBLEM))
    assert_allclose(classifier.means_, TINY_MEANS, rtol=1e-12)
    assert classifier.classes_.tolist() == ["high", "low"]


def test_what_is_not_acquired_is_replaced_by_training_means():
    classifier = ImputedClassifier(Recorder()).fit(Retrospective(TINY, PROBLEM))
    values = np.array([[7.0, 1.0, 2.0, 3.0], [7.0, NAN, NAN, 3.0], [7.0, NAN, NAN, NAN]])
    acquired = np.array([[1, 1, 0], [1, 0, 1], [1, 0, 0]], dtype=bool)
    classifier.predict(values, acquired)
    _, b, c, d = TINY_MEANS
    assert_array_equal(classifier.estimator_.asked_[0], [[7, 1, 2, d], [7, b, c, 3], [7, b, c, d]])


def test_values_outside_the_acquired_groups_are_ignored():
    frame = draw()
    classifier = ImputedClassifier(random_state=0).fit(Retrospective(frame, PROBLEM))
    rng = np.random.default_rng(1)
    values, acquired = frame[list("abcd")].to_numpy(), rng.random((len(frame), 3)) < 0.5
    hidden = np.where(acquired[:, [0, 1, 1, 2]], values, NAN)
    peeking = np.where(acquired[:, [0, 1, 1, 2]], values, 1e3 * rng.normal(size=values.shape))
    found = classifier.predict(hidden, acquired)
    assert_array_equal(found, classifier.predict(peeking, acquired))
    assert (found != classifier.predict(values, np.ones_like(acquired))).any()


def test_training_copy_drops_costly_groups_as_a_whole():
    data = Retrospective(draw(2000), PROBLEM)
    classifier = ImputedClassifier(Recorder(), drop_probability=0.3).fit(data)
    plain, thinned = np.split(classifier.estimator_.trained_, 2)
    assert_array_equal(plain, data.values)
    assert_array_equal(classifier.estimator_.labels_, np.tile(data.labels, 2))
    dropped = thinned != data.values
    assert_array_equal(thinned[dropped], np.broadcast_to(classifier.means_, thinned.shape)[dropped])
    assert not dropped[:, 0].any()  # free
    assert_array_equal(dropped[:, 1], dropped[:, 2])  # b and c are one group
    error = np.sqrt(0.3 * 0.7 / 2000)
    assert_allclose(dropped[:, [1, 3]].mean(axis=0), 0.3, atol=4 * error)
    assert abs((dropped[:, 1] & dropped[:, 3]).mean() - 0.3 * 0.3) < 4 * error


def test_nothing_is_dropped_on_demand():
    data = Retrospective(TINY, PROBLEM)
    first, second = np.split(ImputedClassifier(Recorder(), drop_probability=0).fit(data).estimator_.trained_, 2)
    assert_array_equal(first, second)


@pytest.mark.parametrize("share", [-0.1, 1.5, NAN, [0.5, 2]])
def test_drop_probability_is_checked(share):
    with pytest.raises(ValueError, match=r"'drop_probability' must lie in \[0, 1\], but is"):
        ImputedClassifier(drop_probability=share).fit(Retrospective(TINY, PROBLEM))


@pytest.mark.parametrize(
    "estimator",
    [
        None,
        LogisticRegression(),
        DecisionTreeClassifier(max_depth=4, random_state=0),
        KNeighborsClassifier(5),
        GaussianNB(),
        HistGradientBoostingClassifier(max_iter=20, random_state=0),
        make_pipeline(StandardScaler(), LogisticRegression()),
    ],
    ids=lambda e: type(e).__name__,
)
def test_any_classifier_of_scikit_learn_may_sit_inside(estimator):
    train, test = Retrospective(draw(600), PROBLEM).split([0.5, 0.5])
    classifier = ImputedClassifier(estimator).fit(train)
    everything, nothing = np.ones_like(test.recorded), np.broadcast_to(PROBLEM.free, test.recorded.shape)
    found = classifier.predict(test.values, everything)
    assert found.dtype == np.intp
    informed = (found == test.labels).mean()
    assert informed > 0.75
    assert informed > (classifier.predict(test.values, nothing) == test.labels).mean() + 0.1
    assert not hasattr(estimator, "classes_")  # the one handed over stays as it was


def test_same_seed_same_classifier():
    data = Retrospective(draw(), PROBLEM)
    first, again, other = (ImputedClassifier(random_state=s).fit(data) for s in (3, 3, 4))
    grid = 2 * np.random.default_rng(0).normal(size=(500, 4))
    everything = np.ones((500, 3), dtype=bool)
    assert_array_equal(first.predict(grid, everything), again.predict(grid, everything))
    assert (first.predict(grid, everything) != other.predict(grid, everything)).any()


def test_it_is_cloned_like_any_estimator():
    copy = clone(ImputedClassifier(STUMP, drop_probability=0.2, random_state=7))
    assert copy.get_params(deep=False).keys() == {
        "estimator", "drop_probability", "random_state", "decide", "calibrate", "impute",
    }  # fmt: skip
    assert (copy.drop_probability, copy.random_state, copy.estimator.max_depth) == (0.2, 7, 2)


def test_a_column_that_nobody_recorded_is_imputed_with_a_warning():
    data = Retrospective(TINY.assign(d=NAN), PROBLEM)
    with pytest.warns(UnrecordedColumnWarning, match=r"No row records \['d'\]"):
        classifier = ImputedClassifier(STUMP).fit(data)
    assert classifier.means_[3] == 0


@pytest.mark.parametrize("shape", [(4, 3), (4, 5), (4,)])
def test_other_columns_than_in_training_are_refused(shape):
    classifier = ImputedClassifier(STUMP).fit(Retrospective(TINY, PROBLEM))
    with pytest.raises(ValueError, match="'values' must have the 4 columns of training, but has shape"):
        classifier.predict(np.zeros(shape), np.ones((4, 3), dtype=bool))


# -------------------------------------------------------------------------------------------- rows seen in training


def test_held_out_rows_give_no_warning():
    train, test = Retrospective(draw(), PROBLEM).split([0.5, 0.5])
    classifier = ImputedClassifier(STUMP).fit(train)
    assert classifier.seen(test) == 0
    assert classifier.seen(train) == len(train) == 75
    judge(classifier, test)  # warnings are errors


SEEN_ROWS = {
    # rows trained on, rows judged on, rows in both
    "the whole table": (np.arange(150), np.arange(150), 150),
    "a part of it": (np.arange(50), np.arange(150), 50),
    "an overlap": (np.arange(100), np.arange(90, 150), 10),
    "a single row": (np.arange(100), np.arange(99, 150), 1),
    "shuffled": (np.arange(149, 79, -1), np.arange(100), 20),
}


@pytest.mark.parametrize(("trained", "judged", "both"), SEEN_ROWS.values(), ids=SEEN_ROWS)
def test_rows_of_one_table_are_known_by_their_place(trained, judged, both):
    data = Retrospective(draw(), PROBLEM)
    classifier = ImputedClassifier(STUMP).fit(data.take(trained))
    match = rf"ImputedClassifier was trained on {both} of the {len(judged)} rows.*Hold out rows"
    with pytest.warns(SeenRowsWarning, match=match) as caught:
        judge(classifier, data.take(judged))
    assert len(caught) == 1


def test_hidden_values_do_not_hide_that_a_row_was_seen():
    data = Retrospective(draw(), PROBLEM)
    classifier = ImputedClassifier(STUMP).fit(data.take(np.arange(100)))
    gaps = afape.missingness.IndependentMechanism({"bc": 0.5, "d": 0.5}).hide(data)
    with pytest.warns(SeenRowsWarning, match="trained on 100 of the 150 rows"):
        judge(classifier, gaps)


def test_true_cost_warns_as_well():
    data = Retrospective(draw(), PROBLEM)
    with pytest.warns(SeenRowsWarning, match="trained on 150 of the 150 rows"):
        afape.true_cost(data, afape.AcquireAll(), ImputedClassifier(STUMP).fit(data))


@pytest.mark.parametrize(("first", "both"), [(0, 100), (60, 40), (80, 20)])
def test_rows_of_separately_built_tables_are_known_by_their_values(first, both):
    frame = draw(200)
    classifier = ImputedClassifier(STUMP).fit(Retrospective(frame.iloc[:100], PROBLEM))
    other = Retrospective(frame.iloc[first : first + 100].sample(frac=1, random_state=0), PROBLEM)
    with pytest.warns(SeenRowsWarning, match=f"trained on {both} of the 100 rows"):
        judge(classifier, other)


def test_separately_built_tables_without_common_rows_give_no_warning():
    frame = draw(200)
    classifier = ImputedClassifier(STUMP).fit(Retrospective(frame.iloc[:100], PROBLEM))
    judge(classifier, Retrospective(frame.iloc[100:], PROBLEM))  # warnings are errors


def discrete(n, n_levels, seed):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.integers(0, n_levels, size=(n, 4)).astype(float), columns=list("abcd"))
    return frame.assign(y=np.where(rng.random(n) < 0.5, "high", "low"))


@pytest.mark.parametrize(("n", "n_levels"), [(200, 2), (200, 3), (200, 5), (1000, 5), (2000, 8)])
def test_look_alikes_in_discrete_data_are_no_seen_rows(n, n_levels):
    """Independent draws from few patterns agree by chance: some patterns occur once in either table."""
    train, test = (Retrospective(discrete(n, n_levels, seed), PROBLEM) for seed in (0, 1))
    assert np.isin(test.fingerprints(), train.fingerprints()).mean() > 0.1
    judge(ImputedClassifier(STUMP).fit(train), test)  # warnings are errors


def test_look_alikes_in_one_discrete_table_are_no_seen_rows():
    train, test = Retrospective(discrete(200, 3, 0), PROBLEM).split([0.5, 0.5])
    judge(ImputedClassifier(STUMP).fit(train), test)  # warnings are errors


def test_a_classifier_of_ones_own_may_count_what_it_has_seen():
    class Honest:
        def predict(self, values, acquired):
            return np.zeros(len(values), dtype=int)

        def seen(self, data):
            return 3

    with pytest.warns(SeenRowsWarning, match="Honest was trained on 3 of the 150 rows"):
        judge(Honest(), Retrospective(draw(), PROBLEM))


# ------------------------------------------------------------------------------------------------- classes and columns


def labelled(labels, seed=0, **options):
    frame = draw(len(labels), seed).assign(y=labels)
    return Retrospective(frame, Problem(GROUPS, {"bc": 1.0, "d": 2.0}, "y", 5.0, **options))


def test_a_class_that_training_never_met_is_refused():
    data = labelled(["low", "mid", "high"] * 20)
    classifier = ImputedClassifier(STUMP).fit(data.take(data.labels != 2))
    assert classifier.classes_.tolist() == ["high", "low"]
    with pytest.raises(
        ValueError, match=r"never saw the classes \['mid'\], which 20 of 60 rows have.*\['high', 'low'\]"
    ):
        judge(classifier, data)
    with_two = labelled(["low", "high"] * 20, seed=1, classes=["high", "low", "mid"])
    judge(classifier, with_two)  # no row needs the third


@pytest.mark.parametrize("known", [["high", "low"], [0, 1], np.array([0, 1]), ("low", "high")], ids=repr)
def test_classes_may_be_labels_or_codes(known):
    class Own:
        classes_ = known

        def predict(self, values, acquired):
            return np.zeros(len(values), dtype=int)

    judge(Own(), labelled(["low", "high"] * 20))
    with pytest.raises(ValueError, match=r"Own never saw the classes \['mid'\], which 20 of 60 rows have"):
        judge(Own(), labelled(["low", "mid", "high"] * 20))


def test_codes_that_mean_other_labels_are_refused():
    classifier = ImputedClassifier(STUMP).fit(labelled(["low", "high"] * 20, classes=["low", "high"]))
    other = labelled(["low", "high"] * 20, classes=["high", "low"])
    with pytest.raises(
        ValueError, match=r"has the labels .*'low'.*'high'.*, but the data have .*'high'.*'low'.*'classes'"
    ):
        judge(classifier, other)


def test_labels_in_a_message_read_as_the_user_wrote_them():
    classifier = ImputedClassifier(STUMP).fit(labelled([3, 7] * 20, classes=[3, 7]))
    with pytest.raises(ValueError, match=r"has the labels \[3, 7\], but the data have \[7, 3\]"):
        judge(classifier, labelled([3, 7] * 20, classes=[7, 3]))


@pytest.mark.parametrize("levels", ["vw", "uvw"], ids=["as many", "more"])
def test_columns_that_mean_other_levels_are_refused(levels):
    """One-hot columns of separately built tables may stand for other levels, even where there are as many."""
    train, test = (
        Retrospective(draw(60, seed).assign(d=[text[i % len(text)] for i in range(60)]), PROBLEM)
        for seed, text in ((0, "uv"), (1, levels))
    )
    classifier = ImputedClassifier(STUMP).fit(train)
    with pytest.raises(ValueError, match=r"(?s)ImputedClassifier.*columns.*'d=w'"):
        judge(classifier, test)


@pytest.mark.parametrize(
    "use",
    [
        lambda c: judge(c, Retrospective(TINY, PROBLEM), n_folds=1),
        lambda c: afape.true_cost(Retrospective(draw(), PROBLEM), afape.AcquireAll(), c),
        lambda c: c.predict(np.zeros((2, 4)), np.ones((2, 3), dtype=bool)),
        lambda c: c.seen(Retrospective(TINY, PROBLEM)),
    ],
    ids=["evaluate", "true_cost", "predict", "seen"],
)
def test_an_unfitted_classifier_says_so(use):
    with pytest.raises(RuntimeError, match=r"not fitted yet; call .*fit\(training_data\) first"):
        use(ImputedClassifier())


# -------------------------------------------------------------------------------- what a classifier may not return


class Says:
    def __init__(self, answer):
        self.answer = answer

    def predict(self, values, acquired):
        return self.answer


ROWS = np.array([11, 22, 33])
NONSENSE = {
    "too few": ([0, 1], r"one label code per row, shape \(3,\), but returned \(2,\)"),
    "a column": ([[0], [1], [0]], r"shape \(3,\), but returned \(3, 1\)"),
    "one-hot": (np.eye(3), r"shape \(3,\), but returned \(3, 3\)"),
    "nothing": (None, r"shape \(3,\), but returned \(\)"),
    "different lengths": ([[0], [1, 0], [0]], "must return one label code per row"),
    "text": (["low", "high", "low"], r"label codes 0\.\.1, but returned .*'low'.* row 11.*data\.classes"),
    "probabilities": ([0.0, 0.3, 1.0], r"label codes 0\.\.1, but returned .*0\.3.* row 22"),
    "NaN": ([1.0, 0.0, NAN], r"label codes 0\.\.1, but returned .*nan.* row 33"),
    "infinite": ([1.0, np.inf, 0.0], r"label codes 0\.\.1, but returned .*inf.* row 22"),
    "too large": ([0, 2, 2], r"label codes 0\.\.1, but breaks .* in 2 of 3 states, first in row 22: 2"),
    "negative": ([0, 1, -1], r"label codes 0\.\.1, but breaks .* in 1 of 3 states, first in row 33: -1"),
    "too large, as float": ([0.0, 1.0, 2.0], r"label codes 0\.\.1, but breaks .* in 1 of 3 states, first in row 33: 2"),
    "objects": (np.array([0, None, 1], dtype=object), r"label codes 0\.\.1, but returned .*None.* row 22"),
}


@pytest.mark.parametrize(("answer", "message"), NONSENSE.values(), ids=NONSENSE)
def test_nonsense_is_refused_with_classifier_and_first_bad_row(answer, message):
    with pytest.raises(ValueError, match=message) as caught:
        ask_classifier(Says(answer), np.zeros((3, 2)), np.ones((3, 2), dtype=bool), ROWS, n_classes=2)
    assert "The classifier Says must return" in str(caught.value)


@pytest.mark.parametrize(
    "answer",
    [
        [0, 1, 0],
        np.array([0, 1, 0], dtype=np.uint8),
        [0.0, 1.0, 0.0],
        [-0.0, 1.0, 0.0],
        [False, True, False],
        pd.Series([0, 1, 0], index=[5, 6, 7]),
    ],
    ids=["list", "small type", "whole floats", "negative zero", "booleans", "series"],
)
def test_codes_of_any_kind_are_taken(answer):
    found = ask_classifier(Says(answer), np.zeros((3, 2)), np.ones((3, 2), dtype=bool), ROWS, n_classes=2)
    assert found.dtype == np.intp
    assert found.tolist() == [0, 1, 0]


def test_an_error_in_evaluate_names_the_row_of_the_data():
    data = Retrospective(draw(), PROBLEM)
    odd = float(data.values[42, 0])

    class Slips:
        def predict(self, values, acquired):
            return np.where(values[:, 0] == odd, 9, 0)

    with pytest.raises(ValueError, match=r"classifier Slips must return label codes 0\.\.1, .* row 42: 9"):
        judge(Slips(), data)


def test_the_classifier_sees_nothing_but_what_was_acquired():
    class Watcher:
        def predict(self, values, acquired):
            watched.append(np.isnan(values) == ~acquired[:, [0, 1, 1, 2]])
            return np.zeros(len(values), dtype=int)

    watched = []
    judge(Watcher(), Retrospective(draw(), PROBLEM), estimators=["ipw-semi", "imp-mean"])
    assert len(watched) > 3
    assert all(seen.all() for seen in watched)
