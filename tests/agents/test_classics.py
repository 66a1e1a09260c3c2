"""Agents that learn from records with gaps: what holds for each of them."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from classics import CLASSICS, Knower, small, states, synthetic, telling_world, trained, wide_world
from numpy.testing import assert_array_equal
from sklearn.linear_model import LogisticRegression

import afape
from afape.agents.clusters import ClusterAgent
from afape.agents.cost_tree import CostSensitiveTree
from afape.agents.naive_bayes import CostSensitiveNaiveBayes
from afape.agents.policy import ask_policy
from afape.agents.value_of_information import ValueOfInformation

each_kind = pytest.mark.parametrize("kind", CLASSICS, ids=lambda kind: kind.__name__)


@each_kind
def test_beats_acquiring_nothing_and_everything(kind):
    classifier, data, complete = synthetic()
    complete = complete.take(np.arange(6_000))
    total = {
        name: afape.true_cost(complete, policy, classifier)["total"]
        for name, policy in {
            "agent": kind().fit(data, classifier),
            "none": afape.AcquireNone(),
            "all": afape.AcquireAll(),
        }.items()
    }
    for other in ("none", "all"):
        saved = total[other] - total["agent"]
        assert saved.interval(0.95)[0] > 0, f"{total['agent'].value} against {total[other].value}"


@each_kind
def test_finds_the_best_policy_where_only_one_group_tells(kind):
    data = telling_world()
    agent = kind().fit(data, Knower())
    values = np.array([[0, np.nan, np.nan], [1, np.nan, np.nan], [1, 0, np.nan], [1, 1, np.nan]], dtype=float)
    acquired = np.array([[1, 0, 0], [1, 0, 0], [1, 1, 0], [1, 1, 0]], dtype=bool)
    assert_array_equal(agent.probabilities(values, acquired).argmax(axis=1), [3, 1, 3, 3])


@each_kind
def test_probabilities_are_valid_in_any_state(kind):
    _, data = small()
    rng = np.random.default_rng(1)
    values, acquired = states(data, rng)
    p = ask_policy(trained(kind), values, acquired, np.arange(len(values)))
    assert_array_equal(p[acquired.all(axis=1), -1], 1.0)
    for state in product([False, True], repeat=data.problem.n_groups):  # nothing known at all, whatever is acquired
        ask_policy(trained(kind), np.full((2, 4), np.nan), np.array([state, state]), np.arange(2))


@each_kind
def test_looks_only_at_what_is_acquired(kind):
    _, data = small()
    rng = np.random.default_rng(2)
    values, acquired = states(data, rng)
    peeking = np.where(acquired[:, data.column_group], values, rng.normal(size=values.shape))
    assert_array_equal(trained(kind).probabilities(values, acquired), trained(kind).probabilities(peeking, acquired))


@each_kind
def test_rows_do_not_depend_on_each_other(kind):
    _, data = small()
    values, acquired = states(data, np.random.default_rng(3), n=60)
    together = trained(kind).probabilities(values, acquired)
    alone = [trained(kind).probabilities(values[[i]], acquired[[i]])[0] for i in range(60)]
    assert_array_equal(together, alone)
    assert trained(kind).probabilities(values[:0], acquired[:0]).shape == (0, 4)


@each_kind
def test_same_seed_same_policy(kind):
    classifier, data = small()
    values, acquired = states(data, np.random.default_rng(4))
    again = kind().fit(data, classifier)
    assert_array_equal(again.probabilities(values, acquired), trained(kind).probabilities(values, acquired))


@each_kind
def test_survives_a_save_and_a_load(kind, tmp_path):
    _, data = small()
    afape.save(trained(kind), tmp_path / "agent", data.problem)
    loaded = afape.load(tmp_path / "agent", data.problem)
    values, acquired = states(data, np.random.default_rng(5))
    assert type(loaded) is kind
    assert_array_equal(loaded.probabilities(values, acquired), trained(kind).probabilities(values, acquired))
    before, after = trained(kind).state(), loaded.state()
    assert after.settings == before.settings
    assert after.arrays.keys() == before.arrays.keys()
    for name, array in before.arrays.items():
        assert after.arrays[name].dtype == array.dtype
        assert after.arrays[name].tobytes() == array.tobytes()


@each_kind
def test_can_be_evaluated_on_records(kind):
    classifier, data = small()
    agent = kind().fit(data.take(np.arange(1000)), classifier)
    test = data.take(np.arange(1000, len(data)))
    result = afape.evaluate(test, agent, classifier, missingness=afape.MAR(given=["x0"]), estimators=["blocking"])
    assert 0 < result["blocking"]["total"].value < 14


@each_kind
def test_learns_where_nothing_is_free_and_from_one_group(kind):
    rng = np.random.default_rng(6)
    x = rng.normal(size=1000)
    frame = pd.DataFrame({"x": np.where(rng.random(1000) < 0.3, np.nan, x), "y": (x > 0).astype(int)})
    problem = afape.Problem({"x": ["x"]}, {"x": 1.0}, label="y", misclassification_cost=10.0)

    class Sign:
        def predict(self, values, acquired):
            return (values[:, 0] > 0).astype(int)

    agent = kind().fit(afape.Retrospective(frame, problem), Sign())
    assert_array_equal(agent.probabilities(np.array([[np.nan]]), np.array([[False]])), [[1.0, 0.0]])


@each_kind
def test_learns_with_many_groups_classes_categories_and_gaps_in_what_is_free(kind):
    first, second = wide_world().split([0.4, 0.6])
    classifier = afape.ImputedClassifier(LogisticRegression(max_iter=500)).fit(first)
    agent = kind().fit(second, classifier)
    values, acquired = states(second, np.random.default_rng(8), n=150)
    p = ask_policy(agent, values, acquired, np.arange(150))
    assert (p[:, :-1] > 0).any()
    assert_array_equal(p[:, 0], 0.0)  # nobody pays for what is free


@each_kind
def test_untrained_agent_says_so(kind):
    with pytest.raises(RuntimeError, match=rf"{kind.__name__} is not trained yet; call fit\(data, classifier\)"):
        kind().probabilities(np.zeros((1, 4)), np.zeros((1, 3), dtype=bool))
    with pytest.raises(RuntimeError, match=r"not trained yet"):
        kind().state()
    with pytest.raises(RuntimeError, match=r"not trained yet"):
        kind().bind(small()[1].problem)


@each_kind
def test_refuses_other_columns_and_other_groups(kind):
    with pytest.raises(ValueError, match=r"'values' must have the 4 columns .* but has shape \(1, 2\)"):
        trained(kind).probabilities(np.zeros((1, 2)), np.zeros((1, 3), dtype=bool))
    with pytest.raises(ValueError, match=r"'acquired' must have the 3 groups .* but has shape \(1, 2\)"):
        trained(kind).probabilities(np.zeros((1, 4)), np.zeros((1, 2), dtype=bool))
    with pytest.raises(
        ValueError, match=r"trained with the groups \['x0', 'x1', 'x2'\], but the problem has \['a', 'b', 'c'\]"
    ):
        trained(kind).bind(telling_world(20).problem)


@each_kind
def test_refuses_what_it_cannot_learn_from(kind):
    classifier, data = small()
    with pytest.raises(TypeError, match=r"'data' must be an afape.Retrospective, not ndarray"):
        kind().fit(data.values, classifier)
    with pytest.raises(TypeError, match=r"'classifier' must have a method predict"):
        kind().fit(data, None)
    with pytest.raises(RuntimeError, match=r"'classifier' is not fitted yet"):
        kind().fit(data, afape.ImputedClassifier())
    with pytest.raises(ValueError, match=r"was trained on the columns \['a', 'b', 'c'\]"):
        kind().fit(
            data, afape.ImputedClassifier(LogisticRegression()).fit(telling_world().take(telling_world().complete))
        )
    with pytest.raises(ValueError, match=r"'x2' is recorded in no row"):
        kind().fit(data.hide(np.array([True, True, False]) & data.recorded), classifier)


def test_warns_of_rows_that_the_classifier_has_seen():
    classifier, data = small()
    again = afape.ImputedClassifier(classifier.estimator).fit(data)
    with pytest.warns(afape.warnings.SeenRowsWarning, match=r"2000 of the 2000 rows that the agent learns from"):
        CostSensitiveTree().fit(data, again)


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        (CostSensitiveTree(max_depth=-1), "'max_depth' must be a whole number of at least 0, but is -1"),
        (CostSensitiveTree(min_rows=0), "'min_rows' must be a whole number of at least 1, but is 0"),
        (CostSensitiveTree(min_z=-1.0), "'min_z' must be a finite number of at least 0, but is -1.0"),
        (CostSensitiveTree(min_z=float("inf")), "'min_z' must be a finite number"),
        (CostSensitiveNaiveBayes(n_bins=1), "'n_bins' must be a whole number of at least 2, but is 1"),
        (CostSensitiveNaiveBayes(min_leaf=1.5), "'min_leaf' must be a whole number of at least 1, but is 1.5"),
        (CostSensitiveNaiveBayes(smoothing=0), "'smoothing' must be positive, but is 0"),
        (ClusterAgent(n_clusters=0), "'n_clusters' must be a whole number of at least 1, but is 0"),
        (ClusterAgent(min_rows=True), "'min_rows' must be a whole number of at least 1, but is True"),
        (ClusterAgent(max_sets=0), "'max_sets' must be a whole number of at least 1, but is 0"),
        (ValueOfInformation(n_draws=0), "'n_draws' must be a whole number of at least 1, but is 0"),
        (
            ValueOfInformation(random_state=-1),
            r"'random_state' must be a whole number of at least 0 .*, but is -1",
        ),
        (
            ClusterAgent(random_state="0"),
            r"'random_state' must be a whole number of at least 0 .*, but is '0'",
        ),
        (
            CostSensitiveNaiveBayes(random_state=0.5),
            r"'random_state' must be a whole number of at least 0 .*, but is 0.5",
        ),
        (ValueOfInformation(min_leaf=-2), "'min_leaf' must be a whole number of at least 1, but is -2"),
    ],
    ids=str,
)
def test_arguments_out_of_range(agent, message):
    classifier, data = small()
    with pytest.raises(ValueError, match=message):
        agent.fit(data, classifier)


def test_value_of_information_needs_two_classes():
    data = telling_world(200)
    with pytest.raises(ValueError, match=r"'data' must have rows of at least two classes, but all are 0"):
        ValueOfInformation().fit(data.take(data.labels == 0), Knower())


def test_value_of_information_refuses_an_estimator_without_probabilities():
    classifier, data = small()
    with pytest.raises(TypeError, match=r"'estimator' must be a scikit-learn classifier with predict_proba"):
        ValueOfInformation(estimator=3).fit(data, classifier)


# ---------------------------------------------------------------------------------------------------- one by one


def test_tree_reads_as_rules():
    tree = CostSensitiveTree().fit(telling_world(), Knower())
    assert tree.describe().splitlines() == ["if a <= 0.5:", "  stop", "else:", "  acquire b", "  stop"]


def test_a_tree_that_goes_round_in_circles_is_refused():
    state = CostSensitiveTree().fit(telling_world(), Knower()).state()
    state.arrays["left"] = np.where(state.arrays["kind"] == 2, 0, state.arrays["left"])
    with pytest.raises(ValueError, match=r"nodes of this tree must lead to later nodes"):
        CostSensitiveTree.from_state(state)


def test_tree_without_depth_is_one_fixed_order():
    # on average b saves 10 P(a = b = 1) - 1 = 1.5, c nothing
    tree = CostSensitiveTree(max_depth=0).fit(telling_world(), Knower())
    assert tree.describe().splitlines() == ["acquire b", "stop"]


def test_naive_bayes_weighs_utility_by_hand():
    data = telling_world()
    agent = CostSensitiveNaiveBayes(smoothing=1e-9).fit(data, Knower())
    seen, acquired = np.array([[1.0, np.nan, np.nan]]), np.array([[True, False, False]])
    a, b, y = data.values[:, 0] == 1, data.values[:, 1], data.labels == 1
    prior = (y.sum() + 1) / (len(y) + 2)
    given_a = prior * a[y].mean() / (prior * a[y].mean() + (1 - prior) * a[~y].mean())
    assert agent.posterior(seen, acquired)[0, 1] == pytest.approx(given_a, rel=1e-9)
    known = ~np.isnan(b)
    b_if = [b[known & ~y].mean(), b[known & y].mean()]  # P(b = 1 | y), the latter is 1
    risk = 10 * min(given_a, 1 - given_a)
    after = sum(
        10 * min(given_a * (b_if[1] if v else 1 - b_if[1]), (1 - given_a) * (b_if[0] if v else 1 - b_if[0]))
        for v in (0, 1)
    )
    assert (risk - after > 1) == (agent.probabilities(seen, acquired)[0, 1] == 1.0)
    for price, wanted in [(risk - after - 1e-6, 1), (risk - after + 1e-6, 3)]:
        problem = afape.Problem(data.problem.groups, {"b": price, "c": 9.0}, "y", 10.0)
        frame = pd.DataFrame(data.values, columns=data.columns).assign(y=data.labels)
        repriced = CostSensitiveNaiveBayes(smoothing=1e-9).fit(afape.Retrospective(frame, problem), Knower())
        assert repriced.probabilities(seen, acquired)[0].argmax() == wanted


def test_naive_bayes_predicts_the_cheapest_label():
    data = telling_world()
    agent = CostSensitiveNaiveBayes().fit(data, Knower())
    acquired = np.array([[True, True, False]] * 2)
    assert_array_equal(agent.predict(np.array([[1.0, 1.0, np.nan], [0.0, 1.0, np.nan]]), acquired), [1, 0])


def test_clusters_choose_the_same_sets_greedily_where_one_group_is_enough():
    data = telling_world()
    greedy, exact = (ClusterAgent(max_sets=m).fit(data, Knower()) for m in (1, 256))
    assert len(exact.centres_) == 2
    assert_array_equal(greedy.sets_, exact.sets_)
    assert_array_equal(np.sort(exact.sets_[:, 1]), [False, True])


def test_clusters_leave_out_sets_that_too_few_rows_record():
    agent = ClusterAgent(min_rows=10**6).fit(telling_world(), Knower())
    assert_array_equal(agent.sets_, np.array([[True, False, False]] * 2))


def test_value_of_information_asks_the_classifier_once_for_now_and_once_for_what_it_imagines():
    class Counting(Knower):
        calls = 0

        def predict(self, values, acquired):
            self.calls += 1
            return super().predict(values, acquired)

    classifier = Counting()
    data = telling_world(500)
    agent = ValueOfInformation().fit(data, classifier)
    classifier.calls = 0
    agent.probabilities(*states(data, np.random.default_rng(7)))
    assert classifier.calls == 2


def test_value_of_information_imagines_only_values_that_were_recorded():
    data = telling_world(500)
    agent = ValueOfInformation().fit(data, Knower())
    for donors in agent.donors_.values():
        assert set(np.unique(donors)) <= {0.0, 1.0}
