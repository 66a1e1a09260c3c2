"""Model files: nothing is lost, nothing runs, and what does not fit is refused with what differs."""

import io
import json
import pickle
import subprocess
import sys
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import afape
from afape.agents.budgets import CostBudget, StepBudget
from afape.agents.clusters import ClusterAgent
from afape.agents.value_of_information import ValueOfInformation
from afape.classifiers.training import KINDS, untrained
from afape.files.errors import StorageError
from afape.files.stored_trees import check_trees


def world(labels=("no", "yes"), prices=(0.0, 1.0, 2.0), n=600, cost=10.0):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 3))
    names = np.array(labels, dtype=object)
    frame = pd.DataFrame(x, columns=["a", "b", "c"]).assign(y=names[(x.sum(axis=1) > 0).astype(int)])
    frame.loc[rng.random(n) < 0.3, "b"] = np.nan
    groups = {"a": ["a"], "b": ["b"], "c": ["c"]}
    costs = dict(zip(groups, prices, strict=True))
    return afape.Retrospective(frame, afape.Problem(groups, costs, "y", cost))


def questions(data):
    rng = np.random.default_rng(1)
    acquired = rng.random((200, 3)) < 0.5
    return np.where(acquired, data.values[:200], np.nan), acquired


def through_file(thing, path, problem, **flags):
    afape.save(thing, path, problem)
    return afape.load(path, problem, **flags)


ESTIMATORS = [
    None,
    LogisticRegression(),
    make_pipeline(StandardScaler(), LogisticRegression()),
    DecisionTreeClassifier(random_state=0),
    ExtraTreesClassifier(5, random_state=0),
    GradientBoostingClassifier(n_estimators=3, random_state=0),
    HistGradientBoostingClassifier(max_iter=3),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_classifier_survives(estimator, tmp_path):
    train, test = world().split([0.5, 0.5])
    classifier = afape.ImputedClassifier(estimator, drop_probability=0.25, random_state=3).fit(train)
    loaded = through_file(classifier, tmp_path / "c", train.problem)
    assert_array_equal(loaded.predict(*questions(test)), classifier.predict(*questions(test)))
    assert repr(loaded) == repr(classifier)
    assert loaded.means_.tobytes() == classifier.means_.tobytes()
    assert (loaded.classes_.tolist(), loaded.columns_) == (["no", "yes"], ("a", "b", "c"))
    assert loaded.classes_.dtype == classifier.classes_.dtype
    assert (loaded.seen(train), loaded.seen(test)) == (len(train), 0)  # it still knows its rows
    total = afape.true_cost(test.take(test.complete), afape.AcquireAll(), loaded)["total"].value
    assert total == afape.true_cost(test.take(test.complete), afape.AcquireAll(), classifier)["total"].value


@pytest.mark.parametrize("calibrate", [False, None])
def test_a_classifier_that_decides_by_cost_still_does(tmp_path, calibrate):
    train = world(cost=[[0.0, 1.0], [50.0, 0.0]])
    classifier = afape.ImputedClassifier(LogisticRegression(), calibrate=calibrate).fit(train)
    likely = afape.ImputedClassifier(LogisticRegression(), decide="label").fit(train)
    loaded = through_file(classifier, tmp_path / "c", train.problem)
    found = classifier.predict(*questions(train))
    assert (found != likely.predict(*questions(train))).any()
    assert_array_equal(loaded.predict(*questions(train)), found)
    assert repr(loaded) == repr(classifier)
    assert loaded.groups_ == classifier.groups_


@pytest.mark.parametrize("kind", list(KINDS))
def test_every_kind_of_trained_classifier_is_saved_without_pickle(tmp_path, kind):
    train = world(cost=[[0.0, 1.0], [50.0, 0.0]])
    classifier = untrained(kind).fit(train)
    loaded = through_file(classifier, tmp_path / "c", train.problem)
    assert_array_equal(loaded.predict(*questions(train)), classifier.predict(*questions(train)))


def test_whole_number_labels_stay_whole_numbers(tmp_path):
    data = world(labels=(3, 7))
    loaded = through_file(afape.ImputedClassifier(LogisticRegression()).fit(data), tmp_path / "c", data.problem)
    assert loaded.classes_.tolist() == [3, 7]
    assert loaded.label_classes_.dtype == data.classes.dtype


@pytest.mark.parametrize(
    "policy",
    [
        afape.RandomSubset(0.1 + 0.2),
        afape.FixedOrder(["c", "b"]),
        afape.AcquireAll(),
        afape.AcquireNone(),
        StepBudget(afape.FixedOrder(["c", "b"]), 1),
        CostBudget(afape.FixedOrder(["c", "b"]), 1.5),
    ],
    ids=repr,
)
def test_built_in_policies_survive(policy, tmp_path):
    data = world()
    loaded = through_file(policy, tmp_path / "p", data.problem)
    assert repr(loaded) == repr(policy)
    asked = [afape.agents.policy.bind(p, data.problem).probabilities(*questions(data)) for p in (policy, loaded)]
    assert_array_equal(*asked)


def test_an_agent_takes_its_classifier_along(tmp_path):
    train, rest = world().split([0.5, 0.5])
    classifier = afape.ImputedClassifier(LogisticRegression()).fit(train)
    agent = ValueOfInformation(estimator=RandomForestClassifier(3, random_state=0)).fit(rest, classifier)
    loaded = through_file(agent, tmp_path / "a", rest.problem)
    assert type(loaded.classifier_) is afape.ImputedClassifier
    assert repr(loaded) == repr(agent)
    assert_array_equal(loaded.probabilities(*questions(rest)), agent.probabilities(*questions(rest)))


# --------------------------------------------------------------------------------------------------- what differs


@pytest.fixture
def saved(tmp_path):
    data = world()
    afape.save(afape.ImputedClassifier(LogisticRegression()).fit(data), tmp_path / "c", data.problem)
    return tmp_path / "c", data.problem


def rewritten(path, **changes):
    """The same file with another manifest."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts["manifest.json"] = json.dumps({**json.loads(parts["manifest.json"]), **changes}).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"costs": {"b": 1.0, "c": 3.0}}, r"prices: \[0.0, 1.0, 2.0\] in the file, \[0.0, 1.0, 3.0\] here"),
        ({"groups": {"a": ["a"], "c": ["c"], "b": ["b"]}}, "groups: .* in the file"),
        ({"label": "z"}, "label: 'y' in the file, 'z' here"),
        ({"misclassification_cost": 11.0}, "misclassification_cost: 10.0 in the file, 11.0 here"),
        ({"classes": ["no", "yes"]}, "classes: None in the file"),
        ({"categories": {"b": [1, 2]}}, "categories: .* here"),
        ({"blank_means": {"b": 0}}, "blank_means: .* here"),
    ],
)
def test_another_problem_is_refused_with_what_differs(saved, change, message):
    path, problem = saved
    given = {"groups": problem.groups, "costs": problem.costs, "label": "y", "misclassification_cost": 10.0} | change
    with pytest.raises(StorageError, match=f"saved for a different problem: .*{message}"):
        afape.load(path, afape.Problem(**given))
    assert type(afape.load(path)) is afape.ImputedClassifier  # without a problem it is taken as it is


def test_another_format_version_is_refused(saved):
    path, problem = saved
    rewritten(path, format_version=99)
    with pytest.raises(StorageError, match=r"format version 99, written by afape .*; this afape reads version 1"):
        afape.load(path, problem)


def test_another_scikit_learn_is_refused_unless_asked_for(saved):
    path, problem = saved
    rewritten(path, scikit_learn="0.24.1")
    with pytest.raises(StorageError, match=r"saved with scikit-learn 0.24.1, but"):
        afape.load(path, problem)
    assert type(afape.load(path, problem, check_versions=False)) is afape.ImputedClassifier


def test_a_policy_without_models_does_not_care_about_scikit_learn(tmp_path):
    data = world()
    classifier = afape.ImputedClassifier(LogisticRegression()).fit(data.split([0.5, 0.5])[0])
    afape.save(ClusterAgent().fit(data.split([0.5, 0.5])[1], classifier), tmp_path / "a", data.problem)
    rewritten(tmp_path / "a", scikit_learn="0.24.1")
    assert type(afape.load(tmp_path / "a", data.problem)) is ClusterAgent


def test_what_is_no_model_file_is_refused(saved, tmp_path):
    path, problem = saved
    (tmp_path / "text").write_text("hello")
    with pytest.raises(StorageError, match=r"was not written by afape.save"):
        afape.load(tmp_path / "text", problem)
    with zipfile.ZipFile(tmp_path / "zip", "w") as archive:
        archive.writestr("other.txt", "hello")
    with pytest.raises(StorageError, match=r"was not written by afape.save"):
        afape.load(tmp_path / "zip", problem)
    with zipfile.ZipFile(tmp_path / "json", "w") as archive:
        archive.writestr("manifest.json", "{")
    with pytest.raises(StorageError, match=r"was not written by afape.save"):
        afape.load(tmp_path / "json", problem)
    rewritten(path, settings={})
    with pytest.raises(StorageError, match=r"is damaged .KeyError"):
        afape.load(path, problem)
    rewritten(path, format="other")
    with pytest.raises(StorageError, match=r"it was not written by afape"):
        afape.load(path, problem)
    with pytest.raises(FileNotFoundError):
        afape.load(tmp_path / "nowhere", problem)


def test_numbers_of_numpy_are_plain_settings(tmp_path):
    data = world()
    policy = afape.RandomSubset(np.float64(0.25))
    assert through_file(StepBudget(policy, np.int64(1)), tmp_path / "p", data.problem).policy.p == 0.25


@pytest.mark.parametrize("kind", ["os", "Unknown", "Policy", "DecisionRule", "from_function"])
def test_only_public_agents_are_built(saved, kind):
    path, problem = saved
    rewritten(path, kind=kind)
    with pytest.raises(StorageError, match=f"contains a '{kind}', which is not an agent of this version"):
        afape.load(path, problem)


def test_unfitted_things_and_wrong_problems_are_not_saved(tmp_path):
    data = world()
    with pytest.raises(StorageError, match=r"not fitted yet; call fit"):
        afape.save(afape.ImputedClassifier(), tmp_path / "c", data.problem)
    with pytest.raises(TypeError, match=r"'problem' must be an afape.Problem, not dict"):
        afape.save(afape.AcquireAll(), tmp_path / "c", {})
    with pytest.raises(TypeError, match=r"'problem' must be an afape.Problem or None, not dict"):
        afape.load(tmp_path / "c", {})
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------------------------------------ nothing runs


class Fires:
    """Would be noticed if a file ran code."""

    fired = False

    def __reduce__(self):
        return (_fire, ())

    def predict(self, values, acquired):
        return np.zeros(len(values), dtype=int)


def _fire():
    Fires.fired = True
    return Fires()


class Own(ClassifierMixin, BaseEstimator):
    """A classifier of one's own, with scikit-learn's interface."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.zeros(len(X), dtype=int)


def test_pickles_are_written_and_read_only_on_a_flag(tmp_path):
    data = world()
    with pytest.raises(StorageError, match=r"Fires, which cannot be saved without running code.*unsafe=True"):
        afape.save(Fires(), tmp_path / "f", data.problem)
    afape.save(Fires(), tmp_path / "f", data.problem, unsafe=True)
    Fires.fired = False
    with pytest.raises(StorageError, match=r"contains a pickle, which can run any code.*unsafe=True"):
        afape.load(tmp_path / "f", data.problem)
    assert not Fires.fired
    assert type(afape.load(tmp_path / "f", data.problem, unsafe=True)) is Fires
    assert Fires.fired


def test_a_pickle_inside_an_agent_is_refused_too(tmp_path):
    data = world()
    agent = ValueOfInformation().fit(data, Fires())
    with pytest.raises(StorageError, match=r"'thing' contains Fires, which cannot be saved"):
        afape.save(agent, tmp_path / "a", data.problem)
    afape.save(StepBudget(agent, 1), tmp_path / "a", data.problem, unsafe=True)
    Fires.fired = False
    with pytest.raises(StorageError, match=r"contains a pickle"):
        afape.load(tmp_path / "a", data.problem)
    assert not Fires.fired
    assert type(afape.load(tmp_path / "a", data.problem, unsafe=True).policy.classifier_) is Fires


def test_a_pickle_under_another_name_does_not_run(saved):
    path, problem = saved
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    for name in parts:
        if name.endswith(".npy"):
            parts[name] = pickle.dumps(Fires())
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    Fires.fired = False
    with pytest.raises(ValueError, match=r"pickle"):
        afape.load(path, problem)
    assert not Fires.fired


def test_types_of_one_s_own_have_to_be_trusted_by_name(tmp_path):
    data = world()
    afape.save(afape.ImputedClassifier(Own()).fit(data), tmp_path / "c", data.problem)
    name = f"{Own.__module__}.Own"
    with pytest.raises(StorageError, match=rf"types that may be unsafe: \['{name}'\]"):
        afape.load(tmp_path / "c", data.problem)
    loaded = afape.load(tmp_path / "c", data.problem, trusted=[name])
    assert type(loaded.estimator_) is Own


def with_nodes(tree, **columns):
    """A tree whose nodes hold other numbers."""
    build, arguments, state = tree.__reduce__()
    nodes = state["nodes"].copy()
    for name, value in columns.items():
        nodes[name][0] = value
    new = build(*arguments)
    new.__setstate__({**state, "nodes": nodes})
    return new


@pytest.mark.parametrize(
    "columns", [{"left_child": 10**6}, {"right_child": 0}, {"feature": 99}, {"feature": -7}], ids=str
)
@pytest.mark.parametrize("kind", [DecisionTreeClassifier, RandomForestClassifier])
def test_forged_trees_are_refused(kind, columns):
    data = world()
    X = np.nan_to_num(data.values)
    model = kind(random_state=0).fit(X, data.labels)
    check_trees(model)
    member = model if kind is DecisionTreeClassifier else model.estimators_[1]
    member.tree_ = with_nodes(member.tree_, **columns)
    with pytest.raises(StorageError, match=r"damaged or forged"):
        check_trees(make_pipeline(StandardScaler(), model))


@pytest.mark.parametrize("columns", [{"left": 10**6}, {"right": 0}, {"feature_idx": 99}], ids=str)
def test_forged_boosted_trees_are_refused(columns):
    data = world()
    model = HistGradientBoostingClassifier(max_iter=2).fit(data.values, data.labels)
    check_trees(model)
    for name, value in columns.items():
        model._predictors[1][0].nodes[name][0] = value
    with pytest.raises(StorageError, match=r"refers to nodes or columns that do not exist"):
        check_trees(model)


def test_a_forest_whose_trees_have_other_columns_is_refused():
    data = world()
    X = np.nan_to_num(data.values)
    forest = RandomForestClassifier(3, random_state=0).fit(X, data.labels)
    forest.estimators_[0] = DecisionTreeClassifier().fit(np.column_stack([X, X]), data.labels)
    with pytest.raises(StorageError, match=r"trees of a forest do not fit its columns"):
        check_trees(forest)
    with pytest.raises(StorageError, match=r"a tree outside any model"):
        check_trees([forest.estimators_[1].tree_])


def test_a_forged_file_is_refused_when_it_is_loaded(tmp_path):
    data = world()
    classifier = afape.ImputedClassifier(DecisionTreeClassifier(random_state=0)).fit(data)
    classifier.estimator_.tree_ = with_nodes(classifier.estimator_.tree_, feature=99)
    afape.save(classifier, tmp_path / "c", data.problem)
    with pytest.raises(StorageError, match=r"damaged or forged"):
        afape.load(tmp_path / "c", data.problem)


def test_a_failed_save_leaves_the_old_file(tmp_path):
    data = world()
    afape.save(afape.AcquireAll(), tmp_path / "p", data.problem)
    before = (tmp_path / "p").read_bytes()
    with pytest.raises(StorageError):
        afape.save(afape.DecisionRule(lambda values, acquired: 0), tmp_path / "p", data.problem)
    assert (tmp_path / "p").read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["p"]
    assert zipfile.ZipFile(io.BytesIO(before)).namelist() == ["manifest.json"]


def changed(path, entry, content):
    """Write another content of one entry into a saved file."""
    archive = zipfile.ZipFile(io.BytesIO(path.read_bytes()))
    entries = {name: archive.read(name) for name in archive.namelist()} | {entry: content}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name, value in entries.items():
            new.writestr(name, value)


def test_models_that_compiled_code_reads_unchecked_have_to_be_trusted(tmp_path):
    data = world()
    afape.save(afape.ImputedClassifier(SVC()).fit(data), tmp_path / "c", data.problem)
    with pytest.raises(StorageError, match=r"may be unsafe: \['sklearn.svm._classes.SVC'\]"):
        afape.load(tmp_path / "c", data.problem)
    trusted = afape.load(tmp_path / "c", data.problem, trusted=["sklearn.svm._classes.SVC"])
    assert trusted.predict(*questions(data)).shape == (200,)


@pytest.mark.parametrize(
    ("entry", "content"),
    [
        ("arrays/0.npy", bytes(10**9 // 8)),
        ("arrays/0.npy", b"\x93NUMPY\x01\x00\x45\x00{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }"),
        ("arrays/0.npy", b"\x93NUMPY"),
        ("models/fitted.skops", b"no zip"),
        ("manifest.json", b"[" * 10**6),
        ("manifest.json", b"{}"),
    ],
    ids=["zip bomb", "header of another size", "cut header", "cut model", "deep JSON", "empty manifest"],
)  # fmt: skip
def test_damage_is_told_and_costs_nothing(saved, entry, content):
    path, problem = saved
    name = next(n for n in zipfile.ZipFile(path).namelist() if n.endswith(".skops"))
    tracemalloc.start()
    changed(path, name if entry.endswith(".skops") else entry, content)
    tracemalloc.reset_peak()
    with pytest.raises(StorageError):
        afape.load(path, problem)
    assert tracemalloc.get_traced_memory()[1] < 10**8
    tracemalloc.stop()


def test_arrays_that_do_not_fit_together_are_refused(saved):
    path, problem = saved
    out = io.BytesIO()
    np.save(out, np.zeros(7))
    manifest = json.loads(zipfile.ZipFile(path).read("manifest.json"))
    changed(path, f"arrays/{manifest['arrays'].index('means')}.npy", out.getvalue())
    with pytest.raises(StorageError, match="is damaged"):
        afape.load(path, problem)


def test_forged_files_do_no_harm():
    """Some random damage; ``python tests/files/fuzz.py --inputs 2000`` tries more."""
    command = [sys.executable, str(Path(__file__).with_name("fuzz.py")), "--inputs", "40"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
