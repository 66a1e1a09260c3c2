"""What every agent that learns action values has to hold to."""

import json
import subprocess
import sys
from importlib import import_module

import numpy as np
import pandas as pd
import pytest
from learned import KINDS, TINY, fit, fresh, judge, make, only_together, synthetic, trained
from numpy.testing import assert_allclose, assert_array_equal

import afape
from afape.agents.cwcf import CwCF
from afape.agents.dqn import DQN
from afape.agents.fitted_q import FittedQ
from afape.agents.joint_dqn import JointDQN
from afape.agents.settings import Training

NETWORKS = [kind for kind in KINDS if kind != "FittedQ"]
every_agent = pytest.mark.parametrize("kind", KINDS)


def any_states(n=2000, seed=0):
    """States with every set of groups, free ones lacking too, with gaps inside acquired groups and far values."""
    rng = np.random.default_rng(seed)
    acquired = rng.random((n, 3)) < 0.5
    values = rng.normal(scale=10.0, size=(n, 4))
    columns = synthetic()[1].column_group
    values = np.where(acquired[:, columns] & (rng.random((n, 4)) < 0.8), values, np.nan)
    return values, acquired


@every_agent
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
def test_probabilities_are_valid_in_any_state(kind, epsilon):
    agent = type(trained(kind)).from_state(trained(kind).state())
    agent.epsilon = epsilon
    values, acquired = any_states()
    p = agent.probabilities(values, acquired)
    assert p.shape == (len(values), 4)
    assert (p >= 0).all()
    assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
    assert (p[:, :3][acquired] == 0).all()
    assert (p[:, 0] == 0).all()  # free: there from the start, not to be acquired
    left = (~acquired[:, 1:]).sum(axis=1) + 1
    assert_allclose(
        p.min(axis=1, where=p > 0, initial=1), np.where(epsilon > 0, epsilon / left + (left == 1) * (1 - epsilon), 1)
    )


@every_agent
def test_beats_acquiring_all_and_none_in_true_cost(kind):
    classifier, complete = synthetic()[0], fresh()
    agent = trained(kind)
    mine = afape.true_cost(complete, agent, judge(agent))["total"]
    for other in (afape.AcquireAll(), afape.AcquireNone()):
        for referee in (classifier, judge(agent)):
            difference = afape.true_cost(complete, other, referee)["total"] - mine
            assert difference.value > 4 * difference.std_error


@every_agent
def test_same_seed_same_policy_other_seed_another(kind):
    classifier, train, _ = synthetic()
    few = train.take(np.arange(1500))
    states = any_states(300)
    seeds = {"FittedQ": {"max_states": 1000}}.get(kind, {})
    first, again, other = (
        fit(make(kind, TINY, random_state=seed, **seeds), few, classifier).action_values(*states) for seed in (5, 5, 6)
    )
    assert_array_equal(first, again)
    assert (first != other).any()


@every_agent
def test_survives_being_taken_apart_bit_for_bit(kind):
    agent = trained(kind)
    state = agent.state()
    assert json.loads(json.dumps(state.settings)) == state.settings
    assert all(a.dtype == float for a in state.arrays.values())
    back = type(agent).from_state(state)
    states = any_states()
    assert_array_equal(back.action_values(*states), agent.action_values(*states))
    assert_array_equal(back.probabilities(*states), agent.probabilities(*states))
    assert back.learning_curve_.equals(agent.learning_curve_)
    assert back.state().settings == state.settings
    if hasattr(agent, "predict"):
        assert_array_equal(back.predict(*states), agent.predict(*states))


@every_agent
def test_learning_curve_approaches_the_true_cost(kind):
    complete = fresh()
    agent = trained(kind)
    expected = agent.learning_curve_["expected_cost"]
    assert len(expected) == (2 if kind == "FittedQ" else 15)
    truth = afape.true_cost(complete, agent, judge(agent))["total"].value
    assert abs(expected.iloc[-1] - truth) < 0.1 * truth


@pytest.mark.filterwarnings("ignore::afape.warnings.SeenRowsWarning")  # judged on its training rows
@pytest.mark.parametrize("kind", ["CwCF", "JointDQN"])
def test_agents_that_classify_are_evaluated_with_themselves(kind):
    train, complete = synthetic()[1], fresh()
    agent = trained(kind)
    codes = agent.predict(complete.values, complete.recorded)
    assert set(codes.tolist()) == {0, 1}
    assert (codes == complete.labels).mean() > 0.78  # 0.85 is the most that the label's noise allows
    held = train.take(np.arange(3000))
    result = afape.evaluate(held, agent, agent, missingness=afape.MAR(given=["x0"]), estimators=["ipw-semi"])
    truth = afape.true_cost(complete, agent, agent)["total"].value
    assert abs(result["ipw-semi"]["total"].value - truth) < 5 * result["ipw-semi"]["total"].std_error


def test_joint_agent_gives_label_probabilities():
    p = trained("JointDQN").predict_proba(*any_states(50))
    assert p.shape == (50, 2)
    assert_allclose(p.sum(axis=1), 1)


# --------------------------------------------------------------------------------------------------------- bad input


@every_agent
def test_untrained_agent_says_call_fit(kind):
    for ask in (
        lambda agent: agent.probabilities(*any_states(2)),
        lambda agent: agent.state(),
        lambda agent: agent.bind(synthetic()[1].problem),
    ):
        with pytest.raises(RuntimeError, match=rf"This {kind} is not trained yet; call fit\(data.* first"):
            ask(KINDS[kind]())


@every_agent
def test_wrong_numbers_of_columns_are_refused(kind):
    agent, (values, acquired) = trained(kind), any_states(5)
    with pytest.raises(ValueError, match=r"'values' must have the 4 columns that this .* shape \(5, 3\). Build"):
        agent.probabilities(values[:, :3], acquired)
    with pytest.raises(ValueError, match=r"'acquired' must have the 3 groups .* but has shape \(5, 2\)"):
        agent.probabilities(values, acquired[:, :2])
    with pytest.raises(ValueError, match=r"the same number of rows, but have 5 and 4"):
        agent.probabilities(values, acquired[:4])
    other = only_together(20).problem
    with pytest.raises(ValueError, match=r"trained with the groups \['x0', 'x1', 'x2'\], but the problem has \['g0'"):
        agent.bind(other)


@every_agent
def test_fit_refuses_what_is_no_records(kind):
    with pytest.raises(TypeError, match=r"'data' must be an afape.Retrospective, not ndarray"):
        fit(KINDS[kind](), np.zeros((3, 2)), None)


@every_agent
def test_fit_refuses_records_without_free_groups(kind):
    data = only_together(50)
    blind = data.hide(np.tile([False, True, True], (50, 1)))
    with pytest.raises(ValueError, match="'data' must have rows with every free group recorded"):
        fit(make(kind, TINY), blind, _zero())


@every_agent
@pytest.mark.parametrize("answer", [np.ones(3), -1.0, np.nan], ids=["shape", "negative", "nan"])
def test_fit_refuses_weights_that_are_none(kind, answer):
    def weights(rows, sets):
        return answer if np.ndim(answer) else np.full(len(rows), answer)

    with pytest.raises(ValueError, match=r"'weights' must return one finite number per state.*training_weights"):
        fit(make(kind, TINY), only_together(200), _zero(), weights)


@every_agent
def test_weights_have_to_be_a_function(kind):
    with pytest.raises(
        TypeError,
        match=r"'weights' must be a function of rows and sets, but is ndarray. Use afape.optimisation.training",
    ):
        fit(make(kind, TINY), only_together(50), _zero(), np.ones(50))


@pytest.mark.parametrize("kind", ["DQN", "FittedQ"])
def test_agents_that_do_not_classify_need_a_classifier(kind):
    with pytest.raises(
        TypeError, match=r"'classifier' must have a method predict\(values, acquired\), but NoneType has none"
    ):
        fit(make(kind, TINY), only_together(50), None)


def _zero():
    class Zero:
        def predict(self, values, acquired):
            return np.zeros(len(values), dtype=int)

    return Zero()


ARGUMENTS = [
    ({"epsilon": -0.1}, r"'epsilon' must lie in \[0, 1\], but is -0.1"),
    ({"epsilon": 2}, r"'epsilon' must lie in"),
    ({"epsilon": "0"}, r"'epsilon' must lie in .*but is '0'"),
    ({"epsilon": float("nan")}, r"'epsilon' must .*nan"),
    ({"price_multiplier": -1}, r"'price_multiplier' must be a finite number of at least 0, but is -1"),
    ({"price_multiplier": float("inf")}, r"'price_multiplier' must .*inf"),
    ({"targets": "some"}, r"'targets' must be one of \['all', 'recorded'\], but is 'some'"),
    ({"random_state": -1}, r"'random_state' must be a whole number of at least 0 .*, but is -1"),
    ({"random_state": 1.5}, r"'random_state' must .*1.5"),
    ({"random_state": None}, r"'random_state' must .*None"),
]


@every_agent
@pytest.mark.parametrize(("arguments", "message"), ARGUMENTS, ids=str)
def test_bad_arguments_of_agents(kind, arguments, message):
    with pytest.raises(ValueError, match=message):
        KINDS[kind](**arguments)


KNOBS = [
    ({"hidden": ()}, ValueError, r"'hidden' must be a list of sizes such as \(16, 16\), but is empty"),
    ({"hidden": 16}, TypeError, r"'hidden' must be a list"),
    ({"hidden": (16, 0)}, ValueError, r"'hidden' must be a whole number of at least 1, but is 0"),
    ({"optimizer": "newton"}, ValueError, r"'optimizer' must be one of \['adam', .*but is 'newton'"),
    ({"learning_rate": 0}, ValueError, r"'learning_rate' must be a finite number above 0, but is 0"),
    *(
        ({name: 0}, ValueError, rf"'{name}' must be a whole number of at least 1, but is 0")
        for name in ("n_rounds", "n_episodes", "n_steps", "batch_size", "replay_size", "target_every")
    ),
    ({"n_steps": 2.5}, ValueError, r"'n_steps' must be a whole number of at least 1, but is 2.5"),
    ({"n_steps": True}, ValueError, r"'n_steps' must .*True"),
    *(
        ({name: 1.2}, ValueError, rf"'{name}' must lie in \[0, 1\], but is 1.2")
        for name in ("explore_from", "explore_to", "explore_share")
    ),
    ({"pretraining": -1}, ValueError, r"'pretraining' must be a whole number of at least 0, but is -1"),
    (
        {"replay_size": 10},
        ValueError,
        r"'replay_size' must hold at least one batch of 256, but is 10. Raise it, or lower",
    ),
]


@pytest.mark.parametrize(("knobs", "error", "message"), KNOBS, ids=str)
def test_bad_knobs_of_training(knobs, error, message):
    with pytest.raises(error, match=message):
        Training(**knobs)


@pytest.mark.parametrize("kind", NETWORKS)
def test_training_has_to_be_one(kind):
    with pytest.raises(TypeError, match=r"'training' must be an afape.agents.Training or None, but is dict"):
        KINDS[kind]({"n_rounds": 3})


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"regressor": "boosting"}, TypeError, r"'regressor' must be a scikit-learn regressor .* but is 'boosting'"),
        ({"regressor": Training}, TypeError, r"'regressor' must be a scikit-learn regressor"),
        ({"n_iterations": 0}, ValueError, r"'n_iterations' must be a whole number of at least 1, but is 0"),
        ({"max_states": 0}, ValueError, r"'max_states' must be a whole number of at least 1, but is 0"),
    ],
)
def test_bad_arguments_of_fitted_q(arguments, error, message):
    with pytest.raises(error, match=message):
        FittedQ(**arguments)


# -------------------------------------------------------------------------------------------------------- without jax


@pytest.mark.parametrize("package", ["jax", "optax"])
def test_without_jax_the_message_names_the_extra_and_trained_agents_answer(monkeypatch, package):
    state = trained("DQN").state()
    import_module("afape.agents.q_learning")
    monkeypatch.delitem(sys.modules, "afape.agents.q_learning")
    monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    for kind in (DQN, CwCF, JointDQN):
        with pytest.raises(ImportError, match=rf"{kind.__name__} learns with jax.*pip install 'afape\[agents\]'"):
            fit(kind(), only_together(50), _zero())
    states = any_states(20)
    assert_array_equal(DQN.from_state(state).probabilities(*states), trained("DQN").probabilities(*states))


def test_importing_afape_and_its_agents_does_not_import_jax():
    code = "import sys, afape, afape.agents; afape.optimize; sys.exit('jax' in sys.modules or 'optax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# ------------------------------------------------------------------------------------------------ problems of any kind


def odd_problem(n=600, seed=0):
    """Three classes, a cost matrix, a category, groups of several columns, and nothing free."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 5))
    kind = np.array(["low", "mid", "high"])[np.digitize(x[:, 4], [-0.5, 0.5])]
    y = np.digitize(x[:, 0] + x[:, 2] + x[:, 4], [-1, 1])
    frame = pd.DataFrame(x[:, :4], columns=list("abcd")).assign(kind=kind, y=np.array(["no", "maybe", "yes"])[y])
    problem = afape.Problem(
        groups={"ab": ["a", "b"], "c": ["c"], "kind": ["kind"], "d": ["d"]},
        costs={"ab": 2.0, "c": 1.0, "kind": 0.5, "d": 3.0},
        label="y",
        misclassification_cost=[[0, 4, 9], [3, 0, 3], [12, 5, 0]],
        classes=["no", "maybe", "yes"],
    )
    data = afape.Retrospective(frame, problem)
    return data, data.hide(rng.random((n, 4)) < 0.6)


@pytest.mark.filterwarnings("ignore::afape.warnings.SeenRowsWarning")  # judged on its training rows
@every_agent
def test_problems_of_any_kind(kind):
    complete, data = odd_problem()
    agent = fit(make(kind, TINY, epsilon=0.1), data, _zero())
    assert agent.probabilities(np.full((1, 7), np.nan), np.zeros((1, 4), dtype=bool)).shape == (1, 5)
    mine = agent if hasattr(agent, "predict") else _zero()
    cost = afape.true_cost(complete, agent, mine)["total"].value
    assert 0 < cost < 6.5 + 12
    back = type(agent).from_state(agent.state())
    assert afape.true_cost(complete, back, back if hasattr(back, "predict") else mine)["total"].value == cost


@pytest.mark.parametrize("optimizer", ["adamw", "rmsprop", "sgd"])
def test_other_optimisers_and_layers(optimizer):
    _, data = odd_problem()
    agent = make("DQN", {**TINY, "optimizer": optimizer, "hidden": [8]}).fit(data, _zero())
    assert np.isfinite(agent.learning_curve_.to_numpy()).all()
    assert agent.network_.shape.hidden == (8,)
