"""Bad arguments of an evaluation are refused with their name, the rule, what came and the way out, before any call."""

import numpy as np
import pytest
from good_input import NAN, WRONG, Bad, CountingClassifier, CountingPolicy, N, World, frame, known, refused, trained_on
from sklearn.linear_model import LogisticRegression

import afape
from afape import MAR, MCAR, FixedOrder, ImputedClassifier, KnownPropensity, LearnedPropensity, WalkOptions

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
        r"'given' must name groups, but 'c' is not a group.*'cd'",
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
        "'groups' must name groups, but 'z' is not a group",
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
            ([3], "contains 3, which is not text"),
            ("ipw-semi", "list of names, but is 'ipw-semi'"),
            ([], "non-empty list of names"),
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
            rf"'acquisition_weight' must be one of .*'before', 'after'.*, but is {v!r}",
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
        for v in (least - 1, 1.5, "9", *([None] if name == "chunk_lines" else []))
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
    *(
        Bad(
            f"no classifier for {what}",
            lambda w, attempt=attempt: attempt(w),
            TypeError,
            r"'classifier' must have a method predict\(values, acquired\), but NoneType has none",
        )
        for what, attempt in {
            "evaluate": lambda w: w.evaluate(classifier=None),
            "compare": lambda w: afape.compare(w.data(), {"a": w.policy}, None, missingness=MCAR()),
            "sensitivity": lambda w: afape.sensitivity(w.data(), {"a": w.policy}, None, missingness=MCAR()),
        }.items()
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


@pytest.mark.parametrize("bad", EVALUATE, ids=lambda bad: bad.what)
def test_bad_input_is_refused_before_any_model_is_called(bad):
    refused(bad)


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
