"""Bad input is refused with its name, the rule, what came and the way out, before any model is called."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import afape
from afape import MAR, MCAR, FixedOrder, ImputedClassifier, KnownPropensity, LearnedPropensity, WalkOptions

NAN, INF = float("nan"), float("inf")
GROUPS = {"a": ["a"], "b": ["b"], "cd": ["c", "d"]}
N = 40


class CountingPolicy:
    """Acquires b with probability one half, then stops; counts how often it is asked."""

    def __init__(self):
        self.calls = 0

    def probabilities(self, values, acquired):
        self.calls += 1
        p = np.zeros((len(values), acquired.shape[1] + 1))
        p[:, 1] = np.where(acquired[:, 1], 0.0, 0.5)
        p[:, -1] = 1 - p[:, 1]
        return p


class CountingClassifier:
    def __init__(self):
        self.calls = 0

    def predict(self, values, acquired):
        self.calls += 1
        return np.zeros(len(values), dtype=int)


def frame(**columns):
    """Build a table with gaps in group b (10 of 40 rows) and group cd (8 of 40 rows); group a is free."""
    x = np.random.default_rng(0).normal(size=(N, 4))
    x[::4, 1] = np.nan
    x[::5, 2:] = np.nan
    return pd.DataFrame(x, columns=list("abcd")).assign(y=["no", "yes"] * (N // 2)).assign(**columns)


class World:
    """Good input, of which each case spoils one piece."""

    def __init__(self):
        self.policy, self.classifier = CountingPolicy(), CountingClassifier()

    def problem(self, **spoiled):
        good = {"groups": GROUPS, "costs": {"b": 1.0, "cd": 2.0}, "label": "y", "misclassification_cost": 5.0}
        return afape.Problem(**(good | spoiled))

    def data(self, table=None, *, cluster=None, missing_labels="raise", **problem):
        table = frame() if table is None else table
        return afape.Retrospective(table, self.problem(**problem), cluster=cluster, missing_labels=missing_labels)

    def evaluate(self, **spoiled):
        good = {
            "data": self.data(),
            "policy": self.policy,
            "classifier": self.classifier,
            "missingness": MCAR(),
            "estimators": None,
        }
        return afape.evaluate(**(good | spoiled))

    def true_cost(self, **spoiled):
        good = {"data": self.data(frame().fillna(0.0)), "policy": self.policy, "classifier": self.classifier}
        return afape.true_cost(**(good | spoiled))


class Bad(NamedTuple):
    what: str
    attempt: Any
    error: Any
    match: str


def known(answer):
    def function(values, required):
        return answer(len(values))

    return KnownPropensity(function)


def column_twice():
    doubled = frame(e=1.0)
    doubled.columns = ["a", "b", "c", "d", "y", "b"]
    return doubled


def trained_on(data):
    return ImputedClassifier(DecisionTreeClassifier()).fit(data)


WRONG = (TypeError, ValueError)
WEAK_SIMULATION = WalkOptions(max_states=0, simulation=afape.AcquireNone())

PROBLEM = [
    Bad("no groups", lambda w: w.problem(groups={}), ValueError, "'groups' must be a mapping from at least one group"),
    Bad("groups as list", lambda w: w.problem(groups=["a", "b"]), WRONG, "'groups' must be a mapping"),
    Bad("group without columns", lambda w: w.problem(groups=GROUPS | {"b": []}), ValueError, "'b' has none"),
    Bad("columns no list", lambda w: w.problem(groups=GROUPS | {"b": 7}), WRONG, "'groups' must .*'b'.* 7"),
    Bad(
        "column twice in a group",
        lambda w: w.problem(groups=GROUPS | {"cd": ["c", "c"]}),
        ValueError,
        "'groups' must name each column once, but 'c' is in 'cd' and again in 'cd'",
    ),
    Bad(
        "column in two groups",
        lambda w: w.problem(groups=GROUPS | {"cd": ["c", "b"]}),
        ValueError,
        "'groups' must name each column once, but 'b' is in 'b' and again in 'cd'",
    ),
    Bad("costs as list", lambda w: w.problem(costs=[1.0]), TypeError, "'costs' must be a mapping .*, not list"),
    Bad("price negative", lambda w: w.problem(costs={"b": -1}), ValueError, "'costs' must .* price of 'b' is -1"),
    Bad("price NaN", lambda w: w.problem(costs={"b": NAN}), ValueError, "'costs' must be finite .* of 'b' is nan"),
    Bad("price infinite", lambda w: w.problem(costs={"b": INF}), ValueError, "'costs' must be finite .* of 'b' is inf"),
    Bad("price None", lambda w: w.problem(costs={"b": None}), WRONG, "'costs' must .* of 'b' is None"),
    Bad("price as text", lambda w: w.problem(costs={"b": "cheap"}), WRONG, "'costs' must .* of 'b' is 'cheap'"),
    Bad("price as list", lambda w: w.problem(costs={"b": [1.0]}), WRONG, r"'costs' must .* of 'b' is \[1.0\]"),
    Bad(
        "price of an unknown group",
        lambda w: w.problem(costs={"c": 1.0}),
        ValueError,
        r"'costs' must name groups, but 'c' is none. The groups are \['a', 'b', 'cd'\]",
    ),
    Bad(
        "cost vector",
        lambda w: w.problem(misclassification_cost=[1, 2]),
        ValueError,
        r"'misclassification_cost' must be one number or a square matrix .* shape \(2,\)",
    ),
    Bad("cost matrix not square", lambda w: w.problem(misclassification_cost=np.ones((2, 3))), ValueError, r"\(2, 3\)"),
    Bad(
        "cost matrix ragged",
        lambda w: w.problem(misclassification_cost=[[0, 1], [1]]),
        WRONG,
        "'misclassification_cost' must",
    ),
    Bad(
        "cost as text",
        lambda w: w.problem(misclassification_cost="high"),
        WRONG,
        "'misclassification_cost' must .*'high'",
    ),
    Bad(
        "cost negative",
        lambda w: w.problem(misclassification_cost=-5),
        ValueError,
        "'misclassification_cost' must .* -5",
    ),
    Bad(
        "cost NaN",
        lambda w: w.problem(misclassification_cost=NAN),
        ValueError,
        "'misclassification_cost' must be finite",
    ),
    Bad(
        "cost infinite in a matrix",
        lambda w: w.problem(misclassification_cost=[[0, INF], [1, 0]]),
        ValueError,
        "'misclassification_cost' must be finite",
    ),
    Bad("label is a feature", lambda w: w.problem(label="b"), ValueError, "'label' must not be a feature, but 'b'"),
    Bad(
        "one declared class",
        lambda w: w.problem(classes=["no"]),
        ValueError,
        "'classes' must be at least two different",
    ),
    Bad(
        "class declared twice",
        lambda w: w.problem(classes=["no", "no"]),
        ValueError,
        "'classes' must be at least two different",
    ),
    Bad("classes as number", lambda w: w.problem(classes=2), WRONG, "'classes' must .* 2"),
    Bad("classes as text", lambda w: w.problem(classes="no"), WRONG, "'classes' must .*'no'"),
    Bad(
        "cost matrix for other classes",
        lambda w: w.problem(classes=["no", "yes"], misclassification_cost=np.ones((3, 3))),
        ValueError,
        r"'misclassification_cost' must .* shape \(3, 3\) for 2 classes",
    ),
    Bad(
        "categories of no column",
        lambda w: w.problem(categories={"cd": ["u"]}),
        ValueError,
        "'categories' must name columns .* 'cd'",
    ),
    Bad("categories as list", lambda w: w.problem(categories=["b"]), WRONG, "'categories' must be a mapping"),
    Bad("categories as text", lambda w: w.problem(categories={"b": "uv"}), WRONG, "'categories' .*'b'"),
    Bad(
        "category declared twice",
        lambda w: w.problem(categories={"b": ["u", "v", "u"]}),
        ValueError,
        "'categories' .*'b'",
    ),
    Bad(
        "blank_means of no column",
        lambda w: w.problem(blank_means={"z": 0}),
        ValueError,
        "'blank_means' must name columns .* 'z'",
    ),
    Bad("blank_means as list", lambda w: w.problem(blank_means=["b"]), WRONG, "'blank_means' must be a mapping"),
]

RECORDS = [
    Bad(
        "a dictionary",
        lambda w: w.data({"a": [1]}),
        TypeError,
        "'frame' must be a pandas, polars or pyarrow table .* not dict",
    ),
    Bad("an array", lambda w: w.data(np.zeros((3, 5))), TypeError, "'frame' must be .* not ndarray"),
    Bad("a series", lambda w: w.data(pd.Series([1.0])), TypeError, "'frame' must be .* not Series"),
    Bad("a path", lambda w: w.data("data.csv"), TypeError, "'frame' must be .* not str"),
    Bad(
        "a lazy table",
        lambda w: w.data(pl.DataFrame(frame()).lazy()),
        TypeError,
        "collect a lazy one first.* not LazyFrame",
    ),
    Bad("no rows", lambda w: w.data(frame().iloc[:0]), ValueError, "'frame' must have rows, but is empty"),
    Bad(
        "no problem",
        lambda w: afape.Retrospective(frame(), GROUPS),
        TypeError,
        "'problem' must be an afape.Problem, not dict",
    ),
    Bad("column absent", lambda w: w.data(frame().drop(columns="c")), ValueError, "'frame' has no column 'c'"),
    Bad(
        "label absent",
        lambda w: w.data(frame().drop(columns="y")),
        ValueError,
        "'frame' has no column 'y', .* as label",
    ),
    Bad(
        "column twice in the table",
        lambda w: w.data(column_twice()),
        ValueError,
        r"must not repeat a column .*\['b'\] more than once",
    ),
    Bad(
        "cluster absent", lambda w: w.data(cluster="patient"), ValueError, "'frame' has no column 'patient'.*'cluster'"
    ),
    Bad(
        "cluster with blanks",
        lambda w: w.data(frame(patient=[None, *range(1, N)]), cluster="patient"),
        ValueError,
        "cluster column 'patient' is blank in 1 of 40 rows",
    ),
    Bad(
        "infinite value",
        lambda w: w.data(frame(b=[INF, -INF] + [1.0] * 38)),
        ValueError,
        "Column 'b' must be finite, but 2 of 40",
    ),
    Bad(
        "infinite in polars",
        lambda w: w.data(pl.DataFrame(frame(a=[INF] + [1.0] * 39))),
        ValueError,
        "Column 'a' must be finite, but 1 of 40",
    ),
    Bad("infinite meaning of a blank", lambda w: w.data(blank_means={"b": INF}), ValueError, "'b' must be finite"),
    Bad("blank meaning of a blank", lambda w: w.data(blank_means={"b": NAN}), ValueError, "'blank_means' .*'b'"),
    Bad(
        "text for a number",
        lambda w: w.data(blank_means={"b": "none"}),
        ValueError,
        "'blank_means' of the numeric column 'b' must be a number, but is 'none'",
    ),
    Bad(
        "number for a text",
        lambda w: w.data(frame(b=["u", None] * (N // 2)), blank_means={"b": 0}),
        ValueError,
        "'blank_means' .*'b' .*0",
    ),
    Bad(
        "dates",
        lambda w: w.data(frame(b=pd.Timestamp("2020-01-01"))),
        ValueError,
        "Column 'b' has type Datetime.*days since",
    ),
    Bad(
        "numbers and text",
        lambda w: w.data(frame(b=pd.Series([1, "u"] * (N // 2), dtype=object))),
        ValueError,
        r"Column 'b' mixes values of types \['int', 'str'\]",
    ),
    Bad(
        "level that was not declared",
        lambda w: w.data(frame(b=["u", "v"] * (N // 2)), categories={"b": ["u", "w"]}),
        ValueError,
        r"Column 'b' holds 'v' in 20 rows, which is not among its declared categories \['u', 'w'\]",
    ),
    Bad(
        "number that was not declared",
        lambda w: w.data(frame(b=[1.0, 2.0] * (N // 2)), categories={"b": [1, 3]}),
        ValueError,
        r"Column 'b' holds 2(\.0)? in 20 rows, which is not among its declared categories \[1, 3\]",
    ),
    Bad(
        "labels blank",
        lambda w: w.data(frame(y=["no", None, "yes", None] * (N // 4))),
        ValueError,
        "label column 'y' is blank in 20 of 40 rows.*missing_labels='drop'",
    ),
    Bad(
        "labels NaN",
        lambda w: w.data(frame(y=[NAN, 1.0] * (N // 2))),
        ValueError,
        "blank in 20 of 40 rows.*missing_labels='drop'",
    ),
    Bad("every label blank", lambda w: w.data(frame(y=NAN)), ValueError, "blank in 40 of 40 rows"),
    Bad(
        "every label dropped",
        lambda w: w.data(frame(y=NAN), missing_labels="drop"),
        ValueError,
        "No row has a label in column 'y'",
    ),
    Bad(
        "missing_labels",
        lambda w: w.data(missing_labels="ignore"),
        ValueError,
        "'missing_labels' must be 'raise' or 'drop', but is 'ignore'",
    ),
    Bad(
        "one class",
        lambda w: w.data(frame(y="no")),
        ValueError,
        "label column 'y' must have at least two classes, but every row is 'no'.*'classes'",
    ),
    Bad(
        "one class after dropping",
        lambda w: w.data(frame(y=["no", None] * (N // 2)), missing_labels="drop"),
        ValueError,
        "every row is 'no'",
    ),
    Bad(
        "continuous label",
        lambda w: w.data(frame(y=np.arange(N) / 7)),
        ValueError,
        "40 different values in 40 rows and looks continuous",
    ),
    Bad(
        "undeclared label",
        lambda w: w.data(classes=["no", "maybe"]),
        ValueError,
        r"label column 'y' holds 'yes' in 20 rows.*'classes' \['no', 'maybe'\]",
    ),
    Bad(
        "undeclared number as label",
        lambda w: w.data(frame(y=[0, 1] * 20), classes=[0, 2]),
        ValueError,
        r"holds 1 in 20 rows.*'classes' \[0, 2\]",
    ),
    Bad(
        "cost matrix for three classes",
        lambda w: w.data(misclassification_cost=np.ones((3, 3))),
        ValueError,
        r"'misclassification_cost' must have .* \(2, 2\) here, but has shape \(3, 3\).*'classes'",
    ),
]

EVALUATE = [
    Bad(
        "a table for data",
        lambda w: w.evaluate(data=frame()),
        TypeError,
        "'data' must be an afape.Retrospective, not DataFrame",
    ),
    Bad(
        "data without rows",
        lambda w: w.evaluate(data=w.data().take(np.zeros(N, bool))),
        ValueError,
        "'data' must have rows",
    ),
    Bad(
        "no assumption",
        lambda w: w.evaluate(missingness=None),
        TypeError,
        r"'missingness' must be afape\.MCAR\(\), afape\.MAR",
    ),
    Bad(
        "assumption as text", lambda w: w.evaluate(missingness="MCAR"), TypeError, "'missingness' must be .* not 'MCAR'"
    ),
    Bad(
        "assumption as class",
        lambda w: w.evaluate(missingness=MCAR),
        TypeError,
        r"'missingness' must be afape\.MCAR\(\)",
    ),
    Bad(
        "given with gaps",
        lambda w: w.evaluate(missingness=MAR(given=["a", "b"])),
        ValueError,
        r"'given' groups must always be recorded, but 'b' is missing in 10 of 40 rows.*MNAR",
    ),
    Bad(
        "given unknown",
        lambda w: w.evaluate(missingness=MAR(given=["c"])),
        ValueError,
        r"'given' must name groups, but 'c' is none.*'cd'",
    ),
    Bad(
        "given twice",
        lambda w: w.evaluate(missingness=MAR(given=["a", "a"])),
        ValueError,
        "'given' must name each group once",
    ),
    Bad(
        "given nothing",
        lambda w: w.evaluate(missingness=MAR(given=[])),
        ValueError,
        r"'given' must name at least one group.*MCAR\(\)",
    ),
    Bad(
        "given as text",
        lambda w: w.evaluate(missingness=MAR(given="a")),
        TypeError,
        "'given' must be a list of group names",
    ),
    # policy and classifier
    Bad(
        "policy without method",
        lambda w: w.evaluate(policy=object()),
        TypeError,
        r"'policy' must have a method probabilities.*DecisionRule",
    ),
    Bad(
        "policy as function",
        lambda w: w.evaluate(policy=lambda v, a: a),
        TypeError,
        r"'policy' must .* but function has none.*DecisionRule",
    ),
    Bad(
        "policy as class",
        lambda w: w.evaluate(policy=CountingPolicy),
        TypeError,
        r"'policy' must (?=.*instance).*CountingPolicy",
    ),
    Bad(
        "policy of other groups",
        lambda w: w.evaluate(policy=FixedOrder(["z"])),
        ValueError,
        "'groups' must name groups, but 'z' is none",
    ),
    Bad(
        "classifier without method",
        lambda w: w.evaluate(classifier=object()),
        TypeError,
        r"'classifier' must have a method predict\(values, acquired\), but object has none",
    ),
    Bad(
        "classifier as class",
        lambda w: w.evaluate(classifier=CountingClassifier),
        TypeError,
        r"'classifier' must (?=.*instance).*CountingClassifier",
    ),
    Bad(
        "classifier of scikit-learn",
        lambda w: w.evaluate(classifier=LogisticRegression().fit([[0.0], [1.0]], [0, 1])),
        TypeError,
        r"'classifier' must .*predict\(values, acquired\).*ImputedClassifier",
    ),
    Bad(
        "classifier not fitted",
        lambda w: w.evaluate(classifier=ImputedClassifier()),
        RuntimeError,
        r"'classifier' is not fitted yet; call classifier\.fit",
    ),
    Bad(
        "class that the classifier never saw",
        lambda w: w.evaluate(classifier=trained_on(w.data().take(w.data().labels == 0))),
        ValueError,
        r"ImputedClassifier never saw the classes \['yes'\], which 20 of 40 rows have; it knows \['no'\]",
    ),
    Bad(
        "other codes",
        lambda w: w.evaluate(classifier=trained_on(w.data(classes=["yes", "no"]))),
        ValueError,
        "equal codes mean different labels.*'classes'",
    ),
    # settings
    *(
        Bad(
            f"confidence {level!r}",
            lambda w, level=level: w.evaluate(confidence=level),
            WRONG,
            rf"'confidence' must .* is {level!r}",
        )
        for level in (0, 1, 95, -0.1, NAN, "0.95", None)
    ),
    *(
        Bad(
            f"n_folds {n!r}",
            lambda w, n=n: w.evaluate(n_folds=n),
            ValueError,
            rf"'n_folds' must be a whole number of at least 1, but is {n!r}",
        )
        for n in (0, -1, 2.5, "5")
    ),
    *(
        Bad(
            f"split and {n} folds",
            lambda w, n=n: w.evaluate(n_folds=n, split=0.5),
            ValueError,
            "'n_folds' and 'split' exclude each other",
        )
        for n in (4, 5)
    ),
    Bad(
        "more folds than rows",
        lambda w: w.evaluate(n_folds=41),
        ValueError,
        "'n_folds' must not exceed the number of rows, but is 41 for 40",
    ),
    Bad(
        "more folds than clusters",
        lambda w: w.evaluate(data=w.data(frame(p=np.arange(N) // 10), cluster="p")),
        ValueError,
        "'n_folds' must not exceed the number of clusters, but is 5 for 4",
    ),
    *(
        Bad(
            f"estimators {names!r}",
            lambda w, names=names: w.evaluate(estimators=names),
            WRONG,
            f"'estimators' must .*{found}",
        )
        for names, found in (
            (["ipw"], r"'ipw-semi'.* but 'ipw' is not"),
            (["ipw-semi", "IPW-SEMI"], "'IPW-SEMI' is not"),
            (["ipw-semi-gt"], "'ipw-semi-gt' is not"),  # needs a known propensity beside a learned one
            ([3], "3 is not"),
            ("ipw-semi", "list of names, but is 'ipw-semi'"),
            ([], r"list of names, but is \[\]"),
            (5, "5"),
        )
    ),
    *(
        Bad(f"propensity {what}", lambda w, p=p: w.evaluate(propensity=p), WRONG, f"'propensity' must .*(?:{found})")
        for what, p, found in (
            ("nothing listed", [], "0 learned and 0 known"),
            ("two learned", [None, None], "2 learned and 0 known"),
            ("two known", [known(np.ones), known(np.ones)], "0 learned and 2 known"),
            ("three", [None, known(np.ones), LearnedPropensity()], "2 learned and 1 known"),
            ("a function", lambda values, required: np.ones(len(values)), "KnownPropensity"),
            ("a number", 0.5, "0.5|float"),
            ("text", "logistic", "'logistic'|str"),
            ("text in a list", [None, "logistic"], "'logistic'|str"),
            ("a class", LogisticRegression, "instance"),
        )
    ),
    Bad(
        "known propensity no function",
        lambda w: KnownPropensity(0.5),
        TypeError,
        "'function' must be callable, but is float",
    ),
    Bad(
        "learned by no model",
        lambda w: LearnedPropensity("x"),
        TypeError,
        "'estimator' must be a scikit-learn classifier .* str lacks fit",
    ),
    Bad(
        "learned by which method",
        lambda w: LearnedPropensity(method="product"),
        ValueError,
        r"'method' must be one of \['auto', .* 'product'",
    ),
    Bad(
        "learned with negative floor",
        lambda w: LearnedPropensity(min_propensity=-1),
        ValueError,
        r"'min_propensity' must lie in \[0, 1\), but is -1",
    ),
    *(
        Bad(
            f"acquisition_weight {v!r}",
            lambda w, v=v: w.evaluate(acquisition_weight=v),
            ValueError,
            rf"'acquisition_weight' must be 'before' or 'after', but is {v!r}",
        )
        for v in ("Before", "", None, 1)
    ),
    *(
        Bad(
            f"{name} {v!r}",
            lambda w, name=name, v=v: w.evaluate(walk=WalkOptions(**{name: v})),
            ValueError,
            rf"'{name}' must be a whole number of at least {least}, but is {v!r}",
        )
        for name, least in (("max_states", 0), ("n_trajectories", 1), ("chunk_lines", 1))
        for v in (least - 1, 1.5, "9", None)
    ),
    Bad(
        "walk no options",
        lambda w: w.evaluate(walk="exact"),
        TypeError,
        "'walk' must be .*WalkOptions.*(?:'exact'|str)",
    ),
    Bad(
        "simulation without method",
        lambda w: w.evaluate(walk=WalkOptions(simulation=object())),
        TypeError,
        "'simulation' must have a method probabilities",
    ),
    # the truth
    Bad(
        "truth from gaps",
        lambda w: w.true_cost(data=w.data()),
        ValueError,
        r"'data' must be complete, but 16 of 40 rows have gaps, most of them in 'b' \(10 rows\).*afape\.evaluate",
    ),
    Bad(
        "truth from a table",
        lambda w: w.true_cost(data=frame()),
        TypeError,
        "'data' must be an afape.Retrospective, not DataFrame",
    ),
    Bad(
        "truth at what level",
        lambda w: w.true_cost(confidence=0),
        ValueError,
        "'confidence' must lie strictly between 0 and 1",
    ),
    Bad(
        "truth of no policy",
        lambda w: w.true_cost(policy=object()),
        TypeError,
        "'policy' must have a method probabilities",
    ),
    Bad(
        "truth by no classifier",
        lambda w: w.true_cost(classifier=object()),
        TypeError,
        "'classifier' must have a method predict",
    ),
]


@pytest.mark.parametrize("bad", PROBLEM + RECORDS + EVALUATE, ids=lambda bad: bad.what)
def test_bad_input_is_refused_before_any_model_is_called(bad):
    world = World()
    with pytest.raises(bad.error, match=bad.match):
        bad.attempt(world)
    assert (world.policy.calls, world.classifier.calls) == (0, 0)


def test_the_good_input_is_good():
    """Each case above spoils one piece of this, so nothing else can be what is refused."""
    world = World()
    assert set(world.evaluate().table["estimator"]) == {
        "imp-mean",
        "blocking",
        "cc",
        "ipw-miss",
        "mi",
        "ipw-semi",
        "dm-semi",
        "drl-semi",
        "eff-semi",
    }
    assert world.policy.calls > 0
    assert world.classifier.calls > 0
    assert set(world.true_cost()) == {"acquisition", "misclassification", "total"}


# ----------------------------------------------------------------------------------- nonsense that only a call shows


class Says:
    """Policy, classifier or both: returns what the function makes of values and acquired."""

    def __init__(self, answer):
        self.answer = answer

    def probabilities(self, values, acquired):
        return self.answer(len(values))

    predict = probabilities


def every_row(*answer):
    return lambda n: np.tile(answer, (n, 1))


NONSENSE = [
    *(
        Bad(
            f"policy: {what}",
            lambda w, answer=answer: w.evaluate(policy=Says(answer)),
            ValueError,
            rf"policy Says must return {match}",
        )
        for what, answer, match in (
            ("no stop column", every_row(0.0, 0.5, 0.5), r"shape \(n, G \+ 1\), here \(40, 4\).*returned \(40, 3\)"),
            ("NaN", every_row(0.0, NAN, 0.0, 1.0), "finite probabilities, but 40 of 40 states .* row 0"),
            ("negative", every_row(0.0, -0.5, 0.5, 1.0), "probabilities that are not negative"),
            ("sum", every_row(0.0, 0.5, 0.0, 0.4), "probabilities that sum to 1"),
            ("free group", every_row(0.5, 0.5, 0.0, 0.0), "no probability on a group that is acquired already"),
            (
                "group again",
                every_row(0.0, 1.0, 0.0, 0.0),
                "no probability on a group that is acquired already, .* row 1:",
            ),
        )
    ),
    *(
        Bad(
            f"classifier: {what}",
            lambda w, answer=answer: w.evaluate(classifier=Says(answer)),
            ValueError,
            rf"classifier Says must return {match}",
        )
        for what, answer, match in (
            ("one code for all", lambda n: 0, r"one label code per row, shape \(40,\), but returned \(\)"),
            ("labels", lambda n: ["no"] * n, r"label codes 0\.\.1, but returned .*'no'.*data\.classes"),
            ("probabilities", lambda n: np.full(n, 0.5), r"label codes 0\.\.1, but returned .*0\.5"),
            ("NaN", lambda n: np.full(n, NAN), r"label codes 0\.\.1, but returned .*nan"),
            ("out of range", lambda n: np.full(n, 2), r"label codes 0\.\.1, but 40 of 40 states .* row 0: 2"),
        )
    ),
    *(
        Bad(
            f"known propensity: {what}",
            lambda w, answer=answer: w.evaluate(propensity=known(answer), estimators=["ipw-semi"]),
            ValueError,
            rf"KnownPropensity\(function\) must {match}",
        )
        for what, answer, match in (
            ("zero", np.zeros, r"lie in \(0, 1\], but 30 of 30 values do not, the first 0\.0 for row 1\."),
            ("above 1", lambda n: np.full(n, 1.5), r"lie in \(0, 1\].*the first 1\.5"),
            ("negative", lambda n: np.full(n, -0.5), r"lie in \(0, 1\].*the first -0\.5"),
            ("NaN", lambda n: np.full(n, NAN), r"lie in \(0, 1\].*the first nan"),
            (
                "one bad value",
                lambda n: np.where(np.arange(n) == 2, 0.0, 0.5),
                r"lie in \(0, 1\], but 1 of 30 .* row 3\.",
            ),
            ("one number", lambda n: 0.5, r"return shape \(30,\), but returned \(\)"),
            ("a column", lambda n: np.full((n, 1), 0.5), r"return shape \(30,\), but returned \(30, 1\)"),
            ("text", lambda n: ["often"] * n, "return"),
        )
    ),
    Bad(
        "simulation that leaves out what the policy does",
        lambda w: w.evaluate(walk=WEAK_SIMULATION),
        ValueError,
        "'simulation' must give positive probability to every action .* AcquireNone gives 0 in .* row 1 ",
    ),
]


@pytest.mark.parametrize("bad", NONSENSE, ids=lambda bad: bad.what)
def test_nonsense_from_a_model_is_refused(bad):
    """Row 0 lacks b, row 1 has it; b is recorded in 30 of 40 rows."""
    with pytest.raises(bad.error, match=bad.match):
        bad.attempt(World())


@pytest.mark.filterwarnings("ignore::afape.NormalizerWarning")
def test_known_propensity_may_be_exactly_one():
    assert "ipw-semi" in World().evaluate(propensity=known(np.ones), estimators=["ipw-semi"])


# ------------------------------------------------------------------------------------------- no answer, with a reason


def never_complete():
    """Build records of which every row has either b or cd and no row has both."""
    table = frame(b=np.arange(N) / N, c=1.0, d=1.0)
    table.loc[::2, "b"] = NAN
    table.loc[1::2, ["c", "d"]] = NAN
    return table


@pytest.mark.parametrize("propensity", [None, [None, known(lambda n: np.full(n, 0.5))]], ids=["learned", "both"])
@pytest.mark.filterwarnings("ignore::afape.AssumptionWarning", "ignore::afape.BalanceWarning")
def test_every_row_incomplete_leaves_some_estimators_without_answer(propensity):
    world = World()
    result = world.evaluate(data=world.data(never_complete()), propensity=propensity)
    suffixes = [""] if propensity is None else ["", "-gt"]
    silent = ["cc", *("ipw-miss" + s for s in suffixes)]
    speaking = ["imp-mean", "blocking", "mi", *(n + s for n in ("ipw-semi", "drl-semi", "eff-semi") for s in suffixes)]
    assert set(result.table["estimator"]) == {*silent, *speaking, "dm-semi"}
    for name in silent:
        lines = result.table[result.table["estimator"] == name]
        assert lines[["estimate", "std_error", "lower", "upper"]].isna().all(axis=None)
        assert set(lines["note"]) == {"not estimable: no row has every group recorded"}
        assert name not in result
        with pytest.raises(
            afape.NotEstimableError, match=f"'{name}' is not estimable: no row has every group recorded"
        ):
            result[name]
    for name in speaking:
        lines = result.table[result.table["estimator"] == name]
        assert np.isfinite(lines[["estimate", "std_error", "lower", "upper"]]).all(axis=None)
        assert not any("not estimable" in note for note in lines["note"])
        assert result[name]["total"].value > 0


@pytest.mark.filterwarnings("ignore::afape.AssumptionWarning", "ignore::afape.BalanceWarning")
def test_a_policy_that_nobody_followed_has_bounds_alone():
    world = World()
    with pytest.warns(afape.SupportWarning, match=r"want a set of groups that no row has recorded"):
        result = world.evaluate(
            data=world.data(never_complete()), policy=afape.AcquireAll(), estimators=["ipw-semi", "blocking"]
        )
    assert "blocking" in result
    assert result.support.unsupported == pytest.approx(1.0, abs=0.05)
    bounds = result["ipw-semi"]["misclassification"]
    assert isinstance(bounds, afape.Bounds)
    costs = world.data(never_complete()).costs
    assert bounds.bound_lower >= costs.min() - 1e-9
    assert bounds.bound_upper <= costs.max() + 1e-9
    assert result.to_dict()["table"][0]["estimate"] is None


def test_an_estimator_that_was_not_asked_for_is_named():
    result = World().evaluate(estimators=["cc"])
    with pytest.raises(KeyError, match=r"No estimator 'ipw-semi' here; there are \['cc'\]"):
        result["ipw-semi"]
